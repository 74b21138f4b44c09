"""What the compiled engines share: how they are compiled, where that is kept, and AdamW."""
