"""One sweep: what came of it, what can be done to it, and what it is made of."""

from functools import partial
from typing import Any

import streamlit as st

from dashboard import actions, data, page
from dashboard.actions import control
from dashboard.text import clock, error_text, without_folder
from dashboard.training import running, sections
from seqcls.errors import SeqclsError
from seqcls.text import as_argument
from sweeps.api import Selection, budgets, open_reader, watching
from sweeps.grid.seeds import EXPECTED
from sweeps.grid.written_spec import toml_of
from sweeps.results import LEARNED_AT, OutcomeCounts, describe_counts
from sweeps.terminal import format_duration
from sweeps.work.progress import SweepProgress

LONGER = "4x"
"""The budget that a page offers; the command takes any."""

_record = data.cached(watching.sweep_record)
_failures = data.cached(sections.failures)
_losses = data.cached(sections.losses)
_protocol = data.cached(sections.protocol)
_seed_sentences = data.cached(budgets.seed_sentences)


def show(name: str) -> None:
    """Draws it below the table of all sweeps."""
    sweep = next((x for x in data.progress() if x.name == name), None)
    if sweep is None:
        return
    record, note = _record(sweep.id), data.sweep_notes().get(sweep.id, watching.Note())
    counts = data.configurations(Selection(sweeps=(name,)))
    st.header(page.plain(note.title or name), anchor=False)
    _say(sweep, record, note, OutcomeCounts.from_configurations(counts))
    # Imported models cannot be trained any further here.
    is_own = watching.is_trained_here(record.spec)
    with st.container(horizontal=True, vertical_alignment="center"):
        if sweep.done:
            query = {"sweep": name}
            st.page_link(
                page.RESULTS, label="Results", icon=":material/table_chart:", query_params=query
            )
            st.page_link(
                page.FAILURES, label="Failures", icon=":material/search:", query_params=query
            )
        if is_own:
            _grow(sweep, int((counts["judged"] - counts["learned"]).sum()))
            st.page_link(
                page.NEW_SWEEP,
                label="Start a new one from it",
                icon=":material/edit_note:",
                query_params={"start": name},
            )
        _describe(sweep.id, note)
        _archive(sweep.id, is_archived=note.archived_at is not None)
    if sweep.failed or sweep.state == "running":
        page.render(_failures(sweep.id), "failures")
    seconds = running.SECONDS if running.goes_on(sweep) else None
    st.fragment(partial(_draw_losses, sweep), run_every=seconds)()
    if is_own:
        _made_of(sweep, record)


def _say(sweep: SweepProgress, record: Any, note: watching.Note, counts: OutcomeCounts) -> None:
    """Shows the sweep's outcomes, its title and note, and when it was trained."""
    outcome = describe_counts(counts) if counts.models else "no model is finished yet"
    lines = [f"{outcome[0].upper()}{outcome[1:]}."]
    lines += [sweep.name] if note.title else []
    lines += filter(None, (record.description, note.note))
    lines += [f"{sentence}." for sentence in _seed_sentences((sweep.id,))]
    page.say(lines)
    times = [f"Submitted {clock(record.created_at)}"]
    if record.train_seconds is not None:
        times.append(f"{format_duration(record.train_seconds)} of training in all")
    if note.tags:
        times.append(f"tags: {', '.join(note.tags)}")
    # Left to the command line, as nothing brings a deleted sweep back.
    delete = f"`seqcls delete {as_argument(sweep.name)}` deletes it for good, and asks first"
    st.caption(page.plain(f"{'; '.join(times)}. {delete}."))


def _grow(sweep: SweepProgress, not_learned: int) -> None:
    """Shows the buttons for more training: failed runs again, more seeds, more epochs."""
    if sweep.failed:
        label = f"Retry {sweep.failed:,} failed"
        which = (sweep.id, sweep.name, actions.writer.retry, [sweep.id])
        actions.button(label, f"retry {sweep.id}", actions.train, *which)
    with st.popover("More seeds", icon=":material/add:"):
        more = st.number_input("More seeds of each configuration", 1, 1_000, 8, key="more_seeds")
        label = f"Train {more} more of each"
        seeds = partial(budgets.more_seeds, sweep=sweep.name, number=int(more))
        actions.button(label, f"more {sweep.id}", actions.launch_more, seeds)
        until = st.text_input(
            "Or as many as it takes, until",
            key="until",
            placeholder="share ± 10 %",
            help=f"The interval of each configuration's share holds however often one looks. "
            f"Expected: {EXPECTED}.",
        )
        seeds_until = (sweep.id, sweep.name, budgets.seeds, sweep.name, until)
        actions.button(
            "Train until then",
            f"until {sweep.id}",
            actions.train,
            *seeds_until,
            disabled=not until.strip(),
        )
    longer = f"{sweep.name}-{LONGER}"
    # Once it was launched there is a sweep of that name, and it is offered no more.
    if sweep.state == "done" and not_learned and longer not in data.sweep_names().values():
        label = f"4 times the epochs for {not_learned:,}"
        actions.button(
            label,
            f"longer {sweep.id}",
            actions.launch_more,
            lambda store: budgets.more_training(store, sweep.name, LONGER).spec,
            icon=":material/more_time:",
            tooltip=f"Trains those that have not learned (right on less than {LEARNED_AT:.0%} of "
            "trained lengths) with 4 times the epochs, as a sweep beside this one.",
        )


def _describe(sweep_id: int, note: watching.Note) -> None:
    """Shows the form of a sweep's title, note and tags."""
    known = sorted({tag for other in data.sweep_notes().values() for tag in other.tags})
    with st.popover("Title, note, tags", icon=":material/edit:"), st.form(f"note {sweep_id}"):
        st.text_input("Title", note.title, key=f"title {sweep_id}", **control())
        st.text_area("Note", note.note, key=f"note_text {sweep_id}", **control())
        st.multiselect(
            "Tags",
            known,
            default=list(note.tags),
            key=f"tags {sweep_id}",
            accept_new_options=True,
            placeholder="None",
            **control(),
        )
        st.form_submit_button(
            "Save", on_click=_write, args=(sweep_id,), type="primary", **control()
        )


def _write(sweep_id: int) -> None:
    title, note, tags = (
        st.session_state[f"{x} {sweep_id}"] for x in ("title", "note_text", "tags")
    )
    actions.write(actions.writer.write_note, sweep_id, title, note, tags)


def _archive(sweep_id: int, *, is_archived: bool) -> None:
    actions.button(
        "Restore from archive" if is_archived else "Archive",
        f"archive {sweep_id}",
        actions.write,
        actions.writer.archive,
        sweep_id,
        not is_archived,
        icon=":material/unarchive:" if is_archived else ":material/archive:",
        tooltip="An archived sweep is hidden from lists and filters. Nothing is deleted.",
    )


# It refreshes itself, and so may find what the page around it did not.
@data.explaining()
def _draw_losses(sweep: SweepProgress) -> None:
    now = next((x for x in data.progress() if x.id == sweep.id), sweep)
    # Never remembered while it is trained: new losses raise no revision.
    find_losses = partial(sections.losses, open_reader()) if now.running else _losses
    section = find_losses(sweep.id, now.done + now.running)
    if section.panels:
        page.render(section, f"losses {sweep.id}")
    elif now.running:
        st.caption("Losses appear after the first seconds of training.")


def _made_of(sweep: SweepProgress, record: Any) -> None:
    """Its specification, its protocol in words, and the worker's log, each folded."""
    with page.unfold("Specification", "specification", ":material/description:"):
        toml = toml_of(record.spec)
        st.caption("`seqcls sweep FILE.toml` trains the same models from this file.")
        # Names of sweeps may hold what no file system takes.
        file_name = "".join(x if x.isalnum() or x in "-_" else "_" for x in sweep.name)
        st.download_button("Download TOML", toml, f"{file_name}.toml", on_click="ignore")
        st.code(toml, language=None, wrap_lines=True, height=min(420, 40 + 24 * toml.count("\n")))
    title = "How its models are trained and tested, in words"
    words = page.unfold(title, "in_words", ":material/notes:")
    # While it is folded, nothing is read for it.
    if words.open:
        with words:
            _say_protocol(sweep.name)
    with page.unfold("Worker log", "worker log", ":material/terminal:"):
        log = watching.read_log(open_reader(), sweep.id)
        if log is None:
            st.caption("No worker was started for this sweep from a page.")
        else:
            st.code(without_folder(log) or "Nothing yet.", language=None, height=240)


def _say_protocol(name: str) -> None:
    try:
        number = int(st.session_state.get("protocol of", 0))
        section, names = _protocol(name, number)
        if len(names) > 1:
            st.selectbox(
                "Configuration",
                range(len(names)),
                key="protocol of",
                format_func=lambda place: names[place],
            )
        page.say(section.says, answer=False)
    except SeqclsError as error:
        st.caption(page.plain(error_text(error)))
