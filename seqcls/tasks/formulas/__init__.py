"""Formulas over letter counts."""
