"""sweeps.store.writes."""
