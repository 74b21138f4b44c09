"""Random languages of the subregular classes, each of its class and of none smaller.

The classes are those of MLRegTest (van der Poel et al. 2024, JMLR 25 (283)), whose authors wrote
ten schemes for each. Here conditions of a class's form are drawn until one is of the class, with
its width, threshold and tier, and of none smaller: as many languages as there are seeds.
"""

import hashlib
import string
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Annotated, Literal, TypeVar

import numpy as np
from pydantic import Field

from seqcls.declarations import About, Fields, Seed
from seqcls.errors import ConfigError
from seqcls.subregular.classes import CLASSES
from seqcls.subregular.decisions import Subregular
from seqcls.tasks.automaton import Automaton, RegularLanguage
from seqcls.tasks.conditions import END, START, Condition, Part, Pattern, Sum
from seqcls.text import canonical_json

LETTERS = string.ascii_letters + "áàǎéèěóòǒúùǔ"
"""The 64 symbols of MLRegTest."""

TRIES = 300
"""The most conditions that are drawn."""

LENGTH, LEAST_SHARE = 20, 0.001
"""Each label has at least that share of the strings of that many tokens."""

LONGEST = 60
"""Every length up to this one has strings of either label."""

MAX_STATES = 100
"""The most states of an automaton: the class of a larger one takes long to decide."""

NOT_MEASURED = ("PLT", "TPLT", "SF")
"""Classes whose width is that of the condition, not the least one."""

MAX_BLOCKS = 400
"""The most blocks of one letter less than the width, of different letters, among which the least
width is found fast.
"""

Member = TypeVar("Member")


LanguageClass = Literal[
    "SL", "coSL", "SP", "coSP", "LT", "LTT", "PT", "PLT", "TSL", "TcoSL", "TLT", "TLTT", "TPLT",
    "SF", "Zp", "Reg",
]  # fmt: skip


@dataclass(frozen=True)
class ClassFields(Fields):
    """language_class: The class of `subregular`, as MLRegTest names it: `SL` strictly local, `TPLT`
        piecewise locally testable on a tier.
    width: Letters of the longest block or subsequence that decides, of `Zp` the prime that letters
        are counted modulo.
    threshold: Occurrences of a block that `LTT` tells apart, blocks one after another that `PLT`
        does.
    alphabet_size: Letters of `subregular`.
    tier_size: Letters on the tier, of the classes that have one: all others are left out.
    language_seed: Which of the languages of these fields.
    """

    language_class: Annotated[LanguageClass, About("Task", 23)] = "SL"
    width: Annotated[int, Field(ge=1, le=7), About("Task", 24)] = 2
    threshold: Annotated[int, Field(ge=1, le=10), About("Task", 25)] = 2
    alphabet_size: Annotated[int, Field(ge=2, le=64), About("Task", 26)] = 4
    tier_size: Annotated[int, Field(ge=1, le=63), About("Task", 27)] = 2
    language_seed: Annotated[Seed, About("Task", 28)] = 0


@dataclass(frozen=True)
class RandomSubregular(ClassFields, RegularLanguage):
    """A random language of a subregular class and of none smaller, the same for ever by its fields.

    The first that is strictly local of width 2: `bd` and `abc` are positive; `db` and `adbc` are
    negative.
    """

    def __post_init__(self) -> None:
        name, width = self.language_class, self.width
        least = 1 if name in ("LT", "LTT", "PT") else 2
        fewer = f"2 or more, and fewer than alphabet_size={self.alphabet_size}"
        in_tier = 2 <= self.tier_size < self.alphabet_size if self.has_tier else self.tier_size == 2
        primes = name != "Zp" or all(width % x for x in range(2, width))
        for field, is_right, expected in (
            ("width", width >= least, f"{least} or more: with less, all are in smaller classes"),
            ("width", primes, "a prime, modulo which letters are counted"),
            ("threshold", self.threshold == 2 or self.has_threshold, "none; leave it out"),
            ("threshold", self.threshold >= 2, "2 or more: with 1, all are in smaller classes"),
            ("tier_size", in_tier, fewer if self.has_tier else "none; leave it out"),
        ):
            if not is_right:
                raise ConfigError(
                    f"{field}={getattr(self, field)}: language_class {name!r} expects {expected}"
                )
        assert self._made

    @property
    def has_threshold(self) -> bool:
        """True if the class counts occurrences, or blocks one after another."""
        return self.language_class.endswith(("LTT", "PLT"))

    @property
    def has_tier(self) -> bool:
        """True if the class reads only the letters of a tier."""
        return self.language_class.startswith("T")

    @property
    def alphabet(self) -> str:
        return LETTERS[: self.alphabet_size]

    @property
    def automaton(self) -> Automaton:
        return self._made[1]

    @property
    def condition(self) -> Condition:
        """The condition that positive strings satisfy."""
        return self._made[0]

    @property
    def _made(self) -> tuple[Condition, Automaton]:
        if (made := _make(self)) is None:
            fields = ", ".join(f"{name}={value!r}" for name, value in asdict(self).items())
            raise ConfigError(
                f"{fields}: of {TRIES} languages none is of the class and of none smaller, with "
                f"{LEAST_SHARE:.1%} of the strings of {LENGTH} tokens for either label; raise "
                "alphabet_size or change the others"
            )
        return made

    def describe(self) -> str:
        sums = any(isinstance(leaf, Sum) for leaf in self.condition.leaves())
        meaning = ", where a letter stands for how often it occurs" if sums else ""
        words = self.condition.describe()
        return f"Strings of {self.alphabet} {words} are positive{meaning}."


@lru_cache(maxsize=2048)
def _make(task: RandomSubregular) -> tuple[Condition, Automaton] | None:
    """The first fitting condition drawn, and its automaton; None where none fits."""
    # These fields are hashed: one more would change all languages.
    draws = _Draws(canonical_json(asdict(task)))
    for _ in range(TRIES):
        condition = _condition(task, draws)
        automaton = condition.automaton(task.alphabet)
        if automaton is not None and _is_fair(automaton, task) and _is_of_class(automaton, task):
            return condition, automaton
    return None


def _is_fair(automaton: Automaton, task: RandomSubregular) -> bool:
    """True if every length has strings of either label, and neither label is too rare."""
    states, letters = automaton.table.shape
    # Probabilities of the states after uniform letters.
    shares = np.eye(states)[automaton.start]
    for _ in range(LENGTH):
        before, shares = shares, np.zeros(states)
        np.add.at(shares, automaton.table, before[:, None] / letters)
    # Shorter strings may have no room for the deciding blocks.
    shortest = 2 * task.width * (task.threshold if task.has_threshold else 1)
    lengths = range(min(LENGTH, shortest), LONGEST + 1)
    return bool(LEAST_SHARE <= shares[automaton.accepting].sum() <= 1 - LEAST_SHARE) and all(
        automaton.has(length, label) for length in lengths for label in (True, False)
    )


def _is_of_class(automaton: Automaton, task: RandomSubregular) -> bool:
    """True if it is of the class, with its width, threshold and tier, and of none smaller."""
    if len(automaton.table) > MAX_STATES:
        return False
    decided = Subregular(automaton)
    try:
        if task.language_class == "Reg":
            return decided.find("SF") is None and decided.find("Zp") is None
        found = decided.find(task.language_class)
        if found is None or any(decided.find(name) for name in _smaller(task.language_class)):
            return False
    except ConfigError:
        # It is too large to decide.
        return False
    return (
        (found.k == task.width or task.language_class in NOT_MEASURED)
        and found.t in (None, task.threshold)
        and (found.tier is None or len(found.tier) == task.tier_size)
    )


def _smaller(name: str) -> set[str]:
    """The classes within a class."""
    below = {other for other, found in CLASSES.items() if name in found.within}
    return below.union(*map(_smaller, below))


class _Draws:
    """Random numbers that never change: a bit generator's stream is stable, the methods of a
    `Generator` are not (NEP 19).
    """

    def __init__(self, seed: str) -> None:
        digest = hashlib.sha256(seed.encode()).digest()
        self._bits = np.random.PCG64(int.from_bytes(digest, "little"))

    def below(self, number: int) -> int:
        # Lemire 2019, without rejection: the bias is at most the number over 2**64.
        return int(self._bits.random_raw()) * number >> 64

    def one_in(self, number: int) -> bool:
        return self.below(number) == 0

    def word(self, letters: str, length: int) -> str:
        return "".join(letters[self.below(len(letters))] for _ in range(length))

    def some(self, members: Sequence[Member], number: int) -> list[Member]:
        """A random selection of some members, in their order."""
        left = list(range(len(members)))
        chosen = [left.pop(self.below(len(left))) for _ in range(number)]
        return [members[place] for place in sorted(chosen)]


def _condition(task: RandomSubregular, draws: _Draws) -> Condition:
    """A random condition of the form of the class."""
    name = task.language_class
    if name == "Zp":
        return Condition((1,), (_sum(task, draws, task.width),))
    if name in ("SF", "Reg"):
        sums = [_sum(task, draws, 2 + draws.below(2))] if name == "Reg" else []
        number = 2 - len(sums) + draws.below(2)
        patterns = [_star_free(task, draws, full=not part) for part in range(number)]
        return _combination(draws, [*sums, *patterns])
    form, letters, tier = name.removeprefix("T"), task.alphabet, ""
    if task.has_tier:
        letters = tier = "".join(draws.some(letters, task.tier_size))
    if form in ("LT", "LTT", "PT") and len(letters) ** (task.width - 1) > MAX_BLOCKS:
        fewer = (x for x in range(1, len(letters)) if (x + 1) ** (task.width - 1) <= MAX_BLOCKS)
        letters = "".join(draws.some(letters, max(2, *fewer)))
    strict = form.endswith(("SL", "SP"))
    number = 1 + draws.below(4) if strict else 2 + draws.below(3 if task.width < 4 else 2)
    # The first part has the greatest width and threshold, those of the language.
    parts = [_pattern(task, draws, letters, tier, full=not part) for part in range(number)]
    if not strict:
        return _combination(draws, parts)
    return Condition(tuple(range(1, number + 1)) if form.startswith("co") else (0,), tuple(parts))


def _pattern(
    task: RandomSubregular, draws: _Draws, letters: str, tier: str, *, full: bool
) -> Pattern:
    """A random pattern of the class; a full one has the greatest width and threshold."""
    form, most = task.language_class.removeprefix("T"), task.width
    least = 2 if form.endswith(("SL", "SP")) else 1
    width = most if full else least + draws.below(most - least + 1)
    if form.endswith(("SP", "PT")):
        return Pattern(tuple(draws.word(letters, width)))
    more = task.threshold if full else 1 + draws.below(task.threshold)
    blocks = [draws.word(letters, width)]
    if form == "LTT" and more > 1:
        return Pattern(tuple(blocks), more, tier)
    if form == "PLT":
        blocks += [draws.word(letters, 1 + draws.below(most)) for _ in range(more - 1)]
    if most > 1 and draws.one_in(4):
        if draws.one_in(2):
            blocks[0] = (START + blocks[0])[:most]
        else:
            blocks[-1] = (blocks[-1] + END)[-most:]
    return Pattern(tuple(blocks), tier=tier)


def _star_free(task: RandomSubregular, draws: _Draws, *, full: bool) -> Pattern:
    """A pattern after the last occurrence of a block, or on a tier, or of two blocks."""
    letters = task.alphabet
    width = task.width if full else 1 + draws.below(task.width)
    kind = draws.below(3)
    if kind == 0:
        after = draws.word(letters, 1 + draws.below(task.width))
        return Pattern((draws.word(letters, width),), after=after)
    if kind == 1 and len(letters) > 2:
        tier = "".join(draws.some(letters, 2 + draws.below(len(letters) - 2)))
        return Pattern((draws.word(tier, width),), tier=tier)
    second = draws.word(letters, 1 + draws.below(task.width))
    return Pattern((draws.word(letters, width), second))


def _sum(task: RandomSubregular, draws: _Draws, modulus: int) -> Sum:
    """A sum whose first nonzero weight is 1; weights differ, so that the length does not decide."""
    weights = [0]
    while len(set(weights)) == 1:
        weights = [draws.below(modulus) for _ in task.alphabet]
    # The modulus is a prime, so that every weight but 0 has an inverse.
    scale = pow(next(filter(None, weights)), -1, modulus)
    scaled = zip(task.alphabet, (scale * weight % modulus for weight in weights), strict=True)
    residues = draws.some(range(modulus), 1 + draws.below(modulus - 1))
    return Sum(tuple((x, weight) for x, weight in scaled if weight), modulus, tuple(residues))


def _combination(draws: _Draws, parts: Sequence[Pattern | Sum]) -> Condition:
    """A random condition of the parts, some negated, perhaps with the last two as one part."""
    literals: list[Part] = [
        Condition((0,), (part,)) if isinstance(part, Pattern) and draws.one_in(3) else part
        for part in parts
    ]
    if len(literals) > 2 and draws.one_in(2):
        literals[-2:] = [Condition(_numbers(draws, 2), tuple(literals[-2:]))]
    return Condition(_numbers(draws, len(literals)), tuple(literals))


def _numbers(draws: _Draws, parts: int) -> tuple[int, ...]:
    """Numbers of parts that may hold: at least one, and not all numbers."""
    while True:
        numbers = tuple(number for number in range(parts + 1) if draws.one_in(2))
        if 0 < len(numbers) <= parts:
            return numbers
