"""Specifications of sweeps, their expansion into runs, and groups of runs of one shape."""
