"""What lies in the working directory and the environment changes nothing of who may do what."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path

import psutil
import pytest

from sweeps.grid.spec import read_spec
from sweeps.store import writer
from sweeps.store.opening import open_writer
from sweeps.store.reads import sweep_queries
from sweeps.work import background_worker

SEQCLS = Path(sys.executable).with_name("seqcls")

NAMES = ("array", "queue", "random", "sweeps", "seqcls", "dashboard", "streamlit", "numba", "numpy")
"""Modules that this program loads, of Python, of others and its own."""

OPEN_TO_ALL = """
[server]
address = "0.0.0.0"
baseUrlPath = "elsewhere"
enableCORS = false
enableXsrfProtection = false
enableStaticServing = true
sslCertFile = "nowhere.pem"

[client]
showErrorLinks = true
"""


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory whose Python files say that they were run."""
    folder = tmp_path / "hostile"
    (folder / ".streamlit").mkdir(parents=True)
    (folder / ".streamlit" / "config.toml").write_text(OPEN_TO_ALL)
    for name in NAMES:
        said = f"open({str(folder / 'was_run')!r}, 'a').write({name!r})\nraise SystemExit(9)\n"
        (folder / f"{name}.py").write_text(said)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("SEQCLS_DB", str(tmp_path / "x.db"))
    return folder


def run_files(folder: Path) -> str:
    marks = folder / "was_run"
    return marks.read_text() if marks.exists() else ""


def test_no_python_file_of_the_working_directory_is_run_by_a_sweep(
    hostile: Path, short_spec: Path
) -> None:
    command = [str(SEQCLS), "sweep", str(short_spec), "--workers", "1"]
    said = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (said.returncode, run_files(hostile)) == (0, ""), said.stderr
    assert "trained 6 runs" in said.stdout


def test_no_python_file_of_the_working_directory_is_run_by_a_worker_that_a_page_starts(
    hostile: Path, short_spec: Path
) -> None:
    store = open_writer()
    writer.submit(store, read_spec(short_spec))
    assert background_worker.start_worker(store, {1: "short"})
    deadline = time.monotonic() + 120
    while background_worker.has_worker(store, 1) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert sweep_queries.counts_by_state(store) == {"done": 6}, background_worker.read_log(store, 1)
    assert run_files(hostile) == ""


@contextmanager
def dashboard(port: int, **environment: str) -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen(
        [SEQCLS, "dashboard", "--port", str(port)],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def free_port() -> int:
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def asked(port: int, method: str, path: str, **headers: str) -> tuple[int, dict[str, str]]:
    with closing(HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}


def wait_for_answer(port: int, process: "subprocess.Popen[str]") -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        try:
            assert asked(port, "GET", "/_stcore/health")[0] == 200
            return
        except OSError:
            time.sleep(0.1)
    pytest.fail("the dashboard does not answer")


def test_the_dashboard_is_open_to_this_machine_only_whatever_it_finds(hostile: Path) -> None:
    port = free_port()
    foreign = {
        "STREAMLIT_SERVER_ADDRESS": "0.0.0.0",
        "STREAMLIT_SERVER_ENABLE_XSRF_PROTECTION": "false",
        "STREAMLIT_SERVER_ENABLE_CORS": "false",
    }
    with dashboard(port, **foreign) as process:
        wait_for_answer(port, process)
        listening = psutil.Process(process.pid).net_connections("inet")
        assert {one.laddr.ip for one in listening if one.status == "LISTEN"} == {"127.0.0.1"}
        _, headers = asked(port, "GET", "/_stcore/health", Origin="http://evil.example")
        assert "access-control-allow-origin" not in headers
        status, _ = asked(port, "PUT", "/_stcore/upload_file/none/none")
        assert status == 403
        # A second one says so, at once, and leaves the first alone.
        with dashboard(port) as second:
            said, _ = second.communicate(timeout=120)
        assert second.returncode == 3
        assert said.startswith(f"seqcls: port {port} is taken")
        assert len(said.splitlines()) == 1
        assert asked(port, "GET", "/_stcore/health")[0] == 200
    assert run_files(hostile) == ""


def test_the_server_answers_its_own_pages_alone(tmp_path: Path) -> None:
    port = free_port()
    own = f"127.0.0.1:{port}"
    with dashboard(port, SEQCLS_DB=str(tmp_path / "x.db")) as process:
        wait_for_answer(port, process)
        assert websocket(port) == 101
        assert websocket(port, Origin=f"http://{own}") == 101
        assert asked(port, "GET", "/", Origin=f"http://{own}")[0] == 200
        here = f"localhost:{port}"
        assert websocket(port, Host=here, Origin=f"http://{here}") == 101
        for origin in (
            *(f"http://localhost:{port + 1}", f"http://127.0.0.1:{port + 1}", "http://localhost"),
            *(f"http://{here}", f"http://evil.example:{port}", "http://[", "null", ""),
        ):
            assert websocket(port, Origin=origin) == 403, origin
            status, headers = asked(port, "GET", "/_stcore/host-config", Origin=origin)
            assert status == 403, origin
            assert "access-control-allow-origin" not in headers


def websocket(port: int, **headers: str) -> int:
    """What the server says to a page that wants to talk to it; 101 is a yes."""
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
    key = {"Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA=="}
    return asked(port, "GET", "/_stcore/stream", **upgrade, **key, **headers)[0]
