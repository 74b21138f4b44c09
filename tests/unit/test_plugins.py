"""Languages of other packages: found, versioned, and refused in one line."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from seqcls import tasks
from seqcls.config import RunConfig
from seqcls.data import configuration, sampler_of, task_of
from seqcls.errors import ConfigError
from seqcls.plugins import Registry

MODULE = '''
from dataclasses import dataclass
from seqcls.tasks.parity import Parity

@dataclass(frozen=True)
class Odd(Parity):
    """As parity."""
'''

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Puts a package with a task `odd` where Python finds it."""

    def put(version: str = "1.0", module: str = MODULE) -> None:
        for old in tmp_path.glob("*.dist-info/*"):
            old.unlink()
        info = tmp_path / "odd_languages.dist-info"
        info.mkdir(exist_ok=True)
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: odd-languages\nVersion: {version}\n"
        )
        (info / "entry_points.txt").write_text("[seqcls.tasks]\nodd = odd_languages:Odd\n")
        (tmp_path / "odd_languages.py").write_text(module)
        sys.modules.pop("odd_languages", None)
        fresh = Registry("seqcls.tasks", tasks._OWN)
        for name in ("seqcls.tasks", "seqcls.data"):
            monkeypatch.setattr(sys.modules[name], "TASKS", fresh)
        task_of.cache_clear()
        sampler_of.cache_clear()

    monkeypatch.syspath_prepend(str(tmp_path))
    return put


def test_a_package_adds_a_language_and_is_in_the_key(install: Install) -> None:
    install("1.0")
    first = configuration({"task": "odd"})
    assert first.plugins == "odd-languages==1.0"
    assert task_of(first).describe().startswith("Strings with an odd number")
    install("1.1")
    assert configuration({"task": "odd"}).key != first.key
    assert configuration({"task": "parity"}).plugins == ""


def test_another_version_or_none_is_refused_in_one_line(install: Install) -> None:
    install("1.0")
    stored = configuration({"task": "odd"})
    install("1.1")
    for ask in (task_of, lambda config: configuration(config.changed)):
        with pytest.raises(ConfigError, match=r"1\.1 is installed; install odd-languages==1\.0"):
            ask(stored)
    gone = RunConfig(task="gone", plugins="lost-languages==2.0")
    with pytest.raises(ConfigError, match=r"it is not installed; install lost-languages==2\.0"):
        task_of(gone)


def test_a_package_that_cannot_be_imported_is_one_line(install: Install) -> None:
    install(module="raise RuntimeError('two\\nlines')")
    with pytest.raises(
        ConfigError, match=r"odd-languages==1.0 cannot be used.*two lines"
    ) as caught:
        configuration({"task": "odd"})
    assert "\n" not in str(caught.value)
    # The others are there all the same.
    assert configuration({"task": "parity"}).task == "parity"
