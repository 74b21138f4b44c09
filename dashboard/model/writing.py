"""A model's output for an input, token by token, with attention and likely alternatives."""

from math import exp
from typing import Any

import altair as alt
import pandas as pd

from dashboard import marks, token_marks
from dashboard.model import inside_words as words
from dashboard.model.pictures import picture
from dashboard.model.string_states import DRAWN, attention_map, heads
from dashboard.section import Panel, Section
from dashboard.words.sentences import say
from seqcls.interpretability.trained_model import Letters
from seqcls.interpretability.wording import EMPTY, percent
from seqcls.questions import RunModel

BEAM = 5
"""The width of the beam whose outputs are shown."""

BEFORE = 3
"""Tokens that are drawn before the first at which outputs part, where all are too many."""

CELL = 32
"""Pixels of a row of the tree."""


def share(probability: float) -> str:
    """A probability in a few characters."""
    # Rounded it would be 100% or 0%, which no probability of a softmax is.
    if probability > 0.9995:
        return ">99.9%"
    return "<0.1%" if probability < 0.001 else percent(probability, 1)


def transcript(model: RunModel, letters: Letters) -> Section:
    """An input, its target and its output, with the first wrong token, and how sure each is.

    Raises:
        ConfigError: the model writes no outputs.
        InvalidStringError: the string is no input of the task, or too long.
    """
    states = model.states(model.text(letters))
    tokens, answer = states.output or (), states.answer
    output = [x.token for x in tokens]
    rows = {"Input": _tokens(model, model.text(letters))}
    wrong, verdict = None, say("output_unknown")
    if answer.label is not None:
        rows["Target"] = [*_tokens(model, str(answer.label)), "END"]
        wrong, verdict = _first_wrong(output, rows["Target"])
    rows["Output"] = output
    least = min(tokens, key=lambda x: x.probability)
    given = {"token": least.token, "share": share(least.probability), "other": least.runner_up}
    says = [verdict, say("least_sure", **given, other_share=share(least.runner_up_probability))]
    if output[-1] != "END":
        says.append(say("cut_off"))
    panels = [Panel.of(token_marks.alignment(rows, wrong))]
    # For a text read off its picture, the frame shows where it was misread.
    framed = None if wrong is None else picture(model.task, model.text(letters), wrong)
    panels += [framed] if framed is not None else []
    table = pd.DataFrame([x._asdict() for x in tokens])
    return Section(words.WRITTEN, tuple(says), table, tuple(panels), words.MARKED)


def _tokens(model: RunModel, text: str) -> list[str]:
    encoded = model.tokenizer.encode(text)[1:]
    return [model.tokenizer.decode([x]) for x in encoded]


def _first_wrong(output: list[str], target: list[str]) -> tuple[int | None, str]:
    if output == target:
        return None, say("output_right")
    # If one ends first, the next token of the other is paired with "nothing".
    pairs = zip([*output, "nothing"], [*target, "nothing"], strict=False)
    place, (given, right) = next((n, x) for n, x in enumerate(pairs) if x[0] != x[1])
    return place, say("output_wrong", place=place + 1, given=given, right=right)


def attention(model: RunModel, letters: Letters) -> Section | None:
    """Attention of each output token to the input; None for a model without attention to tokens.

    Raises:
        InvalidStringError: the string is too long.
    """
    # Imported where they are used: PyTorch takes a second or two to load.
    from seqcls.interpretability.states_by_strings import attention_kinds, attention_patterns

    if not (kinds := attention_kinds(model)):
        return None
    output, panels = [x.token for x in model.states(model.text(letters)).output or ()], []
    for kind in kinds:
        patterns = attention_patterns(model, letters, kind)
        assert patterns is not None
        if max(len(patterns.tokens), len(output)) > 2 * DRAWN:
            return Section(words.WHILE, (say("too_long", drawn=2 * DRAWN),))
        # A row is the token read last before the one that is written: SEP before the first.
        start = len(letters) + 1 if kind == "attention" else 0
        for name, weights in heads(patterns):
            matrix = weights[start : start + len(output)]
            drawn = attention_map(matrix, output, patterns.tokens, "Writes")
            panels.append(Panel.of(drawn, name if kind == "attention" else f"{name}, {kind}"))
    sentences = () if panels else (say("no_heads"),)
    return Section(words.WHILE, sentences, None, tuple(panels), words.ROWS)


def likeliest(model: RunModel, letters: Letters) -> Section:
    """The likeliest outputs that beam search finds, as a tree.

    Raises:
        ConfigError: the model writes no outputs.
        InvalidStringError: the string is no input of the task, or too long.
    """
    from seqcls.interpretability.states_of_outputs import output_tree

    tree = output_tree(model, letters, BEAM)
    leaves = sorted(tree.leaves, key=lambda leaf: -leaf.log_probability)
    shares = [share(exp(leaf.log_probability)) for leaf in leaves]
    key = "likeliest" if len(leaves) > 1 else "one_output"
    says = [say(key, share=shares[0], other=shares[min(1, len(shares) - 1)])]
    places = _places(tree)
    if any(leaf.tokens > places.stop for leaf in leaves) or places.start:
        says.append(say("part_of_tree", first=places.start + 1, last=places.stop))
    table = pd.DataFrame(
        {
            "output_of_beam": [model.tokenizer.display(x.text) or EMPTY for x in leaves],
            "of_beam": list(map(_is, leaves)),
            "whole_probability": [exp(x.log_probability) for x in leaves],
            "log_probability": [x.log_probability for x in leaves],
        }
    )
    return Section(
        words.LIKELIEST, tuple(says), table, (Panel.of(_tree(tree, places)),), words.TREE
    )


def _is(leaf: Any) -> str:
    if not leaf.ended:
        return "cut off"
    return "not known" if leaf.right is None else "right" if leaf.right else "wrong"


def _places(tree: Any) -> range:
    """The places that are drawn: all, or some from those on where outputs part."""
    end = max(leaf.tokens for leaf in tree.leaves)
    parting = min((leaf.branch for leaf in tree.leaves if leaf.row), default=0)
    first = max(parting - BEFORE, 0) if end > DRAWN else 0
    return range(first, min(end, first + DRAWN))


def _tree(tree: Any, places: range) -> Any:
    """Tree of outputs, a row each; tokens shared with an earlier output are drawn in its row."""
    parting = {(row, x.branch) for x in tree.leaves if x.row for row in (x.parent, x.row)}
    cells = [
        {
            "row": x.row,
            "place": x.place,
            "token": x.token,
            "probability": x.probability,
            "so_far": exp(x.log_probability),
            # Never invisible, and never so dark that its letters are.
            "strength": 0.08 + 0.5 * x.probability,
            "choice": share(x.probability) if (x.row, x.place) in parting else "",
        }
        for x in tree.tokens
        if x.place in places
    ]
    links = [
        {"row": leaf.row, "parent": leaf.parent, "place": leaf.branch}
        for leaf in tree.leaves
        if leaf.row and leaf.branch in places
    ]
    ends = [f"{_is(leaf)}, {share(exp(leaf.log_probability))}" for leaf in tree.leaves]
    across = alt.Scale(domain=list(places), paddingInner=0.1)
    x = alt.X("place:O", axis=None, scale=across)
    rows = alt.Scale(domain=list(range(len(ends))), paddingInner=0.4, paddingOuter=0.3)
    axis = token_marks.tokens_axis(ends, rows=True)
    y = alt.Y("row:O", scale=rows, axis=axis)
    base = alt.Chart(pd.DataFrame(cells)).encode(x, y)
    tooltip = marks.tips(
        token="Token", probability="Its probability:.4~%", so_far="With all before it:.4~%"
    )
    strong = alt.Opacity("strength:Q", scale=None, legend=None)
    layers = [
        base.mark_rect(cornerRadius=3, color="~accent").encode(strong, tooltip=tooltip),
        base.mark_text(fontSize=12, color="~ink").encode(text="token:N"),
        base.mark_text(fontSize=9, dy=-15, color="~muted").encode(text="choice:N"),
    ]
    if links:
        # Just before the cell at which outputs part.
        at = alt.X("place:O", axis=None, scale=across, bandPosition=-0.05)
        down = alt.Chart(pd.DataFrame(links)).mark_rule(color="~muted")
        layers.append(down.encode(at, alt.Y("parent:O", scale=rows, axis=axis), alt.Y2("row:O")))
    tokens, letters = (x.token for x in tree.tokens), max(map(len, ends))
    width = token_marks.width_of(tokens, len(places), letters)
    return alt.layer(*layers).properties(height=CELL * len(ends), width=width)
