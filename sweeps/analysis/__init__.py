"""Analyses of stored runs: opened models, causes, suggestions, comparisons."""
