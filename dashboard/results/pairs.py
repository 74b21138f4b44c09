"""Two configurations side by side: whether they differ by more than chance, where, and on what."""

from dataclasses import replace

import numpy as np
import pandas as pd

from dashboard.results import pictures
from dashboard.results.words import difference_text
from dashboard.section import Panel, Section
from dashboard.words.sentences import say
from sweeps.api import Store, outcomes
from sweeps.api.comparisons import Compared, compare_configs, configs
from sweeps.api.presentation import display_strings, words_of
from sweeps.api.questions import QUESTIONS, seeds_text, shown_values
from sweeps.api.selecting import Selection
from sweeps.statistics.chance import Difference

SIDES = ("the first", "the second")

MOST_STRINGS = 200


def pair(store: Store, selection: Selection, first: int, second: int) -> tuple[Section, ...]:
    """Two configurations as `seqcls compare` has them: the verdict with its tests, the two by
    length, and the strings that more seeds of one get wrong.

    Args:
        selection: which seeds; all of them count, with whatever result.
        first: a configuration's id; differences are the first less the second.
    """
    named = outcomes.counts_of(store, selection).set_index("config_id")["name"]
    names = (str(named.get(first, first)), str(named.get(second, second)))
    # Seeds that are chosen by their outcome would decide the comparison beforehand.
    scope = replace(selection, outcomes=(), failing=False)
    found = compare_configs(store, (first, second), names, scope)
    return (_verdict(found), _by_length(found), _strings(store, found))


def _verdict(found: Compared) -> Section:
    fields = "; ".join(f"{x}: {_value(a)} and {_value(b)}" for x, (a, b) in found.fields.items())
    tests = "; ".join(dict.fromkeys(f"{x.method}" for x in found.questions.values()))
    says = [
        found.verdict(SIDES),
        say("two", first=found.names[0], second=found.names[1]),
        say("two_fields", fields=fields) if fields else "",
        say("tests", pairing=found.pairing, tests=tests),
        found.longer_strings,
    ]
    rows = [_question(name, answer) for name, answer in found.questions.items()]
    # A question that cannot be answered has its row, with the reason.
    rows += [{"question": QUESTIONS[x].capitalize(), "chance": y} for x, y in found.absent.items()]
    shown = ("question", "first", "second", "apart", "p_value", "chance", "to_decide")
    table = pd.DataFrame(rows)
    return Section("The two that are selected", tuple(filter(None, says)), table, shown=shown)


def _question(name: str, answer: Difference) -> dict[str, object]:
    """The seeds' answer to a question, as a row."""
    interval, values = answer.interval, shown_values(answer)
    apart = ""
    if answer.p_value is not None:
        apart = difference_text(interval.value, interval.low, interval.high)
    return {
        "question": QUESTIONS[name].capitalize(),
        "first": values[0],
        "second": values[1],
        "apart": apart,
        "p_value": answer.p_value,
        "chance": _chance(answer),
        "to_decide": answer.to_decide,
        "test": f"{answer.method}, {seeds_text(answer)}",
        "difference": interval.value,
        "difference_low": interval.low,
        "difference_high": interval.high,
    }


def _chance(answer: Difference) -> str:
    """Describes in a few words whether chance explains the difference."""
    if answer.p_value is None:
        return "nothing to compare"
    if answer.is_decided:
        return "more than chance"
    if answer.is_nothing:
        return "no difference"
    return "chance may explain it" if answer.can_decide else f"too few: {seeds_text(answer)}"


def _value(value: object) -> str:
    return "not set" if value is None else str(value)


def _by_length(found: Compared) -> Section:
    lengths = found.lengths
    if lengths.empty:
        return Section("Side by side")
    sides = [
        lengths[["length", "seeds"]].assign(accuracy=lengths[f"accuracy_{x}"], which=name)
        for x, name in zip("ab", found.names, strict=True)
    ]
    both = pd.concat(sides)
    # At least five points are shown, or differences of next to nothing would fill the plot.
    low = min(0.95, float(np.floor(20 * both["accuracy"].min()) / 20))
    panels = (
        Panel.of(pictures.two_by_length(both, found.names, low), "Mean accuracy"),
        Panel.of(pictures.differences(lengths), "The first less the second"),
    )
    caption = (
        f"Drawn through: {found.names[0]}; dashed: {found.names[1]}. Beyond the trained lengths of "
        "a configuration, of its seeds that learned; shaded: 95% interval of the mean difference."
    )
    return Section("Side by side", (), None, panels, caption)


def _strings(store: Store, found: Compared) -> Section:
    title = "Strings that more seeds of one get wrong"
    if found.strings is None:
        return Section(title, (say("no_strings"),))
    known = configs(store, list(found.config_ids))
    own = [known[x] for x in found.config_ids]
    words, strings = words_of(*own), found.strings
    only = int(((strings["wrong_a"] == 0) | (strings["wrong_b"] == 0)).sum())
    sentence = say(
        "strings",
        n=len(strings), strings=words.plural("test"), missed=words.missed, only=f"{only:,}",
    )  # fmt: skip
    shown = display_strings(strings.head(MOST_STRINGS), *own)
    right = (
        shown["target"] if "target" in shown else shown["label"].map({0: "negative", 1: "positive"})
    )
    shown = shown.assign(right_answer=right)
    names = ("string", "length", "right_answer", "wrong_a", "wrong_b")
    return Section(title, (sentence,), shown[[*names]], shown=names)
