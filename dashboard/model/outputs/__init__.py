"""What models that write do with inputs: one by one, in families, and all up to a length."""
