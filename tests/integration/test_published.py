"""What visitors reach of a published dashboard: real servers, asked by browsers and by others."""

import os
import re
import shutil
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
from urllib.parse import urlencode, urlsplit

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Origin

from benchmarks.served import Server, running, serve
from benchmarks.visitors import visitor
from dashboard.server.first_page import PAGES
from sweeps.serve import NAMES_VARIABLE, answers_to
from sweeps.store.opening import open_writer
from tests.commands import refused
from tests.conftest import ROOT

BROKE = b"Something on this page broke"
FOLDER = "folder-of-the-server"
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


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A read-only dashboard below a path, as behind a reverse proxy."""
    folder = tmp_path_factory.mktemp("db") / FOLDER
    folder.mkdir()
    shutil.copy(ROOT / "runs.db", folder / "runs.db")
    with serve(folder / "runs.db", "--read-only", base_path="/lab/models") as server:
        yield server
        assert [x.name for x in folder.iterdir()] == ["runs.db"]


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


@pytest.mark.parametrize("page", PAGES)
def test_every_page_is_below_the_path_and_carries_no_folder_of_the_server(
    public: Server, page: str
) -> None:
    status, html = answer(public, f"/lab/models/{page}")
    assert status == 200
    assert b"stMainBlockContainer" in html, "with room for what is to come"
    assert answer(public, f"/{page}")[0] == 404
    with visitor(public) as own:
        assert own.open(page) > 1_000
        assert BROKE not in own.received
        assert FOLDER.encode() not in own.received
        # Streamlit itself tells every browser which script it runs.
        said = own.received.replace(str(ROOT / "dashboard" / "app.py").encode(), b"")
        assert str(ROOT).encode() not in said


def test_what_pages_load_is_below_the_path(public: Server) -> None:
    html = answer(public, "/lab/models/")[1].decode()
    named = re.findall(r'(?:src|href)="\./(static/[^"]+)"', html)
    assert len(named) > 3
    for path in named:
        assert answer(public, f"/lab/models/{path}")[0] == 200
    assert answer(public, "/lab/models/_stcore/health")[0] == 200


@pytest.mark.parametrize("page", PAGES)
def test_a_link_may_carry_anything(public: Server, page: str) -> None:
    # On some page every parameter has every text.
    for turn in (0, 3):
        texts = islice(cycle(HOSTILE), turn + PAGES.index(page), None)
        query = urlencode(list(zip(PARAMETERS, texts, strict=False)))
        with visitor(public) as own:
            own.open(page, query)
            assert BROKE not in own.received, (page, turn)
            assert FOLDER.encode() not in own.received
            assert b"root:x:0" not in own.received


@pytest.mark.parametrize("damaged", ["gone", "no database", "a server that does not answer"])
def test_what_is_wrong_with_the_database_is_said_without_folders_and_passwords(
    tmp_path: Path, damaged: str
) -> None:
    folder = tmp_path / FOLDER
    folder.mkdir()
    db = str(folder / "x.db")
    if damaged == "no database":
        Path(db).write_bytes(b"no database " * 1_000)
    elif damaged != "gone":
        db = "postgresql://reader:pass-of-the-server@127.0.0.1:1/results"
    command = [sys.executable, "-m", "sweeps", "dashboard", "--read-only"]
    environment = {**os.environ, "SEQCLS_DB": db}
    with running(lambda port: [*command, f"--port={port}"], environment) as server:
        for page in ("", "failing", "sweeps", "model", "guide"):
            with visitor(server) as own:
                own.open(page)
                assert BROKE not in own.received
                assert b"pass-of-the-server" not in own.received
                assert FOLDER.encode() not in own.received


def test_no_file_is_taken_from_a_visitor(public: Server) -> None:
    for method in ("PUT", "POST", "DELETE"):
        path = "/lab/models/_stcore/upload_file/session/file"
        status, said = answer(public, path, method, b"x" * 1_000)
        assert (status, said) == (403, b"This server is read-only and takes no files.")


@pytest.mark.parametrize(
    "path",
    [
        "/runs.db",
        "/lab/models/runs.db",
        "/lab/models/app.py",
        "/lab/models/dashboard/app.py",
        "/lab/models/.streamlit/config.toml",
        "/lab/models/app/static/app.py",
        "/lab/models/static/../../../../../../../../etc/passwd",
        "/lab/models/static/%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
        "/lab/models/static/..%2f..%2f..%2f..%2f..%2f..%2fetc/passwd",
        "/lab/models/media/../../../etc/passwd",
        "/lab/models/component/../../etc/passwd",
        "/lab/models//etc/passwd",
        "//etc/passwd",
        "/lab/models/_stcore/script-health-check",
    ],
)
def test_no_file_of_the_server_is_given_away(public: Server, path: str) -> None:
    _, content = answer(public, path)
    for inside in (b"root:x:0", b"SQLite format", b"import streamlit", b"enableCORS"):
        assert inside not in content


def test_another_sites_page_is_not_answered(public: Server) -> None:
    assert answer(public, "/lab/models/", Origin="https://elsewhere.example")[0] == 403


ENTRANCES = ("", "model", "live", "_stcore/health", "_stcore/host-config", "_stcore/stream")


@pytest.mark.parametrize("host", ["rebound.example", "127.0.0.1.nip.example", "localhost.example"])
def test_a_name_that_was_made_to_lead_here_is_answered_nowhere(public: Server, host: str) -> None:
    """A page of that name would have the origin that its requests ask for."""
    port = urlsplit(public.url).port
    static = re.findall(r'src="\./(static/[^"]+)"', answer(public, "/lab/models/")[1].decode())[0]
    for path in (*ENTRANCES, static):
        method = "POST" if path == "live" else "GET"
        status, said = answer(
            public,
            f"/lab/models/{path}",
            method,
            Host=f"{host}:{port}",
            Origin=f"http://{host}:{port}",
        )
        assert status == 403, path
        assert f"does not answer to the name '{host}:{port}'. Open it as".encode() in said
        assert b"start it with --name NAME" in said
    stream = f"ws://{host}:{port}/lab/models/_stcore/stream"
    with (
        socket.create_connection(("127.0.0.1", port)) as plain,
        pytest.raises(InvalidStatus, match="403"),
        connect(stream, sock=plain, origin=Origin(f"http://{host}:{port}")),
    ):
        pass


def test_the_names_of_this_machine_are_answered_on_any_port(public: Server) -> None:
    for host in ("localhost", "LOCALHOST.", "127.0.0.1", "[::1]", "127.0.0.1:9", "localhost:9000"):
        assert answer(public, "/lab/models/", Host=host)[0] == 200, host


def test_names_of_a_proxy_are_answered_where_they_are_configured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(NAMES_VARIABLE, "models.example.org, Bücher.example")
    for host in ("models.example.org", "Models.Example.Org:443", "xn--bcher-kva.example"):
        assert answers_to(host, "127.0.0.1"), host
    for host in ("example.org", "a.models.example.org", "models.example.org.evil.example", ""):
        assert not answers_to(host, "127.0.0.1"), host


def test_where_others_reach_it_numbers_and_the_machines_name_are_answered() -> None:
    machine = socket.gethostname()
    for address in ("0.0.0.0", "::", None, "192.0.2.7"):
        for host in ("192.0.2.7:8501", "[2001:db8::1]:8501", machine, f"{machine}:8501"):
            assert answers_to(host, address), (address, host)
        for host in ("rebound.example", "192.0.2.7.example", f"{machine}.example", "a@127.0.0.1"):
            assert not answers_to(host, address), (address, host)
    assert answers_to("lab.example", "lab.example"), "the name that it listens at"
    assert not answers_to("192.0.2.7", "127.0.0.1"), "nobody reaches it there"


@pytest.mark.parametrize("name", ["https://example.org", "example.org:443", "a b", "*", "a/b", ""])
def test_a_name_that_no_browser_could_ask_for_is_refused(name: str) -> None:
    said = refused("dashboard", "--name", name, "--db", str(ROOT / "runs.db"))
    assert f"--name {name}: expected a host's name as it stands in the address bar" in said


def test_the_dashboard_that_streamlit_starts_answers_no_foreign_name_but_those_of_the_proxy() -> (
    None
):
    environment = {**os.environ, NAMES_VARIABLE: "models.example.org", "SEQCLS_READ_ONLY": "1"}
    environment["SEQCLS_DB"] = str(ROOT / "runs.db")
    command = [sys.executable, "-m", "streamlit", "run", "dashboard/app.py"]
    with running(lambda port: [*command, f"--server.port={port}"], environment) as server:
        assert answer(server, "/", Host="models.example.org")[0] == 200
        assert answer(server, "/", Host="rebound.example")[0] == 403
        assert answer(server, "/_stcore/stream", Host="rebound.example")[0] == 403


def test_it_runs_from_the_repository_where_it_is_not_installed() -> None:
    """As on the Community Cloud: the packages of requirements.txt, of which `seqcls` is none."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": os.environ.get("HOME", "/"),
        "PYTHONPATH": os.pathsep.join(site.getsitepackages()),
        "SEQCLS_READ_ONLY": "1",
    }
    # Without `site`, no editable installation is known; -P leaves out the working directory.
    python = [sys.executable, "-S", "-P"]
    absent = subprocess.run(
        [*python, "-c", "import seqcls"], cwd=ROOT, env=environment, capture_output=True
    )
    if absent.returncode == 0:
        pytest.skip("seqcls is installed among the packages")
    command = [*python, "-m", "streamlit", "run", "dashboard/app.py"]
    with running(lambda port: [*command, f"--server.port={port}"], environment) as server:
        for page in ("", "model", "failing"):
            with visitor(server) as own:
                assert own.open(page) > 10_000
                assert BROKE not in own.received
                assert b"launch_button" not in own.received


BREAKS = """
import dashboard.views.guide

def breaks(*_):
    raise ValueError("inside of the server")

dashboard.views.guide.find = breaks
"""


def test_a_page_that_breaks_shows_no_traceback(tmp_path: Path) -> None:
    """Started by `streamlit run`, which by itself would show one."""
    (tmp_path / "sitecustomize.py").write_text(BREAKS)
    paths = os.pathsep.join([str(tmp_path), str(ROOT)])
    environment = {**os.environ, "PYTHONPATH": paths, "SEQCLS_READ_ONLY": "1"}
    command = [sys.executable, "-m", "streamlit", "run", "dashboard/app.py"]
    served = running(lambda port: [*command, f"--server.port={port}"], environment)
    with served as server, visitor(server) as own:
        own.open("guide")
        assert BROKE in own.received
        for inside in (b"inside of the server", b"Traceback", b"sitecustomize"):
            assert inside not in own.received


def test_a_budget_that_is_no_number_ends_the_server_with_a_line() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    environment = {**os.environ, "SEQCLS_VISITOR_SECONDS": "many"}
    command = [sys.executable, "-m", "sweeps", "dashboard", "--db", str(ROOT / "runs.db")]
    said = subprocess.run(
        [*command, "--read-only", "--port", port],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert said.returncode == 2
    assert "seqcls: SEQCLS_VISITOR_SECONDS='many': expected seconds above 0" in said.stderr


@pytest.mark.parametrize("path", ["a b", "../x", "a//b", "/%2e", "<x>", "."])
def test_a_path_that_no_proxy_could_serve_is_refused(path: str) -> None:
    said = refused("dashboard", "--base-path", path, "--db", str(ROOT / "runs.db"))
    assert f"--base-path {path}: expected names of letters" in said


def test_the_community_cloud_is_given_what_the_project_asks_for_at_tested_versions() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pinned = _versions((ROOT / "constraints.txt").read_text())
    asked = {_name(line) for line in project["dependencies"]}
    given = _versions((ROOT / "dashboard" / "requirements.txt").read_text())
    assert given == {name: pinned[name] for name in asked}


def _name(line: str) -> str:
    return re.split(r"[^\w.-]", line)[0].replace("_", "-").lower()


def _versions(text: str) -> dict[str, str]:
    pairs = (line.split("==") for line in text.splitlines() if not line.startswith("#"))
    return {_name(name): version for name, version in pairs}


def test_the_container_starts_a_read_only_dashboard() -> None:
    """Its file is read here; no test builds it."""
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    assert len(lines) <= 12
    (command,) = (line for line in lines if line.startswith("CMD"))
    assert '"--read-only"' in command
    assert "USER visitor" in lines


NAMESPACE = ["unshare", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"]), "--mount"]
AS_MEDIUM = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && shift && exec "$@"'


def test_it_stands_on_a_read_only_medium(tmp_path: Path) -> None:
    """Root may write whatever modes say, so that the folder is mounted read-only, for it alone."""
    folder = tmp_path / "medium"
    folder.mkdir()
    db = Path(shutil.copy(ROOT / "runs.db", folder / "runs.db"))
    with open_writer(str(db)).change():
        pass
    assert db.read_bytes()[18:20] == b"\2\2", "in write-ahead mode, which wants files beside it"
    mounted = [*NAMESPACE, "sh", "-c", AS_MEDIUM, "sh", str(folder)]
    tried = subprocess.run(
        [*mounted, "touch", str(folder / "new")], capture_output=True, text=True, check=False
    )
    if "Read-only file system" not in tried.stderr:
        pytest.skip(f"NOT TESTED: nothing can be mounted here: {tried.stderr}")
    command = [*mounted, sys.executable, "-m", "sweeps", "dashboard", "--read-only", f"--db={db}"]
    with running(lambda port: [*command, f"--port={port}"]) as server:
        for page in ("", "failing", "sweeps", "model"):
            with visitor(server) as own:
                assert own.open(page, "view=Why") > 1_000
                assert BROKE not in own.received
                assert b"cannot be shown" not in own.received
    assert [x.name for x in folder.iterdir()] == ["runs.db"]


def test_every_promise_to_those_who_publish_names_a_test_that_is_there() -> None:
    _, _, section = (ROOT / "SECURITY.md").read_text().partition("## A read-only dashboard")
    rows = [line for line in section.partition("## ")[0].splitlines() if line.startswith("| ")]
    code = "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    for row in rows[1:]:
        named = re.findall(r"`(test_\w+)`", row)
        assert named, row
        assert [name for name in named if f"def {name}(" not in code] == []
