"""Writes, each one transaction, and the stored rows that they check and copy."""
