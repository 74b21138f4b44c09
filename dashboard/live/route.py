"""The address under which a page asks about the string that is being typed, and the answers."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse

from dashboard import data
from dashboard.charts.readout import DRAWN
from dashboard.server.opened_models import MODELS
from dashboard.server.serving import BelowBase
from dashboard.server.visitors import one_question
from dashboard.text import error_text
from seqcls.errors import ConfigError, InvalidStringError, SeqclsError, VisitorError
from seqcls.interpretability.trained_model import Answer, TrainedModel
from sweeps.api import open_reader
from sweeps.api.old_pages import reading

if TYPE_CHECKING:
    from dashboard.figures.string_states import StringStates

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


class LiveMap(TypedDict):
    """Cells, row by row, in thousandths of `reach`."""

    name: str
    rows: list[str]
    columns: list[str]
    cells: list[int]
    reach: float
    signed: bool


class LiveDrawing(TypedDict):
    """All that is drawn."""

    said: str
    wrong: bool
    line: Line | None
    maps: list[LiveMap]
    absent: list[str]
    """Why something else is not."""


def look(model: TrainedModel, string: str) -> LiveDrawing:
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
    # Imported where it is used: PyTorch takes a second or two to load.
    from dashboard.figures.string_states import StringStates

    answer, states = model.answer(letters), StringStates(model, letters)
    maps, absent = _maps(states)
    return LiveDrawing(
        said=f"{answer.text}.",
        wrong=bool(answer.is_wrong),
        line=_line(states, answer),
        maps=maps,
        absent=absent,
    )


def _line(states: "StringStates", answer: Answer) -> Line:
    if not states.has_prefixes:
        from seqcls.interpretability.states_of_outputs import output_tokens

        written = states.ask(output_tokens)
        return Line(
            name="Probability of each token that it writes",
            tokens=[each.token for each in written],
            values=_finite([each.probability for each in written]),
            zero=False,
        )
    from seqcls.interpretability.states_by_strings import prefix_logits

    prefixes = states.ask(prefix_logits)
    values = _finite(prefixes.logits.tolist())
    name = f"Running {answer.number}"
    return Line(name=name, tokens=list(prefixes.tokens), values=values, zero=True)


def _finite(values: list[float]) -> list[float | None]:
    """JSON has no other numbers."""
    return [round(value, 4) if np.isfinite(value) else None for value in values]


def _maps(states: "StringStates") -> tuple[list[LiveMap], list[str]]:
    """Attention or units, and why there is nothing of the kind."""
    if not (states.names_attention or states.has_units):
        return [], [f"{states.model.config.architecture} names no attention and no units."]
    if len(states.read) > DRAWN + 2:
        return [], [f"Attention and units are drawn up to {DRAWN} tokens; this string has more."]
    try:
        maps = list(_attention(states)) if states.names_attention else []
        # Blocks of a hybrid have one or the other.
        if states.has_units and (states.model.config.layers or not states.names_attention):
            maps += _units(states)
    except ConfigError as error:
        return [], [f"{error}."]
    left = len(maps) - MOST_MAPS
    return maps[:MOST_MAPS], [f"{left} more are not drawn."] if left > 0 else []


def _attention(states: "StringStates") -> Iterator[LiveMap]:
    from dashboard.figures.string_states import heads_of

    patterns = states.patterns
    start = "" if patterns.apart is None else "cross-attention, "
    for name, place in heads_of(patterns).items():
        yield LiveMap(
            name=f"{start}{name}".capitalize(),
            rows=list(patterns.rows),
            columns=list(patterns.tokens),
            cells=_parts(patterns.weights[place], 1.0),
            reach=1.0,
            signed=False,
        )


def _units(states: "StringStates") -> Iterator[LiveMap]:
    from seqcls.interpretability.states_by_strings import layer_word

    word, units = layer_word(states.model).capitalize(), states.units
    for layer, place in units.layers.items():
        shown = units.states[place].T[:MOST_UNITS]
        reach = max(1.0, float(np.abs(shown).max(initial=0.0)))
        yield LiveMap(
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


MOST_BYTES = 8_192
"""The size of a question at most."""

EXPECTED = 'expected {"run": 1, "epoch": 2, "string": "ab"}'


async def live(request: Request) -> JSONResponse:
    """What a model makes of a string: `look`, or a line that says why not."""
    try:
        run_id, epoch, string = await _question(request)
    except ValueError as error:
        return _refuse(400, str(error))
    return await run_in_threadpool(_answer, run_id, epoch, string)


ROUTES = [BelowBase("/live", live, methods=["POST"])]


async def _question(request: Request) -> tuple[int, int | None, str]:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_BYTES:
            raise ValueError(f"The question has more than {MOST_BYTES:,} bytes.")
    try:
        question = json.loads(body)
        run_id, epoch, string = question["run"], question.get("epoch"), question["string"]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise ValueError(f"The question cannot be read: {EXPECTED}") from None
    # A bit is a whole number, too; not here.
    if type(run_id) is not int or type(epoch) not in (int, type(None)) or type(string) is not str:
        raise ValueError(f"The question cannot be read: {EXPECTED}")
    return run_id, epoch, string


def _answer(run_id: int, epoch: int | None, string: str) -> JSONResponse:
    try:
        with one_question():
            return JSONResponse(dict(look(_model(run_id, epoch), string)))
    except VisitorError as error:
        return _refuse(503, str(error))
    except SeqclsError as error:
        return _refuse(422, error_text(error))


def _model(run_id: int, epoch: int | None) -> TrainedModel:
    """The model, which the page Model may have opened already."""

    def open_it() -> TrainedModel:
        return data.trained_model(reading.find_run(open_reader(), str(run_id)), epoch)

    return MODELS.answer(("model", (*data.state_shown(), run_id, epoch)), open_it)


def _refuse(status: int, reason: str) -> JSONResponse:
    return JSONResponse({"error": reason}, status)
