"""Sections of the page Model that hold for a model of any architecture."""
