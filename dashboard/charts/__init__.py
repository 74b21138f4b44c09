"""Data frames to charts: pure functions."""
