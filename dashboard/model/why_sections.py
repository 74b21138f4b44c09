"""Why a model fails: its cause, a string made as short as it can be, what would help, a handout."""

from typing import Any

import pandas as pd

import dashboard.model.words  # noqa: F401  Its words are those of these sections.
from dashboard.model import string_states
from dashboard.report.html import Part
from dashboard.report.html import page as html_page
from dashboard.section import Section
from dashboard.words.sentences import as_code, say
from seqcls.counts import counts_suffice
from seqcls.errors import ConfigError, InvalidStringError
from seqcls.interpretability.mechanisms import NOT_LEARNED, forgetting_text, sentence_of
from seqcls.interpretability.wording import sign
from seqcls.problem import obstacle_of
from seqcls.questions import RunModel
from sweeps.api import Selection, Store, failures, forgettings, reading, run_config, trials
from sweeps.api.presentation import display_of
from sweeps.api.trials import RemedyTrial
from sweeps.results import LEARNED_AT

BULLETS = 4
"""Sentences about a string at most; what else is known is unfolded."""

NAMED = 2
"""Pairs of a head and its tokens that a sentence names."""

FLIPS = "The answer would flip"


def cause(store: Store, run_id: int, learned_at: float = LEARNED_AT) -> Section | None:
    """The cause of most of a model's errors; None if it was not looked for yet."""
    found = reading.causes(store, [run_id], learned_at)
    not_learned = failures.why_not_learned(store, run_id, learned_at)
    if found.empty and not_learned is None:
        return None
    says = []
    if not_learned is not None:
        says.append(say("has_not_learned", how=not_learned))
    known, looked_at = found[found["mechanism"] != NOT_LEARNED], int(found["strings"].sum())
    if not_learned is None:
        leading = failures.leading_causes(found).iloc[0]
        own = found[found["mechanism"] == leading]
        heads = zip(own["tokens"], own["head"], strict=True)
        about = [x if pd.isna(head) else f"head {head:.0f}: {x}" for x, head in heads]
        clause = sentence_of(leading, "; ".join([*filter(None, about)][:NAMED]))
        strings = int(own["strings"].sum())
        says.append(say("cause_of_most", cause=clause, strings=strings, of=looked_at))
    elif len(known):
        says.append(say("instead"))
    if (record := forgettings(store).get(run_id)) is not None:
        display = display_of(run_config(store, run_id))
        says.append(forgetting_text(record, lambda text: as_code(display(text))))
    table = pd.DataFrame(
        {
            "cause": [
                name if pd.isna(head) else f"{name}, head {head:.0f}"
                for name, head in found[["mechanism", "head"]].to_numpy()
            ],
            "about": found["tokens"],
            "of_errors": [f"{n:,} of {looked_at:,}" for n in found["strings"]],
        }
    )
    return Section("Why does it fail?", tuple(says), table if len(table) > 1 else None)


def string(model: RunModel, text: str) -> Section:
    """Why a string is answered as it is: the cause, and beside it what is left of it that still
    fails, and the nearest string that is right.

    Args:
        model: at an epoch.
        text: the string, in the usual notation, of any length where letter counts decide.

    Raises:
        InvalidStringError: it is not of this alphabet, or too long to be worked on.
    """
    found = find_reasons(model, text)
    says = [*found[:1], *[x for x in found[1:] if x.startswith(FLIPS)][:1]]
    rows: list[dict[str, Any]] = []
    try:
        letters = model.letters(text)
    except InvalidStringError:
        # Where letter counts decide, any length is answered.
        if not found:
            raise
        return Section("", tuple(says))
    answer = model.answer(letters)
    rows.append(_row("this string", answer))
    if answer.is_wrong:
        minimal = model.minimal(text)
        shortest, nearest = minimal.minimal, minimal.nearest
        near_to = say("near_to_this")
        if shortest.string != answer.string:
            short = _is_short(model, shortest.length, answer.length)
            values = {"minimal": shortest.name, "unit": model.tokenizer.unit}
            # Within a sentence, where `say` would begin with a capital.
            values["within"] = say("as_in_training").lower() if short else ""
            key = "minimal" if shortest.length > 1 else "minimal_short"
            says.append(say(key, letters=shortest.length, **values))
            rows.append(_row("its minimal failing part", shortest))
            # A long string may have no right one near it where its part has one.
            if nearest.answer is None:
                nearest, near_to = model.minimal(shortest.string).nearest, say("near_to_part")
        if nearest.answer is not None:
            near, edits = nearest.answer, nearest.edits
            says.append(say("nearest", nearest=near.name, edits=edits, near_to=near_to.lower()))
            rows.append(_row("nearest that is right", near) | {"distance": edits})
    table = pd.DataFrame(rows)
    shown = tuple(str(x) for x in table if x != "stored" and table[x].notna().any())
    return Section("", tuple(says[:BULLETS]), table, opens="string", shown=shown)


def find_reasons(model: RunModel, text: str) -> tuple[str, ...]:
    """The reasons for an answer in sentences, of models whose answers letter counts explain."""
    try:
        found = model.explain(text)
    except ConfigError:
        return ()
    # The answer itself is shown above.
    _, *reasons = [x for x in model.describe(found) if isinstance(x, str)]
    return tuple(reasons)


def _is_short(model: RunModel, shortest: int, given: int) -> bool:
    """Returns True if the part is as short as training strings, while the string is not."""
    if not model.problem.config.knows_trained_lengths:
        return False
    return shortest <= model.problem.trained_lengths[-1] < given


def _row(what: str, answer: Any) -> dict[str, Any]:
    def text(x: bool | str | None) -> str:
        return "" if x is None else answer.tokenizer.display(x) if isinstance(x, str) else sign(x)

    return {
        "what": what,
        "string": answer.name,
        "length": answer.length,
        "is": text(answer.label),
        "predicted": text(answer.predicted),
        # Of outputs the bar has the number, which is of another kind for each.
        "model_logit": None if isinstance(answer.predicted, str) else answer.logit,
        "distance": None,
        "stored": answer.string,
    }


def pictures(model: RunModel, text: str) -> tuple[Section, ...]:
    """Pictures of a string, the most telling first: attention where letter counts decide, else
    the logit of each prefix; none of a string that is too long.
    """
    try:
        letters, states = model.letters(text), model.states(text)
    except InvalidStringError:
        return ()
    attention = string_states.attention_of(model, letters, states)
    running = string_states.running_of(model, letters, states)
    by_letter = counts_suffice(model.problem.network, training=False) is None
    ordered = (attention, running) if by_letter else (running, attention)
    return tuple(section for section in ordered if section is not None)


def remedies(
    store: Store, run_id: int, selection: Selection | None = None
) -> tuple[RemedyTrial, ...]:
    """Remedies, the likeliest first, with the outcomes of those that were tried."""
    judged = selection or Selection()
    found = trials.mechanisms_of(reading.causes(store, [run_id], judged.learned_at))
    if failures.why_not_learned(store, run_id, judged.learned_at) and NOT_LEARNED not in found:
        found = [NOT_LEARNED, *found]
    if not found or obstacle_of(run_config(store, run_id)) is not None:
        return ()
    return trials.trials(store, run_id, found, judged)


def came_of(trial: RemedyTrial) -> list[str]:
    """Describes the outcome of a remedy, and how often it mended this cause elsewhere."""
    return [f"{x[:1].upper()}{x[1:]}." for x in trials.sentences(trial)]


def helps(trial: RemedyTrial) -> bool | None:
    """True if a remedy helps, False if it harms, None if chance may explain the difference."""
    found = trial.comparison
    if found is None or found.counts is None or not found.is_decided:
        return None
    (after, n), (alone, m) = found.counts
    return after / n < alone / m


def remedies_table(found: tuple[RemedyTrial, ...]) -> Section:
    """The remedies as a table, for a file."""
    rows = [
        {"remedy_in_words": f"{x.suggestion.text}. {x.suggestion.reason}"}
        | {"came_of_remedy": came_of(x)[0]}
        for x in found
    ]
    says = () if rows else (say("no_known_remedy"),)
    return Section("What would help?", says, pd.DataFrame(rows) if rows else None)


def handout(
    store: Store,
    model: RunModel,
    text: str,
    lead: list[str],
    selection: Selection,
    *,
    with_cause: bool = True,
) -> str:
    """One string explained on one page that needs no other file.

    Args:
        store: the database.
        model: of a run.
        text: the string.
        lead: sentences on the model, its outcome, and its answer on the string.
        selection: its thresholds decide whether a model has learned and fails.
        with_cause: shows the cause of its errors, which is of the tested epoch.
    """
    assert model.run is not None
    found = cause(store, model.run, selection.learned_at) if with_cause else None
    sections: list[Section | None] = [found, string(model, text)]
    shown = model.tokenizer.display(text) or "the empty string"
    sections += pictures(model, text)
    sections.append(remedies_table(remedies(store, model.run, selection)))
    parts = [Part([section for section in sections if section is not None])]
    footer = say("handout_footer", run=model.run)
    return html_page(say("handout_title", string=shown), parts, lead, footer=footer)
