"""Arithmetic of vectors with a string in each lane, of which this engine's programs are made."""
