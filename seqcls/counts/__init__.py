"""Models as functions of letter counts, and where that is exact."""
