"""Tab *Why*: cause, string and picture on the first screen; then what would help, to be tried."""

import uuid

import streamlit as st

from dashboard import actions, background, data, page
from dashboard.model import bar
from dashboard.model import why_sections as sections
from dashboard.model.chosen import go_to
from dashboard.model.opened import Opened
from dashboard.section import Section
from dashboard.server.visitors import later
from dashboard.training import offer, running
from dashboard.words.outcomes import describe_outcome
from dashboard.words.sentences import say
from seqcls.errors import InvalidStringError
from seqcls.problem import obstacle_of
from sweeps.api.trials import RemedyTrial, all_spec
from sweeps.grid.spec import SweepSpec
from sweeps.terminal import format_duration

SECONDS = 2.0
"""The page looks so often whether the cause is known, or a remedy trained."""

MAX_SHOWN_REMEDIES = 6
"""Remedies that are shown at once."""

SHOWN = {True: (":green", "check_circle"), False: (":orange", "cancel"), None: (":gray", "help")}
"""Color and icon of what came of a remedy: helped, harmed, or chance may explain it."""

_cause, _remedies = data.cached(sections.cause), data.cached(sections.remedies)


def show(opened: Opened) -> None:
    """Draws the tab."""
    learned_at = opened.judged.learned_at
    cause = _cause(opened.run, learned_at)
    left, right = st.columns([7, 5], gap="large")
    with left:
        _say_cause(opened, cause)
        found = _say_string(opened)
    with right:
        _draw_picture(opened)
    if found is not None and found.table is not None:
        _show_strings(opened, found)
    if cause is not None and cause.table is not None and opened.at_epoch is None:
        with page.unfold("All causes of its errors", "all causes"):
            page.table(cause.table, f"causes {opened.run}")
    _show_remedies(opened)


def _say_cause(opened: Opened, cause: Section | None) -> None:
    if opened.at_epoch is not None:
        page.say((say("cause_of_kept", kept=opened.kept_epoch),), answer=False)
    elif cause is not None:
        page.say(cause.says)
    elif not opened.fails:
        page.say((say("no_error"),))
    elif background.request([opened.run]):
        st.caption(f":material/hourglass_empty: {page.plain(say('cause_to_come'))}")
        page.rerun_when(lambda: len(data.causes([opened.run])) > 0, SECONDS)
    elif reason := opened.problem.lacks("causes"):
        page.say((say("no_cause", reason=reason),), answer=False)
    else:
        page.say((say("cause_unknown", run=opened.run),), answer=False)


def _say_string(opened: Opened) -> Section | None:
    """Shows the explanation of the bar's string, its details folded."""
    try:
        found = opened.ask(sections.string, opened.string)
    except InvalidStringError:
        # The bar shows the error.
        return None
    if found.says:
        shown = opened.display(opened.string)
        st.markdown(page.markdown(say("why_string", string=shown)))
        st.markdown("\n".join(f"- {page.markdown(sentence)}" for sentence in found.says))
    more = [x for x in opened.ask(sections.find_reasons, opened.string) if x not in found.says]
    if more:
        with page.unfold("More of what was found", "more found"):
            st.markdown("\n".join(f"- {page.markdown(sentence)}" for sentence in more))
    return found


def _draw_picture(opened: Opened) -> None:
    if opened.problem.lacks("prefixes"):
        # Of what writes, *Inside* shows what happens while it does.
        return
    found = next(iter(opened.ask(sections.pictures, opened.string)), None)
    if found is not None and found.panels:
        page.say_legend(found)
        # Strings below each other need the whole column.
        is_wide = any(isinstance(panel.spec.get("width"), int) for panel in found.panels)
        page.draw(found, f"why {opened.key}", across=1 if is_wide else 2)


def _show_strings(opened: Opened, found: Section) -> None:
    """The string, its minimal failing part, and the nearest that is right; a click looks at one."""
    table = found.table
    assert table is not None
    if len(table) < 2:
        return
    key = f"strings {opened.key}"
    chosen = page.table(table, key, "single-row", "stored", shown=found.shown)
    if chosen is not None and chosen != table["stored"].iloc[0]:
        go_to(opened.run, str(chosen))
        st.rerun()


# What would help.


def _show_remedies(opened: Opened) -> None:
    """Suggestions, each with its button or, where that stood, with what came of it."""
    found = _remedies(opened.run, opened.judged)
    if not found and not opened.fails:
        return
    st.header("What would help?", anchor=False)
    if (obstacle := obstacle_of(opened.config)) is not None:
        st.caption(page.plain(f"No remedy can be trained here: {obstacle}."))
        return
    if not found:
        st.caption(page.plain(say("no_known_remedy")))
        return
    for number, trial in enumerate(found[:MAX_SHOWN_REMEDIES]):
        _show_remedy(opened.run, number, trial)
    if found[MAX_SHOWN_REMEDIES:]:
        with page.unfold(f"{len(found) - MAX_SHOWN_REMEDIES} more", "more remedies"):
            for number, trial in enumerate(found[MAX_SHOWN_REMEDIES:], MAX_SHOWN_REMEDIES):
                _show_remedy(opened.run, number, trial)
    new = [trial for trial in found if not trial.is_begun]
    if len(new) > 1:
        spec = all_spec(opened.run, opened.config, new)
        models = len(new) * len(spec.model_seeds)
        which = "both" if len(new) == 2 else f"all {len(new)}"
        _offer(f"Try {which}: {models:,} models", f"train_all {opened.run}", spec)


def _show_remedy(run: int, number: int, trial: RemedyTrial) -> None:
    left, right = st.columns([7, 5], gap="large", vertical_alignment="center")
    suggestion = trial.suggestion
    reason, source = page.plain(suggestion.reason), page.plain(suggestion.source)
    left.markdown(
        f"**{page.plain(suggestion.text)}.** {reason}",
        help=f"For: {page.plain(suggestion.mechanism)}. Source: {source}.",
    )
    came, *elsewhere = sections.came_of(trial)
    with right:
        if trial.waiting:
            st.fragment(_follow, run_every=SECONDS)(trial.spec.name, trial.waiting)
        elif trial.is_begun or trial.lost:
            color, icon = SHOWN[sections.helps(trial)]
            st.markdown(f"{color}[:material/{icon}:] {page.plain(came)}")
        else:
            models = len(trial.spec.model_seeds)
            label = f"Try it: {models:,} model{'s' * (models != 1)}{_time(trial.spec)}"
            _offer(label, f"try {run} {number}", trial.spec)
        for sentence in elsewhere:
            st.caption(page.plain(sentence))


def _time(spec: SweepSpec) -> str:
    """About how long it takes, where that is known without timing."""
    seconds = offer.guess(spec.submitted)
    if seconds is None:
        return ""
    duration = format_duration(seconds)
    return f", {duration}" if duration.startswith("under") else f", about {duration}"


def _offer(label: str, key: str, spec: SweepSpec) -> None:
    note, token = "Trains the same seeds with this change.", uuid.uuid4().hex
    icon = ":material/play_arrow:"
    actions.button(label, key, actions.launch, [spec], token, tooltip=note, icon=icon)


def _follow(sweep: str, waiting: int) -> None:
    """Shows the progress of a remedy; the page is drawn anew once it is done."""
    found = next((x for x in data.progress() if x.name == sweep), None)
    if found is None:
        # It is part of a sweep of another name.
        st.caption(page.plain(say("in_training", seeds=waiting)))
    elif not found.queued + found.running:
        st.rerun()
    else:
        st.progress(found.share, page.plain(running.describe(found, attended=True)))


# The handout.


def offer_handout(opened: Opened) -> None:
    """Draws the button that gives the page of the bar's string."""

    def make() -> str:
        lead = [
            f"{opened.title}. {opened.problem.task.describe()}",
            describe_outcome(opened.run, opened.config, opened.judged),
            bar.answer_sentence(opened).replace("`", ""),
        ]
        store, at_kept = data.reader(), opened.at_epoch is None
        if not at_kept:
            # Before the answer, which is of the epoch that is looked at.
            lead.insert(2, say("kept_in_words", kept=opened.kept_epoch, epoch=opened.epoch))
        return sections.handout(
            store, opened.model, opened.string, lead, opened.judged, with_cause=at_kept
        )

    st.download_button(
        "Handout",
        # Made on a click: few need it, and it evaluates the model again.
        later(make),
        f"model_{opened.run}.html",
        "text/html",
        icon=":material/description:",
        type="tertiary",
        on_click="ignore",
        help="The string explained on one page: what was found, its pictures, what would help.",
    )
