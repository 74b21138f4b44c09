"""A published dashboard as visitors reach it: real servers, requests of browsers and of others."""

import os
import re
import shutil
import signal
import site
import socket
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from itertools import cycle, islice
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Origin

from benchmarks.served import Server, running
from benchmarks.visitors import visitor
from sweeps.serve import NAMES_VARIABLE, answers_to
from sweeps.store.opening import open_writer
from tests.app import PAGES, markdown_of, open_app, page_text
from tests.conftest import ROOT

BROKE = b"Something on this page broke"
FOLDER, PASSWORD = "folder-of-the-server", "pass-of-the-server"
HOSTILE = (
    "<script>alert(1)</script>",
    "[x](javascript:alert(1)) <img src=x onerror=alert(1)>",
    "../../../../etc/passwd",
    "1' OR '1'='1' --",
    "\0\x1b[31m\u202e{{7*7}}${7*7}",
    "9" * 5_000,
)
PARAMETERS = (
    *("run", "config", "sweep", "seed", "tag", "below", "kind", "failing", "view", "epoch"),
    *("beside", "beside_epoch", "string", "strings", "family", "columns", "find", "lengths"),
    *("hidden_size", "heads_off", "group", "automaton_states", "mechanism", "measure", "x", "y"),
    *("models_page", "strings_page", "models_axis", "show_archived", "language"),
)
SECRETS = (b"root:x:0", b"SQLite format", b"import streamlit", b"enableCORS")


NAMESPACE = ["unshare", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"]), "--mount"]
AS_MEDIUM = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && shift && exec "$@"'
PATH = "/lab/models"


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shipped database in write-ahead mode, which wants files beside it."""
    folder = tmp_path_factory.mktemp("db") / FOLDER
    folder.mkdir()
    copied = Path(shutil.copy(ROOT / "runs.db", folder / "runs.db"))
    with open_writer(str(copied)).write():
        pass
    assert copied.read_bytes()[18:20] == b"\2\2"
    return copied


@pytest.fixture(scope="module")
def mounted(db: Path) -> list[str]:
    """A prefix of a command for which alone the folder is read-only; empty where nothing
    can be mounted. Root ignores file modes.
    """
    before = [*NAMESPACE, "sh", "-c", AS_MEDIUM, "sh", str(db.parent)]
    touch = [*before, "touch", str(db.with_name("new"))]
    tried = subprocess.run(touch, capture_output=True, text=True, check=False)
    return before if "Read-only file system" in tried.stderr else []


@pytest.fixture(scope="module")
def public(db: Path, mounted: list[str]) -> Iterator[Server]:
    """A read-only dashboard on a read-only medium, below a path, as behind a reverse proxy."""
    command = [*mounted, sys.executable, "-m", "sweeps", "dashboard", "--read-only", f"--db={db}"]
    command.append(f"--base-path={PATH}")
    with running(lambda port: [*command, f"--port={port}"], base_path=PATH) as server:
        yield server


def answer(
    server: Server, path: str, method: str = "GET", body: bytes | None = None, **headers: str
) -> tuple[int, bytes]:
    """Status and content, of a path that is sent as it is."""
    address = urlsplit(server.url)
    with closing(HTTPConnection(address.netloc, timeout=60)) as connection:
        connection.putrequest(method, path, skip_host="Host" in headers)
        for name, value in {"Content-Length": str(len(body or b"")), **headers}.items():
            connection.putheader(name, value)
        connection.endheaders(body)
        found = connection.getresponse()
        return found.status, found.read()


def test_every_page_is_served_below_the_base_path_without_server_folders(public: Server) -> None:
    for page in PAGES:
        status, html = answer(public, f"/lab/models/{page}")
        assert status == 200
        assert answer(public, f"/{page}")[0] == 404
        with visitor(public) as own:
            assert own.open(page) > 1_000
            assert BROKE not in own.received
            assert FOLDER.encode() not in own.received
            # Streamlit itself sends every browser the path of its script.
            sent = own.received.replace(str(ROOT / "dashboard" / "app.py").encode(), b"")
            assert str(ROOT).encode() not in sent
    named = re.findall(r'(?:src|href)="\./(static/[^"]+)"', html.decode())
    assert len(named) > 3
    for path in (*named, "_stcore/health"):
        assert answer(public, f"/lab/models/{path}")[0] == 200


def test_hostile_parameters_of_a_link_break_no_page(public: Server) -> None:
    # On some page every parameter has every text.
    assert len(PAGES) >= len(HOSTILE)
    for number, page in enumerate(PAGES):
        query = urlencode(list(zip(PARAMETERS, islice(cycle(HOSTILE), number, None), strict=False)))
        with visitor(public) as own:
            own.open(page, query)
            for inside in (BROKE, FOLDER.encode(), SECRETS[0]):
                assert inside not in own.received, page


def test_uploads_from_visitors_are_refused(public: Server) -> None:
    for method in ("PUT", "POST", "DELETE"):
        path = "/lab/models/_stcore/upload_file/session/file"
        status, content = answer(public, path, method, b"x" * 1_000)
        assert status == 403
        assert b"read-only" in content


FILES = (
    *("/runs.db", "/lab/models/runs.db", "/lab/models/app.py", "/lab/models/dashboard/app.py"),
    *("/lab/models/.streamlit/config.toml", "/lab/models/app/static/app.py"),
    "/lab/models/static/../../../../../../../../etc/passwd",
    "/lab/models/static/%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
    "/lab/models/static/..%2f..%2f..%2f..%2f..%2f..%2fetc/passwd",
    *("/lab/models/media/../../../etc/passwd", "/lab/models/component/../../etc/passwd"),
    *("/lab/models//etc/passwd", "//etc/passwd", "/lab/models/_stcore/script-health-check"),
)


def test_no_file_of_the_server_is_served(public: Server) -> None:
    for path in FILES:
        _, content = answer(public, path)
        assert [inside for inside in SECRETS if inside in content] == [], path


def test_requests_from_another_site_are_refused(public: Server) -> None:
    assert answer(public, "/lab/models/", Origin="https://elsewhere.example")[0] == 403


ENTRANCES = ("", "model", "live", "_stcore/health", "_stcore/host-config", "_stcore/stream")


@pytest.mark.parametrize("host", ["rebound.example", "127.0.0.1.nip.example", "localhost.example"])
def test_requests_to_a_rebound_name_are_refused(public: Server, host: str) -> None:
    """A page of that name would have the origin that its requests ask for."""
    port = urlsplit(public.url).port
    static = re.findall(r'src="\./(static/[^"]+)"', answer(public, "/lab/models/")[1].decode())[0]
    there: dict[str, Any] = {"Host": f"{host}:{port}", "Origin": f"http://{host}:{port}"}
    for path in (*ENTRANCES, static):
        method = "POST" if path == "live" else "GET"
        status, content = answer(public, f"/lab/models/{path}", method, **there)
        assert status == 403, path
        assert f"'{host}:{port}'".encode() in content
        assert b"--name NAME" in content
    stream = f"ws://{host}:{port}/lab/models/_stcore/stream"
    with (
        socket.create_connection(("127.0.0.1", port)) as plain,
        pytest.raises(InvalidStatus, match="403"),
        connect(stream, sock=plain, origin=Origin(f"http://{host}:{port}")),
    ):
        pass


def test_requests_to_names_of_this_machine_and_of_a_proxy_are_answered(
    public: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for host in ("localhost", "LOCALHOST.", "127.0.0.1", "[::1]", "127.0.0.1:9", "localhost:9000"):
        assert answer(public, "/lab/models/", Host=host)[0] == 200, host
    machine = socket.gethostname()
    for address in ("0.0.0.0", "::", None, "192.0.2.7"):
        for host in ("192.0.2.7:8501", "[2001:db8::1]:8501", machine, f"{machine}:8501"):
            assert answers_to(host, address), (address, host)
        for host in ("rebound.example", "192.0.2.7.example", f"{machine}.example", "a@127.0.0.1"):
            assert not answers_to(host, address), (address, host)
    assert answers_to("lab.example", "lab.example"), "the name that it listens at"
    assert not answers_to("192.0.2.7", "127.0.0.1"), "nobody reaches it there"
    monkeypatch.setenv(NAMES_VARIABLE, "models.example.org, Bücher.example")
    for host in ("models.example.org", "Models.Example.Org:443", "xn--bcher-kva.example"):
        assert answers_to(host, "127.0.0.1"), host
    for host in ("example.org", "a.models.example.org", "models.example.org.evil.example", ""):
        assert not answers_to(host, "127.0.0.1"), host


BREAKS = """
import sys

import streamlit.web.cli

sys.modules["dashboard.guide.sections"] = None
streamlit.web.cli.main()
"""
"""Streamlit's command, in whose process the guide cannot be imported."""

# Without `site`, no editable installation is known; -P leaves out the working directory.
NOT_INSTALLED = [sys.executable, "-S", "-P", "-c"]
CLOUD = {
    "PATH": os.environ["PATH"],
    "HOME": os.environ.get("HOME", "/"),
    "PYTHONPATH": os.pathsep.join(site.getsitepackages()),
    "SEQCLS_READ_ONLY": "1",
    NAMES_VARIABLE: "models.example.org",
}


@pytest.fixture(scope="module")
def cloud() -> Iterator[Server]:
    """The dashboard as the Community Cloud starts it, behind a name, with a guide that breaks.

    There the packages of requirements.txt are installed, of which `seqcls` is none.
    """
    command = [*NOT_INSTALLED, BREAKS, "run", "dashboard/app.py"]
    with running(lambda port: [*command, f"--server.port={port}"], CLOUD) as server:
        yield server


def test_a_page_that_breaks_shows_no_traceback(cloud: Server) -> None:
    """Streamlit by itself would show one."""
    with visitor(cloud) as own:
        own.open("guide")
        assert BROKE in own.received
        for inside in (b"dashboard.guide", b"Traceback", b"sys.modules"):
            assert inside not in own.received
    assert answer(cloud, "/", Host="models.example.org")[0] == 200
    for path in ("/", "/_stcore/stream"):
        assert answer(cloud, path, Host="rebound.example")[0] == 403


def test_the_dashboard_runs_from_the_repository_without_installation(cloud: Server) -> None:
    find = "import importlib.util as x; raise SystemExit(not x.find_spec('seqcls'))"
    if subprocess.run([*NOT_INSTALLED, find], cwd=ROOT, env=CLOUD).returncode == 0:
        pytest.skip("seqcls is installed among the packages")
    with visitor(cloud) as own:
        assert own.open("model") > 10_000
        assert BROKE not in own.received
        assert b"launch_button" not in own.received


def test_requirements_of_the_community_cloud_are_pinned_to_tested_versions() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pinned = _versions((ROOT / "constraints.txt").read_text())
    required = {_name(line) for line in project["dependencies"]}
    given = _versions((ROOT / "dashboard" / "requirements.txt").read_text())
    assert given == {name: pinned[name] for name in required}


def _name(line: str) -> str:
    return re.split(r"[^\w.-]", line)[0].replace("_", "-").lower()


def _versions(text: str) -> dict[str, str]:
    pairs = (line.split("==") for line in text.splitlines() if not line.startswith("#"))
    return {_name(name): version for name, version in pairs}


def test_the_container_starts_a_read_only_dashboard() -> None:
    """Its file is read here; no test builds it."""
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    (command,) = (line for line in lines if line.startswith("CMD"))
    assert '"--read-only"' in command
    assert "USER visitor" in lines


def test_a_dashboard_runs_on_a_read_only_medium(
    public: Server, db: Path, mounted: list[str]
) -> None:
    if not mounted:
        pytest.skip("NOT TESTED: nothing can be mounted here")
    with visitor(public) as own:
        assert own.open("model", "view=Why") > 1_000
        assert BROKE not in own.received
        assert b"cannot be shown" not in own.received
    assert [x.name for x in db.parent.iterdir()] == ["runs.db"]


def test_database_errors_show_visitors_no_folders_and_no_passwords(
    public: Server, db: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for is_there in (True, False):
        db.write_bytes(b"no database " * 1_000) if is_there else db.unlink()
        with visitor(public) as own:
            for page in ("", "model"):
                own.open(page)
                for inside in (BROKE, FOLDER.encode()):
                    assert inside not in own.received, page
    monkeypatch.setenv("SEQCLS_READ_ONLY", "1")
    for page in ("results", "model"):
        app = open_app(monkeypatch, f"postgresql://reader:{PASSWORD}@127.0.0.1:1/results", page)
        texts = [page_text(app), *markdown_of(app)]
        assert any("127.0.0.1" in text for text in texts) or app.error
        assert [text for text in texts if PASSWORD in text] == []


def test_every_promise_of_the_security_page_names_an_existing_test() -> None:
    _, _, section = (ROOT / "SECURITY.md").read_text().partition("## A read-only dashboard")
    rows = [line for line in section.partition("## ")[0].splitlines() if line.startswith("| ")]
    code = "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    for row in rows[1:]:
        named = re.findall(r"`(test_\w+)`", row)
        assert named, row
        assert [name for name in named if f"def {name}(" not in code] == []


SERVER = """
import asyncio

import uvicorn

import dashboard.server.serving
from dashboard.app import app

dashboard.server.serving.END_SECONDS = 0.5


async def also_never(scope, receive, send):
    if scope["type"] == "http" and scope["path"] == "/never":
        print("asked", flush=True)
        await asyncio.Event().wait()
    await app(scope, receive, send)


async def begin():
    server = uvicorn.Server(uvicorn.Config(also_never, port=0, log_level="error"))
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    print(server.servers[0].sockets[0].getsockname()[1], flush=True)
    await serving


asyncio.run(begin())
"""
"""The dashboard, and one path more that is never answered."""


def test_a_signaled_dashboard_ends_with_an_open_request() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SERVER],
        cwd=ROOT,
        env={**os.environ, "SEQCLS_DB": "runs.db"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as server:
        assert server.stdout is not None
        try:
            assert server.stdout.readline() == b"Showing runs.db.\n"
            with socket.create_connection(("127.0.0.1", int(server.stdout.readline()))) as browser:
                browser.sendall(b"GET /never HTTP/1.1\r\nHost: here\r\n\r\n")
                assert server.stdout.readline() == b"asked\n"
                server.terminate()
                assert server.wait() == 128 + signal.SIGTERM
        finally:
            server.kill()
