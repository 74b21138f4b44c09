"""Every read of the database that pages, charts and reports ask for, by name.

What belongs together stands in a file of its own in `sweeps.store.reads`.
"""

from sweeps.api.old_pages.output_errors import error_kinds_by_length, first_wrong_positions
from sweeps.api.old_pages.overview import (
    configs_revision,
    configurations,
    count_runs,
    members_revision,
    memberships,
    model,
    model_seeds,
    models,
    scores_by_length,
    stored_epochs,
    sweeps_of_run,
    worst_models,
)
from sweeps.api.old_pages.searching import (
    EVERY_ERROR,
    ErrorSearch,
    string_errors,
    strings_by_drawn,
)
from sweeps.api.old_pages.store_shortcuts import best_shortcuts
from sweeps.api.watching import Note, notes
from sweeps.store.database import limit_reads
from sweeps.store.reads.checkpoints import StoredModel, of_run, stored_model
from sweeps.store.reads.explained import causes, forgettings, not_learned, sensitivity
from sweeps.store.reads.misclassified import (
    NO_ANSWER,
    accuracy_by_drawn,
    border_accuracies,
)
from sweeps.store.reads.overview import (
    language_names,
    last_lengths,
    settings,
    settings_of,
)
from sweeps.store.reads.queries import (
    NO_WEIGHTS,
    configs,
    epochs,
    find_run,
    length_scores,
    names_of,
    revision,
    run_config,
    run_status,
    runs_named,
    why_no_weights,
)
from sweeps.store.reads.selection import KINDS, Selection, WrittenValue
from sweeps.store.reads.shortcuts import (
    best_shortcut,
    deciding,
    shortcut_scores,
    shortcut_shares,
)
from sweeps.store.reads.sweep_queries import (
    SweepRecord,
    failures,
    specifications,
    sweep_names,
    sweep_outcomes,
    sweep_record,
)
from sweeps.store.reads.test_sets import stored_datasets
from sweeps.store.tables import SweepState

__all__ = [
    "EVERY_ERROR",
    "KINDS",
    "NO_ANSWER",
    "NO_WEIGHTS",
    "ErrorSearch",
    "Note",
    "Selection",
    "StoredModel",
    "SweepRecord",
    "SweepState",
    "WrittenValue",
    "accuracy_by_drawn",
    "best_shortcut",
    "best_shortcuts",
    "border_accuracies",
    "causes",
    "configs",
    "configs_revision",
    "configurations",
    "count_runs",
    "deciding",
    "epochs",
    "error_kinds_by_length",
    "failures",
    "find_run",
    "first_wrong_positions",
    "forgettings",
    "language_names",
    "last_lengths",
    "length_scores",
    "limit_reads",
    "members_revision",
    "memberships",
    "model",
    "model_seeds",
    "models",
    "names_of",
    "not_learned",
    "notes",
    "of_run",
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
    "stored_datasets",
    "stored_epochs",
    "stored_model",
    "string_errors",
    "strings_by_drawn",
    "sweep_names",
    "sweep_outcomes",
    "sweep_record",
    "sweeps_of_run",
    "why_no_weights",
    "worst_models",
]  # fmt: skip
