"""What theory predicts of a configuration: can, cannot or not known, and why."""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from seqcls.config import IMPORTED, NetworkConfig, default_fields
from seqcls.counts.invariance import counts_suffice
from seqcls.errors import ConfigError
from seqcls.problem import language
from seqcls.tasks import TASKS, LanguageTask, Task
from seqcls.tasks.files.file import File
from seqcls.theory.classes import LanguageClass, Stated, Undecided, class_of
from seqcls.theory.table import ROWS, Row, Verdict
from seqcls.tokens.strings import TokenStrings
from seqcls.tokens.tokenizer import Tokenizer

MOST_TRIED = 5_000
"""Strings among which two are sought that only their order tells apart."""

NETWORK_FIELDS = tuple(
    name
    for name in (
        "architecture", "positions", "attention_mask", "attention_scale", "readout", "num_blocks",
        "eigenvalue_range",
    )
    if name in NetworkConfig.model_fields
)  # fmt: skip
"""What the table reads of a network."""

_DEFAULTS = default_fields()


@dataclass(frozen=True)
class Prediction:
    """What theory says of a language and a network, of strings of every length."""

    verdict: Verdict
    because: str
    condition: str = ""
    source: str = ""

    @property
    def sentence(self) -> str:
        """All of it but the source."""
        under = f" ({self.condition})" if self.condition else ""
        return f"{self.verdict}: {self.because}{under}"


@dataclass(frozen=True)
class Theory:
    """A language's class, and what follows for a network."""

    language: LanguageClass
    predictions: tuple[Prediction, ...]
    """What applies; the first decides."""

    @property
    def first(self) -> Prediction:
        """What is predicted."""
        return self.predictions[0]


def theory_of(fields: Mapping[str, Any]) -> Theory:
    """What theory says of a configuration; worked out once for a task and a network.

    Args:
        fields: names and values; one that is missing has its default.
    """
    known = _DEFAULTS | dict(fields)
    if known["architecture"] == IMPORTED:
        unknown = Undecided("it was trained elsewhere, so its network is not known here")
        return Theory(unknown, (Prediction("not known", unknown.describe()),))
    reads = sorted(TASKS[known["task"]].reads) if known["task"] in TASKS else []
    task = tuple((name, known[name]) for name in ("task", *reads))
    return _theory(task, tuple(known[name] for name in NETWORK_FIELDS))


@lru_cache(maxsize=8192)
def _theory(fields: tuple[tuple[str, Any], ...], network: tuple[Any, ...]) -> Theory:
    settings: Mapping[str, Any] = dict(fields)
    try:
        task = language(settings["task"], settings)
    except ConfigError as error:
        missing = Undecided(str(error))
        return Theory(missing, (Prediction("not known", missing.describe()),))
    known = class_of(task)
    made = NetworkConfig(**dict(zip(NETWORK_FIELDS, network, strict=True)))
    applied = tuple(_said(row, task) for row in ROWS if row.holds(known, made))
    if not applied:
        applied = (_by_order(task, known, made),)
    return Theory(known, applied)


def _said(row: Row, task: Task) -> Prediction:
    because = row.because
    if row.name == "order_free" and (pair := order_pair(task)) is not None:
        because += f": {_named(pair[0])} and {_named(pair[1])} get one answer"
    return Prediction(row.verdict, because, row.condition, row.source)


def _by_order(task: Task, known: LanguageClass, network: NetworkConfig) -> Prediction:
    """Of a language without automaton, two strings may show what letter counts cannot tell."""
    order_free = next(row for row in ROWS if row.name == "order_free")
    counts = counts_suffice(network, training=False) is None
    if isinstance(known, Stated | Undecided) and counts and order_pair(task) is not None:
        return _said(order_free, task)
    if isinstance(known, Undecided):
        return Prediction("not known", f"its class is {known.describe()}")
    return Prediction("not known", "no statement with a source covers this class and this network")


@lru_cache(maxsize=1024)
def order_pair(task: Task) -> tuple[str, str] | None:
    """The first two strings with the same letter counts of which one is in the language.

    None where there are none among the shortest strings, or the task is no language.
    """
    if not isinstance(task, LanguageTask) or not task.order_sensitive:
        return None
    if isinstance(task, File):
        return task.order_pair
    tokens, tokenizer, tried = range(len(task.alphabet)), Tokenizer(task.alphabet), 0
    for length in itertools.count(2):
        tried += len(tokens) ** length
        if len(tokens) < 2 or tried > MOST_TRIED:
            return None
        letters = np.array(list(itertools.product(tokens, repeat=length)), dtype=np.uint8)
        labels = task.labels(TokenStrings.of_letters(len(tokens), letters)).tolist()
        first: dict[tuple[int, ...], tuple[bool, list[int]]] = {}
        for row, label in zip(letters.tolist(), labels, strict=True):
            before = first.setdefault(tuple(sorted(row)), (label, row))
            if before[0] != label:
                return tokenizer.spelled(before[1]), tokenizer.spelled(row)
    raise AssertionError


def _named(text: str) -> str:
    return text or "the empty string"
