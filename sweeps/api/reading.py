"""The reads of the database that pages, charts and reports use, some of them defined here."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import pandas as pd
from sqlalchemy import select

from sweeps.api.watching import Note as Note
from sweeps.api.watching import notes as notes
from sweeps.results import RANGE_COLUMNS, Outcome
from sweeps.store.database import Store
from sweeps.store.database import limit_reads as limit_reads
from sweeps.store.reads import frames
from sweeps.store.reads.checkpoints import stored_epochs as stored_epochs
from sweeps.store.reads.explained import causes as causes
from sweeps.store.reads.explained import not_learned as not_learned
from sweeps.store.reads.explained import sensitivity as sensitivity
from sweeps.store.reads.frames import sweeps_of as sweeps_of
from sweeps.store.reads.misclassified import accuracy_by_drawn as accuracy_by_drawn
from sweeps.store.reads.misclassified import border_accuracies as border_accuracies
from sweeps.store.reads.misclassified import string_errors as string_errors
from sweeps.store.reads.overview import language_names as language_names
from sweeps.store.reads.overview import settings as settings
from sweeps.store.reads.overview import settings_of as settings_of
from sweeps.store.reads.queries import check_done as check_done
from sweeps.store.reads.queries import configs as configs
from sweeps.store.reads.queries import epochs as epochs
from sweeps.store.reads.queries import find_run as find_run
from sweeps.store.reads.queries import length_scores as length_scores
from sweeps.store.reads.queries import revision as revision
from sweeps.store.reads.queries import run_config as run_config
from sweeps.store.reads.queries import run_status as run_status
from sweeps.store.reads.queries import runs_named as runs_named
from sweeps.store.reads.queries import why_no_weights as why_no_weights
from sweeps.store.reads.selection import Selection as Selection
from sweeps.store.reads.sweep_queries import failures as failures
from sweeps.store.reads.sweep_queries import specifications as specifications
from sweeps.store.reads.sweep_queries import sweep_names as sweep_names
from sweeps.store.reads.sweep_queries import sweep_record as sweep_record
from sweeps.store.shortcuts import best_shortcut as best_shortcut
from sweeps.store.shortcuts import best_shortcuts as best_shortcuts
from sweeps.store.shortcuts import shortcut_scores as shortcut_scores
from sweeps.store.shortcuts import shortcut_shares as shortcut_shares
from sweeps.store.tables import Revision, Run
from sweeps.store.tables import SweepState as SweepState


def configs_revision(store: Store) -> int:
    """Returns a number that is raised whenever configurations are added or deleted."""
    return int(store.value(select(Revision.configs)))


def model_seeds(store: Store) -> list[int]:
    """Returns the model seeds of the database, in order."""
    query = select(Run.model_seed).distinct().order_by(Run.model_seed)
    return store.column(query)


def configurations(store: Store, selection: Selection) -> pd.DataFrame:
    """Returns a row for each configuration, as in `frames.configurations`."""
    return frames.configurations(frames.runs(store, selection))


def models(store: Store, selection: Selection) -> pd.DataFrame:
    """Returns a row for each finished run in scope, in the order of configurations and seeds.

    Returns:
        run_id, config_id, model_seed, accuracy in [0, 1], errors, first_wrong_length (of the
        shortest test strings that it got wrong, of trained lengths or longer; missing where there
        is none, and of runs that have not learned), failing and picked (as 0 or 1), outcome (one of
        `Outcome`), learned (as 0 or 1; missing where it is not known on trained lengths),
        accuracy_within and accuracy_beyond in [0, 1], on trained and on longer lengths;
        `RANGE_COLUMNS`; and where a proof is stored, every_length and refuted_by.
    """
    done = frames.finished_runs(store, selection)
    return for_pages(done.sort_values(["config_id", "model_seed"]))


def model(store: Store, run_id: int, selection: Selection | None = None) -> pd.DataFrame:
    """Returns the row of a run in `models`; none where it is not done or does not exist.

    Args:
        run_id: the run, in the scope of the selection or not.
        selection: has the thresholds of failing and learning, if not the defaults.
    """
    # The run is shown whatever its sweep: only the thresholds of the selection apply.
    chosen = replace(selection or Selection(), sweeps=(), without=(), model_seeds=())
    return models(store, replace(chosen, config_ids=None, run_ids=(run_id,)))


def for_pages(found: pd.DataFrame) -> pd.DataFrame:
    """Returns the columns of `models` of a frame of runs."""
    errs = (found["wrong"] > 0) & (found["outcome"] != Outcome.NOT_LEARNED)
    shown = frames.whole(found).assign(
        # The length that is stored is one less than that of the shortest errors.
        first_wrong_length=(found["solved_length"] + 1).where(errs),
        **{name: found[name].astype("int64") for name in ("failing", "picked")},
        learned=found["learned"].astype("Int64"),
    )
    shown = shown.rename(columns={"wrong": "errors"})
    proofs = ["every_length", "refuted_by"] if found["every_length"].notna().any() else []
    columns = ["run_id", "config_id", "model_seed", "accuracy", "errors", "failing", "outcome"]
    columns += ["learned", "accuracy_within", "accuracy_beyond", "picked", *RANGE_COLUMNS]
    return shown[[*columns, "first_wrong_length", *proofs]].reset_index(drop=True)


def members_revision(store: Store) -> int:
    """Returns a number that is raised whenever a sweep or the set of its runs changes."""
    return int(store.value(select(Revision.members)))


@contextmanager
def one_moment(store: Store) -> Iterator[None]:
    """Opens a block that reads one snapshot of a database; it blocks no writer.

    In a file that is not in write-ahead mode each block of `Store.read` is a snapshot of its own: a
    longer one would block writers.
    """
    held = ExitStack()
    db = held.enter_context(store.read())
    is_file = db.dialect.name == "sqlite"
    if is_file and db.exec_driver_sql("PRAGMA journal_mode").scalar() != "wal":
        # Each read within the block opens its own snapshot then.
        held.close()
    try:
        yield
    finally:
        # Outside of the block's error handling: the error is one of the page.
        held.close()
