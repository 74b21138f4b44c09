"""The dashboard as a user starts it, and a browser as a user has it."""

import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parent.parent
START_SECONDS = 60

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking"]


def find_browser() -> str | None:
    """The path of a Chromium or Chrome on this machine; None where there is none."""
    for name in NAMES:
        if path := shutil.which(name):
            return path
    with sync_playwright() as playwright:
        downloaded = playwright.chromium.executable_path
    return downloaded if Path(downloaded).exists() else None


@dataclass
class Server:
    """A dashboard that is being served."""

    url: str
    process: subprocess.Popen[bytes]

    def kill(self) -> None:
        """Ends it at once, as a crash would."""
        self.process.kill()
        self.process.wait(timeout=20)


@contextmanager
def serve(db: Path | str, *options: str, base_path: str = "") -> Iterator[Server]:
    """`seqcls dashboard` on a free port of this machine; stopped afterwards."""
    command = [sys.executable, "-m", "sweeps", "dashboard", "--db", str(db), *options]
    if base_path:
        command.append(f"--base-path={base_path}")
    with running(lambda port: [*command, f"--port={port}"], base_path=base_path) as server:
        yield server


@contextmanager
def running(
    command: Callable[[int], list[str]],
    environment: Mapping[str, str] | None = None,
    *,
    base_path: str = "",
    folder: Path = ROOT,
) -> Iterator[Server]:
    """A command that serves the dashboard, given a free port; stopped afterwards."""
    # Free again before the server takes it: hardly ever is another program faster.
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        command(port),
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    server = Server(f"http://127.0.0.1:{port}{base_path}", process)
    try:
        wait_for(lambda: _answers(f"{server.url}/_stcore/health"), START_SECONDS)
        yield server
    finally:
        process.terminate()
        process.wait(timeout=20)


def _answers(url: str) -> bool:
    try:
        with urlopen(url, timeout=1):
            return True
    except (URLError, ConnectionError, TimeoutError):
        return False


def wait_for(holds: Callable[[], bool], seconds: float) -> None:
    """Waits until something holds.

    Raises:
        TimeoutError: it does not in time.
    """
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(f"it did not come to be within {seconds} s")
        time.sleep(0.1)
