"""Accuracy of a model without its parts: each alone, or removed one after another."""

from typing import TYPE_CHECKING, Any

import pandas as pd

from dashboard import marks, style
from dashboard.model import inside_words as words
from dashboard.section import Panel, Section
from dashboard.words.sentences import say
from seqcls.questions import RunModel

if TYPE_CHECKING:
    from seqcls.interpretability.ablation import Ablations

DRAWN = 24
"""Parts that a picture has, the dearest; the table has all."""

NAMED = 4
"""Parts that a sentence names."""

METHODS = {"nothing": "zero", "its mean": "mean"}
"""The replacement for a removed part's output, as `RunModel.ablate` names it."""

FEW_LENGTHS, BIN = 40, 10
"""Test lengths up to which each has a point of its own; of more, so many share one."""


def kinds_of(found: "Ablations") -> dict[str, tuple[str, ...]]:
    """The kinds of parts to choose from, by what they are called.

    Args:
        found: what `RunModel.ablate` has found of the parts that it takes where none is named.
    """
    found_kinds = {x.parts[0].name for x in found.outcomes if x.parts}
    named = {"head": "heads", "feed-forward": "feed-forwards", "unit": "units"}
    usual = " and ".join(named[kind] for kind in named if kind in found_kinds)
    others = {named[kind]: (kind,) for kind in ("head", "unit")}
    if "head" not in found_kinds:
        del others["heads"]
    return {usual: ()} if found_kinds == {"unit"} else {usual: (), **others}


def ablations(model: RunModel, found: "Ablations") -> Section:
    """The accuracy that removing parts costs, as found by `RunModel.ablate`."""
    return _pruning(model, found) if found.pruned else _alone(model, found)


def _count_tested(model: RunModel, found: "Ablations") -> str:
    return f"{found.strings:,} {model.problem.kind.words.plural('test')}"


def _table(outcomes: Any, names: list[str]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "part": names,
            "wrong_without": [x.errors for x in outcomes],
            "right_without": [x.accuracy for x in outcomes],
            "loss_without": [x.loss for x in outcomes],
            "moved": [x.logit_change for x in outcomes],
        }
    )


def _how_judged(model: RunModel, found: "Ablations") -> str:
    key = "judged_exactly" if found.exact else "judged_by_running"
    return say(key, tested=_count_tested(model, found), strings=found.strings)


def _alone(model: RunModel, found: "Ablations") -> Section:
    whole, *without = found.outcomes
    names = [x.parts[0].text for x in without]
    table = _table(without, names)
    table["more"] = table["wrong_without"] - whole.errors
    counts = {"whole": f"{whole.errors:,}", "tested": _count_tested(model, found)}
    needless = table.loc[table["more"] <= 0, "part"].tolist()
    if len(needless) == len(names):
        says = [say("needs_none", number=len(names), **counts)]
    else:
        says = [say("needs", part=names[0], wrong=f"{without[0].errors:,}", **counts)]
        key = "needless" if needless else "needs_all"
        says.append(say(key, number=len(names), parts=_list_parts(needless)))
    says.append(_how_judged(model, found))
    drawn = table.head(DRAWN).assign(label=[f"{x:+,}" for x in table["more"].head(DRAWN)])
    caption = words.COSTS.format(strings=model.problem.kind.words.plural("test"))
    if not table["more"].any():
        return Section(words.NEEDS, tuple(says), table)
    panel = Panel.of(marks.bars(drawn, "part", "more"))
    return Section(words.NEEDS, tuple(says), table, (panel,), caption)


def _list_parts(names: list[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"{'; '.join(names[:NAMED])}{more}"


def _pruning(model: RunModel, found: "Ablations") -> Section:
    whole, *steps = found.outcomes
    # Each step removes one part more, its last.
    names = [x.parts[-1].text for x in steps]
    table = _table(found.outcomes, ["nothing", *names])
    # The most that can go: a later removal may mend what an earlier one broke.
    free = max((n for n, x in enumerate(steps, 1) if x.errors <= whole.errors), default=0)
    if free:
        sentence = say("prunes", removed=free, number=len(names), parts=_list_parts(names[:free]))
    else:
        costs = {"wrong": f"{steps[0].errors:,}", "whole": f"{whole.errors:,}"}
        sentence = say("prunes_none", part=names[0], tested=_count_tested(model, found), **costs)
    drawn = table.assign(label=[f"{x:,}" for x in table["wrong_without"]]).head(2 * DRAWN)
    caption = words.LEFT.format(strings=model.problem.kind.words.plural("test"))
    panel = Panel.of(marks.bars(drawn, "part", "wrong_without"))
    return Section(words.NEEDS, (sentence, _how_judged(model, found)), table, (panel,), caption)


def by_length(found: "Ablations", part: str) -> Section:
    """Accuracy by length of the model as trained and without one part.

    Args:
        found: each part alone.
        part: as it is called; the first, which costs the most, where there is none of that name.
    """
    whole, *without = found.outcomes
    chosen = next((x for x in without if x.parts[0].text == part), without[0])
    name = f"without {chosen.parts[0].text}"
    frame = pd.concat([_accuracies(whole, "as trained"), _accuracies(chosen, name)])
    panel = Panel.of(_lines(frame, ("as trained", name)))
    return Section("", (), None, (panel,), words.BY_LENGTH.format(part=chosen.parts[0].text))


def _accuracies(ablated: Any, which: str) -> pd.DataFrame:
    """A row a bin of lengths: length (its middle), lengths (text), accuracy, tested, which."""
    width = 1 if len(ablated.lengths) <= FEW_LENGTHS else BIN
    # The empty string is in the first bin.
    bins = (ablated.lengths - 1).clip(min=0) // width if width > 1 else ablated.lengths
    counts = {"tested": ablated.strings, "right": ablated.right}
    sums = pd.DataFrame(counts).groupby(bins).sum()
    # Bins begin at 1, 11, 21; single lengths are what they are, from 0 on.
    first = sums.index * width + (width > 1)
    last = first + width - 1
    lengths = [str(x) if x == y else f"{x} to {y}" for x, y in zip(first, last, strict=True)]
    middle = (first + last) / 2
    shares = {"accuracy": sums["right"] / sums["tested"], "tested": sums["tested"]}
    return pd.DataFrame({"length": middle, "lengths": lengths, **shares, "which": which})


def _lines(frame: pd.DataFrame, names: tuple[str, str]) -> Any:
    color = marks.color("which", names, ("muted", "accent"), legend=marks.TOP, title=None)
    tooltip = marks.tips(which="Model", lengths="Lengths", accuracy="Right:.2%", tested="Strings:,")
    y = marks.y_axis("accuracy:Q", form="~%", domain=[0, 1])
    drawn = marks.lines(frame, "which", tooltip, marks.x_axis("length:Q", "Length"), y, color)
    return drawn.properties(height=style.HEIGHT, width="container")
