"""Uncertainty of shares, medians and differences. Pure functions; no database."""
