"""sweeps.store.reads."""
