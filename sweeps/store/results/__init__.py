"""Results as the tables hold them: packed, summed up, read back."""
