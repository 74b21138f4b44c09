"""Languages of strings that say, after a marker, what follows from what stands before it."""
