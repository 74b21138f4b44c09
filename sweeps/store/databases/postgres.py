"""Names that have moved."""

from sweeps.store.database import take_turns

__all__ = ["take_turns"]
