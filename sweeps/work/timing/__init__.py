"""Timing a group for a moment, so that what its training will take is known before it begins."""
