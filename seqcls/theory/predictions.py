"""Predictions of theory for a configuration: can, cannot or not known, and why."""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from seqcls.config import NetworkConfig, are_imported, default_fields
from seqcls.counts import counts_suffice
from seqcls.errors import ConfigError
from seqcls.lookup import language
from seqcls.strings.token_strings import TokenStrings
from seqcls.strings.tokenizer import Tokenizer
from seqcls.tasks import TASKS, LanguageTask, Task
from seqcls.tasks.base import PartlyKnown, texts
from seqcls.theory.classes import LanguageClass, Stated, Undecided, class_of
from seqcls.theory.table import FINITE_STATE, STATEMENTS, Statement, Verdict

MOST_TRIED = 5_000
"""The most strings searched for two with equal letter counts and different labels."""

MOST_COMPARED = 20_000
"""The most strings of a file that are searched for them."""

NETWORK_FIELDS = (
    *("architecture", "positions", "position_draw", "attention_mask", "attention_scale"),
    *("readout", "num_blocks", "layers", "eigenvalue_range"),
)
"""The fields of a network that the table reads: networks that differ in others share a prediction.
"""

_DEFAULTS = default_fields()


@dataclass(frozen=True)
class TheoryPrediction:
    """A prediction for a language and a network, about strings of every length."""

    verdict: Verdict
    because: str
    condition: str = ""
    source: str = ""
    reading: str = ""
    """The networks that the theorem is about: positions, mask, place of the readout."""

    @property
    def sentence(self) -> str:
        """All of it but the source."""
        under = f" ({self.condition})" if self.condition else ""
        return f"{self.verdict}: {self.because}{under}"


@dataclass(frozen=True)
class Theory:
    """A language's class, and the predictions for a network."""

    language: LanguageClass
    predictions: tuple[TheoryPrediction, ...]
    """All that apply; the first decides."""

    @property
    def first(self) -> TheoryPrediction:
        """The prediction that decides."""
        return self.predictions[0]


def theory_of(fields: Mapping[str, Any]) -> Theory:
    """The predictions of theory for a configuration, cached by task and network.

    Args:
        fields: names and values; one that is missing has its default.
    """
    known = _DEFAULTS | dict(fields)
    if are_imported(known):
        unknown = Undecided("it was trained elsewhere, so its network is not known here")
        return Theory(unknown, (TheoryPrediction("not known", unknown.describe()),))
    reads = sorted(TASKS[known["task"]].reads) if known["task"] in TASKS else []
    task = tuple((name, known[name]) for name in ("task", *reads))
    if known["answers"] != "string":
        # Each place is read at its own letter.
        known["readout"] = "last_letter"
    return _theory(task, tuple(known[name] for name in NETWORK_FIELDS))


@lru_cache(maxsize=8192)
def _theory(fields: tuple[tuple[str, Any], ...], network: tuple[Any, ...]) -> Theory:
    settings: Mapping[str, Any] = dict(fields)
    try:
        task = language(settings["task"], settings)
    except ConfigError as error:
        missing = Undecided(str(error))
        return Theory(missing, (TheoryPrediction("not known", missing.describe()),))
    known = class_of(task)
    made = NetworkConfig(**dict(zip(NETWORK_FIELDS, network, strict=True)))
    if made.readout == "last_letter" and made.architecture in FINITE_STATE:
        # The state after the last letter is one of finitely many, too.
        made = made.model_copy(update={"readout": "last"})
    applied = tuple(_predict(row, task, made) for row in STATEMENTS if row.holds(known, made))
    if not applied:
        applied = (_by_order(task, known, made),)
    return Theory(known, applied)


def _predict(row: Statement, task: Task, network: NetworkConfig) -> TheoryPrediction:
    because = row.because
    if network.readout == "mean" and row.of_mean:
        because += f"; {row.of_mean}"
    if row.name == "order_free" and (pair := order_pair(task)) is not None:
        one, other = (text or "the empty string" for text in pair)
        because += f": {one} and {other} get one answer"
    return TheoryPrediction(row.verdict, because, row.condition, row.source, row.reading)


def _by_order(task: Task, known: LanguageClass, network: NetworkConfig) -> TheoryPrediction:
    """The prediction where no statement applies: two strings may show that order matters."""
    # Its reason holds for any language in which order matters, regular or not.
    order_free = next(row for row in STATEMENTS if row.name == "order_free")
    counts = counts_suffice(network, training=False) is None
    if isinstance(known, Stated | Undecided) and counts and order_pair(task) is not None:
        return _predict(order_free, task, network)
    if isinstance(known, Undecided):
        return TheoryPrediction("not known", f"its class is {known.describe()}")
    if network.readout == "mean" and network.architecture in FINITE_STATE:
        return TheoryPrediction(
            "not known",
            "what is proved of this class is for networks read at the end; a mean of finitely many "
            "states takes more values the longer the string is",
        )
    return TheoryPrediction(
        "not known", "no statement with a source covers this class and this network"
    )


@lru_cache(maxsize=1024)
def order_pair(task: Task) -> tuple[str, str] | None:
    """The first two strings with the same letter counts and different labels.

    None where there are none among the shortest strings, or the task is no language.
    """
    if not isinstance(task, LanguageTask) or not task.order_sensitive:
        return None
    if isinstance(task, PartlyKnown):
        pair = _pair_among(task, task.known_strings().take(slice(MOST_COMPARED)))
        if pair is None:
            return None
        one, other = map(Tokenizer(task.alphabet).decode, pair.ids.tolist())
        return one, other
    num_tokens, tried = len(task.alphabet), 0
    # Strings of fewer tokens have one order.
    for length in itertools.count(2):
        tried += num_tokens**length
        # All strings over one token have one order, too.
        if num_tokens < 2 or tried > MOST_TRIED:
            return None
        letters = np.array(list(itertools.product(range(num_tokens), repeat=length)), np.uint8)
        pair = _pair_among(task, TokenStrings.of_letters(num_tokens, letters))
        if pair is not None:
            one, other = texts(task.alphabet, pair)
            return one, other
    raise AssertionError


def _pair_among(task: LanguageTask, strings: TokenStrings) -> TokenStrings | None:
    """The first string with the letter counts and not the label of an earlier one, which is first
    in the result.
    """
    labels = task.labels(strings)
    first: dict[bytes, int] = {}
    for row, counts in enumerate(strings.counts):
        before = first.setdefault(counts.tobytes(), row)
        if labels[before] != labels[row]:
            return strings.take(np.array([before, row]))
    return None
