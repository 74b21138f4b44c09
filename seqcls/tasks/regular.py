"""The language of a regular expression, and its minimal automaton, within bounds.

An expression means what `re.fullmatch` makes of it: it is read by Python's own parser, and what no
automaton has, such as a look around or a memory of groups, is refused by name. One sign is added:
`&`, for strings that match both sides. `|` and `&` bind alike, from the left.
"""

import re
from collections import deque
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar, NamedTuple

from seqcls.cache import remembered
from seqcls.errors import ConfigError
from seqcls.strings.alphabets import check_alphabet
from seqcls.strings.automata import MAX_STATES
from seqcls.tasks.automaton import Automaton, OfAutomaton, determinize, follow_silent, minimize
from seqcls.tasks.patterns import CLASS, MAXREPEAT, class_members, obstacle, parse_pattern

MAX_PIECES = 3_000
"""States of the nondeterministic automaton, with repetitions written out."""

MAX_MOVES = 100_000
"""States of the deterministic automaton, before it is made minimal, times letters."""

MAX_STEPS = 4_000_000
"""Steps of making it deterministic: about a second."""

MAX_RANGE = 256
"""Characters of a range such as `[a-z]` that are looked at: of more, some are no letters."""

MAX_DEPTH = 60
"""Groups within groups."""

_OPERATORS = re.compile(rf"\\.|{CLASS}|[&|]", re.DOTALL)

_BOTH, _EITHER = "AT_BEGINNING_STRING", "AT_END_STRING"
"""What stands for `&`, and for `|` beside it, in what is parsed: signs that are refused else."""


class _State(NamedTuple):
    """A state of a nondeterministic automaton: by some letters, or by none, to others."""

    letters: frozenset[str] | None
    """None where it leads on without a letter."""
    following: tuple[int, ...]


def minimal_automaton(pattern: str, alphabet: str) -> Automaton:
    """The minimal automaton of the strings over the alphabet that match a pattern as a whole.

    Raises:
        ConfigError: the pattern cannot be read, has tokens outside the alphabet, or is too large.
    """
    expression = _Expression(pattern, alphabet)
    moves, closures = _bits(expression.states, alphabet)
    most = min(MAX_STATES, MAX_MOVES // len(alphabet))
    start, letters = closures[expression.first], len(alphabet)
    try:
        return minimize(*determinize(moves, start, 1, letters, MAX_STEPS, most))
    except ConfigError as error:
        raise _refusal(pattern, str(error)) from None


class _Expression:
    """The nondeterministic automaton of a pattern; the last state to be reached is 0."""

    def __init__(self, pattern: str, alphabet: str) -> None:
        self._pattern = pattern
        self._alphabet = alphabet
        self._letters = frozenset(alphabet)
        self.states = [_State(None, ())]
        if not pattern:
            raise self._refuse("it is empty (the empty string alone is ())")
        tree = parse_pattern(self._with_operators(), self._refuse)
        try:
            self.first = self._before(tree, 0, 0)
        except RecursionError:
            raise self._refuse("its groups are nested too deep") from None

    def _refuse(self, reason: str) -> ConfigError:
        return _refusal(self._pattern, reason)

    def _with_operators(self) -> str:
        """The pattern, with signs that Python does not rearrange for `&`, and for `|` beside it."""
        signs = [found[0] for found in _OPERATORS.finditer(self._pattern)]
        self._has_both = "&" in signs
        if not self._has_both:
            return self._pattern
        if "&" in self._letters:
            raise self._refuse(r"a token & is written \&: & alone asks both of its sides to match")
        if edge := next((sign for sign in signs if sign in (r"\A", r"\Z")), None):
            raise self._refuse(f"leave out {edge}: the whole string is matched")
        parsed = {"&": r"\A", "|": r"\Z"}
        return _OPERATORS.sub(lambda found: parsed.get(found[0], found[0]), self._pattern)

    def _add(self, letters: frozenset[str] | None, *following: int) -> int:
        if len(self.states) > MAX_PIECES:
            raise self._refuse(
                f"with its repetitions written out it has more than {MAX_PIECES:,} pieces"
            )
        self.states.append(_State(letters, following))
        return len(self.states) - 1

    def _before(self, tree: Any, following: int, depth: int) -> int:
        """The first state of what is parsed; its last one leads on to the one that follows."""
        if depth > MAX_DEPTH:
            raise self._refuse(f"its groups are nested more than {MAX_DEPTH} deep")
        pieces = [(operator.name, value) for operator, value in tree]
        operators = [
            place
            for place, (name, value) in enumerate(pieces)
            if name == "AT" and value.name in (_BOTH, _EITHER)
        ]
        if not operators or not self._has_both:
            return self._sequence(pieces, following, depth)
        sides = [
            pieces[start + 1 : end]
            for start, end in zip([-1, *operators], [*operators, len(pieces)], strict=True)
        ]
        # What is on the left of an operator ends in a state of its own until the last one is met.
        last = self._add(None)
        first = self._sequence(sides[0], last, depth)
        for number, (place, right) in enumerate(zip(operators, sides[1:], strict=True)):
            if pieces[place][1].name == _EITHER:
                first = self._add(None, first, self._sequence(right, last, depth))
                continue
            if not right or not sides[number]:
                raise self._refuse("nothing stands on one side of an &")
            end = self._add(None)
            first, last = self._both((first, last), (self._sequence(right, end, depth), end))
        self.states[last] = _State(None, (following,))
        return first

    def _both(self, one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
        """The first and the last state of what two parts both match, each from first to last."""
        numbers = {(one[0], other[0]): self._add(None)}
        queue = deque(numbers)
        while queue:
            pair = left, right = queue.popleft()
            (read, after), (also_read, also_after) = self.states[left], self.states[right]
            if read is None and left != one[1]:
                letters, pairs = None, [(state, right) for state in after]
            elif also_read is None and right != other[1]:
                letters, pairs = None, [(left, state) for state in also_after]
            elif read is None or also_read is None:
                continue
            else:
                letters, pairs = read & also_read, [(x, y) for x in after for y in also_after]
            for reached in pairs:
                if reached not in numbers:
                    numbers[reached] = self._add(None)
                    queue.append(reached)
            self.states[numbers[pair]] = _State(letters, tuple(numbers[x] for x in pairs))
        last = numbers.get((one[1], other[1]))
        return numbers[one[0], other[0]], self._add(None) if last is None else last

    def _sequence(self, pieces: list[tuple[str, Any]], following: int, depth: int) -> int:
        if any(name == "LITERAL" and chr(value) in "{}" for name, value in pieces):
            raise self._refuse("a { begins bounds such as {2,5}, and no token")
        for name, value in reversed(pieces):
            following = self._piece(name, value, following, depth)
        return following

    def _piece(self, name: str, value: Any, following: int, depth: int) -> int:
        if name in ("LITERAL", "NOT_LITERAL", "ANY", "IN"):
            return self._add(self._members(name, value), following)
        if name == "BRANCH":
            # Of many that are empty, one says it all.
            firsts = [self._before(side, following, depth + 1) for side in value[1]]
            return self._add(None, *dict.fromkeys(firsts))
        if name in ("MAX_REPEAT", "MIN_REPEAT"):
            # How many a repetition prefers does not matter where the whole string is matched.
            least, most, inner = value
            grouped = len(inner) == 1 and inner[0][0].name == "SUBPATTERN"
            return self._repeat(least, most, inner, following, depth + (not grouped))
        if name == "SUBPATTERN" and not value[1] and not value[2]:
            return self._before(value[3], following, depth + 1)
        whole = ": the whole string is matched" if name == "AT" else ""
        raise self._refuse(obstacle(name, value) + whole)

    def _repeat(self, least: int, most: Any, inner: Any, following: int, depth: int) -> int:
        if most == 0:
            raise self._refuse("{0} repeats nothing: leave it out")
        if inner.getwidth()[1] == 0:
            # Nothing, however often.
            return self._before(inner, following, depth)
        if most == MAXREPEAT:
            again = self._add(None)
            body = self._before(inner, again, depth)
            self.states[again] = _State(None, (body, following))
            start = again if least == 0 else body
            least -= 1
        else:
            start = following
            for _ in range(most - least):
                start = self._add(None, self._before(inner, start, depth), following)
        for _ in range(least):
            start = self._before(inner, start, depth)
        return start

    def _members(self, name: str, value: Any) -> frozenset[str]:
        """The letters that may stand there."""
        members, named = class_members(name, value, self._alphabet)
        outside = set(named) - self._letters
        for operator, each in value if name == "IN" else ():
            if operator.name == "RANGE":
                span = map(chr, range(each[0], each[1] + 1))
                outside |= {x for x in islice(span, MAX_RANGE) if x not in self._letters}
        if outside:
            raise self._refuse(f"{min(outside)!r} is outside the alphabet {self._alphabet!r}")
        return members


def _bits(states: list[_State], alphabet: str) -> tuple[list[dict[int, int]], list[int]]:
    """Where each state leads by each letter, and what follows it by no letter, itself included.

    A set of states is a whole number, one bit each. Of those that read no letter it has the last.
    """
    reads = [bool(state.letters) or number == 0 for number, state in enumerate(states)]
    silent = {
        number: state.following for number, state in enumerate(states) if state.letters is None
    }
    closures = follow_silent([each << number for number, each in enumerate(reads)], silent)
    numbers = {letter: number for number, letter in enumerate(alphabet)}
    moves: list[dict[int, int]] = []
    for letters, after in states:
        reached = 0
        for following in after:
            reached |= closures[following]
        moves.append({numbers[letter]: reached for letter in letters or ()})
    return moves, closures


def _refusal(pattern: str, reason: str) -> ConfigError:
    shown = pattern if len(pattern) <= 60 else pattern[:60] + "…"
    return ConfigError(
        f"pattern={shown!r}: {reason}; expected a regular expression over the alphabet, "
        "such as '(ab)*'"
    )


@dataclass(frozen=True)
class Regular(OfAutomaton):
    """Strings that a regular expression matches as a whole are positive.

    With the pattern `(ab)*`: `abab` and the empty string are positive; `aba` and `ba` are negative.
    """

    alphabet: str
    pattern: str

    reads: ClassVar[frozenset[str]] = frozenset({"alphabet", "pattern"})

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
        return _automaton(self.alphabet, self.pattern)

    def describe(self) -> str:
        return f"Strings of {self.alphabet} that match {self.pattern} as a whole are positive."


@remembered
def _automaton(alphabet: str, pattern: str) -> Automaton:
    return minimal_automaton(pattern, alphabet)
