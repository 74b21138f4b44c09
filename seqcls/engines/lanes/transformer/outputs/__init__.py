"""Transformers that write: trained by teacher forcing, and writing."""
