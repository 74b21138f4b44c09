"""Sections on sweeps: their progress, what people do to them and write about them."""
