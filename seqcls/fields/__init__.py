"""What the fields of a configuration say: which of them are read, and those of foreign models."""
