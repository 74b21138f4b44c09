"""Recurrent networks that write: trained by teacher forcing, and writing."""
