"""Names that have moved."""

from sweeps.store.database import Store, limit_reads

__all__ = ["Store", "limit_reads"]
