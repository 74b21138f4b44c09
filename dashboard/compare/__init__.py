"""Sections of the pages that compare configurations."""
