"""Every read of the database that pages, charts and reports ask for, by name.

What belongs together stands in a file of its own in `sweeps.store.reads`.
"""

from sweeps.api.overview import (
    configs_revision,
    configurations,
    members_revision,
    memberships,
    model,
    model_seeds,
    models,
    one_moment,
    scores_by_length,
    stored_epochs,
    sweeps_of_run,
    worst_models,
)
from sweeps.api.watching import Note, notes
from sweeps.store.database import limit_reads
from sweeps.store.reads.checkpoints import of_run, stored_model
from sweeps.store.reads.explained import causes, forgettings, not_learned, sensitivity
from sweeps.store.reads.misclassified import (
    accuracy_by_drawn,
    border_accuracies,
    string_errors,
)
from sweeps.store.reads.overview import (
    language_names,
    settings,
    settings_of,
)
from sweeps.store.reads.queries import (
    check_done,
    configs,
    epochs,
    find_run,
    length_scores,
    revision,
    run_config,
    run_status,
    runs_named,
    why_no_weights,
)
from sweeps.store.reads.selection import Selection
from sweeps.store.reads.shortcuts import (
    best_shortcut,
    best_shortcuts,
    deciding,
    shortcut_scores,
    shortcut_shares,
)
from sweeps.store.reads.sweep_queries import (
    failures,
    specifications,
    sweep_names,
    sweep_record,
)
from sweeps.store.tables import SweepState

__all__ = [
    "Note",
    "Selection",
    "SweepState",
    "accuracy_by_drawn",
    "best_shortcut",
    "best_shortcuts",
    "border_accuracies",
    "causes",
    "check_done",
    "configs",
    "configs_revision",
    "configurations",
    "deciding",
    "epochs",
    "failures",
    "find_run",
    "forgettings",
    "language_names",
    "length_scores",
    "limit_reads",
    "members_revision",
    "memberships",
    "model",
    "model_seeds",
    "models",
    "not_learned",
    "notes",
    "of_run",
    "one_moment",
    "revision",
    "run_config",
    "run_status",
    "runs_named",
    "scores_by_length",
    "sensitivity",
    "settings",
    "settings_of",
    "shortcut_scores",
    "shortcut_shares",
    "specifications",
    "stored_epochs",
    "stored_model",
    "string_errors",
    "sweep_names",
    "sweep_record",
    "sweeps_of_run",
    "why_no_weights",
    "worst_models",
]  # fmt: skip
