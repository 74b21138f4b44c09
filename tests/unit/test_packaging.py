"""What is packaged says the same thing everywhere, and opens on something real."""

import ast
import re
import runpy
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import numba.np.arraymath
import pytest
import yaml
from numba import njit
from numba.core.caching import IndexDataCacheFile

import sweeps
from dashboard import start
from seqcls import __version__
from sweeps import access
from sweeps.store.opening import open_reader
from tests.commands import run_main
from tests.conftest import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_the_version_is_the_same_everywhere() -> None:
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == __version__
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest
    assert newest[1] == __version__


def test_the_supported_versions_of_python_are_those_that_ci_tests() -> None:
    flow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
    tested = flow["jobs"]["test"]["strategy"]["matrix"]["python"]
    named = [own.rpartition(" ")[2] for own in PROJECT["project"]["classifiers"]]
    assert [own for own in named if own.startswith("3.")] == tested
    assert PROJECT["project"]["requires-python"] == f">={tested[0]}"


def test_a_wheel_brings_the_database_to_where_it_is_looked_for() -> None:
    (brought,) = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"].items()
    assert (ROOT / brought[0]).exists()
    assert ROOT / brought[1] == access.SHIPPED
    assert not list(Path(sweeps.__file__).parent.rglob("*.db")), "the clone has it once"


def test_every_pinned_version_is_pinned_once() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()[1:]
    names = [line.partition("==")[0].lower() for line in lines]
    assert len(names) == len(set(names))


def test_every_package_that_is_imported_is_declared() -> None:
    project = PROJECT["project"]
    extras = project["optional-dependencies"]
    lines = [*project["dependencies"], *extras["dask"], *extras["mcp"], *extras["postgres"]]
    declared = {re.split(r"[^\w-]", line)[0].replace("-", "_").lower() for line in lines}
    distributions = packages_distributions()
    for package in sorted(set(_imported()) - {*LAYERS} - set(sys.stdlib_module_names)):
        named = {name.replace("-", "_").lower() for name in distributions[package]}
        assert named & declared, f"{package} is imported and not declared"


LAYERS = ("seqcls", "sweeps", "dashboard")


def _imported() -> Iterator[str]:
    """The top-level names of all that the product imports, within functions too."""
    for package in LAYERS:
        for path in (ROOT / package).rglob("*.py"):
            yield from (name.partition(".")[0] for name in _imports_of(path.read_text()))


def _imports_of(code: str) -> Iterator[str]:
    """The modules that a module imports: within functions too, and by `import_module` too."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and _called(node.func) in ("import_module", "__import__"):
            named = [node.args[0]] if node.args else [x.value for x in node.keywords]
            yield from (
                part.value
                for value in named
                for part in ast.walk(value)
                if isinstance(part, ast.Constant) and isinstance(part.value, str)
            )


def _called(function: ast.expr) -> str | None:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else None


def test_imports_within_functions_and_by_name_go_downwards_too() -> None:
    for height, package in enumerate(LAYERS):
        for path in (ROOT / package).rglob("*.py"):
            above = LAYERS[height + 1 :]
            if package == "sweeps" and not {"cli", "__main__.py"} & {*path.parts}:
                # The command formats what the others answer.
                above = ("sweeps.cli", *above)
            for name in _imports_of(path.read_text()):
                assert not f"{name}.".startswith(tuple(f"{x}." for x in above)), f"{path}: {name}"


def test_few_places_ask_whether_models_write_outputs_and_each_says_why() -> None:
    asks = re.compile(r"\.(writes|no_language)\b(?!\.)")
    places = [
        (path, lines[number - 1])
        for package in ("seqcls", "sweeps", "dashboard")
        for path in (ROOT / package).rglob("*.py")
        # Kinds say it, and what a network's head writes is the subject of networks.
        if not re.search("seqcls/(kinds|models|adapters)", path.as_posix())
        for lines in [path.read_text().splitlines()]
        for number, line in enumerate(lines)
        if asks.search(line) and "import" not in line and "`" not in line and "fields." not in line
    ]
    assert 0 < len(places) <= 12
    assert all(before.strip().startswith(("#", '"""')) for _, before in places), places


def test_what_measures_needs_no_tests() -> None:
    for path in (ROOT / "benchmarks").rglob("*.py"):
        assert not [x for x in _imports_of(path.read_text()) if x.startswith("tests.")], path


@pytest.mark.parametrize(
    "code",
    [
        "def f():\n    from dashboard.figures import command",
        "def f():\n    importlib.import_module('dashboard.figures.command').f()",
        "__import__(name='dashboard')",
        "import_module(f'dashboard.{page}')",
    ],
)
def test_whatever_way_a_module_is_imported_is_seen(code: str) -> None:
    assert [name.partition(".")[0] for name in _imports_of(code)] == ["dashboard"]


def test_the_private_parts_of_numba_that_are_used_are_where_they_were() -> None:
    """Where a newer version moves one, this is mended before the bound on it is raised."""
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


def test_an_installed_package_opens_on_a_copy_that_is_the_users(installed: Path) -> None:
    copy = access.to_begin_with(None)
    assert copy == installed / "runs.db"
    assert copy.read_bytes() == (ROOT / "runs.db").read_bytes()
    assert open_reader(str(copy)).path == copy
    assert list(installed.iterdir()) == [copy]
    copy.write_bytes(b"changed by its user")
    assert access.to_begin_with(None) == copy
    assert copy.read_bytes() == b"changed by its user"


def test_every_command_that_reads_uses_that_copy_and_says_so_in_one_line(
    installed: Path,
) -> None:
    found = run_main("runs")
    assert found.returncode == 0, found.stderr
    assert found.stderr == access.NONE_HERE + "\n"
    assert "all_initializations" in run_main("status").stdout
    assert (installed / "runs.db").exists()
    assert not Path("runs.db").exists()


def test_no_copy_is_shown_where_another_database_is_meant(
    installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert access.to_begin_with("mine.db") is None
    monkeypatch.setenv("SEQCLS_DB", "mine.db")
    assert access.to_begin_with(None) is None
    monkeypatch.delenv("SEQCLS_DB")
    Path("runs.db").touch()
    assert access.to_begin_with(None) is None
    assert not installed.exists()


def test_where_no_copy_can_be_made_there_is_none(installed: Path) -> None:
    installed.parent.write_text("a file, where the folder should be")
    assert access.to_begin_with(None) is None


def test_a_clone_has_no_copy_to_make(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "SHIPPED", ROOT / "sweeps" / "shipped" / "runs.db")
    assert access.to_begin_with(None) is None
    assert not installed.exists()


def test_on_windows_one_line_says_what_to_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(SystemExit, match=r"^seqcls: it runs on Linux and macOS.*WSL"):
        start.main()
    with pytest.raises(ImportError, match="Linux or macOS; on Windows, install and run it in WSL"):
        runpy.run_path(str(ROOT / "sweeps" / "__init__.py"))


def test_no_part_of_the_dashboard_hides_a_package() -> None:
    # Streamlit puts the folder of its script first on the path: there `dashboard/x` is `x`.
    folder = ROOT / "dashboard"
    parts = {path.stem for path in folder.iterdir() if path.is_dir() or path.suffix == ".py"}
    hidden = {"seqcls", "sweeps", *sys.stdlib_module_names, *packages_distributions()}
    assert len(parts) > 15
    assert parts & hidden <= {"__init__", "__pycache__"}
