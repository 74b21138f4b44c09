"""Sections of the page that compares two configurations, or two models."""
