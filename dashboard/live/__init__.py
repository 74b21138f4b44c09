"""What a model makes of a string as it is typed, and epoch by epoch as a film: no page is rerun."""
