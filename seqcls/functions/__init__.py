"""What follows from an input: languages ask whether it was written, transductions write it."""
