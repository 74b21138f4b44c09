"""Reads of sweeps, runs, lengths and losses, as data frames or plain values."""
