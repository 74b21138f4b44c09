"""Conditions on strings, such as "exactly 1 of (ab; without bc at the end)": as automata, in words.

A condition gives the numbers of parts that may hold. A part is a pattern that occurs, a sum of
letter counts modulo a number, or another condition.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from seqcls.tasks.automaton import Automaton, explore, minimize

States = tuple[int, ...]
"""One state of the automaton of each leaf of a condition."""

Values = tuple[bool | None, ...]
"""Truth of each leaf; None where it is not decided yet."""

START, END = "⊢", "⊣"
"""Marks before and after every string, by which a block may be tied to either end."""


@dataclass(frozen=True)
class Pattern:
    """Blocks of neighboring letters occur, one after another with anything between."""

    blocks: tuple[str, ...]
    times: int = 1
    """The least number of occurrences, of one block; they may overlap."""
    tier: str = ""
    """The letters that are read, all others left out; empty: all are read."""
    after: str = ""
    """A block: only what follows its last occurrence counts."""

    def build_automaton(self, alphabet: str) -> Automaton:
        """An automaton with states (blocks found, prefix read of the next, prefix of `after`)."""
        total = len(self.blocks) * self.times

        def step(state: tuple[int, str, str], letter: str) -> tuple[int, str, str]:
            found, read, last = state
            # The ends of a string are on every tier.
            if self.tier and letter not in self.tier + START + END:
                return state
            if self.after:
                last = _find_overlap(self.after, last + letter)
                if last == self.after:
                    # The block came once more, and only what follows it counts.
                    return 0, "", _find_overlap(self.after, last[1:])
            if found == total:
                return found, read, last
            block = self.blocks[found % len(self.blocks)]
            read = _find_overlap(block, read + letter)
            if read != block:
                return found, read, last
            # Another occurrence of a block may begin within it, the next block only after it.
            rest = _find_overlap(block, read[1:]) if found + 1 < total and self.times > 1 else ""
            return found + 1, rest, last

        return explore(
            len(alphabet),
            step((0, "", ""), START),
            lambda state, letter: step(state, alphabet[letter]),
            lambda state: step(state, END)[0] == total,
        )

    def words(self, *, tier: bool) -> str:
        """The pattern in words: `ab at least 3 times`, `b at the end`, `a…b on the tier {a, b}`."""
        text = "…".join(self.blocks)
        places = {START: " at the start", END: " at the end"}
        where = " and".join(place for sign, place in places.items() if sign in text)
        often = f" at least {self.times} times" if self.times > 1 else ""
        after = f" after the last {self.after}" if self.after else ""
        on = f" on the tier {_braces(self.tier)}" if tier and self.tier else ""
        return text.strip(START + END) + where + often + after + on


def _find_overlap(block: str, text: str) -> str:
    """The longest suffix of a text that is a prefix of a block."""
    return next(text[i:] for i in range(len(text) + 1) if block.startswith(text[i:]))


def _braces(tier: str) -> str:
    return f"{{{', '.join(tier)}}}"


@dataclass(frozen=True)
class Sum:
    """A weighted sum of letter counts is one of some residues modulo a number."""

    weights: tuple[tuple[str, int], ...]
    modulus: int
    residues: tuple[int, ...]

    def build_automaton(self, alphabet: str) -> Automaton:
        """An automaton whose states are residues."""
        weights = [dict(self.weights).get(letter, 0) for letter in alphabet]
        return explore(
            len(alphabet),
            0,
            lambda state, letter: (state + weights[letter]) % self.modulus,
            lambda state: state in self.residues,
        )

    def words(self, *, tier: bool) -> str:
        """The sum, such as `a + 2b equal to 0 or 1 modulo 3`."""
        terms = (f"{weight if weight > 1 else ''}{letter}" for letter, weight in self.weights)
        found = " or ".join(map(str, self.residues))
        return f"{' + '.join(terms)} equal to {found} modulo {self.modulus}"


@dataclass(frozen=True)
class Condition:
    """A certain number of the parts hold."""

    numbers: tuple[int, ...]
    """The numbers of parts that may hold."""
    parts: "tuple[Part, ...]"

    def leaves(self) -> "Iterator[Pattern | Sum]":
        """The patterns and sums in it, from left to right."""
        for part in self.parts:
            if isinstance(part, Condition):
                yield from part.leaves()
            else:
                yield part

    def decide(self, values: Iterator[bool | None]) -> bool | None:
        """True if it holds, given the truth of its leaves; None where undecided leaves matter."""
        held = [
            part.decide(values) if isinstance(part, Condition) else next(values)
            for part in self.parts
        ]
        # Parts that are not decided may hold or not: so many hold at least, and at most.
        least, most = held.count(True), len(held) - held.count(False)
        found = {number in self.numbers for number in range(least, most + 1)}
        return found.pop() if len(found) == 1 else None

    def automaton(self, alphabet: str) -> Automaton | None:
        """The minimal automaton; None where some leaf is redundant."""
        leaves = [leaf.build_automaton(alphabet) for leaf in self.leaves()]
        tables = [leaf.table.tolist() for leaf in leaves]
        holds = [leaf.accepting.tolist() for leaf in leaves]
        # Of a state that no letter changes it is known whether its leaf holds.
        known = [
            [value if set(row) == {state} else None for state, (row, value) in enumerate(rows)]
            for rows in (zip(*pair, strict=True) for pair in zip(tables, holds, strict=True))
        ]
        columns = np.concatenate([leaf.table for leaf in leaves])
        # Letters that lead every leaf to the same states are explored once.
        _, letters, kinds = np.unique(columns, axis=1, return_index=True, return_inverse=True)
        # Few combinations of values come up, each in very many states.
        decide = lru_cache(maxsize=None)(lambda values: self.decide(iter(values)))
        met: dict[Values, bool] = {}

        def step(states: States, kind: int) -> States:
            # What is decided stays so: to go on from there would only add states.
            if decide(_at(known, states)) is not None:
                return states
            letter = letters[kind]
            return tuple(table[state][letter] for table, state in zip(tables, states, strict=True))

        def accepts(states: States) -> bool:
            values = _at(holds, states)
            met[values] = bool(decide(values))
            return met[values]

        product = explore(len(letters), tuple(leaf.start for leaf in leaves), step, accepts)
        # A leaf is redundant where the values of all others determine the outcome.
        for leaf in range(len(leaves)):
            others = {(values[:leaf] + values[leaf + 1 :], held) for values, held in met.items()}
            if len({values for values, _ in others}) == len(others):
                return None
        return minimize(product.table[:, kinds.ravel()], product.accepting)

    def words(self, *, tier: bool) -> str:
        """The condition in words, such as `none of (ab; b at the end)`."""
        parts = [part.words(tier=tier) for part in self.parts]
        if len(parts) == 1:
            return parts[0] if self.numbers == (1,) else f"without {parts[0]}"
        return f"{_quantity(self.numbers, len(parts))} of ({'; '.join(parts)})"

    def describe(self) -> str:
        """The condition in words, with a tier that all patterns share named once."""
        tiers = {getattr(leaf, "tier", "") for leaf in self.leaves()}
        alone = len(tiers) == 1 and "" not in tiers
        words = self.words(tier=not alone)
        on = f" on the tier {_braces(tiers.pop())}" if alone else ""
        return ("" if words.startswith("without ") else "with ") + words + on


def _at(values: Sequence[Sequence[bool | None]], states: States) -> Values:
    """The value of each leaf in its state."""
    return tuple(own[state] for own, state in zip(values, states, strict=True))


Part = Pattern | Sum | Condition


def _quantity(numbers: tuple[int, ...], parts: int) -> str:
    if numbers == tuple(range(numbers[0], parts + 1)):
        return "all" if numbers[0] == parts else f"at least {numbers[0]}"
    if numbers == tuple(range(numbers[-1] + 1)):
        return "none" if numbers == (0,) else f"at most {numbers[-1]}"
    return f"exactly {' or '.join(map(str, numbers))}"
