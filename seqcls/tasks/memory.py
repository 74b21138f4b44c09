"""Memory: the value of a key, tokens among noise, a token beside another.

Sources: Arora et al. 2023, Zoology; Gu & Dao 2023, Mamba; Veitsman et al. 2025, Born a Transformer
- Always a Transformer?
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from jaxtyping import Float64, UInt8
from pydantic import Field

from seqcls.cache import remembered
from seqcls.declarations import About
from seqcls.errors import ConfigError
from seqcls.strings.automata import MAX_STATES
from seqcls.strings.token_strings import Lengths, Letters
from seqcls.tasks.automaton import Automaton, explore, minimize
from seqcls.tasks.base import BulkInputs, Language, LetterRow
from seqcls.tasks.transductions import (
    DistinctTokens,
    FormTransduction,
    NumberedTokens,
    Tokens,
)

# With as many values these are 250 tokens, whose ids fit a byte beside four of the models' own.
MOST_KEYS = 125
"""The most keys, with as many values, in an alphabet."""

LETTERS = 10
"""The most keys that are letters, with digits as values; with more, tokens have names."""

NOISE = "_"


class MemoryTransduction(BulkInputs, FormTransduction):
    """A transduction that is drawn in bulk, by default to one token."""

    def has_input(self, length: int) -> bool:
        return length >= 3

    def longest_target(self, length: int) -> int:
        return int(length >= 3)


class KeysAndValues(Tokens):
    """Tokens of the keys, then of as many values: letters and digits, or names above 10."""

    def __post_init__(self) -> None:
        if not 2 <= self.num_tokens <= MOST_KEYS:
            raise ConfigError(
                f"num_tokens={self.num_tokens}: expected 2 to {MOST_KEYS} keys, with as many values"
            )

    @property
    def alphabet(self) -> Sequence[str]:
        number = self.num_tokens
        if number <= LETTERS:
            return "abcdefghij"[:number] + "0123456789"[:number]
        return tuple(f"{kind}{place}" for kind in "kv" for place in range(number))


_Known = tuple[tuple[int, ...], int]
"""Each key's value, and the key just read that has no value yet; -1 for none."""


@dataclass(frozen=True)
class ConsistentPairs(KeysAndValues, Language):
    """Pairs of a key and a value: a key that was there before has the value that it had.

    `a1b0a1`, `b0` and the empty string are positive; `a1b0a0`, `a` and `1a` are negative.
    """

    words = (
        "Pairs of a key and a value: strings in which every key that was there before has "
        "the value that it had, as in a1b0a1, are positive."
    )

    @property
    @remembered
    def automaton(self) -> Automaton:
        """The minimal automaton: its states are each key's value, and the key just read.

        Raises:
            ConfigError: it has too many states.
        """
        num_keys = self.num_tokens
        # Bounded before any state is built, which would take a while.
        if (num_keys + 1) ** (num_keys + 1) >= MAX_STATES:
            raise ConfigError(f"its automaton has more than {MAX_STATES:,} states")

        def step(state: _Known | None, letter: int) -> _Known | None:
            if state is None or (letter < num_keys) != (state[1] < 0):
                return None
            known, key = state
            if key < 0:
                return known, letter
            if known[key] not in (-1, letter):
                return None
            return (*known[:key], letter, *known[key + 1 :]), -1

        start: _Known | None = ((-1,) * num_keys, -1)
        made = explore(2 * num_keys, start, step, lambda state: state is not None and state[1] < 0)
        # Two keys with the same value, just read, are one state.
        return minimize(made.table, made.accepting)

    def accepts(self, text: str) -> bool:
        tokens = text.split() if self.num_tokens > LETTERS else list(text)
        keys, values = self.alphabet[: self.num_tokens], self.alphabet[self.num_tokens :]
        known: dict[str, str] = {}
        return len(tokens) % 2 == 0 and all(
            key in keys and value in values and known.setdefault(key, value) == value
            for key, value in zip(tokens[::2], tokens[1::2], strict=True)
        )

    def has_positive(self, length: int) -> bool:
        return length % 2 == 0

    def positive(self, rng: np.random.Generator, length: int) -> LetterRow:
        """Uniform: a next key is new with its share of the strings."""
        order = rng.permutation(self.num_tokens)
        values = self.num_tokens + rng.integers(self.num_tokens, size=self.num_tokens)
        new = _new_keys(self.num_tokens, 1 << max(length // 2 - 1, 0).bit_length())
        keys, seen = [], 0
        for left in range(length // 2 - 1, -1, -1):
            if rng.random() < new[left, seen]:
                keys.append(order[seen])
                seen += 1
            else:
                keys.append(order[rng.integers(seen)])
        written = np.array(keys, dtype=np.int64)
        return np.column_stack([written, values[written]]).ravel().astype(np.uint8)


@remembered
def _new_keys(num_keys: int, pairs: int) -> Float64[np.ndarray, "left seen"]:
    """The share of strings whose next key is new, by pairs after it and keys before it."""
    seen = np.arange(num_keys + 1)
    ways, shares = np.ones(num_keys + 1), np.zeros((pairs, num_keys + 1))
    for left in range(pairs):
        new = (num_keys - seen) * num_keys * np.append(ways[1:], 0.0)
        total = new + seen * ways
        shares[left] = new / total
        # Only shares count, and numbers of strings would soon overflow.
        ways = total / total.max()
    return shares


@dataclass(frozen=True)
class AssociativeRecall(KeysAndValues, DistinctTokens, MemoryTransduction):
    """`a1b0a` becomes `1`: of pairs of a key and a value, the value that the key at the end had
    last.
    """

    @property
    def form(self) -> str:
        only = ", no key twice" if self.distinct else ""
        return f"pairs of a key and a value{only}, and then one of the keys"

    def answer(self, letters: list[int]) -> list[int] | None:
        *pairs, key = letters
        keys, values = pairs[::2], pairs[1::2]
        if len(keys) != len(values) or key not in keys:
            return None
        if max(keys) >= self.num_tokens or min(values) < self.num_tokens:
            return None
        if self.distinct and len(set(keys)) < len(keys):
            return None
        return [dict(zip(keys, values, strict=True))[key]]

    def has_input(self, length: int) -> bool:
        pairs = length // 2
        return pairs >= 1 and length % 2 == 1 and (not self.distinct or pairs <= self.num_tokens)

    def draw_inputs(self, rng: np.random.Generator, lengths: Lengths) -> Letters:
        """Uniform: without `distinct`, among those in which the last key is there before."""
        pairs, number, rows = lengths // 2, self.num_tokens, np.arange(len(lengths))
        most = int(pairs.max(initial=0))
        letters = np.zeros((len(lengths), 2 * most + 1), dtype=np.uint8)
        letters[:, 1::2] = rng.integers(number, 2 * number, size=(len(lengths), most))
        if self.distinct:
            letters[:, :-1:2] = _shuffled_rows(rng, len(lengths), number, most)
            letters[rows, lengths - 1] = letters[rows, 2 * rng.integers(pairs)]
            return letters
        # Inputs whose last key is new are drawn again, which keeps the others uniform.
        while len(rows):
            keys = rng.integers(number, size=(len(rows), most + 1), dtype=np.uint8)
            letters[rows, ::2] = keys
            before = np.arange(most + 1) < pairs[rows, None]
            queries = keys[np.arange(len(rows)), pairs[rows]]
            rows = rows[~(before & (keys == queries[:, None])).any(axis=1)]
        return letters

    def describe(self) -> str:
        only = "no key twice" if self.distinct else "the last one that it has"
        return (
            f"Pairs of a key and a value, then one of the keys: the output is its value, {only}, "
            "as a1b0a becomes 1."
        )


@dataclass(frozen=True)
class AmongNoise(Tokens):
    """data_tokens: Tokens of every input of `selective_copy` that are no noise."""

    data_tokens: Annotated[int, Field(ge=1, le=1_000), About("Task", 31)] = 4


@dataclass(frozen=True)
class SelectiveCopy(AmongNoise, NumberedTokens, MemoryTransduction):
    """`a_ba__b` becomes `abab`: the tokens but noise, in order."""

    @property
    def alphabet(self) -> Sequence[str]:
        tokens = super().alphabet
        return tokens + NOISE if isinstance(tokens, str) else (*tokens, NOISE)

    @property
    def form(self) -> str:
        return f"{self.data_tokens} tokens and any number of {NOISE} among them"

    def answer(self, letters: list[int]) -> list[int] | None:
        data = [letter for letter in letters if letter < self.num_tokens]
        return data if len(data) == self.data_tokens else None

    def has_input(self, length: int) -> bool:
        return length >= self.data_tokens

    def draw_inputs(self, rng: np.random.Generator, lengths: Lengths) -> Letters:
        """Uniform tokens at a uniform set of places (Floyd's algorithm)."""
        rows, shape = np.arange(len(lengths)), (len(lengths), int(lengths.max(initial=0)))
        is_data = np.zeros(shape, dtype=bool)
        for last in range(-self.data_tokens, 0):
            place = rng.integers(lengths + last + 1)
            is_data[rows, np.where(is_data[rows, place], lengths + last, place)] = True
        letters = np.full(shape, self.num_tokens, dtype=np.uint8)
        letters[is_data] = rng.integers(self.num_tokens, size=is_data.sum(), dtype=np.uint8)
        return letters

    def longest_target(self, length: int) -> int:
        return self.data_tokens if self.has_input(length) else 0

    def describe(self) -> str:
        return (
            f"Always {self.data_tokens} tokens, among as much noise ({NOISE}) as the length has "
            "room for: the output is those tokens in their order."
        )


@dataclass(frozen=True)
class Neighbors(Tokens):
    """neighbor: Which token beside the one that `retrieval` looks for is its output.
    occurrence: Which of that token's occurrences it looks for; `unique`: there is one.
    """

    neighbor: Annotated[Literal["right", "left"], About("Task", 32)] = "right"
    occurrence: Annotated[Literal["last", "first", "unique"], About("Task", 33)] = "last"


@dataclass(frozen=True)
class Retrieval(Neighbors, NumberedTokens, MemoryTransduction):
    """`abaab` becomes `a`: the neighbor of an earlier occurrence of the last token."""

    def __post_init__(self) -> None:
        if self.num_tokens < 2:
            raise ConfigError(f"num_tokens={self.num_tokens}: expected at least 2 for retrieval")

    @property
    def _step(self) -> int:
        return 1 if self.neighbor == "right" else -1

    @property
    def form(self) -> str:
        return (
            f"a string and then one of its tokens, whose {self.occurrence} occurrence has a "
            f"{self.neighbor} neighbor in the string"
        )

    def answer(self, letters: list[int]) -> list[int] | None:
        *string, token = letters
        places = [place for place, letter in enumerate(string) if letter == token]
        if not places or (self.occurrence == "unique" and len(places) > 1):
            return None
        place = places[0 if self.occurrence == "first" else -1] + self._step
        return [string[place]] if 0 <= place < len(string) else None

    def draw_inputs(self, rng: np.random.Generator, lengths: Lengths) -> Letters:
        """Uniform among the strings with a target."""
        rows, shape = np.arange(len(lengths)), (len(lengths), int(lengths.max(initial=0)))
        if self.occurrence == "unique":
            queries = rng.integers(self.num_tokens, size=(len(lengths), 1))
            # A shift of at least 1 never makes the token that is looked for.
            others = rng.integers(1, self.num_tokens, size=shape)
            letters = ((queries + others) % self.num_tokens).astype(np.uint8)
            # The token needs a neighbor within the string, on the side of `neighbor`.
            place = rng.integers(lengths - 2) + (self._step < 0)
            letters[rows, place] = letters[rows, lengths - 1] = queries[:, 0]
            return letters
        letters = np.zeros(shape, dtype=np.uint8)
        while len(rows):
            letters[rows] = rng.integers(self.num_tokens, size=(len(rows), shape[1]))
            ends = lengths[rows].tolist()
            drawn = [row[:end] for row, end in zip(letters[rows].tolist(), ends, strict=True)]
            rows = rows[[self.answer(string) is None for string in drawn]]
        return letters

    def describe(self) -> str:
        return (
            f"A string and then one of its tokens: the output is the {self.neighbor} neighbor of "
            f"the {self.occurrence} occurrence of that token in the string."
        )


def _shuffled_rows(
    rng: np.random.Generator, rows: int, number: int, count: int
) -> UInt8[np.ndarray, "row place"]:
    """The first `count` of the numbers below `number`, shuffled separately for every row."""
    shuffled, every = np.tile(np.arange(number, dtype=np.uint8), (rows, 1)), np.arange(rows)
    # The shuffle of Fisher and Yates, stopped after `count` places.
    for place in range(count):
        other = rng.integers(place, number, size=rows)
        own = shuffled[:, place].copy()
        shuffled[:, place] = shuffled[every, other]
        shuffled[every, other] = own
    return shuffled[:, :count]
