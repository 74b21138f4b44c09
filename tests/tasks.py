"""Tasks by the kind of their answers, and all strings of few tokens with their labels."""

import itertools
from typing import Any

from seqcls.config import RunConfig
from seqcls.kinds import kind_name
from seqcls.problem import resolve
from seqcls.strings.token_strings import TokenStrings
from seqcls.tasks import TASKS, LanguageTask

_DEFINED = [name for name in TASKS if "dataset" not in TASKS[name].reads]
LANGUAGES = sorted(name for name in _DEFINED if kind_name(TASKS[name]) == "membership")
TRANSDUCTIONS = sorted(name for name in _DEFINED if kind_name(TASKS[name]) == "transduction")
SMALL: dict[str, dict[str, Any]] = {
    "dyck": {"bracket_types": 2},
    "word_problem": {"group": "Z5"},
    "regular": {"alphabet": "ab", "pattern": "(ab)*"},
    "counting": {"alphabet": "abc", "formula": "a == b and c <= 3"},
}
"""Settings of the tasks that need some."""


def language(task: str, **fields: Any) -> LanguageTask:
    """The language of a configuration."""
    return resolve(RunConfig.from_mapping({"task": task, **fields})).language


def small(name: str) -> LanguageTask:
    """A language of a name, with settings where it needs some."""
    return language(name, **SMALL.get(name, {}))


def every_string(task: LanguageTask, *lengths: int) -> list[str]:
    """All strings of the given lengths, over letters of one character."""
    rows = (itertools.product(task.alphabet, repeat=length) for length in lengths)
    return ["".join(letters) for letters in itertools.chain(*rows)]


def strings_of(task: LanguageTask, rows: list[str]) -> TokenStrings:
    """Texts over letters of one character, as a task reads them."""
    letters = [[task.alphabet.index(token) for token in text] for text in rows]
    return TokenStrings.of_lists(len(task.alphabet), letters)


def positives(task: LanguageTask, *lengths: int) -> list[str]:
    """All positive strings of the given lengths."""
    rows = every_string(task, *lengths)
    return list(itertools.compress(rows, task.labels(strings_of(task, rows)).tolist()))
