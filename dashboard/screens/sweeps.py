"""Every sweep: what was asked for, how far it is, what failed; stop, resume, retry, delete."""

from dataclasses import replace
from typing import Literal

import pandas as pd
import streamlit as st

from dashboard import actions, data, elements, filters, links, share
from dashboard.launch import panel, starting_point, variants
from dashboard.text import clock, format_value, models_fail, verbatim
from dashboard.views import annotating, budgets, losses, running, shortcuts
from dashboard.words import measures, names
from dashboard.words.outcomes import headline
from seqcls.interpretability.wording import percent
from sweeps.api import open_reader
from sweeps.api.budgets import seed_sentences
from sweeps.api.old_pages import reading, work_logs
from sweeps.api.old_pages.database import control
from sweeps.api.old_pages.reading import Note, Selection, SweepOutcome
from sweeps.grid.written_spec import toml_of
from sweeps.results import OutcomeCounts
from sweeps.terminal import format_duration
from sweeps.work.progress import SweepProgress

MAX_FAILURES = 200

SPECIFICATION_LINES, SPECIFICATION = 30, 480
"""Lines from which on a specification scrolls, and the pixels that it has then."""


def show() -> None:
    header = share.header("Sweeps")
    written = data.sweep_notes()
    everything = data.progress()[::-1]
    if not everything:
        filters.say_none()
        return
    links.say_what_is_not("sweep_id", [sweep.id for sweep in everything])
    matching = _pass_filters(everything)
    sweeps = _list_sweeps(matching, written)
    if not sweeps:
        st.info(
            "All sweeps are archived."
            if matching
            else "No sweep has a model that matches the filters. Clear them in the sidebar."
        )
        return
    left_out = (
        f" {len(matching)} of {len(everything)} {'has' if len(matching) == 1 else 'have'} models "
        "that match the filters; the numbers are of all models of a sweep."
    )
    st.caption(
        "A sweep is a named set of models. Select one to see its details."
        + left_out * (len(matching) < len(everything))
    )
    listed = [sweep.id for sweep in sweeps]
    if asked := links.numbers_of("sweep_id"):
        links.put("sweep_id", [x for x in asked if x in listed])
    chosen = _table(sweeps, written)
    sweep = next(sweep for sweep in sweeps if sweep.id == chosen)
    if sweep.done:
        view = replace(links.thresholds(), sweeps=(sweep.name,))
        share.offer(header, share.file_name(sweep.name), lambda: _models(view), view)
    _sweep(sweep)


def _models(view: Selection) -> pd.DataFrame:
    """Every finished model with its settings."""
    return data.models(view).drop(columns="picked").join(data.settings(), on="config_id")


def _pass_filters(sweeps: list[SweepProgress]) -> list[SweepProgress]:
    """The sweeps that the filters name, if any, and that have a model that matches them."""
    view = filters.current()
    if view == replace(links.thresholds(), without=view.without):
        return sweeps
    known = data.sweeps_with_models(replace(view, without=()))
    return [x for x in sweeps if x.id in known and (not view.sweeps or x.name in view.sweeps)]


def _list_sweeps(sweeps: list[SweepProgress], written: dict[int, Note]) -> list[SweepProgress]:
    """All sweeps but those archived, which are listed on request or where the link names one."""
    archived = {key for key, note in written.items() if note.archived_at is not None}
    if archived and st.toggle(
        f"Show archived ({len(archived)})", key=annotating.ARCHIVED, bind="query-params"
    ):
        return sweeps
    archived -= set(links.numbers_of("sweep_id"))
    named = {*filters.current().sweeps}
    archived -= {sweep.id for sweep in sweeps if sweep.name in named}
    return [sweep for sweep in sweeps if sweep.id not in archived]


def _table(sweeps: list[SweepProgress], written: dict[int, Note]) -> int:
    outcomes, judged = [_outcome(sweep) for sweep in sweeps], links.thresholds()
    shown = pd.DataFrame(
        {
            "name": [sweep.name for sweep in sweeps],
            "failing": [
                outcome.failing / sweep.done if outcome.median is not None else None
                for sweep, outcome in zip(sweeps, outcomes, strict=True)
            ],
            "learned": [_share(outcome.learned, outcome.judged) for outcome in outcomes],
            "generalize": [
                _share(outcome.generalize, outcome.judged_beyond) for outcome in outcomes
            ],
            "title": [written.get(sweep.id, Note()).title for sweep in sweeps],
            "tags": [list(written.get(sweep.id, Note()).tags) for sweep in sweeps],
            "state": [sweep.state for sweep in sweeps],
            "median": [outcome.median for outcome in outcomes],
            "models": [sweep.total for sweep in sweeps],
            "done": [sweep.done / max(1, sweep.total) for sweep in sweeps],
            "failed": [sweep.failed for sweep in sweeps],
        }
    )
    columns = {
        "name": st.column_config.TextColumn("Sweep", pinned=True),
        "title": st.column_config.TextColumn("Title"),
        "tags": st.column_config.ListColumn("Tags"),
        "state": st.column_config.TextColumn(
            "State", help="Done: no models left to train. Stopped: none starts until resumed."
        ),
        "failing": st.column_config.NumberColumn(
            "Failing share", format="percent", help=measures.failing(judged.below)
        ),
        "learned": st.column_config.NumberColumn(
            "Learned",
            format="percent",
            help=f"Of models judged on trained lengths, those that are right on at least "
            f"{percent(judged.learned_at, 1)} of them.",
        ),
        "generalize": st.column_config.NumberColumn(
            "Generalize",
            format="percent",
            help="Of models that learned and are tested on longer strings, those that are right on "
            + ("all" if judged.below >= 1 else f"at least {percent(judged.below, 1)}")
            + " of these.",
        ),
        "median": st.column_config.NumberColumn(
            "Median accuracy", format="percent", help="The median over all models of the sweep."
        ),
        "models": st.column_config.NumberColumn("Models"),
        "done": st.column_config.ProgressColumn(
            "Trained and tested", format="percent", min_value=0, max_value=1
        ),
        "failed": st.column_config.NumberColumn("Training failed"),
    }
    # What no sweep has: nothing, or 0 of it.
    absent = [x for x in ("title", "tags", "failed") if not shown[x].astype(bool).any()]
    shown = shown.drop(columns=absent).dropna(axis="columns", how="all")
    chosen = links.selectable(
        shown,
        [sweep.id for sweep in sweeps],
        "sweep_id",
        mode="single-row-required",
        columns=columns,
    )
    return chosen[0]


def _share(count: int, of: int) -> float | None:
    return count / of if of else None


def _outcome(sweep: SweepProgress) -> SweepOutcome:
    return data.sweep_outcomes(links.thresholds()).get(sweep.id, SweepOutcome(0, None))


def _results(sweep: SweepProgress) -> None:
    """The results in a line, and links to the pages that show them."""
    outcome = _outcome(sweep)
    if outcome.median is None:
        return
    counts = OutcomeCounts(
        sweep.done, outcome.judged, outcome.learned, outcome.judged_beyond, outcome.generalize
    )
    said = headline(counts)
    fail = models_fail(outcome.failing, sweep.done)
    st.markdown(
        f"**{said}** {fail[0].upper()}{fail[1:]} on the whole test; median accuracy "
        f"{percent(outcome.median)}."
    )
    view = replace(links.thresholds(), sweeps=(sweep.name,))
    shortcuts.say_border(view)
    shortcuts.say_unpaired(view)
    with st.container(horizontal=True, key="leads"):
        for page, label in (
            (links.COMPARE_PAGE, "Compare"),
            (links.MAP_PAGE, "Map"),
            (links.FAILING_PAGE, "Failing models"),
        ):
            st.page_link(page, label=f"{label}: this sweep", query_params={"sweep": sweep.name})
    if not _is_imported(sweep.name):
        budgets.offer_more(sweep, links.thresholds())
    for sentence in _seed_sentences((sweep.id,)):
        st.caption(verbatim(sentence))


_seed_sentences = data.cached(seed_sentences)


def _sweep(sweep: SweepProgress) -> None:
    record = data.sweep_record(sweep.id)
    written = data.sweep_notes()
    note = written.get(sweep.id, Note())
    st.subheader(f"Sweep {sweep.id}")
    st.text("\n".join(filter(None, [note.title, record.name, record.description])))
    if note.note:
        st.text(note.note)
    elements.show_chips(_varied_settings(record.name))
    _results(sweep)
    st.fragment(_progress, run_every=running.SECONDS if running.goes_on(sweep) else None)(sweep.id)
    _times(record, sweep)
    _failures(sweep.id)
    if not _is_imported(record.name):
        _specification(record.name, record.spec)
        _log(sweep.id)
    with st.container(horizontal=True):
        annotating.form(sweep.id, note, [tag for x in written.values() for tag in x.tags])
        annotating.archive_button(sweep.id, note)
        _delete(sweep)


def _varied_settings(name: str) -> dict[str, str]:
    """The settings in which the sweep's configurations differ, with their values."""
    members = data.memberships()
    settings = names.settings_that_differ(members[members["sweep"] == name]["config_id"].tolist())
    return {
        str(field): ", ".join(map(format_value, data.sorted_values(settings[field])))
        for field in settings
    }


def _times(record: reading.SweepRecord, sweep: SweepProgress) -> None:
    trained = "none yet" if record.train_seconds is None else format_duration(record.train_seconds)
    times = {
        "Submitted": clock(record.created_at),
        "First model started": clock(record.first_started_at),
        "Last model finished": clock(record.last_finished_at),
        "Total training time": trained,
    }
    if _is_imported(sweep.name):
        times = {"Imported": times["Submitted"]}
    for column, (name, time) in zip(st.columns(4), times.items(), strict=False):
        column.caption(name)
        column.text(time)


def _is_imported(name: str) -> bool:
    """Whether a sweep's models were trained elsewhere, so that none of them can be trained here."""
    members = data.memberships()
    ids = tuple(members[members["sweep"] == name]["config_id"].unique().tolist()[:1])
    return any(config.imported for config in data.some_configs(ids).values())


# It refreshes itself, and so may find what the page around it did not.
@data.explaining()
def _progress(sweep_id: int) -> None:
    """How far a sweep is, and its loss curves; drawn again by themselves while it is trained."""
    store = open_reader()
    for sweep in data.progress():
        if sweep.id != sweep_id:
            continue
        running.show_sweep(store, sweep, "page")
        losses.show(sweep)


def _failures(sweep_id: int) -> None:
    table = reading.failures(open_reader(), sweep_id, MAX_FAILURES)
    if table.empty:
        return
    st.subheader("What failed")
    st.caption("Every failed attempt. Interrupted attempts are retried.")
    st.dataframe(
        table,
        hide_index=True,
        column_config={
            "run_id": "Run",
            "model_seed": "Seed",
            "attempt": "Attempt",
            "at": "When (UTC)",
            "reason": st.column_config.TextColumn("Reason", width="large"),
            "state": st.column_config.TextColumn("Now", help="The model's current state."),
        },
    )


def _specification(name: str, spec: str) -> None:
    st.subheader("Specification")
    st.caption("`seqcls sweep FILE.toml` trains the same models from this file.")
    toml = toml_of(spec)
    with st.container(horizontal=True):
        file_name = f"{share.file_name(name)}.toml"
        st.download_button("Download TOML", toml, file_name, "text/plain", on_click="ignore")
        st.button("Edit as new", key="edit_as_new", on_click=_edit_as_new, args=(name,))
    # Without colors for its syntax, which are too pale on light ground.
    is_long = toml.count("\n") > SPECIFICATION_LINES
    height: int | Literal["content"] = SPECIFICATION if is_long else "content"
    st.code(toml, language=None, wrap_lines=True, height=height)


def _edit_as_new(name: str) -> None:
    """Opens the launch panel on a copy of the sweep, with nothing of what was entered before."""
    panel.open_with(starting_point.of_sweep(name))
    starting_point.take_over(variants.unpack)
    st.session_state["launch_name"] = starting_point.free_name(name)


def _log(sweep_id: int) -> None:
    log = work_logs.read_log(open_reader(), sweep_id)
    with st.expander("Worker log"):
        if log is None:
            st.caption("No worker was started for this sweep from a page.")
        elif not log.strip():
            st.caption("The worker has not written anything yet.")
        else:
            st.code(log, language=None, height=300)


def _delete(sweep: SweepProgress) -> None:
    with st.popover("Delete…", icon=":material/delete:"):
        st.write(
            "Deletes the sweep, and every model that belongs to no other sweep, with its results. "
            "This cannot be undone; an archived sweep is only hidden."
        )
        st.text(sweep.name)
        st.button(
            f"Delete these {sweep.total:,} models",
            key=f"delete {sweep.id}",
            type="primary",
            on_click=actions.delete,
            args=(sweep.id, sweep.name),
            **control(),
        )


show()
