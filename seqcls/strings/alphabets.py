"""Tokens of alphabets, characters or names: checks, and their listing in messages."""

import re
import unicodedata
from collections.abc import Sequence
from itertools import chain, pairwise, product

from seqcls.errors import ConfigError
from seqcls.text import closest

NOTATION = "<>{}"
"""The characters of repetitions. As tokens of files they are written in braces: `{<}`."""

CLS_NAME = "CLS"
"""The name of `CLS` beside tokens, which no token may have."""

_DRAWN_AS_NOTHING = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Invisible characters that Python calls printable: fillers, joiners, variation selectors."""

MAX_LISTED = 8
"""The most tokens with names that a message lists."""

MAX_TOKEN = 40
"""The most characters of a token's name."""


def has_names(alphabet: Sequence[str]) -> bool:
    """True if some token has several characters; texts then have spaces between tokens."""
    return any(len(token) > 1 for token in alphabet)


def alphabet_obstacle(alphabet: Sequence[str], *, notation: bool = False) -> str | None:
    """Why these cannot be the tokens of an alphabet; None where they can.

    Args:
        notation: allow the characters of `NOTATION`, as in files. Specifications do not: these
            characters have other meanings in expressions and formulas.
    """
    if len(set(alphabet)) < len(alphabet):
        kind = ", one character each, such as 'ab'" if isinstance(alphabet, str) else ""
        return f"expected distinct tokens{kind}"
    if CLS_NAME in tuple(alphabet):
        return f"expected no token {CLS_NAME!r}: it is what models read before a string"
    for token in alphabet:
        if not 1 <= len(token) <= MAX_TOKEN:
            return f"expected tokens of 1 to {MAX_TOKEN} characters, not {token!r:.60}"
        if unseen := unseen_character(token):
            return f"expected no token {token!r}: it has {unseen}"
        if " " in token or (not notation and any(x in NOTATION for x in token)):
            return (
                f"expected no token {token!r}: {NOTATION} write repetitions, and the others must "
                "be visible"
            )
    return None


def compose(text: str) -> str:
    """A text in Unicode's form NFC, with é as one character and not as e and a mark after it.

    Texts that look alike by Unicode's rules become equal.
    """
    return unicodedata.normalize("NFC", text)


def composing_obstacle(alphabet: Sequence[str]) -> str | None:
    """Why strings of these tokens could be texts that look alike; None where they cannot.

    A token is in the form of `compose`, and no two of one character are one letter side by side.
    """
    for token in alphabet:
        if compose(token) != token:
            return (
                f"expected no token {token!r:.60}: it is {_codes(token)}; write its composed form, "
                f"{_codes(compose(token))}"
            )
    if not has_names(alphabet):
        # No character of ASCII combines with the one before it.
        marks = [x for x in alphabet if not x.isascii()]
        # Neighbors first: a letter and its mark, as typed.
        for letter, mark in chain(pairwise(alphabet), product(alphabet, marks)):
            if compose(letter + mark) != letter + mark:
                return (
                    f"expected no tokens {_codes(letter)} and {_codes(mark)}: side by side they "
                    f"are {_codes(compose(letter + mark))}; write that one"
                )
    return None


_DRAWN_ALIKE = str.maketrans(
    # Cyrillic and Greek letters, by the Latin ones that most typefaces draw so.
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420"
    "\u0421\u0422\u0425\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7\u03bf",
    "aeopcyxijsABEKMHOPCTXABEZHIKMNOPTYXo",
)


def easily_confused(alphabet: Sequence[str]) -> str | None:
    """Tokens that look alike, or are a lone mark, for a message; None where all are clear."""
    drawn: dict[str, str] = {}
    for token in alphabet:
        if unicodedata.combining(token[0]):
            return f"token {_codes(token)} is a mark, drawn on the letter before it"
        # NFKC makes ligatures and full-width forms the letters that they show.
        look = unicodedata.normalize("NFKC", token).translate(_DRAWN_ALIKE)
        if (other := drawn.setdefault(look, token)) != token:
            return f"tokens {_codes(other)} and {_codes(token)} look alike: {other!r}, {token!r}"
    return None


def unseen_character(text: str, allowed: str = "") -> str | None:
    """The first invisible character of a text, for a message; None where all are visible.

    A plain space counts as visible, and so do the allowed characters.
    """
    for place, character in enumerate(text, 1):
        is_seen = character.isprintable() and not _DRAWN_AS_NOTHING.match(character)
        if is_seen or character in allowed:
            continue
        kind, code = unicodedata.category(character), f"U+{ord(character):04X}"
        if kind == "Cc":
            return f"a control character ({code}) at character {place}; remove it"
        name = f"{unicodedata.name(character, 'a character without a name')} ({code})"
        if kind[0] == "Z":
            return f"{name} at character {place}, which is not a plain space; write one, or none"
        return f"{name} at character {place}, which cannot be seen; remove it"
    return None


def listed_tokens(alphabet: Sequence[str], unknown: str) -> str:
    """The tokens, for a message about an unknown one; of many names the first, and the closest."""
    if not has_names(alphabet):
        return f"the alphabet is {''.join(alphabet)!r}" + _combines(unknown)
    first, more = ", ".join(alphabet[:MAX_LISTED]), len(alphabet) - MAX_LISTED
    # A long text would take long to compare.
    similar = closest(unknown[:MAX_TOKEN], list(alphabet))
    return (
        f"the tokens are {first}"
        + (f" and {more} more" if more > 0 else "")
        + (_combines(unknown) or (f"; did you mean {similar!r}?" if similar else ""))
    )


def _combines(unknown: str) -> str:
    """A note for a message that a token is a mark, drawn on the letter before it."""
    if unicodedata.combining(unknown[:1]):
        return f"; it is {_codes(unknown)}, which combines with the letter before it"
    return ""


def _codes(text: str) -> str:
    return " ".join(f"U+{ord(x):04X}" for x in text)


def tokens_of(alphabet: Sequence[str]) -> Sequence[str]:
    """The tokens of an alphabet: a text with spaces is split, another is returned unchanged."""
    if isinstance(alphabet, str) and " " in alphabet:
        return tuple(alphabet.split(" "))
    return alphabet


def check_alphabet(alphabet: Sequence[str], task: str) -> None:
    """Refuse an empty alphabet; the configuration has checked the tokens.

    Raises:
        ConfigError: it is empty.
    """
    if not alphabet:
        raise ConfigError(
            f"alphabet='': task {task!r} expects its tokens, one character each, such as 'ab'"
        )
