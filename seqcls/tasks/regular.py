"""The language of a regular expression, and its minimal automaton, by derivatives.

The derivative of an expression by a letter matches the rest of each string that begins with it. An
expression has finitely many derivatives: they are the states (Brzozowski 1964; Antimirov 1996). So
`&`, for strings that match both sides, costs no more than `|`; the two have the same precedence,
from the left. All else has the meaning of `re.fullmatch`, since Python's parser reads it, and what
no automaton can do, such as a look around or a memory of groups, is refused by name.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from seqcls.cache import remembered
from seqcls.errors import ConfigError
from seqcls.strings.alphabets import check_alphabet
from seqcls.strings.notation import shorten
from seqcls.tasks.automaton import Automaton, RegularLanguage, explore, minimize
from seqcls.tasks.base import PatternFields
from seqcls.tasks.patterns import CLASS, MAXREPEAT, class_members, obstacle, parse_pattern

MAX_STEPS = 1_000_000
"""The most parts of expressions that are processed: about two seconds."""

MAX_DEPTH = 60
"""The deepest nesting of groups."""

NOTHING, EMPTY = 0, 1
"""The numbers of the expressions that no string matches, and the empty string alone."""


class Expressions:
    """Expressions by number; equal ones, whatever the order of sides, have the same number."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[Any, ...], int] = {}
        self._nodes: list[tuple[Any, ...]] = []
        self._matches_empty: list[bool] = []
        self._derivatives: dict[tuple[int, int], int] = {}
        self._steps = 0
        # Numbered first, a choice of no sides is NOTHING, and the empty string EMPTY.
        self._number(False, "or")
        self._number(True, "empty")

    def matches_empty(self, x: int) -> bool:
        """True if the empty string matches."""
        return self._matches_empty[x]

    def letters(self, letters: frozenset[int]) -> int:
        """An expression for one of some letters."""
        return self._number(False, "letters", letters) if letters else NOTHING

    def join(self, kind: str, sides: Iterable[int]) -> int:
        """An expression for strings that match one of the sides (`or`), or all of them (`and`)."""
        members = {x for side in sides for x in self._sides(side, kind)}
        if len(members) == 1 or (kind == "and" and NOTHING in members):
            # NOTHING is the least of all numbers; a single member is itself.
            return min(members)
        some = any if kind == "or" else all
        return self._number(some(map(self.matches_empty, members)), kind, *sorted(members))

    def then(self, first: int, second: int) -> int:
        """A concatenation: a chain from the left, however it was bracketed."""
        if NOTHING in (first, second):
            return NOTHING
        parts = []
        while self._nodes[first][0] == "then":
            _, part, first = self._nodes[first]
            parts.append(part)
        for part in reversed([*parts, first]):
            if second == EMPTY:
                second = part
            elif part != EMPTY:
                empty = self.matches_empty(part) and self.matches_empty(second)
                second = self._number(empty, "then", part, second)
        return second

    def repeat(self, inner: int, least: int, most: int | None) -> int:
        """From `least` to `most` times; None for no limit."""
        if self.matches_empty(inner):
            # Missing repetitions match the empty string.
            least = 0
        if inner in (NOTHING, EMPTY) or most == 0:
            return NOTHING if least else EMPTY
        if (least, most) == (1, 1):
            return inner
        return self._number(not least, "repeat", inner, least, most)

    def after(self, x: int, letter: int) -> int:
        """The derivative by a letter.

        Raises:
            ConfigError: too many parts have been processed.
        """
        if (x, letter) not in self._derivatives:
            kind, *parts = self._nodes[x]
            self._steps += 1 + len(parts)
            if self._steps > MAX_STEPS:
                raise ConfigError("its automaton is too large to be made deterministic")
            self._derivatives[x, letter] = self._derivative(x, kind, parts, letter)
        return self._derivatives[x, letter]

    def _derivative(self, x: int, kind: str, parts: list[Any], letter: int) -> int:
        if kind == "letters":
            return EMPTY if letter in parts[0] else NOTHING
        if kind in ("or", "and"):
            return self.join(kind, [self.after(part, letter) for part in parts])
        if kind == "repeat":
            inner, least, most = parts
            rest = self.repeat(inner, max(least - 1, 0), None if most is None else most - 1)
            return self._each_then(self.after(inner, letter), rest)
        sides = []
        # A loop and no recursion: a chain may be longer than Python's stack is deep.
        while self._nodes[x][0] == "then":
            _, first, rest = self._nodes[x]
            sides.append(self._each_then(self.after(first, letter), rest))
            self._steps += 1
            x = rest if self.matches_empty(first) else EMPTY
        return self.join("or", sides if x == EMPTY else [*sides, self.after(x, letter)])

    def _each_then(self, first: int, second: int) -> int:
        """Each side of the first, then the second; so distributed, derivatives are finite."""
        return self.join("or", [self.then(side, second) for side in self._sides(first, "or")])

    def _sides(self, x: int, kind: str) -> Iterable[int]:
        return self._nodes[x][1:] if self._nodes[x][0] == kind else (x,)

    def _number(self, matches_empty: bool, *node: Any) -> int:
        if node not in self._numbers:
            self._numbers[node] = len(self._nodes)
            self._nodes.append(node)
            self._matches_empty.append(matches_empty)
        return self._numbers[node]


@remembered
def minimal_automaton(pattern: str, alphabet: str) -> Automaton:
    """The minimal automaton of the strings over the alphabet that match a pattern as a whole.

    Raises:
        ConfigError: the pattern cannot be read, has tokens outside the alphabet, or is too large.
    """
    reader = _Reader(pattern, alphabet)
    start, made = reader.read(), reader.made
    # Letters that belong to the same classes of the pattern are explored once.
    memberships = np.array([[x in named for named in reader.named] for x in range(len(alphabet))])
    _, firsts, kinds = np.unique(memberships, axis=0, return_index=True, return_inverse=True)

    def step(x: int, kind: int) -> int:
        return made.after(x, int(firsts[kind]))

    try:
        found = explore(len(firsts), start, step, made.matches_empty)
    except ConfigError as error:
        raise reader.refuse(str(error)) from None
    return minimize(found.table[:, kinds.ravel()], found.accepting)


_OPERATORS = re.compile(rf"\\.|{CLASS}|[&|]", re.DOTALL)

_SIGNS = {"&": r"\A", "|": r"\Z"}
"""Replacements of `&`, and of `|` beside it, before parsing: signs that are refused otherwise, and
that Python does not rearrange."""


class _Reader:
    """A pattern as expressions."""

    def __init__(self, pattern: str, alphabet: str) -> None:
        self.made = Expressions()
        self.named = {frozenset[int]()}
        """The sets of letters that match one token of the pattern."""
        self._pattern, self._alphabet = pattern, alphabet
        self._has_both = "&" in self._operators()

    def refuse(self, reason: str) -> ConfigError:
        return ConfigError(
            f"pattern={shorten(self._pattern)}: {reason}; expected a regular expression over the "
            "alphabet, such as '(ab)*'"
        )

    def read(self) -> int:
        """The number of the expression."""
        if not self._pattern:
            raise self.refuse("it is empty (the empty string alone is ())")
        parsed = self._pattern
        if self._has_both:
            if "&" in self._alphabet:
                reason = r"a token & is written \&: & alone asks both of its sides to match"
                raise self.refuse(reason)
            if edge := next((x for x in self._operators() if x in _SIGNS.values()), None):
                raise self.refuse(f"leave out {edge}: the whole string is matched")
            parsed = _OPERATORS.sub(lambda found: _SIGNS.get(found[0], found[0]), parsed)
        return self._group(parse_pattern(parsed, self.refuse), 0)

    def _operators(self) -> list[str]:
        return [found[0] for found in _OPERATORS.finditer(self._pattern)]

    def _group(self, tree: Any, depth: int) -> int:
        """The expression of a group's tree: sides of `&`, and of `|` beside it, from the left."""
        if depth > MAX_DEPTH:
            raise self.refuse(f"its groups are nested more than {MAX_DEPTH} deep")
        sides: list[list[tuple[str, Any]]] = [[]]
        operators = list[str]()
        for operator, value in tree:
            if self._has_both and operator.name == "AT" and value.name.endswith("_STRING"):
                operators.append("or" if value.name == "AT_END_STRING" else "and")
                sides.append([])
            else:
                sides[-1].append((operator.name, value))
        left = self._sequence(sides[0], depth)
        for kind, before, after in zip(operators, sides, sides[1:], strict=False):
            right = self._sequence(after, depth)
            if kind == "and" and not (before and after):
                raise self.refuse("nothing stands on one side of an &")
            left = self.made.join(kind, [left, right])
        return left

    def _sequence(self, pieces: list[tuple[str, Any]], depth: int) -> int:
        # Python takes a brace without bounds for a token, which hardly anybody means.
        if any(name == "LITERAL" and chr(value) in "{}" for name, value in pieces):
            raise self.refuse("a { begins bounds such as {2,5}, and no token")
        read = EMPTY
        # From the end, so that each step puts one piece before a chain that does not change.
        for name, value in reversed(pieces):
            read = self.made.then(self._piece(name, value, depth), read)
        return read

    def _piece(self, name: str, value: Any, depth: int) -> int:
        if name in ("LITERAL", "NOT_LITERAL", "ANY", "IN"):
            letters = self._letters(name, value)
            self.named.add(letters)
            return self.made.letters(letters)
        if name == "BRANCH":
            return self.made.join("or", [self._group(side, depth + 1) for side in value[1]])
        if name in ("MAX_REPEAT", "MIN_REPEAT"):
            # Greedy or lazy does not matter where the whole string is matched.
            least, most, inner = value
            if most == 0:
                raise self.refuse("{0} repeats nothing: leave it out")
            grouped = len(inner) == 1 and inner[0][0].name == "SUBPATTERN"
            repeated = self._group(inner, depth + (not grouped))
            return self.made.repeat(repeated, least, None if most == MAXREPEAT else most)
        if name == "SUBPATTERN" and not value[1] and not value[2]:
            return self._group(value[3], depth + 1)
        whole = ": the whole string is matched" if name == "AT" else ""
        raise self.refuse(obstacle(name, value) + whole)

    def _letters(self, name: str, value: Any) -> frozenset[int]:
        """The letters that match one token of the pattern."""
        members, named = class_members(name, value, self._alphabet)
        outside = set(named) - set(self._alphabet)
        for operator, ends in value if name == "IN" else ():
            if operator.name == "RANGE":
                span = map(chr, range(ends[0], ends[1] + 1))
                outside.update(next(([x] for x in span if x not in self._alphabet), []))
        if outside:
            raise self.refuse(f"{min(outside)!r} is outside the alphabet {self._alphabet!r}")
        return frozenset(map(self._alphabet.index, members))


@dataclass(frozen=True)
class Regular(PatternFields, RegularLanguage):
    """Strings that a regular expression matches as a whole are positive.

    With the pattern `(ab)*`: `abab` and the empty string are positive; `aba` and `ba` are negative.
    """

    def __post_init__(self) -> None:
        check_alphabet(self.alphabet, "regular")
        if " " in self.alphabet:
            raise ConfigError(
                f"alphabet={self.alphabet!r}: task 'regular' reads patterns one character a token, "
                "so its tokens have no names; expected such as 'ab'"
            )
        if not self.pattern:
            raise ConfigError(
                "pattern='': task 'regular' expects a regular expression over the alphabet "
                f"{self.alphabet!r}, such as '({self.alphabet[0]}{self.alphabet[-1]})*'"
            )
        assert self.automaton

    @property
    def automaton(self) -> Automaton:
        """The minimal automaton of the pattern."""
        return minimal_automaton(self.pattern, self.alphabet)

    def describe(self) -> str:
        return f"Strings of {self.alphabet} that match {self.pattern} as a whole are positive."
