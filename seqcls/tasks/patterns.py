r"""Patterns of Python's `re`, read by its parser, for the tasks `regular` and `rewrite`.

Dialects differ: in some, `a+?` is an optional `a+`, and `\1` the token `1`. Here a pattern has the
meaning that Python gives it, or is refused with the name of the construct.
"""

import re
from collections.abc import Callable, Iterable

# Nothing public in Python gives the tree of a pattern.
from re import _parser  # type: ignore[attr-defined]
from typing import Any

from seqcls.errors import ConfigError

MAXREPEAT = _parser.MAXREPEAT

CLASS = r"\[\^?\]?(?:\\.|[^\]\\])*\]?"
"""One class, `[...]`, in a pattern, or the rest of the pattern where it is not closed."""

_CLASSES = re.compile(rf"\\.|({CLASS})", re.DOTALL)
_ESCAPES = re.compile(r"\\.", re.DOTALL)
_SETS = re.compile(r"^\[\[|--|&&|~~|\|\|")

_NO_MEMORY = "leave out {}: what a group held cannot be asked for"

_WORDS = [
    ("unterminated character set", "a [ is not closed"),
    ("missing \\), unterminated comment", "a comment is not closed"),
    ("missing \\), unterminated subpattern|unexpected end", "a parenthesis is not closed"),
    ("unbalanced parenthesis", "a parenthesis is closed that was not opened"),
    ("nothing to repeat", "nothing stands before a *, +, ? or {{2,5}} that it could repeat"),
    ("multiple repeat", "a repetition is repeated; put parentheses around it, as in (a*)*"),
    ("bad character range (.+)", "{} is not a range from a token to a later one"),
    ("min repeat greater", "a repetition asks for at least more than at most"),
    ("too large|string conversion", "a number of repetitions is too large"),
    ("bad escape \\(end", "it ends in a backslash; a token \\ is written \\\\"),
    ("(?:bad|incomplete) escape (\\\\[A-Za-z])", "{} means nothing; write a letter without \\"),
    ("invalid group reference (.+)", _NO_MEMORY.format("\\{}")),
    ("unknown group name|cannot refer|bad group number", _NO_MEMORY.format("references to groups")),
    ("unknown extension (.+)", "({} begins nothing"),
    ("flag", "leave out flags such as (?i)"),
]
"""Messages of Python's parser, with the reason given here."""

_NO_LOOK = "leave out (?=...), (?!...), (?<=...) and (?<!...): nothing may look around"

_OBSTACLES = {
    "POSSESSIVE_REPEAT": "leave out the + behind a repetition: *+, ++, ?+ and }+ never give back",
    "ATOMIC_GROUP": "write (?:...) for (?>...), which never gives back",
    "ASSERT": _NO_LOOK,
    "ASSERT_NOT": _NO_LOOK,
    "SUBPATTERN": "leave out flags such as (?i)",
}

_EDGES = {
    "AT_BEGINNING": "^",
    "AT_END": "$",
    "AT_BEGINNING_STRING": r"\A",
    "AT_END_STRING": r"\Z",
    "AT_BOUNDARY": r"\b",
    "AT_NON_BOUNDARY": r"\B",
}

_CATEGORIES = {
    f"CATEGORY_{negated}{name}": letter.upper() if negated else letter
    for name, letter in (("DIGIT", r"\d"), ("SPACE", r"\s"), ("WORD", r"\w"))
    for negated in ("", "NOT_")
}


def parse_pattern(pattern: str, refusal: Callable[[str], ConfigError]) -> Any:
    """The tree of a pattern by Python's parser.

    Args:
        pattern: with one character for each token.

    Raises:
        ConfigError: Python cannot read it, or may read it otherwise in a later version.
    """
    # Python only warns of these, and warnings become errors in all threads or in none.
    for found in _CLASSES.finditer(pattern):
        if found[1] and _SETS.search(_ESCAPES.sub("", found[1])):
            raise refusal(r"in [...], the tokens [ - & ~ | are written \[ \- \& \~ \|")
    try:
        tree = _parser.parse(pattern)
    except RecursionError:
        raise refusal("its groups are nested too deep") from None
    except (re.error, OverflowError, ValueError) as error:
        raise refusal(_reason(getattr(error, "msg", str(error)))) from None
    # Flags within a pattern change what all of it means.
    if tree.state.flags != re.UNICODE:
        raise refusal("leave out flags such as (?i)")
    return tree


def _reason(message: str) -> str:
    for words, reason in _WORDS:
        if match := re.search(words, message, re.DOTALL):
            return reason.format(*match.groups())
    return f"Python's re refuses it ({' '.join(message.split())})"


def class_members(name: str, value: Any, alphabet: Iterable[str]) -> tuple[frozenset[str], str]:
    """The characters that match one of a pattern, and those that the pattern names itself.

    Args:
        name: the operator of Python's parser: `LITERAL`, `NOT_LITERAL`, `ANY` or `IN`.
        alphabet: one character a token.
    """
    every = frozenset(alphabet)
    if name == "ANY":
        return every, ""
    if name != "IN":
        character = chr(value)
        return (frozenset(character) if name == "LITERAL" else every - {character}), character
    members: set[str] = set()
    named = ""
    for operator, argument in value:
        if operator.name == "LITERAL":
            named += chr(argument)
            members.add(chr(argument))
        elif operator.name == "RANGE":
            members |= {x for x in every if argument[0] <= ord(x) <= argument[1]}
        elif operator.name == "CATEGORY":
            sign = re.compile(_CATEGORIES[argument.name])
            members |= {x for x in every if sign.fullmatch(x)}
    return every - members if value[0][0].name == "NEGATE" else frozenset(members), named


def obstacle(name: str, value: Any) -> str:
    """The reason for refusing a construct of patterns.

    Args:
        name: an operator of Python's parser that does not match one token, group, choose or repeat.
    """
    if name == "GROUPREF":
        return _NO_MEMORY.format(f"\\{value}")
    if name == "GROUPREF_EXISTS":
        return _NO_MEMORY.format(f"(?({value[0]})...)")
    if name == "AT":
        sign = _EDGES.get(value.name, "what matches an edge")
        return f"leave out {sign}" + (f" (a token {sign} is \\{sign})" if sign in "^$" else "")
    return _OBSTACLES.get(name, "use tokens, ., [...], (...), |, *, +, ? and {2,5}")
