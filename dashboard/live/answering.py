"""What is drawn of a model and a string while it is typed, as plain values for a browser."""

from collections.abc import Iterator
from typing import Any, TypedDict

import numpy as np

from dashboard.figures.string_axes import DRAWN, token_names
from seqcls.errors import ConfigError, InvalidStringError
from seqcls.interpretability.model.trained_model import Answer, Letters, TrainedModel
from sweeps.analysis.answer_sentences import said_of

MOST_TOKENS = 256
"""The most tokens of a string that is answered while it is typed."""

MOST_MAPS, MOST_UNITS = 32, 128
"""Heads or layers that are drawn, and units of a layer."""

PARTS = 1_000
"""The parts of the greatest value in which the cells of maps are told."""


class Line(TypedDict):
    """Numbers along tokens."""

    name: str
    tokens: list[str]
    values: list[float | None]
    zero: bool
    """Whether the sign decides; else they are shares."""


class Map(TypedDict):
    """Cells, row by row, in thousandths of `reach`."""

    name: str
    rows: list[str]
    columns: list[str]
    cells: list[int]
    reach: float
    signed: bool


class Look(TypedDict):
    """All that is drawn."""

    said: str
    wrong: bool
    line: Line | None
    maps: list[Map]
    absent: list[str]
    """Why something else is not."""


def look(model: TrainedModel, string: str) -> Look:
    """What a model makes of a string.

    Raises:
        InvalidStringError: it is not of the alphabet, no input of the task, or too long.
    """
    letters = model.letters(string)
    if len(letters) > MOST_TOKENS:
        raise InvalidStringError(
            f"{string[:60]!r} has {len(letters):,} tokens: up to {MOST_TOKENS} are answered while "
            "they are typed; the tab States shows longer ones"
        )
    answer = model.answer(letters)
    maps, absent = _maps(model, letters)
    return Look(
        said=f"{said_of(answer)}.",
        wrong=bool(answer.is_wrong),
        line=_line(model, letters, answer),
        maps=maps,
        absent=absent,
    )


def _line(model: TrainedModel, letters: Letters, answer: Answer) -> Line:
    # Imported where it is used: PyTorch takes a second or two to load.
    if model.writes:
        from seqcls.interpretability.states.output_tokens import output_tokens

        written = output_tokens(model, letters)
        return Line(
            name="Probability of each token that it writes",
            tokens=[each.token for each in written],
            values=_finite([each.probability for each in written]),
            zero=False,
        )
    from seqcls.interpretability.states.by_strings import prefix_logits

    prefixes = prefix_logits(model, letters)
    name = f"Running {answer.number}" if model.problem.no_language else "Running logit"
    tokens = ["", *(model.tokenizer.alphabet[letter] for letter in letters)]
    return Line(name=name, tokens=tokens, values=_finite(prefixes.logits.tolist()), zero=True)


def _finite(values: list[float]) -> list[float | None]:
    """JSON has no other numbers."""
    return [round(value, 4) if np.isfinite(value) else None for value in values]


def _maps(model: TrainedModel, letters: Letters) -> tuple[list[Map], list[str]]:
    """Attention or units, and why there is nothing of the kind."""
    from seqcls.interpretability.states.by_strings import has_attention, has_units

    if not (has_attention(model) or has_units(model)):
        return [], [f"{model.config.architecture} names no attention and no units."]
    names = token_names(model, letters)
    if len(names) > DRAWN + 2:
        return [], [f"Attention and units are drawn up to {DRAWN} tokens; this string has more."]
    try:
        maps = list(_attention(model, letters) if has_attention(model) else _units(model, letters))
    except ConfigError as error:
        return [], [f"{error}."]
    left = len(maps) - MOST_MAPS
    return maps[:MOST_MAPS], [f"{left} more are not drawn."] if left > 0 else []


def _attention(model: TrainedModel, letters: Letters) -> Iterator[Map]:
    from seqcls.interpretability.states.by_strings import attention_patterns

    patterns = attention_patterns(model, letters)
    start = "Block" if patterns.apart is None else "Cross-attention, block"
    for block, heads in enumerate(patterns.weights):
        for head, weights in enumerate(heads):
            yield Map(
                name=f"{start} {block}, head {head}",
                rows=list(patterns.rows),
                columns=list(patterns.tokens),
                cells=_parts(weights, 1.0),
                reach=1.0,
                signed=False,
            )


def _units(model: TrainedModel, letters: Letters) -> Iterator[Map]:
    from seqcls.interpretability.states.by_strings import layer_word, recurrent_units

    word = layer_word(model).capitalize()
    units = recurrent_units(model, letters)
    for layer, states in enumerate(units.states):
        shown = states.T[:MOST_UNITS]
        reach = max(1.0, float(np.abs(shown).max(initial=0.0)))
        yield Map(
            name=f"{word} {layer}, units",
            rows=[f"unit {unit}" for unit in range(len(shown))],
            columns=list(units.tokens),
            cells=_parts(shown, reach),
            reach=reach,
            signed=True,
        )


def _parts(values: Any, reach: float) -> list[int]:
    cells: list[int] = np.rint(np.nan_to_num(values) / reach * PARTS).astype(int).ravel().tolist()
    return cells
