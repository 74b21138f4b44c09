"""The address under which a page asks about the string that is being typed."""

import json
import time
from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse

from dashboard import data
from dashboard.server.first_page import BelowBase
from dashboard.server.shared_answers import MODELS
from dashboard.server.visitors import Budget, budget_seconds
from dashboard.text import told
from seqcls.errors import SeqclsError, VisitorError
from sweeps.read_only import is_read_only
from sweeps.store.opening import open_reader
from sweeps.store.reading import queries

if TYPE_CHECKING:
    from seqcls.interpretability.model.trained_model import TrainedModel

MOST_BYTES = 8_192
"""The size of a question at most."""

WAIT_SECONDS = 5.0
"""For the questions of others: one is answered at a time."""

MOST_VISITORS = 1_000
"""Addresses whose budget is known; whoever asked longest ago is forgotten first."""

EXPECTED = 'expected {"run": 1, "epoch": 2, "string": "ab"}'


_turn = Lock()
_budgets: OrderedDict[str, Budget] = OrderedDict()
"""Budgets of the addresses that asked a read-only page; who holds the turn may touch them."""


async def live(request: Request) -> JSONResponse:
    """What a model makes of a string: `answering.look`, or a line that says why not."""
    try:
        run_id, epoch, string = await _question(request)
    except ValueError as error:
        return _refused(400, str(error))
    address = request.client.host if request.client else ""
    return await run_in_threadpool(_answer, address, run_id, epoch, string)


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


def _answer(address: str, run_id: int, epoch: int | None, string: str) -> JSONResponse:
    # Imported where it is used: PyTorch takes a second or two to load.
    from dashboard.live.answering import look

    if not _turn.acquire(timeout=WAIT_SECONDS):
        return _refused(503, "Others are asking; ask again in a moment.")
    budget = _budget(address)
    began = time.monotonic()
    try:
        budget.check()
        return JSONResponse(dict(look(_model(run_id, epoch), string)))
    except VisitorError as error:
        return _refused(429, str(error))
    except SeqclsError as error:
        return _refused(422, told(error))
    finally:
        budget.charge(time.monotonic() - began)
        _turn.release()


def _budget(address: str) -> Budget:
    """What an address may have computed; as much as there is where the page is its user's own."""
    if not is_read_only():
        return Budget(float("inf"))
    budget = _budgets.setdefault(address, Budget(budget_seconds()))
    _budgets.move_to_end(address)
    if len(_budgets) > MOST_VISITORS:
        _budgets.popitem(last=False)
    return budget


def _model(run_id: int, epoch: int | None) -> "TrainedModel":
    """The model, which the page Model may have opened already."""

    def open_it() -> "TrainedModel":
        return data.trained_model(queries.find_run(open_reader(), str(run_id)), epoch)

    return MODELS.answer(("model", (*data.state_shown(), run_id, epoch)), open_it)


def _refused(status: int, reason: str) -> JSONResponse:
    return JSONResponse({"error": reason}, status)
