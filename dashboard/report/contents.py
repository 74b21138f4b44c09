"""Contents of a report: the sections of the pages, then all misclassified strings."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import pandas as pd

from dashboard import outside
from dashboard.failures import sections as failures
from dashboard.report.html import Details, Links, Part, page
from dashboard.report.strings import failing_models
from dashboard.results import sections as results
from dashboard.section import Section
from dashboard.training import sections as training
from dashboard.words.columns import Column, add_columns
from dashboard.words.sentences import LOOKS_ALIKE
from dashboard.words.tasks import task_names
from seqcls import __version__
from seqcls.errors import SeqclsError
from sweeps.api import Store, language_names, names_of, reading
from sweeps.api.protocols import protocols
from sweeps.api.reading import Note, Selection
from sweeps.grid.written_spec import toml_of

MOST_CONFIGURATIONS = 40
"""Configurations described in words, at most."""

MOST_FAILURES = 20

LONGEST_TITLE = 120
"""Letters; more sweeps are counted."""

add_columns({"run": Column("Run", "whole"), "reason": Column("Why it failed")})


def report(
    store: Store,
    selection: Selection,
    *,
    title: str = "",
    only: str = "",
    pages: Mapping[str, str] | None = None,
) -> str | None:
    """One page on the models of a selection; None where none is finished.

    Args:
        store: the database.
        selection: which models.
        title: the page's; the names of the sweeps where none is given.
        only: a line on which models are shown, where these are not all of their sweeps.
        pages: the file of each sweep, by its name; if none are given, the strings of failing
            models are part of this page.
    """
    models = reading.models(store, selection)
    if not (models["picked"] > 0).any():
        return None
    sweeps = _sweeps_of(store, selection, models)
    named = ", ".join(sweeps)
    title = title or (named if len(named) <= LONGEST_TITLE else f"{len(sweeps):,} sweeps")
    lead = [only] if only else []
    # Notes of several sweeps would not show which sweep each is about.
    if pages is None and len(sweeps) == 1:
        lead = [*_notes(store, sweeps[0]), *lead]
    listed = [] if pages is None else [Part([_list_sweeps(store, pages)])]
    tasks = _tasks(store, selection, models, with_strings=pages is None)
    rest = [] if pages is not None else [_training(store, models, sweeps)]
    links = _links(store, selection, models, pages)
    return page(title, [*listed, *tasks, *rest], lead, links, f"Written by seqcls {__version__}.")


def task_sections(
    store: Store, selection: Selection, models: pd.DataFrame
) -> Iterator[tuple[str, pd.DataFrame, list[Section]]]:
    """Sections of the pages Results and Failures for each task, those with most models first.

    Args:
        selection: which models.
        models: the same, as `sweeps.api.reading.models`.

    Yields:
        The task's name, its models, and its sections.
    """
    tasks = models["config_id"].map(language_names(store))
    for task, name in task_names(tasks.value_counts().index).items():
        own = models[tasks == task]
        of_task = replace(selection, config_ids=tuple(own["config_id"].drop_duplicates().tolist()))
        table = results.configurations(store, of_task)
        listed = () if table.table is None else tuple(table.table["config_id"].tolist())
        sections = [
            table,
            results.by_length(store, of_task, listed),
            failures.causes(store, of_task),
            failures.remedies(store, of_task),
            failures.strings(store, of_task),
            failures.models(store, of_task),
            *outside.sections(store, of_task),
        ]
        yield name, own, [section for section in sections if not section.is_empty]


def _tasks(
    store: Store, selection: Selection, models: pd.DataFrame, *, with_strings: bool
) -> Iterator[Part]:
    """The sections of each task, and its failing models with their strings."""
    several = models["config_id"].map(language_names(store)).nunique() > 1
    for name, own, sections in task_sections(store, selection, models):
        wrong = own[(own["errors"] > 0) & (own["picked"] > 0)]
        wrong = wrong.sort_values("errors", ascending=False)
        details = list(failing_models(store, wrong)) if with_strings else []
        if details:
            # Each is unfolded to its strings below.
            sections = [
                replace(x, table=None) if x.title == failures.WHICH else x for x in sections
            ]
        yield Part(sections, details, name if several else "")


def _sweeps_of(store: Store, selection: Selection, models: pd.DataFrame) -> list[str]:
    """The sweeps of the models, in the order of their making."""
    runs = models.loc[models["picked"] > 0, "run_id"]
    present = {*chain.from_iterable(reading.sweeps_of(store, runs.tolist()).values())}
    known = selection.sweeps or reading.sweep_names(store).values()
    return [name for name in known if name in present and name not in selection.without]


def _notes(store: Store, sweep: str) -> Iterator[str]:
    """Yields a sweep's title, description and note, unchanged, and the day of submission."""
    (key,) = (key for key, name in reading.sweep_names(store).items() if name == sweep)
    note, record = reading.notes(store).get(key, Note()), reading.sweep_record(store, key)
    yield from filter(None, (note.title, record.description, note.note))
    yield f"Submitted {record.created_at[:10]}."


def _list_sweeps(store: Store, pages: Mapping[str, str]) -> Section:
    """The sweeps of a site, as the page Sweeps lists them."""
    listed = training.sweeps(store)
    assert listed.table is not None
    shown = listed.table[listed.table["sweep"].isin(pages)]
    return replace(listed, title="", says=(), table=shown)


def _training(store: Store, models: pd.DataFrame, sweeps: Sequence[str]) -> Part:
    """Training of the models, in words and as specifications, with the failed runs."""
    ids = {name: key for key, name in reading.sweep_names(store).items()}
    failed = pd.concat(
        [reading.failures(store, ids[x], MOST_FAILURES).assign(sweep=x) for x in sweeps]
    )
    failed = failed.rename(columns={"run_id": "run"})[["sweep", "run", "reason"]]
    section = Section("What failed in training", table=failed.head(MOST_FAILURES))
    specifications = [
        Details(name, "specification", code=toml_of(reading.sweep_record(store, ids[name]).spec))
        for name in sweeps
    ]
    details = [*_in_words(store, models), *specifications]
    return Part([] if section.is_empty else [section], details, "How they were trained")


def _in_words(store: Store, models: pd.DataFrame) -> Iterator[Details]:
    """Yields the protocol of each configuration, in words."""
    runs = models[models["picked"] > 0].groupby("config_id")["run_id"].agg(tuple)
    for config_id, name in names_of(store, runs.index.tolist()[:MOST_CONFIGURATIONS]).items():
        try:
            sentences = protocols(store, config_id, runs[config_id])
        except SeqclsError as error:  # Of a package that is not here nothing is known.
            sentences = [str(error)]
        # A backquote of a file's name begins no string of letters.
        plain = [sentence.replace("`", LOOKS_ALIKE) for sentence in sentences]
        yield Details(name, "how it was trained and tested", says=plain)


def _links(
    store: Store, selection: Selection, models: pd.DataFrame, pages: Mapping[str, str] | None
) -> Links:
    """Links of failing runs and sweeps: within the page, or on a site to the pages of sweeps."""
    failing = {*models.loc[models["errors"] > 0, "run_id"]}
    files: dict[Any, str] = {}
    for name, file in (pages or {}).items():
        own = reading.models(store, replace(selection, sweeps=(name,)))
        files |= dict.fromkeys(own["run_id"].tolist(), file)

    def link(opens: str, value: Any) -> str:
        if opens == "sweep":
            return (pages or {}).get(value, "")
        leads = opens == "run" and value in failing
        return f"{files.get(value, '')}#run-{value}" if leads else ""

    return link
