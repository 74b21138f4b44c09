"""From a regular expression to its minimal automaton, within bounds.

The expression is read by automata-lib: `|`, `*`, `+`, `?`, `{2,5}`, `(...)`, `.`, `[...]`, `&` for
strings that match both sides, and a backslash before a token that means something else. `|` and
`&` bind alike. The whole string is matched.
"""

import re
from collections import deque
from collections.abc import Sequence
from itertools import count
from typing import Any

import numpy as np

from seqcls.errors import ConfigError
from seqcls.tasks.automata.automaton import Automaton

MAX_PIECES = 3_000
"""States of the nondeterministic automaton, with repetitions written out."""

MAX_COPIES = 15_000
"""States that repetitions copy, all of them together."""

MAX_STATES = 10_000
"""States of the deterministic automaton before it is made minimal."""

MAX_MOVES = 100_000
"""The same, times the letters of the alphabet."""

MAX_STEPS = 1_500_000
"""Steps of making it deterministic: about a second."""

MAX_RANGE = 256
"""Characters in a range such as `[a-z]`."""

_TOKEN_NAME = re.compile(r"<\w+: (.*?)>")

_BOUNDS = re.compile(r"\{(\d{1,9}),(\d{1,9})\}")

_RANGE = re.compile(r"(.)-\\?(.)", re.DOTALL)


def minimal_automaton(pattern: str, alphabet: str) -> Automaton:
    """The minimal automaton of the strings over the alphabet that match a pattern as a whole.

    Raises:
        ConfigError: the pattern cannot be read, has tokens outside the alphabet, or is too large.
    """
    # Takes a third of a second to load: only where a pattern is used.
    from automata.base.exceptions import AutomatonException, RegexException

    try:
        builder = _parsed(pattern, alphabet)
    except ConfigError:
        raise
    except (AutomatonException, RegexException, ValueError, IndexError, KeyError) as error:
        unclosed = _unclosed(pattern)
        message = _TOKEN_NAME.sub(r"\1", " ".join(str(error).split())).rstrip(".")
        # The library shows the pattern's characters as they are, half a character among them.
        reason = message.encode(errors="backslashreplace").decode()
        raise _refusal(pattern, unclosed or reason) from None
    return minimized(*_deterministic(builder, pattern, alphabet), alphabet)


def _unclosed(pattern: str) -> str | None:
    """What is wrong with its parentheses; None if they match, aside from escaped ones."""
    depth = 0
    for token in re.findall(r"\\.|[()]", pattern, re.DOTALL):
        depth += {"(": 1, ")": -1}.get(token, 0)
        if depth < 0:
            return "a parenthesis is closed that was not opened"
    return "a parenthesis is not closed" if depth else None


def _parsed(pattern: str, alphabet: str) -> Any:
    from automata.regex.parser import add_concat_and_empty_string_tokens, get_regex_lexer
    from automata.regex.postfix import parse_postfix_tokens, tokens_to_postfix, validate_tokens

    for start, end in _RANGE.findall(pattern):
        if ord(end) - ord(start) > MAX_RANGE:
            raise _refusal(pattern, f"the range {start}-{end} is longer than {MAX_RANGE}")
    for least, most in _BOUNDS.findall(pattern):
        if int(least) > int(most):
            raise _refusal(pattern, f"{{{least},{most}}} asks for at least more than at most")
    counter = count()
    tokens = get_regex_lexer(set(alphabet), counter).lex(pattern)
    for token in tokens:
        _check_token(token, pattern, alphabet)
    validate_tokens(tokens)
    postfix = tokens_to_postfix(add_concat_and_empty_string_tokens(tokens, counter))
    if _size(postfix) > MAX_PIECES:
        raise _refusal(
            pattern, f"with its repetitions written out it has more than {MAX_PIECES:,} pieces"
        )
    return parse_postfix_tokens(postfix)


def _check_token(token: Any, pattern: str, alphabet: str) -> None:
    from automata.regex import parser

    if isinstance(token, parser.ShuffleToken):
        raise _refusal(pattern, r"leave out ^: the whole string is matched (a token ^ is \^)")
    if isinstance(token, parser.QuantifierToken) and token.upper_bound == 0:
        raise _refusal(pattern, f"{token.text} repeats nothing: leave it out")
    named: set[str] = set()
    if isinstance(token, parser.StringToken):
        named = set(token.text)
    elif isinstance(token, parser.CharacterClassToken) and "\\" not in token.text:
        named = token.class_chars
    outside = sorted(named - set(alphabet))
    if outside:
        ends = "; the whole string is matched" if outside[0] == "$" else ""
        raise _refusal(pattern, f"{outside[0]!r} is outside the alphabet {alphabet!r}{ends}")


def _size(postfix: list[Any]) -> int:
    """At most so many states; more than `MAX_PIECES` count as one more than that."""
    from automata.regex.parser import IntersectionToken, QuantifierToken
    from automata.regex.postfix import InfixOperator, PostfixOperator

    stack: list[int] = []
    copied = 0
    for token in postfix:
        if isinstance(token, IntersectionToken):
            size = stack.pop() * stack.pop()
        elif isinstance(token, InfixOperator):
            size = stack.pop() + stack.pop() + 1
        elif isinstance(token, QuantifierToken):
            size = stack.pop() * max(token.lower_bound, token.upper_bound or 1) + 1
        elif isinstance(token, PostfixOperator):
            size = stack.pop() + 1
        else:
            size = 2
        if isinstance(token, PostfixOperator):
            copied += size
        # Kept small: a tower of repetitions has more digits than time.
        stack.append(min(size, MAX_PIECES + 1))
    return MAX_PIECES + 1 if copied > MAX_COPIES else stack[-1]


def _deterministic(builder: Any, pattern: str, alphabet: str) -> tuple[list[list[int]], list[bool]]:
    """The table of a complete automaton, and which of its states accept; it starts at 0.

    A set of states is a whole number, one bit each.
    """
    moves, closures, final = _bits(builder, alphabet)
    numbers = {closures[builder._initial_state]: 0}
    queue = deque(numbers)
    table: list[list[int]] = []
    steps = 0
    most = min(MAX_STATES, MAX_MOVES // len(alphabet))
    while queue:
        members = [state for state in _members(queue.popleft()) if state in moves]
        steps += len(members)
        row = []
        for letter in alphabet:
            following = 0
            for state in members:
                following |= moves[state].get(letter, 0)
            if following not in numbers:
                numbers[following] = len(numbers)
                queue.append(following)
            row.append(numbers[following])
        table.append(row)
        if len(numbers) > most or steps * len(alphabet) > MAX_STEPS:
            raise _refusal(pattern, f"its automaton has more than {most:,} states")
    return table, [bool(states & final) for states in numbers]


def _bits(builder: Any, alphabet: str) -> tuple[dict[int, dict[str, int]], dict[int, int], int]:
    """Where each state leads by each letter, what follows it by no letter, and the final states."""
    transitions: dict[int, dict[str, set[int]]] = builder._transitions
    places = {state: place for place, state in enumerate(transitions)}
    closures = {state: 1 << place for state, place in places.items()}
    order = [state for state, steps in transitions.items() if steps.get("")]
    changed = True
    while changed:
        changed = False
        order.reverse()
        for state in order:
            reached = closures[state]
            for following in transitions[state][""]:
                reached |= closures[following]
            changed |= reached != closures[state]
            closures[state] = reached
    moves: dict[int, dict[str, int]] = {}
    for state, steps in transitions.items():
        for letter in alphabet:
            for following in steps.get(letter, ()):
                by_letter = moves.setdefault(places[state], {})
                by_letter[letter] = by_letter.get(letter, 0) | closures[following]
    final = sum(1 << places[state] for state in builder._final_states)
    return moves, closures, final


def _members(states: int) -> list[int]:
    bits = f"{states:b}"[::-1]
    return [place for place, bit in enumerate(bits) if bit == "1"]


def minimized(table: list[list[int]], accepting: list[bool], alphabet: Sequence[str]) -> Automaton:
    """The minimal automaton of the same language, its states as they are met from the start, 0."""
    from automata.fa.dfa import DFA

    minimal = DFA(
        states=set(range(len(table))),
        input_symbols=set(alphabet),
        transitions={
            state: dict(zip(alphabet, row, strict=True)) for state, row in enumerate(table)
        },
        initial_state=0,
        final_states={state for state, accepts in enumerate(accepting) if accepts},
    ).minify()
    # Numbered as they are met from the start, whatever the library calls them.
    numbers = {minimal.initial_state: 0}
    queue = list(numbers)
    for state in queue:
        for letter in alphabet:
            following = minimal.transitions[state][letter]
            if following not in numbers:
                numbers[following] = len(numbers)
                queue.append(following)
    rows = [[numbers[minimal.transitions[state][x]] for x in alphabet] for state in numbers]
    accepts = [state in minimal.final_states for state in numbers]
    return Automaton(np.array(rows, dtype=np.int64), np.array(accepts))


def _refusal(pattern: str, reason: str) -> ConfigError:
    shown = pattern if len(pattern) <= 60 else pattern[:60] + "…"
    return ConfigError(
        f"pattern={shown!r}: {reason}; expected a regular expression over the alphabet, "
        "such as '(ab)*'"
    )
