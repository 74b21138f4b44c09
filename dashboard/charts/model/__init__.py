"""Charts of one model."""
