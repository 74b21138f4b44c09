"""Files of the working directory and foreign variables change no permission."""

import os
import re
import sys
import time
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import psutil
import pytest

from benchmarks.served import running
from sweeps.grid.spec import read_spec
from sweeps.store import writer
from sweeps.store.opening import open_writer
from sweeps.store.reads import sweep_queries
from sweeps.work import background_worker
from sweeps.work.background_worker import read_log
from tests.commands import run_main

SEQCLS = Path(sys.executable).with_name("seqcls")

NAMES = ("array", "queue", "random", "sweeps", "seqcls", "dashboard", "streamlit", "numba", "numpy")
"""Modules that this program loads: of Python, of other packages, and of this one."""

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
FOREIGN = {
    "STREAMLIT_SERVER_ADDRESS": "0.0.0.0",
    "STREAMLIT_SERVER_ENABLE_XSRF_PROTECTION": "false",
    "STREAMLIT_SERVER_ENABLE_CORS": "false",
}


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory whose Python files record that they were run."""
    folder = tmp_path / "hostile"
    (folder / ".streamlit").mkdir(parents=True)
    (folder / ".streamlit" / "config.toml").write_text(OPEN_TO_ALL)
    for name in NAMES:
        source = f"open({str(folder / 'was_run')!r}, 'a').write({name!r})\nraise SystemExit(9)\n"
        (folder / f"{name}.py").write_text(source)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("SEQCLS_DB", str(tmp_path / "x.db"))
    return folder


def request(port: int, method: str, path: str, **headers: str) -> tuple[int, dict[str, str]]:
    with closing(HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}


def websocket(port: int, **headers: str) -> int:
    """The status of the server's reply to a web socket request; 101 accepts it."""
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
    key = {"Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA=="}
    return request(port, "GET", "/_stcore/stream", **upgrade, **key, **headers)[0]


def test_a_dashboard_and_its_worker_ignore_files_and_settings_of_the_working_directory(
    hostile: Path, short_spec: Path
) -> None:
    environment = {**os.environ, **FOREIGN}
    command = [str(SEQCLS), "dashboard"]
    with running(lambda x: [*command, f"--port={x}"], environment, folder=hostile) as server:
        port = int(server.url.rpartition(":")[2])
        store = open_writer()
        short_spec.write_text(short_spec.read_text().replace('"0..2"', "[3]"))
        writer.submit(store, read_spec(short_spec))
        assert background_worker.start_worker(store, {1: "short"})
        listening = psutil.Process(server.process.pid).net_connections("inet")
        assert {one.laddr.ip for one in listening if one.status == "LISTEN"} == {"127.0.0.1"}
        assert request(port, "PUT", "/_stcore/upload_file/none/none")[0] == 403
        # Its own pages, by either name of this machine, and those of nobody else.
        own, here = f"127.0.0.1:{port}", f"localhost:{port}"
        assert websocket(port) == 101
        assert websocket(port, Origin=f"http://{own}") == 101
        assert websocket(port, Host=here, Origin=f"http://{here}") == 101
        assert request(port, "GET", "/", Origin=f"http://{own}")[0] == 200
        for origin in (f"http://localhost:{port + 1}", f"http://{here}", "http://[", "null", ""):
            assert websocket(port, Origin=origin) == 403, origin
            for path in ("/_stcore/host-config", "/_stcore/health"):
                status, headers = request(port, "GET", path, Origin=origin)
                assert status == 403 or path.endswith("health"), origin
                assert "access-control-allow-origin" not in headers
        # A second one is refused, and the first runs on.
        second = run_main("dashboard", "--port", str(port))
        assert (second.returncode, second.stdout) == (3, "")
        assert second.stderr.startswith(f"seqcls: port {port} is taken")
        assert re.search(r"--port \d+", second.stderr), "the next free one is offered"
        assert len(second.stderr.splitlines()) == 1
        while background_worker.has_worker(store, 1):
            time.sleep(0.1)
        log = read_log(store, 1)
        assert sweep_queries.runs_by_state(store, [1]) == {"done": 2}, log
        assert request(port, "GET", "/_stcore/health")[0] == 200
    assert not (hostile / "was_run").exists()
