"""Every read of the database that pages, charts and reports ask for, by name.

What belongs together stands in a file of its own in `sweeps.store.reads`.
"""

from sweeps.store.database import limit_reads
from sweeps.store.reads.budgets import budget_models, learned_by_budget, trained_further
from sweeps.store.reads.curves import Measure, losses_in_training, median_curves, newest_losses
from sweeps.store.reads.errors import (
    accuracy_by_drawn,
    border_accuracies,
    error_kinds_by_length,
    first_wrong_positions,
)
from sweeps.store.reads.explained import causes, forgettings, not_learned, sensitivity
from sweeps.store.reads.overview import (
    configs_revision,
    configurations,
    count_failing_models,
    count_runs,
    failing_models,
    judge_languages_alike,
    judge_on,
    languages,
    last_lengths,
    longer_lengths,
    model,
    model_seeds,
    models,
    output_shares,
    predictions,
    scores_by_length,
    settings,
    worst_models,
)
from sweeps.store.reads.queries import (
    NO_WEIGHTS,
    StoredModel,
    configs,
    epochs,
    find_run,
    length_scores,
    of_run,
    revision,
    run_config,
    run_status,
    runs_named,
    stored_epochs,
    stored_model,
    why_no_weights,
)
from sweeps.store.reads.selection import KINDS, View, WrittenValue
from sweeps.store.reads.shortcuts import (
    best_shortcut,
    best_shortcuts,
    deciding,
    shortcut_scores,
    shortcut_shares,
)
from sweeps.store.reads.string_queries import (
    EVERY_ERROR,
    NO_ANSWER,
    ErrorSearch,
    breaking_strings,
    count_string_errors,
    string_errors,
    strings_by_drawn,
)
from sweeps.store.reads.sweep_queries import (
    Note,
    SweepOutcome,
    SweepRecord,
    failures,
    members_revision,
    memberships,
    notes,
    specifications,
    sweep_names,
    sweep_outcomes,
    sweep_record,
    sweeps_of_run,
    sweeps_with_models,
)
from sweeps.store.reads.test_sets import stored_datasets
from sweeps.store.tables import SweepState

__all__ = [
    "EVERY_ERROR", "KINDS", "NO_ANSWER", "NO_WEIGHTS", "ErrorSearch", "Measure",
    "Note", "StoredModel", "SweepOutcome", "SweepRecord", "SweepState", "View", "WrittenValue",
    "accuracy_by_drawn", "best_shortcut", "best_shortcuts", "border_accuracies",
    "breaking_strings", "budget_models", "causes", "configs", "configs_revision", "configurations",
    "count_failing_models", "count_runs", "count_string_errors", "deciding", "epochs",
    "error_kinds_by_length", "failing_models", "failures", "find_run", "first_wrong_positions",
    "forgettings", "judge_languages_alike", "judge_on", "languages", "last_lengths",
    "learned_by_budget", "length_scores", "limit_reads", "longer_lengths", "losses_in_training",
    "median_curves", "members_revision", "memberships", "model", "model_seeds", "models",
    "newest_losses", "not_learned", "notes", "of_run",
    "output_shares", "predictions", "revision", "run_config", "run_status",
    "runs_named", "scores_by_length", "sensitivity", "settings", "shortcut_scores",
    "shortcut_shares", "specifications", "stored_datasets", "stored_epochs", "stored_model",
    "string_errors", "strings_by_drawn", "sweep_names", "sweep_outcomes", "sweep_record",
    "sweeps_of_run", "sweeps_with_models", "trained_further",
    "why_no_weights", "worst_models",
]  # fmt: skip
