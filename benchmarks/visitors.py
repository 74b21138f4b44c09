"""Sessions that request pages, each over its own connection, as a browser does.

python -m benchmarks.visitors [DB]
python -m benchmarks.visitors --public DB

The first has twenty sessions request pages of a database of 100,000 runs without a pause; most show
all runs, some filter. A page run is all that the server computes and sends for a page. The second
has 50 sessions open Results and Model of a read-only dashboard, each with another model, and stay;
it prints the server's time and memory.
"""

import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from itertools import cycle, islice
from pathlib import Path
from statistics import median
from urllib.parse import urlsplit

import psutil
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import ClientConnection, connect

from benchmarks.pages import PAGES, make_if_missing, megabytes
from benchmarks.served import Server, serve

SESSIONS = 20
SECONDS = 60.0
MOST_SESSIONS = 50
MODELS = 43
"""Models in the shipped database."""

MOST_SECONDS = 120
"""The time limit of a page run."""

FILTERED = ("seed=1&seed=2&seed=3", "below=99.0", "num_attention_heads=2", "outcome=fails+beyond")
"""The filters of the sessions with a filter; the others show all runs."""

EARLY = ForwardMsg.ScriptFinishedStatus.Value("FINISHED_EARLY_FOR_RERUN")


class Visitor:
    """A session: a window in which one page after another is opened."""

    def __init__(self, connection: ClientConnection, filtered: str) -> None:
        self._connection = connection
        self._filtered = filtered
        self._hashes: dict[str, str] = {}
        self._known: list[set[str]] = [set(), set()]
        self.received = b""
        """The content sent for the last page."""

    def open(self, page: str, query: str | None = None) -> int:
        """Asks for a page, by another link than the visitor's; the bytes that are sent for it.

        Raises:
            AssertionError: the page shows an exception.
        """
        request = BackMsg()
        request.rerun_script.query_string = self._filtered if query is None else query
        request.rerun_script.context_info.color_scheme = "light"
        if page in self._hashes:
            request.rerun_script.page_script_hash = self._hashes[page]
        else:
            request.rerun_script.page_name = page
        # As a browser, it keeps what came for its last pages, and is sent that once.
        request.rerun_script.cached_message_hashes.extend(self._known[0] | self._known[1])
        self._connection.send(request.SerializeToString())
        self._known = [self._known[1], set()]
        sent = list(self._answers(page))
        self.received = b"".join(sent)
        return len(self.received)

    def _answers(self, page: str) -> Iterator[bytes]:
        while True:
            received = self._connection.recv(timeout=MOST_SECONDS, decode=False)
            yield received
            answer = ForwardMsg.FromString(received)
            assert answer.delta.new_element.WhichOneof("type") != "exception", (page, answer)
            if answer.metadata.cacheable:
                self._known[1].add(answer.ref_hash or answer.hash)
            for known in answer.navigation.app_pages:
                self._hashes["" if known.is_default else known.url_pathname] = (
                    known.page_script_hash
                )
            finished = answer.WhichOneof("type") == "script_finished"
            if finished and answer.script_finished != EARLY:
                return


@contextmanager
def visitor(server: Server, filtered: str = "") -> Iterator[Visitor]:
    """A session of its own, whose link names the filters."""
    address = urlsplit(server.url)
    url = f"ws://{address.netloc}{address.path}/_stcore/stream"
    # As in a browser, nothing checks that the server is still running.
    with connect(url, max_size=None, compression=None, ping_interval=None) as connection:
        yield Visitor(connection, filtered)


def main(db: str | None = None) -> None:
    """Prints page runs a second, what each took of processors, and the server's memory."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(db) if db else Path(folder) / "large.db"
        make_if_missing(path)
        with serve(path) as server:
            _one(server)
            _all(server)
            print(f"  the server took {megabytes(server):.0f} MB at most")


def public(db: str) -> None:
    """Prints the memory of a read-only server as sessions come and stay."""
    with serve(Path(db), "--read-only") as server, ExitStack() as staying:
        _say_memory(server, 0)
        for number in range(1, MOST_SESSIONS + 1):
            own = staying.enter_context(visitor(server))
            own.open("")
            own.open("model", f"run={number % MODELS + 1}&view=Why")
            if number in (1, 20, MOST_SESSIONS):
                _say_memory(server, number)


def _say_memory(server: Server, sessions: int) -> None:
    now = psutil.Process(server.process.pid).memory_info().rss / 2**20
    print(f"  {sessions:3} sessions: {now:.0f} MB, at most {megabytes(server):.0f} MB", flush=True)


def _one(server: Server) -> None:
    """Every page of one session alone, shown before: what a page run takes at least."""
    with visitor(server) as own:
        for name, page in PAGES.items():
            own.open(page)
            before, sent = _processor(server), own.open(page)
            took = _processor(server) - before
            print(
                f"  {name:16} again {took:.2f} s of a processor, {sent / 1e3:5.0f} kB", flush=True
            )


def _all(server: Server) -> None:
    """All sessions until the time is over, beside what one needs for pages that nobody has seen."""
    alone = _processor(server)
    for filtered in FILTERED:
        with visitor(server, filtered) as own:
            for page in PAGES.values():
                own.open(page)
    before, began = _processor(server), time.monotonic()
    unseen = (before - alone) / len(FILTERED) / len(PAGES)
    with ThreadPoolExecutor(SESSIONS) as pool:
        futures = [pool.submit(_asks, server, n, began + SECONDS) for n in range(SESSIONS)]
        times = [own for found in futures for own in found.result()]
    passed, per_run = time.monotonic() - began, (_processor(server) - before) / len(times)
    print(
        f"  {SESSIONS} sessions: {len(times)} page runs in {passed:.0f} s, "
        f"{len(times) / passed:.1f} a second; median {median(times):.2f} s, at most "
        f"{max(times):.2f} s\n"
        f"  {per_run:.3f} s of a processor each, {unseen:.3f} s where nobody saw the page before "
        f"({unseen / per_run:.1f} times as long)"
    )


def _asks(server: Server, number: int, until: float) -> list[float]:
    """Opens page after page until the time is over; the seconds of each."""
    filtered = FILTERED[number // 5] if number % 5 == 0 else ""
    pages = list(PAGES.values())
    times: list[float] = []
    with visitor(server, filtered) as own:
        for page in islice(cycle(pages), number % len(pages), None):
            if time.monotonic() > until:
                return times
            began = time.monotonic()
            own.open(page)
            times.append(time.monotonic() - began)
    return times


def _processor(server: Server) -> float:
    """Seconds of processors that the server has taken."""
    own = psutil.Process(server.process.pid).cpu_times()
    return float(own.user + own.system)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--public"]:
        public(sys.argv[2])
    else:
        main(*sys.argv[1:])
