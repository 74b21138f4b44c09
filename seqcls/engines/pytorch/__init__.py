"""Training with PyTorch, for whatever the compiled engines do not know."""
