"""Tiny sequence classifiers: strings in, trained and measured models out."""

__version__ = "0.3.0"
