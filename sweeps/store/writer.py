"""Every write to the database, by name. What belongs together stands in a file of its own."""

from sweeps.store.merge import Merged, merge
from sweeps.store.reads.workers import GRACE_SECONDS
from sweeps.store.writes.claiming import (
    Claim,
    beat,
    claim,
    end_worker,
    register_worker,
    release,
    release_dead,
    still_held,
)
from sweeps.store.writes.explained import record_causes, record_perturbations
from sweeps.store.writes.recording import (
    ClaimLosses,
    record,
    record_losses,
    record_lost,
    record_verdict,
)
from sweeps.store.writes.sweep_actions import delete, resume, retry, stop, submit

__all__ = [
    "GRACE_SECONDS", "Claim", "ClaimLosses", "Merged", "beat", "claim", "delete", "end_worker",
    "merge", "record", "record_causes", "record_losses", "record_lost", "record_perturbations",
    "record_verdict", "register_worker", "release", "release_dead", "resume", "retry",
    "still_held", "stop", "submit",
]  # fmt: skip
