"""Parts of other packages: found, versioned, tried, and refused in one line."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from seqcls import fields as fields_read
from seqcls.config import RunConfig
from seqcls.errors import ConfigError, PluginError, describe_error
from seqcls.interpretability.remedies import suggestions
from seqcls.kinds import Examples
from seqcls.problem import configuration, resolve
from seqcls.sampling.streams import Stream
from seqcls.tasks import TASKS
from sweeps.api import typed
from sweeps.grid.grouping import PlannedRun
from sweeps.statistics.populations import without_unread
from sweeps.work.jobs import GroupLostError, make_job, try_job
from sweeps.work.machine import parameter_bytes
from tests.plugins import forget_parts, write_metadata

MODULE = '''
from dataclasses import dataclass
from seqcls.tasks.letter_counts import Parity

@dataclass(frozen=True)
class Odd(Parity):
    """As parity."""
'''

BEGINS = """
from dataclasses import dataclass
import numpy as np
from seqcls.tasks.base import Language

@dataclass(frozen=True)
class Odd(Language):
    alphabet = "ab"

    def accepts(self, text):
        return text[:1] == "a"

    def has_positive(self, length):
        return length > 0

    def positive(self, rng, length):
        letters = rng.integers(2, size=length, dtype=np.uint8)
        letters[:1] = self.alphabet.index("a")
        return letters

    def describe(self):
        return "Strings that begin with a are positive."
"""

TASK = "[seqcls.tasks]\nodd = odd_languages:Odd\n"

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Puts a package with a task `odd` where Python finds it."""

    def forget() -> None:
        for name in ("odd_languages", "even_languages"):
            sys.modules.pop(name, None)
        forget_parts()

    def put(
        version: str = "1.0",
        module: str = MODULE,
        points: str = TASK,
        package: str = "odd_languages",
        listed: bool = False,
    ) -> None:
        folder = tmp_path / "packages"
        info = write_metadata(folder, package.replace("_", "-"), version, points)
        (folder / f"{package}.py").write_text(module)
        if listed:
            (info / "RECORD").write_text(f"{package}.py,,\n")
        forget()

    monkeypatch.setenv("SEQCLS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(str(tmp_path / "packages"))
    yield put
    monkeypatch.undo()
    forget()


def test_plugin_language_belongs_to_the_version_in_its_key(install: Install) -> None:
    install("1.0")
    first = configuration({"task": "odd"})
    assert typed.tasks_of("odd")[0].read_as.startswith("over `01`: Strings with an odd number")
    assert first.plugins == "odd-languages==1.0"
    assert resolve(first).task.describe().startswith("Strings with an odd number")
    install("1.1")
    assert configuration({"task": "odd"}).key != first.key
    assert configuration({"task": "parity"}).plugins == ""
    for ask in (resolve, lambda config: configuration(config.changed)):
        with pytest.raises(ConfigError, match=r"1\.1 is installed; install odd-languages==1\.0"):
            ask(first)
    gone = RunConfig(task="gone", plugins="lost-languages==2.0")
    with pytest.raises(ConfigError, match=r"it is not installed; install lost-languages==2\.0"):
        resolve(gone)


def test_own_language_wins_over_a_plugin_of_the_same_name(
    install: Install,
) -> None:
    install(points="[seqcls.tasks]\nparity = odd_languages:Odd\n")
    warning = r"odd-languages==1\.0: its seqcls\.tasks entry point 'parity' is not used"
    with pytest.warns(UserWarning, match=warning):
        names = TASKS.usable()
    assert names.count("parity") == 1
    assert TASKS.package("parity") is None


def refused(**fields: Any) -> str:
    """The line in which a configuration is refused."""
    with pytest.raises(PluginError) as caught:
        configuration({"task": "odd", **fields})
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 800
    return str(caught.value)


def drawn() -> Examples:
    """The test strings of the task `odd`, read or drawn by a new stream."""
    return Stream(resolve(configuration({"task": "odd", "test_size": 200})).test).epoch(0)


def begin_with(strings: Examples, letter: int) -> bool:
    """True if the positive strings are those that begin with a letter."""
    return bool(((strings.strings.letters[:, 0] == letter) == strings.labels).all())


OTHER = BEGINS.replace('"a"', '"b"')
SECOND: dict[str, dict[str, Any]] = {
    "edited where it is installed": {"module": OTHER},
    "another version": {"version": "2.0", "module": OTHER, "listed": True},
    "another class of that name": {
        "module": OTHER,
        "package": "even_languages",
        "points": TASK.replace("odd_l", "even_l"),
    },
}


def test_changed_plugin_language_draws_new_strings(install: Install) -> None:
    for what, later in SECOND.items():
        install(module=BEGINS)
        assert begin_with(drawn(), 0)
        if "package" in later:
            install(points="")
        install(**later)
        assert begin_with(drawn(), 1), what


def test_strings_of_a_plugin_language_are_cached_by_its_settings(
    install: Install, tmp_path: Path
) -> None:
    # A class without declared settings shares no strings.
    for module, made in ((BEGINS, 1), (BEGINS.replace("@dataclass(frozen=True)", ""), 3)):
        for _ in range(2):
            install(module=module, listed=True)
            assert begin_with(drawn(), 0)
        assert len(list((tmp_path / "cache" / "strings").iterdir())) == made
    # The folder that machines used before there was any plugin.
    own = Stream(resolve(RunConfig()).test)._folder
    assert own.name == "e2f8c447d65c7862ad588b5fe69481cf"


DRAWS = "def draw(self, rng, length, positive): return "
CONTRADICTIONS = {
    f"{DRAWS}np.full(length, -1)": "draws the letter -1,",
    f"{DRAWS}np.full(length, 0.5)": "as float64 of shape",
    f"{DRAWS}np.full(length, 2)": "draws the letter 2,",
    f"{DRAWS}np.zeros(3, np.uint8)": "of shape (3,), expected",
    f"{DRAWS}np.ones(length, np.uint8)": "labels contradicts",
    f"{DRAWS}self.positive(rng, length)": "a negative",
    "def labels(self, strings): return [True] * 3": "labels as [True, True, True], exp",
    "def labels(self, strings): return 1 - super().labels(strings)": "labels as int",
    "def has(self, length, positive): raise ValueError('x' * 10_000)": "ValueError: xxx",
    "def features(self, strings): return {'x': [1]}": "feature 'x'",
    "def accepts(self, text): return True": "no negative string of length",
    "def describe(self): return None": "describes itself by None",
    "alphabet = None": "alphabet=None, expected text",
    "alphabet = 'a' + chr(123)": "alphabet='a{': expected no token '{'",
    "alphabet = 'aa'": "alphabet='aa': expected distinct",
    "alphabet = ('push', 'push')": "alphabet=('push', 'push'): expected distinct",
    "alphabet = ('push', 'p{')": "expected no token 'p{'",
    "alphabet = ('push', 3)": "expected text of 1 to 254 characters, or a tuple of as many",
    "alphabet = tuple(map(str, range(255)))": "expected text of 1 to 254 characters, or",
    "reads = frozenset({'colour'})": "reads=frozenset({'colour'}), expected names of fields",
    "__hash__ = None": "unhashable type: 'Odd'",
}
"""A method of a faulty language, and words of its refusal."""


def test_plugin_language_that_contradicts_itself_is_refused(install: Install) -> None:
    for answer, reason in CONTRADICTIONS.items():
        install(module=f"{BEGINS}\n    {answer}\n")
        message = refused()
        assert "odd-languages==1.0 cannot be used: its seqcls.tasks entry point 'odd'" in message
        assert reason in message, answer


NO_LANGUAGE = {
    "Odd = None": "is not a class but None",
    "def Odd(): pass": "is not a class but <function Odd",
    "raise SystemExit(0)": "ended in SystemExit: 0",
    "raise RuntimeError('x' * 1_000_000)": "ended in RuntimeError: xxx",
    "raise RuntimeError(chr(0xD800))": r"RuntimeError: \ud800",
    "raise RuntimeError('two\\nlines')": "two lines",
}


def test_broken_plugin_is_refused_and_spoils_no_other_task(install: Install) -> None:
    for module, reason in NO_LANGUAGE.items():
        install(module=module)
        assert reason in refused(), module
    # Questions about all parts leave it out.
    assert configuration({"task": "parity"}).task == "parity"
    assert "bracket_types" in fields_read.fields_unread(configuration({"task": "parity"}))
    with pytest.raises(ConfigError, match="did you mean 'copy'"):
        typed.tasks_of("cpoy")


def test_two_plugins_with_one_name_are_refused(install: Install) -> None:
    install()
    install("2.0", package="even_languages")
    assert "odd-languages==1.0" in (message := refused())
    assert "even-languages==2.0" in message
    assert "uninstall one" in message


ARCHITECTURES = """
import torch
from seqcls.models.base import Classifier

class Silent(Classifier):
    def __init__(self, config):
        super().__init__(config)
        self.always = torch.nn.Parameter(torch.zeros(1))

    def run(self, ids, record, places): return self.always.expand(len(ids))

class Telling(Silent):
    reads = frozenset({"num_attention_heads", "num_blocks"})

class Broken(Silent):
    @classmethod
    def obstacle(cls, config): raise LookupError("of its own")
"""
MODEL_POINTS = "[seqcls.models]\n" + "".join(
    f"{name.lower()} = odd_languages:{name}\n" for name in ("Silent", "Telling", "Broken")
)
HEADS = {"num_attention_heads", "attention_head_size", "layer_norm", "feed_forward_size"}


def test_plugin_architecture_reads_the_fields_it_names(
    install: Install,
) -> None:
    install(module=ARCHITECTURES, points=MODEL_POINTS)
    silent = configuration({"task": "parity", "architecture": "silent"})
    telling = configuration({"task": "parity", "architecture": "telling", "num_blocks": 2})
    assert fields_read.fields_unread(silent) >= HEADS | {"num_blocks", "positions"}
    assert fields_read.fields_unread(telling) & HEADS == HEADS - {"num_attention_heads"}
    assert not fields_read.fields_unread(silent) & {"hidden_size", "dropout_rate", "precision"}
    wide = configuration({**silent.changed, "hidden_size": 4096})
    assert parameter_bytes(resolve(wide)) < 100_000, "nobody knows how large it is"

    # The form of a new sweep, importance and remedies.
    (typed_in,) = typed.networks_of("silent width 16")
    assert typed_in.fields == {"architecture": "silent", "hidden_size": 16}
    settings = pd.DataFrame({"num_attention_heads": [2], "hidden_size": [2]}, index=[1])
    read = without_unread(settings, {1: fields_read.fields_unread(silent)})
    assert read["num_attention_heads"].tolist() == [None]
    assert read["hidden_size"].tolist() == [2]
    found = suggestions(resolve(silent), ["dilution", "two heads on one letter"])
    assert {own.field for own in found} == {"hidden_size"}
    with pytest.raises(PluginError, match=r"entry point 'broken'.*ended in LookupError"):
        configuration({"task": "parity", "architecture": "broken"})


def test_system_exit_in_training_is_reported_as_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def ended(*_: object, **__: object) -> None:
        raise SystemExit(3)

    monkeypatch.setattr("sweeps.work.jobs.train_group", ended)
    run = PlannedRun(1, configuration({"task": "parity"}), 0, False, False)
    with pytest.raises(GroupLostError, match="SystemExit: 3"):
        try_job(make_job((run,), "torch", "cpu"), lambda _done, _epochs: None)


def test_error_without_a_message_is_named_by_its_class() -> None:
    class SilentError(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert describe_error(SilentError()).startswith("SilentError")
