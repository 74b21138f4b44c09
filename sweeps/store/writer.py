"""Every write to the database, by name. What belongs together stands in a file of its own."""

from sweeps.store.findings import (
    record_causes,
    record_perturbations,
    record_proof,
    record_verdict,
)
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
)
from sweeps.store.writes.recording import (
    ClaimLosses,
    record,
    record_losses,
    record_lost,
)
from sweeps.store.writes.sweep_actions import (
    LONGEST_NAME,
    LONGEST_NOTE,
    archive,
    delete,
    launch_for_agent,
    resume,
    retry,
    stop,
    submit,
    write_note,
)

__all__ = [
    "GRACE_SECONDS", "LONGEST_NAME", "LONGEST_NOTE", "Claim", "ClaimLosses", "Merged", "archive",
    "beat", "claim", "delete", "end_worker", "launch_for_agent", "merge", "record",
    "record_causes", "record_losses", "record_lost", "record_perturbations", "record_proof",
    "record_verdict", "register_worker", "release", "release_dead", "resume", "retry",
    "stop", "submit", "write_note",
]  # fmt: skip
