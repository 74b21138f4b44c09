"""Reads of misclassified strings."""
