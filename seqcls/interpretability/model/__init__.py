"""The model that is asked: trained, as a function of letter counts, and in PyTorch."""
