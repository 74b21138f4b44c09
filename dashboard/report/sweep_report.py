"""The report of sweeps as HTML."""

import html
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from dashboard import data
from dashboard.report import failing_models
from dashboard.report.document import (
    by_budget,
    by_length,
    by_seed,
    document,
    embed_data,
    mechanisms,
    quiet,
    section,
)
from dashboard.report.failing_models import causes_of_models, remedies
from dashboard.text import models_fail
from dashboard.views import budgets, configurations, protocol, shortcuts
from dashboard.views.scores import MAX_ROWS
from dashboard.words import measures, names, outcomes
from seqcls import __version__
from seqcls.interpretability.wording import percent
from seqcls.theory.table import NOT_KNOWN
from sweeps.api import Store
from sweeps.api.old_pages import reading
from sweeps.api.old_pages.reading import Note, Selection, SweepRecord
from sweeps.grid.written_spec import toml_of
from sweeps.results import BORDER_SHARES, GENERALIZING, Outcome, setting_names

MOST_SWEEPS = 100
"""That are listed on a page, the latest; a page that leads to the pages of sweeps lists all."""

MOST_LISTED = 200
"""Configurations in the table."""

MOST_FAILURES = 20

LONGEST_TITLE = 120
"""Letters; more sweeps are counted."""


@dataclass(frozen=True, eq=False)
class _ReportSweep:
    """A sweep that has models on the page."""

    record: SweepRecord
    note: Note
    models: pd.DataFrame
    """The frame of `sweeps.store.reads.overview.models`."""


@dataclass(frozen=True, eq=False)
class _ReportPage:
    """What a page is made of; as the arguments of `report`."""

    store: Store
    view: Selection
    models: pd.DataFrame
    """All finished ones in scope: those that the view picks are listed and drawn."""
    sweeps: Sequence[_ReportSweep]
    title: str
    only: str
    pages: Mapping[str, str] | None


def report(
    store: Store,
    view: Selection,
    *,
    title: str = "",
    only: str = "",
    pages: Mapping[str, str] | None = None,
    beside: bool = False,
) -> str | None:
    """One page on the models of a view; None where none is finished.

    Args:
        store: the database.
        view: which models.
        title: the page's; the names of the sweeps where none is given.
        only: a line on which models are shown, where these are not all of their sweeps.
        pages: the file that has the strings of each sweep's models, by the sweep's name; where
            none are given, they stand in this page.
        beside: whether what draws the charts is a file beside the page.
    """
    with data.reading_from(store), data.at_one_revision():
        models = data.models(view)
        if not (models["picked"] > 0).any():
            return None
        sweeps = _sweeps(view)
        named = ", ".join(sweep.record.name for sweep in sweeps)
        title = title or (named if len(named) <= LONGEST_TITLE else f"{len(sweeps):,} sweeps")
        page = _ReportPage(store, view, models, sweeps, title, only, pages)
        return document(title, "\n".join(_parts(page)), beside=beside)


def _sweeps(view: Selection) -> list[_ReportSweep]:
    """The sweeps of the models, in the order of their making."""
    notes, sweeps = data.sweep_notes(), []
    known = {name: key for key, name in data.sweep_names().items()}
    named = view.sweeps or known
    for name in (name for name in known if name in named and name not in view.without):
        models = data.models(replace(view, sweeps=(name,)))
        if (models["picked"] > 0).any():
            key = known[name]
            sweeps.append(_ReportSweep(data.sweep_record(key), notes.get(key, Note()), models))
    return sweeps


def _parts(page: _ReportPage) -> Iterator[str]:
    view, models, pages = page.view, page.models, page.pages
    yield _head(page)
    table = configurations.table(view)
    tested = table[table["seeds"] > 0]
    yield section(
        "Configurations", _table(table, view), _worst_first(table), _no_better(tested, view)
    )
    yield section("Accuracy by string length", *by_length(view, tested))
    yield section("Seed by seed", *by_seed(view, tested))
    yield section(budgets.TITLE, *by_budget(view, tested))
    named = names.configuration_names(tested["config_id"].head(MAX_ROWS).tolist(), view)
    every = models[(models["failing"] > 0) & (models["picked"] > 0)]
    every = every.sort_values("errors", ascending=False)
    wrong = every[every["config_id"].isin(named)]
    causes = causes_of_models(page.store, wrong, view.learned_at)
    if every.empty:
        none = "No model that matches the filters fails." if models["failing"].any() else ""
        yield section("Failing seeds", f"<p>{none or 'No model fails.'}</p>")
    else:
        said = _left_out(every, wrong, causes, len(tested))
        listed = failing_models.models(every, causes, named, view) if pages is None else ()
        parts = mechanisms(wrong, causes, named)
        yield section("Failing seeds", said, *parts, *listed)
        yield section("What may help", *remedies(wrong, causes, named, pages is not None, view))
    picked = models[models["picked"] > 0]
    yield section("Configurations in full", *protocol.in_full(picked, named))
    yield section("What failed in training", _failures(page.store, page.sweeps))
    yield section("Specifications", *_specifications(page.sweeps))
    if pages is not None:
        runs = {
            run: pages[x.record.name]
            for x in page.sweeps
            if x.record.name in pages
            for run in x.models["run_id"].tolist()
        }
        yield embed_data("pages", runs)


def _left_out(every: pd.DataFrame, wrong: pd.DataFrame, causes: pd.DataFrame, tested: int) -> str:
    """Which failing models a page says nothing of, and of which it knows no causes."""
    said = []
    if tested > MAX_ROWS:
        said.append(
            f"Causes and remedies are of the worst {MAX_ROWS} of {tested:,} configurations, which "
            f"have {len(wrong):,} of the {len(every):,} failing models."
        )
    known = causes["run_id"].nunique()
    if 0 < known < len(wrong):
        said.append(f"Causes are known of {known:,} of {len(wrong):,} failing models.")
    return quiet(" ".join(said)) if said else ""


def _head(page: _ReportPage) -> str:
    models, sweeps, view = page.models, page.sweeps, page.view
    which = ""
    if view.model_seeds or view.config_ids is not None:
        which = " that match the filters" if page.only else " of this report"
        if page.only and len(models) == 1:
            which = " that matches the filters"
    fail = models_fail(int(models["failing"].sum()), len(models), which)
    every = replace(view, failing=False, outcomes=(), kind=None)
    table, came_to = configurations.table(every), data.count_outcomes(every)
    words = measures.words_of(models["config_id"]).words
    picked = int(models["picked"].sum())
    drawn = ""
    if picked < len(models):
        drawn = (
            f" {picked:,} of these {len(models):,} are listed and drawn, as filtered; shares and "
            "medians cover all."
        )
    listed = ""
    if len(sweeps) > 1 or page.pages is not None:
        listed = _list(sweeps, view, page.pages or {})
    means = measures.failing(page.view.below, words)
    further = len(data.trained_further(every))
    known = [outcomes.details(came_to, words), budgets.describe_further(further)]
    known.append(outcomes.meaning(words, view.learned_at, view.below))
    known.append(configurations.describe_unknown(table, models))
    said = "" if len(sweeps) != 1 else "".join(_write_notes(sweeps[0]))
    return (
        f"<h1>{html.escape(page.title)}</h1>\n{said}{quiet(page.only) if page.only else ''}\n"
        f"<p><strong>{html.escape(outcomes.headline(came_to, words))}</strong></p>\n"
        f"{quiet(' '.join(filter(None, known)))}\n"
        f"<p><strong>{fail[0].upper()}{fail[1:]}</strong> on the whole test. Failing: "
        f"{html.escape(means)} Median accuracy {percent(models['accuracy'].median())}. "
        f"{shortcuts.describe_border(every)}{drawn}</p>\n"
        f"{listed}\n"
        f"{quiet(f'Written by seqcls {__version__}.')}"
    )


def _write_notes(sweep: _ReportSweep) -> Iterator[str]:
    """What people wrote about a sweep, as it is."""
    for text in (sweep.note.title, sweep.record.description, sweep.note.note):
        if text:
            yield f'<p class="note">{html.escape(text)}</p>\n'
    yield quiet(f"Submitted {sweep.record.created_at[:10]}.")


def _list(sweeps: Sequence[_ReportSweep], view: Selection, pages: Mapping[str, str]) -> str:
    """A row a sweep."""
    rows = []
    listed = sweeps if pages else sweeps[-MOST_SWEEPS:]
    for sweep in listed:
        name, models = html.escape(sweep.record.name), sweep.models
        if sweep.record.name in pages:
            name = f'<a href="{pages[sweep.record.name]}">{name}</a>'
        about = sweep.note.title or sweep.record.description
        own = tuple(models["run_id"].tolist())
        judged = Selection(run_ids=own, learned_at=view.learned_at, below=view.below)
        border = shortcuts.describe_border(judged)
        cells = [
            *_count_learned(models),
            f"{int(models['failing'].sum()):,} of {len(models):,}",
            f"{percent(models['accuracy'].median())}{_small(border)}",
            sweep.record.created_at[:10],
        ]
        rows.append(
            f"<tr><td>{name}{_small(about)}</td>{''.join(f'<td>{x}</td>' for x in cells)}</tr>"
        )
    heads = ("Sweep", "Learned", "Generalize", "Failing", "Median accuracy", "Submitted")
    head = "".join(f"<th>{x}</th>" for x in heads)
    cut = f"The table has the latest {len(listed)} of {len(sweeps):,} sweeps."
    said = quiet(cut) if len(listed) < len(sweeps) else ""
    return f'<div class="wide"><table><tr>{head}</tr>{"".join(rows)}</table></div>{said}'


def _small(text: str) -> str:
    return f"<br><small>{html.escape(text)}</small>" if text else ""


def _count_learned(models: pd.DataFrame) -> tuple[str, str]:
    """How many models learned, of those judged, and how many of these generalize."""
    came_to = models["outcome"].value_counts().to_dict()
    judged = int(models["learned"].notna().sum())
    learned = int((models["learned"] == 1).sum())
    right = sum(came_to.get(each, 0) for each in GENERALIZING)
    beyond = right + came_to.get(Outcome.FAILS_BEYOND, 0)
    return (
        f"{learned:,} of {judged:,}" if judged else "not known",
        f"{right:,} of {beyond:,}" if beyond else "",
    )


def _worst_first(table: pd.DataFrame) -> str:
    words = measures.words_of(table["config_id"]).words
    waiting = int(table["unfinished"].sum() + table["failed"].sum())
    unfinished = f" {waiting:,} runs are not trained and are excluded." if waiting else ""
    config_ids = tuple(table["config_id"].tolist())
    trained_on = data.trained_on(config_ids) or data.without_pairs(config_ids)
    tested = f" {trained_on}" if trained_on else ""
    shortcut = f" Shortcut: {measures.SHORTCUT}" if table["shortcut_reader"].notna().any() else ""
    if table[list(BORDER_SHARES)].notna().any(axis=None):
        shortcut = f" Random: {measures.RANDOM} Border: {measures.BORDER}{shortcut}"
    more = len(table) - MOST_LISTED
    cut = f" The table has the first {MOST_LISTED} of {len(table):,}." if more > 0 else ""
    return quiet(
        "Worst first: by the share that generalizes of those that learned, then by the share that "
        "learned. Accuracy is a median over seeds, solved length over those that learned; "
        "intervals are 95%. "
        f"Solved length: {measures.solved_length(words)}{shortcut}{unfinished}{tested}{cut}"
    )


def _no_better(table: pd.DataFrame, view: Selection) -> str:
    """The configurations that are no better than a shortcut reader."""
    decided = shortcuts.decided_sentence(table)
    said = shortcuts.sentences(table)
    if not said:
        return quiet(decided) if decided else ""
    named = names.configuration_names(list(said)[:MAX_ROWS], view)
    items = "".join(
        f"<li>{html.escape(f'{name}: {shortcuts.in_a_list(said[config_id])}.')}</li>"
        for config_id, name in named.items()
    )
    more = f" The first {MAX_ROWS} of {len(said):,}." if len(said) > MAX_ROWS else ""
    return f"<ul>{items}</ul>{quiet(f'{shortcuts.WHEN_NO_BETTER}{more} {decided}'.strip())}"


MAY_BE_EMPTY = ("generalize, of those", "95% of generalizing", "95% of accuracy", "solved length")
"""Columns that are left out where nothing stands in them."""


def _table(table: pd.DataFrame, view: Selection) -> str:
    table = table.head(MOST_LISTED)
    settings = setting_names(table)
    named = names.configuration_names(table["config_id"].tolist(), view)
    table = table.assign(configuration=table["config_id"].map(named))
    naming = ["configuration", *["sweeps"] * (table["sweeps"].nunique() > 1)]
    tested = table["seeds"] > 0
    results = {
        "learned": table["learned_of"].fillna("not known"),
        "generalize, of those": table["generalize_of"].fillna(""),
        **({"every length": table["every_length"]} if table["every_length"].any() else {}),
        "95% of generalizing": table["generalizing_interval"].fillna(""),
        "failing": (table["failing"].astype(str) + " of " + table["seeds"].astype(str)),
        "95% of failing": table["failing_interval"].fillna(""),
        "failing seeds": table["failing_seeds"],
        "median accuracy": table["median_accuracy"].map(percent),
        "95% of accuracy": table["interval"].fillna(""),
        **{x: shortcuts.within_and_beyond(table, x) for x in ("random", "border", "shortcut")},
        # Of seeds that have not learned, no length is told.
        "solved length": table["median_solved_length"]
        .map(measures.solved_or_none)
        .where((table["judged"] == 0) | (table["learned"] > 0), ""),
    }
    shown = table[naming].assign(**{name: x.where(tested, "") for name, x in results.items()})
    shown = shown.drop(columns=[x for x in MAY_BE_EMPTY if (shown[x] == "").all()])
    if table["shortcut_reader"].isna().all():
        del shown["shortcut"]
    if table[list(BORDER_SHARES)].isna().all(axis=None):
        shown = shown.drop(columns=["random", "border"])
    if (table["predicted"] != NOT_KNOWN).any():
        shown["predicted"] = table["predicted"]
    shown = shown.join(table[settings])
    shown = shown.rename(columns={"sweeps": "sweep"})
    # Of models trained elsewhere, fields of ours are None, which would be written as a word.
    shown = shown.astype(object).where(shown.notna(), "")
    return f'<div class="wide">{shown.to_html(index=False, border=0)}</div>'


def _failures(store: Store, sweeps: Sequence[_ReportSweep]) -> str:
    """The latest attempts that failed, with their reasons."""
    rows = []
    for sweep in sweeps:
        failures = reading.failures(store, sweep.record.id, MOST_FAILURES + 1)
        rows += [
            f"<tr><td>{html.escape(sweep.record.name)}</td><td>{row['run_id']}</td>"
            f"<td>{html.escape(row['reason'])}</td></tr>"
            for row in failures.to_dict("records")
        ]
    if not rows:
        return ""
    head = "<tr><th>Sweep</th><th>Run</th><th>Reason</th></tr>"
    shown = "".join(rows[:MOST_FAILURES])
    cut = f"More than these {MOST_FAILURES} attempts failed; `seqcls runs --json` lists each run's."
    said = quiet(cut) if len(rows) > MOST_FAILURES else ""
    return f'<div class="wide words"><table>{head}{shown}</table></div>{said}'


def _specifications(sweeps: Sequence[_ReportSweep]) -> Iterator[str]:
    yield from map(_specification, sweeps[-MAX_ROWS:])
    if len(sweeps) > MAX_ROWS:
        yield quiet(f"These are the latest {MAX_ROWS} of {len(sweeps):,} sweeps.")


def _specification(sweep: _ReportSweep) -> str:
    return (
        f"<details><summary>{html.escape(sweep.record.name)}</summary>"
        f"<pre>{html.escape(toml_of(sweep.record.spec))}</pre></details>"
    )
