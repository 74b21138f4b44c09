"""A language, positions and an architecture from outside: trained, stored, listed and shown."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from seqcls.errors import ConfigError
from sweeps import api
from sweeps.store.opening import open_reader
from sweeps.store.verification import verify
from tests import plugins
from tests.app import open_app
from tests.conftest import ASSETS

# In processes of their own: what is installed is looked up once a process.
COMMANDS = """
import json, sys
from typer.testing import CliRunner
from sweeps.cli.app import app
for arguments in json.loads(sys.argv[1]):
    said = CliRunner().invoke(app, arguments)
    assert said.exit_code == 0, said
    print(json.dumps(said.stdout))
"""
PAGE = """
from streamlit.testing.v1 import AppTest
page = AppTest.from_file("dashboard/app.py", default_timeout=120).run()
assert not page.exception, page.exception[0].value
assert not page.error, page.error[0].value
print([str(table.value.to_dict()) for table in page.dataframe])
"""


@pytest.fixture(autouse=True, scope="module")
def installed() -> Iterator[None]:
    """The package is where Python finds it, in processes that are started too."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PYTHONPATH", plugins.PYTHONPATH)
        yield


def said(*commands: list[str]) -> list[str]:
    """What these commands print."""
    run = plugins.python("-c", COMMANDS, json.dumps(commands))
    assert run.returncode == 0, run.stderr
    return [json.loads(line) for line in run.stdout.splitlines()]


def test_parts_from_outside_are_trained_stored_listed_and_shown(
    trained_by_processes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The commands and the page are told the database as a user may: by the environment.
    monkeypatch.setenv("SEQCLS_DB", str(trained_by_processes))
    listed, errors, predicted, _ = said(
        ["runs", "--json"], ["errors", "1", "--json"], ["predict", "4", "aab"], ["verify"]
    )
    runs = json.loads(listed)
    assert [run["state"] for run in runs] == ["done"] * 4
    assert {run["plugins"] for run in runs} == {"little-extras==1.2"}
    assert {run["engine"] for run in runs} == {"strings"}
    assert {(run["positions"], run["architecture"]) for run in runs} == {
        ("every_other", "transformer"),
        ("none", "bag"),
    }
    for error in json.loads(errors):
        assert error["label"] == error["string"].rstrip("{}0123456789>").endswith("b")
    assert "aab" in predicted

    page = plugins.python("-c", PAGE)
    assert page.returncode == 0, page.stderr
    assert "'bag'" in page.stdout


@pytest.fixture
def installed_here(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The package is where this process finds it, too."""
    monkeypatch.syspath_prepend(str(ASSETS / "plugin_package"))
    plugins.forget_parts()
    yield
    monkeypatch.undo()
    plugins.forget_parts()


@pytest.mark.usefixtures("installed_here")
def test_where_an_explanation_does_not_hold_only_what_does_is_advised(
    trained_by_processes: Path,
) -> None:
    store = open_reader(str(trained_by_processes))
    for run, is_advised in (("1", True), ("4", False)):
        with pytest.raises(ConfigError, match="do not hold for this model") as refused:
            api.explain(store, run, "aab")
        assert ("`patch`" in str(refused.value)) is is_advised
        if is_advised:
            api.patch(store, run, "aab", "aba")
        else:
            with pytest.raises(ConfigError, match="names no states"):
                api.patch(store, run, "aab", "aba")


def test_without_the_package_a_stored_run_says_what_to_install(
    trained_by_processes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONPATH")
    run = plugins.python("-m", "sweeps", "predict", "1", "aab", "--db", str(trained_by_processes))
    assert run.returncode == 2
    assert "install little-extras==1.2" in run.stderr
    assert "Traceback" not in run.stderr


def test_without_the_package_nothing_is_damaged_and_every_page_is_shown(
    trained_by_processes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked = verify(open_reader(str(trained_by_processes)))
    assert checked.damages == []
    said = [str(each) for each in checked.unchecked]
    assert len(said) == 3
    assert all("install little-extras==1.2" in each for each in said)
    assert "task='ends_with_b' and architecture='bag' need" in said[1]
    for page in ("compare", "failing", "sweeps", "compare_two"):
        app = open_app(monkeypatch, trained_by_processes, page)
        assert not app.error, (page, app.error[0].value)
        assert "plug-in" not in " ".join(str(each.value) for each in app.warning), page
    app = open_app(monkeypatch, trained_by_processes, "model")
    assert [each.value for each in app.warning] == [
        "These models need a plug-in that is not installed here."
    ]
