"""Languages in which only letter counts decide."""
