"""The compiled engine: one member after another, from counts to AdamW in machine code."""
