"""Every write to the database, by name. What belongs together stands in a file of its own."""

from sweeps.store.merging.databases import merge
from sweeps.store.merging.runs import Merged
from sweeps.store.results.explained import record_causes, record_perturbations
from sweeps.store.runs.claiming import (
    GRACE_SECONDS,
    Claim,
    beat,
    claim,
    end_worker,
    register_worker,
    release,
    release_dead,
    still_held,
)
from sweeps.store.runs.recording import (
    ClaimLosses,
    record,
    record_losses,
    record_lost,
    record_verdict,
)
from sweeps.store.runs.submitting import delete, resume, retry, stop, submit

__all__ = [
    "GRACE_SECONDS", "Claim", "ClaimLosses", "Merged", "beat", "claim", "delete", "end_worker",
    "merge", "record", "record_causes", "record_losses", "record_lost", "record_perturbations",
    "record_verdict", "register_worker", "release", "release_dead", "resume", "retry",
    "still_held", "stop", "submit",
]  # fmt: skip
