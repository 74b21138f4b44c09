"""The Python interface: the functions behind every command and page.

from sweeps.api import errors, lengths, open_store, runs, submit, work

store = open_store("heads.db")
submit(store, "heads.toml")
work(store)
runs(store, sweep="heads")
"""

import ast
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seqcls.errors import PluginError

if TYPE_CHECKING:
    from sweeps.api.baselines import compare_all
    from sweeps.api.budgets import more, seeds
    from sweeps.api.comparisons import compare
    from sweeps.api.exports import export
    from sweeps.api.failures import in_both_precisions
    from sweeps.api.first_question import try_task
    from sweeps.api.giving import give
    from sweeps.api.importing import import_predictions, import_strings, log_results
    from sweeps.api.importing import kind_of_file as kind_of_file
    from sweeps.api.languages import populations
    from sweeps.api.loading import load_weights
    from sweeps.api.models import (
        ablate,
        automaton,
        automaton_inside,
        config,
        explain,
        family,
        minimal,
        model,
        patch,
        predict,
        proofs,
        rules,
        shortest,
        states,
        verdict,
    )
    from sweeps.api.outcomes import configurations
    from sweeps.api.protocols import protocol
    from sweeps.api.proving import prove
    from sweeps.api.results import FIRST as FIRST
    from sweeps.api.results import (
        by_drawn,
        causes,
        errors,
        errors_of_run,
        lengths,
        remedies,
        runs,
        sensitive,
    )
    from sweeps.api.results import remedies as helps  # noqa: F401 - its name until 0.3
    from sweeps.api.strings import draw, shortcuts
    from sweeps.api.sweeping import delete, engines, estimate, fit_shortcuts, status, submit, work
    from sweeps.api.task_theory import theory
    from sweeps.datasets.summary import summary as data
    from sweeps.store.convert import convert
    from sweeps.store.database import Store as Store
    from sweeps.store.merge import merge
    from sweeps.store.opening import existing as existing
    from sweeps.store.opening import open_reader as open_reader
    from sweeps.store.opening import open_writer as open_store
    from sweeps.store.opening import open_writer as open_writer
    from sweeps.store.opening import pack
    from sweeps.store.reads.explained import forgettings as forgettings
    from sweeps.store.reads.frames import shortest_tested as shortest_tested
    from sweeps.store.reads.misclassified import border_accuracies as border_accuracies
    from sweeps.store.reads.overview import language_names as language_names
    from sweeps.store.reads.queries import configs as configs
    from sweeps.store.reads.queries import find_run as find_run
    from sweeps.store.reads.queries import names_of as names_of
    from sweeps.store.reads.queries import run_config as run_config
    from sweeps.store.reads.selection import Selection as Selection
    from sweeps.store.shortcuts import deciding as deciding
    from sweeps.store.tables import RunState as RunState
    from sweeps.store.verification import damage_of_last_opened as damage_of_last_opened
    from sweeps.store.verification import verify
    from sweeps.store.writes.sweep_actions import resume, retry, stop


__all__ = [
    "ablate", "automaton", "automaton_inside", "by_drawn", "causes", "compare", "compare_all",
    "config", "configurations", "convert", "data",
    "delete", "draw", "engines", "errors", "errors_of_run", "estimate", "explain", "export",
    "family", "figures", "fit_shortcuts", "give", "import_predictions", "import_strings",
    "in_both_precisions", "lengths", "load_weights", "log_results", "merge", "minimal", "model",
    "more", "open_store", "pack", "patch", "populations", "predict", "proofs", "protocol", "prove",
    "remedies", "report", "resume", "retry", "rules", "runs", "seeds", "sensitive", "shortcuts",
    "shortest", "states", "status", "stop", "submit", "theory", "try_task", "verdict", "verify",
    "work",
]  # fmt: skip

# The module of each name, imported when the name is first used: commands start faster.
_NAMES = {
    name.asname or name.name: (str(part.module), name.name)
    # The imports under TYPE_CHECKING are the only list, so that type checkers see the same names.
    for block in ast.parse(Path(__file__).read_text(encoding="utf-8")).body
    for part in (block.body if isinstance(block, ast.If) else ())
    if isinstance(part, ast.ImportFrom)
    for name in part.names
}


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, named = _NAMES[name]
    # The next access finds the name without coming here.
    globals()[name] = found = getattr(import_module(module), named)
    return found


def __dir__() -> list[str]:
    return __all__


def figures(
    store: "Store", run: int | str, strings: str | Sequence[str], epoch: int | None = None
) -> list[Any]:
    """Draws every figure of a model for some strings, as charts that a notebook shows.

    Args:
        epoch: the epoch of the weights; the best one by default.

    Raises:
        UnknownRunError: as `predict`, or there are no weights of that epoch.
        InvalidStringError: a string is not over this alphabet, or is too long to be drawn.
        PluginError: the dashboard, whose charts these are, is not installed.
    """
    from sweeps.store.reads.selection import as_list

    if not (drawn := as_list(strings)):
        return []
    charts: list[Any] = _of_the_dashboard("figures")(store, run, drawn, epoch)
    return charts


def report(store: "Store", sweep: str | Sequence[str], *more: str, **chosen: Any) -> str:
    """Renders sweeps as one self-contained HTML page: table, charts, failing strings and causes.

    Args:
        store: the database.
        sweep: the name of a sweep, or several.
        *more: further names.
        **chosen: the selection of runs: `model_seeds`, `failing`, `outcome`, `learned_at`, `below`,
            and values of fields, as `hidden_size=16`.

    Raises:
        UnknownRunError: there is no such sweep, or none of their runs is finished.
        PluginError: the dashboard, whose charts these are, is not installed.
    """
    from sweeps.store.reads.selection import as_list

    page: str = _of_the_dashboard("report")(store, *as_list(sweep), *more, **chosen)
    return page


def _of_the_dashboard(name: str) -> Callable[..., Any]:
    """Loads a function of the dashboard, which this package may not import, by its entry point."""
    from importlib.metadata import entry_points

    # An entry point inverts the dependency.
    for known in entry_points(group="seqcls.api", name=name):
        made: Callable[..., Any] = known.load()
        return made
    raise PluginError(
        f"{name}: the dashboard, which draws it, is not installed; `pip install seqcls` installs it"
    )
