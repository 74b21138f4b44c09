"""The address under which a page asks about the string that is being typed."""

import json
import time
from collections import OrderedDict
from functools import lru_cache
from threading import Lock
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from seqcls.errors import SeqclsError
from sweeps.read_only import is_read_only
from sweeps.store.opening import open_reader
from sweeps.store.reading import queries

MOST_BYTES = 8_192
"""Of a question."""

WAIT_SECONDS = 5.0
"""For the questions of others: one is answered at a time."""

VISITOR_SECONDS, WINDOW = 20.0, 600.0
"""Computing that one address has answered in so many seconds where anybody may ask."""

MOST_VISITORS = 1_000

EXPECTED = 'expected {"run": 1, "epoch": 2, "string": "ab"}'


class Allowance:
    """The computing time that is left to each address, which comes back as time passes."""

    def __init__(self, seconds: float = VISITOR_SECONDS, window: float = WINDOW) -> None:
        self._most, self._window = seconds, window
        self._used: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def used(self, address: str, now: float) -> float:
        """The seconds that count."""
        used, at = self._used.get(address, (0.0, now))
        return max(0.0, used - (now - at) * self._most / self._window)

    def has_some(self, address: str, now: float) -> bool:
        """Whether another question is answered."""
        return self.used(address, now) < self._most

    def charge(self, address: str, seconds: float, now: float) -> None:
        """Takes what a question took."""
        self._used[address] = (self.used(address, now) + seconds, now)
        self._used.move_to_end(address)
        while len(self._used) > MOST_VISITORS:
            self._used.popitem(last=False)


_allowance = Allowance()
_turn = Lock()


async def live(request: Request) -> JSONResponse:
    """What a model makes of a string: `answering.look`, or a line that says why not."""
    try:
        run_id, epoch, string = await _question(request)
    except ValueError as error:
        return _refused(400, str(error))
    address = request.client.host if request.client else ""
    if is_read_only() and not _allowance.has_some(address, time.monotonic()):
        return _refused(429, "Too much was asked from here; ask again in a few minutes.")
    return await run_in_threadpool(_answer, address, run_id, epoch, string)


ROUTES = [Route("/live", live, methods=["POST"])]


async def _question(request: Request) -> tuple[int, int | None, str]:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_BYTES:
            raise ValueError(f"The question has more than {MOST_BYTES:,} bytes.")
    try:
        asked = json.loads(body)
        run_id, epoch, string = asked["run"], asked.get("epoch"), asked["string"]
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
    began = time.monotonic()
    try:
        model = _model(*_state(int(began)), run_id, epoch)
        return JSONResponse(dict(look(model, string)))
    except SeqclsError as error:
        return _refused(422, str(error))
    finally:
        ended = time.monotonic()
        _turn.release()
        _allowance.charge(address, ended - began, ended)


@lru_cache(maxsize=1)
def _state(_second: int) -> tuple[Any, Any]:
    """Which database it is, in which state; looked up once a second, not at every key."""
    store = open_reader()
    return store.location, queries.revision(store)


@lru_cache(maxsize=64)
def _model(_location: Any, _revision: Any, run_id: int, epoch: int | None) -> Any:
    from sweeps.analysis.opened_models import ask_on_one_thread, trained_model, untrained_model

    ask_on_one_thread()
    store = open_reader()
    run_id = queries.find_run(store, str(run_id))
    if epoch == 0:
        return untrained_model(store, run_id)
    return trained_model(store, run_id, epoch)


def _refused(status: int, reason: str) -> JSONResponse:
    return JSONResponse({"error": reason}, status)
