"""The wheel, the shipped database in it, and private parts of Numba."""

import runpy
import sys
import tomllib
from pathlib import Path
from typing import Any

import numba.np.arraymath
import pytest
from numba import njit
from numba.core.caching import IndexDataCacheFile

import sweeps
from dashboard import start
from sweeps import access
from sweeps.store.opening import open_reader
from tests.commands import run_main
from tests.conftest import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_wheel_contains_the_shipped_database() -> None:
    (brought,) = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"].items()
    assert (ROOT / brought[0]).exists()
    assert ROOT / brought[1] == access.SHIPPED
    assert not list(Path(sweeps.__file__).parent.rglob("*.db")), "the clone has it once"


def test_private_parts_of_numba_exist() -> None:
    """A newer version of Numba may be allowed only once this test passes with it."""
    for name in ("_load_index", "_load_data", "_open_for_write", "_data_path"):
        assert callable(getattr(IndexDataCacheFile, name))
    options: dict[str, Any] = {"forceinline": True, "_nrt": False}
    options |= {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    compiled: Any = njit(cache=True, **options)(_one)
    assert compiled.targetoptions.items() >= options.items()
    cache = compiled._cache
    assert isinstance(cache._cache_file, IndexDataCacheFile)
    assert cache._impl.filename_base
    assert cache._impl.locator.get_source_stamp()
    assert hasattr(numba.np.arraymath, "array_sum")


def _one() -> int:
    return 1


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, and a package that was installed from a wheel; the user's data folder."""
    data = tmp_path / "data"
    monkeypatch.setattr(access, "SHIPPED", ROOT / "runs.db")
    monkeypatch.setattr(access, "user_data_path", lambda name: data / name)
    monkeypatch.delenv("SEQCLS_DB", raising=False)
    folder = tmp_path / "empty"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return data / "seqcls"


def test_installed_package_opens_a_copy_owned_by_the_user(installed: Path) -> None:
    copy = access.to_begin_with(None)
    assert copy == installed / "runs.db"
    assert copy.read_bytes() == (ROOT / "runs.db").read_bytes()
    assert open_reader(str(copy)).path == copy
    assert list(installed.iterdir()) == [copy]
    copy.write_bytes(b"changed by its user")
    assert access.to_begin_with(None) == copy
    assert copy.read_bytes() == b"changed by its user"


def test_reading_commands_use_the_users_copy(
    installed: Path,
) -> None:
    found = run_main("runs")
    assert found.returncode == 0, found.stderr
    assert found.stderr == access.NONE_HERE + "\n"
    assert "all_initializations" in run_main("status").stdout
    assert (installed / "runs.db").exists()
    assert not Path("runs.db").exists()


def test_no_copy_is_made_where_another_database_is_named_or_there(
    installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert access.to_begin_with("mine.db") is None
    monkeypatch.setenv("SEQCLS_DB", "mine.db")
    assert access.to_begin_with(None) is None
    monkeypatch.delenv("SEQCLS_DB")
    Path("runs.db").touch()
    assert access.to_begin_with(None) is None
    Path("runs.db").unlink()
    installed.parent.write_text("a file, where the folder should be")
    assert access.to_begin_with(None) is None
    installed.parent.unlink()
    # A clone has the database where it is looked for.
    monkeypatch.setattr(access, "SHIPPED", ROOT / "sweeps" / "shipped" / "runs.db")
    assert access.to_begin_with(None) is None
    assert not installed.exists()


def test_windows_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(SystemExit, match=r"^seqcls: it runs on Linux and macOS.*WSL"):
        start.main()
    with pytest.raises(ImportError, match="Linux or macOS; on Windows, install and run it in WSL"):
        runpy.run_path(str(ROOT / "sweeps" / "__init__.py"))
