"""The engine that trains any small sequence model, with a string in each lane of a vector."""
