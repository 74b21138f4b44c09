"""Every write to the database, by name. What belongs together stands in a file of its own."""

from sweeps.store.claiming import (
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
from sweeps.store.explained import record_causes, record_perturbations
from sweeps.store.merged_runs import Merged
from sweeps.store.merging import merge
from sweeps.store.recording import (
    ClaimLosses,
    record,
    record_losses,
    record_lost,
    record_verdict,
)
from sweeps.store.submitting import delete, resume, retry, stop, submit

__all__ = [
    "GRACE_SECONDS",
    "Claim",
    "ClaimLosses",
    "Merged",
    "beat",
    "claim",
    "delete",
    "end_worker",
    "merge",
    "record",
    "record_causes",
    "record_losses",
    "record_lost",
    "record_perturbations",
    "record_verdict",
    "register_worker",
    "release",
    "release_dead",
    "resume",
    "retry",
    "still_held",
    "stop",
    "submit",
]
