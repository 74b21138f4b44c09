"""What a model can do without."""
