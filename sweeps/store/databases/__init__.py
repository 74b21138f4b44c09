"""Names that have moved to `sweeps.store.database`, `opening` and `statements`."""
