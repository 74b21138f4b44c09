"""What a model makes of all strings up to a length, and what is proved of those beyond."""
