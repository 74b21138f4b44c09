"""All strings up to a length, the shortest errors, and what is proved of all others."""

from collections.abc import Sequence
from dataclasses import asdict, is_dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import altair as alt
import numpy as np
import pandas as pd

from dashboard import marks, style
from dashboard.model import limits_words as words
from dashboard.model.family_sections import describe, right_or_wrong, shown_text
from dashboard.section import Panel, Section, colors_present
from dashboard.words.sentences import say
from seqcls.interpretability.wording import percent, sign
from seqcls.questions import RunModel
from seqcls.results import Verdict

if TYPE_CHECKING:
    from seqcls.interpretability.verdicts import Errors
    from seqcls.proofs.prover import Proof

# The shortest errors, and all strings up to a length.


def shortest(model: RunModel) -> Section:
    """The shortest strings that are wrong, of all that there are.

    Raises:
        ConfigError: nobody knows what is right of strings outside of a file.
    """
    found = model.shortest()
    # Sentences name the strings, too, which the table has.
    says = tuple(map(_sentence, describe(model, found)[:1]))
    rows = [
        {
            "string": x.tokenizer.display(x.string),
            "stored": x.string,
            "is": shown_text(model, x.label),
            "predicted": shown_text(model, x.predicted),
            "model_logit": x.logit,
        }
        for x in found.answers
    ]
    table = pd.DataFrame(rows) if rows else None
    shown = ("string", "is", "predicted", "model_logit") if rows else ()
    return Section(words.SHORTEST, says, table, opens="stored", shown=shown)


def every_multiset(model: RunModel, letters: tuple[int, int] | None = None) -> Section:
    """Misclassified ones among all multisets of letters up to the longest test length.

    Args:
        model: one that letter counts suffice for.
        letters: the two on the axes of the map; if none are named, those that occur most in errors.

    Raises:
        ConfigError: the order of tokens matters, or there are too many.
    """
    from seqcls.interpretability.domains import multisets_of

    errors = _errors(model)
    wrong, positive = len(errors.texts), int(errors.label.sum())
    values: dict[str, Any] = {"tried": errors.multisets, "longest": errors.max_length}
    if not wrong:
        return Section(words.EVERY, (say("every_multiset_right", **values),))
    values |= {"wrong": wrong, "share": percent(wrong / errors.multisets)}
    values |= {"fp": wrong - positive, "fn": positive}
    display = model.tokenizer.display
    says = (say("every_multiset", **values, shortest=display(errors.texts[0]) or "ε"),)
    every = multisets_of(model.problem, errors.max_length)
    labels = model.problem.count_task.labels_of_counts(every)
    axes = letters or likeliest_letters(model) or (0, 1)
    side = -(-errors.max_length // CELL) + 1
    wrong_cells = _bin(errors.counts, errors.label, axes, side)
    cells = _bin(every, labels, axes, side)
    names = [model.tokenizer.alphabet[letter] for letter in axes]
    panels = (
        Panel.of(
            _where(wrong_cells, cells, names, errors.max_length),
            say("lie", a=names[0], b=names[1]),
        ),
        Panel.of(_lengths(errors.by_length(), errors.max_length), "By length"),
    )
    table = pd.DataFrame(
        {
            "string": list(map(display, errors.texts[:LISTED])),
            "stored": errors.texts[:LISTED],
            "kind": [KINDS[int(label)] for label in errors.label[:LISTED]],
            "model_logit": errors.logits[:LISTED],
        }
    )
    shown = ("string", "kind", "model_logit")
    return Section(
        words.EVERY, says, table, panels, words.MULTISETS, KINDS, opens="stored", shown=shown
    )


KINDS = ("false positive", "false negative")

LISTED = 20
"""Shortest errors that are listed."""

CELL = 5
"""Counts in a cell of the map; the count 0 has cells of its own."""


@lru_cache(maxsize=1)  # Two questions of one model follow each other; none is held beyond.
def _errors(model: "RunModel") -> "Errors":
    from seqcls.interpretability.verdicts import errors_up_to

    return errors_up_to(model)


def likeliest_letters(model: "RunModel") -> tuple[int, int] | None:
    """The two letters that misclassified strings hold most of, in order; None if none is wrong."""
    counts = _errors(model).counts
    if not len(counts):
        return None
    first, second = sorted(np.argsort(-counts.sum(axis=0), kind="stable")[:2].tolist())
    return first, second


def _bin(counts: np.ndarray, labels: np.ndarray, letters: Sequence[int], side: int) -> np.ndarray:
    """Number of multisets of each label and cell, of shape (label, x, y)."""
    # Rounded up, so that a count of zero has cells of its own.
    x, y = (-(-counts[:, letter] // CELL) for letter in letters)
    # `bincount` ends with the last cell that is hit, and the shape needs all of them.
    cells = np.bincount((labels * side + x) * side + y, minlength=2 * side * side)
    return cells.reshape(2, side, side)


def _where(wrong: np.ndarray, tried: np.ndarray, names: Sequence[str], longest: int) -> Any:
    """Map of misclassified multisets by the counts of two letters."""
    rows = [
        {
            "x": CELL * (x - 1), "x2": CELL * x, "y": CELL * (y - 1), "y2": CELL * y,
            "kind": KINDS[label], "errors": int(wrong[label, x, y]),
            "share": float(wrong[label, x, y] / tried[label, x, y]),
            "first": _counts(x), "second": _counts(y),
        }
        for label, x, y in np.argwhere(wrong).tolist()
    ]  # fmt: skip
    frame = pd.DataFrame(rows)
    scale = alt.Scale(domain=[int(min(0, frame[["x", "y"]].min().min())), longest], nice=False)
    axis = alt.Axis(values=list(range(0, longest + 1, max(1, longest // 5))), grid=False)
    strong = alt.Scale(domain=[0, 1], range=[0.15, 1])
    cells = alt.Chart(frame, height=320, width="container").mark_rect()
    return cells.encode(
        alt.X("x:Q", title=f"Letters {names[0]} (left of 0: none)", scale=scale, axis=axis),
        alt.Y("y:Q", title=f"Letters {names[1]} (below 0: none)", scale=scale, axis=axis),
        marks.color("kind", KINDS),
        alt.Opacity("share:Q", scale=strong, legend=None),
        tooltip=marks.tips(
            kind="Misclassified",
            first=f"Letters {names[0]}",
            second=f"Letters {names[1]}",
            errors="Multisets wrong:,",
            share="Share of such multisets:.1~%",
        ),
        x2="x2:Q",
        y2="y2:Q",
    )


def _counts(cell: int) -> str:
    return f"{CELL * (cell - 1) + 1} to {CELL * cell}" if cell else "none"


def _lengths(wrong: np.ndarray, longest: int) -> Any:
    """Number of misclassified multisets of each length."""
    length, kind = np.nonzero(wrong)
    frame = pd.DataFrame({"length": length, "errors": wrong[length, kind]})
    frame["kind"] = [KINDS[x] for x in kind]
    bars = alt.Chart(frame, height=320, width="container").mark_bar(width=3)
    return bars.encode(
        marks.x_axis("length:Q", "String length", domain=[0, longest + 1]),
        marks.y_axis("errors:Q", "Multisets misclassified", form="~s"),
        marks.color("kind", KINDS),
        tooltip=marks.tips(length="Length:", kind="Misclassified", errors="Multisets:,"),
    )


def every_string(model: RunModel) -> Section:
    """Results on every string, or input, up to the length to which all can be evaluated.

    Raises:
        ConfigError: their labels are not known.
    """
    found = model.verdict()
    # Sentences begin with the model's name, which the page has above.
    says = tuple(_sentence(x.removeprefix(f"{model.name}: ")) for x in describe(model, found))
    if isinstance(found, Verdict) or not found.wrong:
        return Section(words.EVERY, says)
    rows = [
        {"length": x.length, "kind": kind, "wrong": wrong, "inputs": x.inputs}
        for x in found.by_length
        # A length without errors keeps its place on the axis.
        for kind, wrong in (x.wrong or {"right": 0}).items()
    ]
    frame = pd.DataFrame(rows)
    frame["share"] = frame["wrong"] / frame["inputs"]
    names = ("right", *marks.OUTPUT_ERRORS)
    bars = alt.Chart(frame, height=style.HEIGHT, width="container").mark_bar()
    chart = bars.encode(
        alt.X("length:O", title="Input length (tokens)", axis=alt.Axis(labelAngle=0)),
        marks.y_axis("share:Q", "Inputs with a wrong output", form="%", domain=[0, 1]),
        marks.color("kind", names),
        tooltip=marks.tips(
            kind="Output",
            length="Length",
            wrong="Inputs:,",
            inputs="Of all of that length:,",
            share="Share:.2~%",
        ),
    )
    table = pd.DataFrame(
        [
            {"string": shown_text(model, x.string), "target": shown_text(model, x.label),
             "model_output": shown_text(model, x.predicted), "stored": x.string}
            for x in found.shortest
        ]
    )  # fmt: skip
    legend = colors_present(frame["kind"], marks.OUTPUT_ERRORS)
    shown = ("string", "target", "model_output")
    caption = words.INPUTS
    panels = (Panel.of(chart),)
    return Section(words.EVERY, says, table, panels, caption, legend, opens="stored", shown=shown)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"


# Proofs.

PROVED = 3
"""Sentences on proofs; the table has the others."""


def beyond(model: RunModel) -> Section:
    """Certificates for all longer strings, by letter counts.

    Raises:
        ConfigError: the model is not of the kind that can be certified so.
    """
    found = model.proofs()
    scope, *claims = describe(model, found)
    # A failing claim is the answer; certified ones are in the table, too.
    claims.sort(key=lambda claim: "certified right" in claim)
    says = (scope, *claims[:PROVED])
    rows = [
        {
            "letters": ", ".join(x.letters),
            "is": sign(x.label),
            "claim": x.claim,
            "proved_right": x.right,
            "proved_wrong": x.wrong,
            "not_proved": x.open,
            "least_logit": x.margin,
            "safe_share": x.safe_share,
        }
        for x in found.supports
    ]
    return Section(words.LONGER, (*says, words.PROPORTIONS), pd.DataFrame(rows))


def proof(model: RunModel, found: "Proof") -> Section:
    """Proof that a recurrent network is right on every string, its refutation, or neither."""
    says = [*found.describe(model)]
    if found.outcome == "not decided":
        says.append(say("try_longer", run=model.run))
    attempts = [asdict(x) if is_dataclass(x) else x._asdict() for x in found.attempts]
    table = pd.DataFrame(attempts).rename(columns={"over": "at_once"}) if attempts else None
    panels: tuple[Panel, ...] = ()
    caption = ""
    if found.string is not None and (forgetting := _forgetting(model, found.string)) is not None:
        from seqcls.interpretability.mechanisms import forgetting_text

        says.append(forgetting_text(forgetting.record(), model.tokenizer.display))
        panels, caption = (Panel.of(_moves(forgetting), words.MOVES),), words.MOVED
    legend = marks.RIGHT if panels else ()
    shown = ("width", "at_once", "regions", "ended", "region", "box") if attempts else ()
    return Section(words.IS_PROVED, tuple(says), table, panels, caption, legend, shown=shown)


def _forgetting(model: RunModel, string: str) -> Any:
    from seqcls.proofs.forgetting import find_forgetting
    from seqcls.tasks.automaton import language_automaton

    automaton = language_automaton(model.task)
    return None if automaton is None else find_forgetting(model, automaton, string)


def _moves(found: Any) -> Any:
    """Distance that a state moves while a word repeats, and where the answer turns."""
    frame = pd.DataFrame({"repetitions": range(len(found.distances))})
    frame["distance"], frame["logit"] = found.distances, found.margins
    frame["answer"] = [right_or_wrong(x > 0) for x in found.margins.tolist()]
    base = alt.Chart(frame).encode(
        marks.x_axis("repetitions:Q", "Repetitions"),
        marks.y_axis("distance:Q", "Largest change of a unit"),
    )
    points = base.mark_point(filled=True, size=45, opacity=1).encode(
        marks.color("answer", marks.RIGHT),
        tooltip=marks.tips(
            repetitions="Repetitions:",
            distance="Change:.3~g",
            logit="Logit, where right above 0:.3~f",
            answer="Answer",
        ),
    )
    drawn = alt.layer(base.mark_line(color="~muted"), points)
    return drawn.properties(height=200, width="container")
