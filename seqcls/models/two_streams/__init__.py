"""Architectures that read an input whole, and write the output beside it."""
