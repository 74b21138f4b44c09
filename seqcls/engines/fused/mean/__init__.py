"""The mean of all states as the readout, from letter counts."""
