"""All writes to the database, gathered from one module for each subject."""

from sweeps.store.findings import record_findings
from sweeps.store.merge import merge
from sweeps.store.writes.claiming import (
    Claim,
    beat,
    claim,
    end_worker,
    register_worker,
    release,
    release_dead,
)
from sweeps.store.writes.recording import record, record_losses, record_lost
from sweeps.store.writes.sweep_actions import (
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
    "Claim", "archive", "beat", "claim", "delete", "end_worker", "launch_for_agent", "merge",
    "record", "record_findings", "record_losses", "record_lost", "register_worker", "release",
    "release_dead", "resume", "retry", "stop", "submit", "write_note",
]  # fmt: skip
