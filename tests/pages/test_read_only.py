"""A dashboard for the public: it writes nothing, whatever is called, and only it lets others in."""

import ast
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import streamlit as st
from sqlalchemy.exc import SQLAlchemyError

from dashboard import actions
from seqcls.errors import ReadOnlyError, StoreError
from sweeps import api
from sweeps.api.cause_search import start_cause_search
from sweeps.grid.spec import parse_spec
from sweeps.store import writer
from sweeps.store.database import Store
from sweeps.store.opening import open_reader, open_writer, pack
from sweeps.store.reads import queries
from sweeps.work import background_worker
from tests.conftest import ROOT
from tests.databases import file_of
from tests.pages.shown import reads

SPEC = parse_spec({"name": "new", "model_seeds": [0]})


@pytest.fixture
def _unchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The shipped database, alone in a folder, for a process that only reads: it stays as it is."""
    folder = tmp_path / "public"
    folder.mkdir()
    copied = Path(shutil.copy(ROOT / "runs.db", folder / "runs.db"))
    monkeypatch.setenv("SEQCLS_DB", str(copied))
    monkeypatch.setenv("SEQCLS_READ_ONLY", "1")
    yield
    assert copied.read_bytes() == (ROOT / "runs.db").read_bytes()
    assert [x.name for x in folder.iterdir()] == ["runs.db"]


WRITES: tuple[Callable[[Store], object], ...] = (
    lambda _: open_writer(),
    lambda store: open_writer(str(file_of(store).with_name("new.db"))),
    open_writer,
    lambda _: pack(),
    lambda store: api.log_results(file_of(store), sweep="theirs", task="xor"),
    lambda store: api.stop(store, ["all_initializations"]),
    lambda store: api.resume(store, ["all_initializations"]),
    lambda store: api.retry(store, ["all_initializations"]),
    lambda store: api.delete(store, "all_initializations"),
    lambda store: api.submit(store, [SPEC]),
    lambda store: api.merge(store, store),
    lambda store: writer.stop(store, [1]),
    lambda store: writer.resume(store, [1]),
    lambda store: writer.retry(store, [1]),
    lambda store: writer.submit(store, SPEC),
    lambda store: writer.delete(store, 1),
    lambda store: writer.record_findings(store, 1, "cause", []),
    writer.register_worker,
    lambda store: writer.write_note(store, 1, "title", "note", ["tag"]),
    lambda store: writer.archive(store, 1, True),
    # No process is started either.
    lambda store: background_worker.start_worker(store, {1: "heads"}),
    lambda store: start_cause_search(store, [1]),
)


@pytest.mark.usefixtures("_unchanged")
def test_every_write_of_a_read_only_process_is_refused() -> None:
    for write in WRITES:
        with pytest.raises((StoreError, SQLAlchemyError, ReadOnlyError)):
            write(open_reader())


@pytest.mark.usefixtures("_unchanged")
def test_actions_of_read_only_pages_are_refused_and_change_nothing() -> None:
    writing: tuple[Callable[[], object], ...] = (
        lambda: actions.launch([SPEC], "token"),
        lambda: actions.launch_more(lambda _: SPEC),
        lambda: actions.train(1, "heads", writer.resume, [1]),
        lambda: actions.write(writer.stop, [1]),
    )
    for act in writing:
        st.session_state.pop(actions.PROBLEM, None)
        act()
        assert "is refused: SEQCLS_READ_ONLY is set" in st.session_state[actions.PROBLEM]


def labels_of(label: ast.expr) -> list[str]:
    """The possible labels of a button in its source."""
    either = [label.body, label.orelse] if isinstance(label, ast.IfExp) else [label]
    return [ast.unparse(one).lstrip("f").strip("'") for one in either]


CONTROLS = {
    *("button", "form_submit_button", "file_uploader", "data_editor"),
    *("camera_input", "audio_input", "chat_input", "feedback"),
}


def test_every_button_either_only_reads_or_checks_for_permission() -> None:
    """A new one must be of either sort."""
    num_guarded, unknown = 0, []
    for path in (ROOT / "dashboard").rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text())):
            if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
                continue
            if call.func.attr not in CONTROLS:
                continue
            spread = [ast.unparse(x.value) for x in call.keywords if x.arg is None]
            # A button of `actions` is drawn by a function that checks.
            asks = ast.unparse(call.func) == "actions.button"
            if asks or any(text.startswith("control(") for text in spread):
                num_guarded += 1
            elif not all(map(reads, labels_of(call.args[0]))):
                unknown.append(f"{path.name}:{call.lineno}")
    assert unknown == []
    assert num_guarded > 8


def test_a_file_in_write_ahead_mode_is_read_without_files_beside_it_and_as_it_is_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = Path(shutil.copy(ROOT / "runs.db", tmp_path / "runs.db"))
    store = open_writer(str(file))

    def read() -> tuple[int, list[str]]:
        """The revision as a process reads it that may not write, and the files meanwhile."""
        with monkeypatch.context() as patched:
            patched.setenv("SEQCLS_READ_ONLY", "1")
            reader = open_reader(str(file))
            with reader.read() as connection:
                assert connection.exec_driver_sql("SELECT count(*) FROM run").scalar() == 43
                there = sorted(x.name for x in tmp_path.iterdir())
            return queries.revision(reader), there

    with store.write():
        pass
    assert file.read_bytes()[18:20] == b"\2\2", "in write-ahead mode"
    assert read()[1] == ["runs.db"]
    with store.kept_open():
        revisions = []
        for _ in range(2):
            with store.write():
                pass
            revisions.append(read()[0])
    assert revisions[0] < revisions[1], "what is written meanwhile is seen"


def test_a_read_only_process_cannot_write_to_postgresql(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_writer(postgres_url)
    monkeypatch.setenv("SEQCLS_READ_ONLY", "1")
    store: Store = open_reader(postgres_url)
    with pytest.raises(ReadOnlyError):
        writer.submit(store, SPEC)
    with pytest.raises(ReadOnlyError):
        open_writer(postgres_url)


def test_a_writing_dashboard_started_by_streamlit_listens_only_here() -> None:
    app = str(ROOT / "dashboard" / "app.py")
    command = [sys.executable, "-m", "streamlit", "run", app, "--server.address=0.0.0.0"]
    ended = subprocess.run(
        [*command, "--server.port=0"], capture_output=True, text=True, timeout=300, check=False
    )
    assert ended.returncode == 2
    assert "set SEQCLS_READ_ONLY=1" in ended.stderr
