"""Replace every leftmost match of a pattern, in time proportional to length times pattern.

Patterns are those of Python's `re`, matched as `re.sub` does, as far as they need no look around
and no memory of groups: tokens, `.`, `[ab]`, `[^ab]`, `(...)`, `(?:...)`, `|`, `*`, `+`, `?`,
`{2,5}`, the lazy `*?`, `^` and `$`. Python's matcher takes exponential time with some of them, so
the tree of its parser is written for RE2, which never does.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import numpy as np

from seqcls.declarations import About, Text
from seqcls.errors import ConfigError
from seqcls.strings.alphabets import check_alphabet, tokens_of
from seqcls.strings.notation import shorten
from seqcls.strings.token_strings import TokenStrings
from seqcls.tasks.base import PatternFields
from seqcls.tasks.patterns import MAXREPEAT, class_members, obstacle, parse_pattern
from seqcls.tasks.transductions import INPUT, NEIGHBORS, FormTransduction

MOST_GROWTH = 4
"""The most tokens that a match may become, for each of its tokens."""

# Unicode's private use area begins here.
_FIRST_NAME = 0xE000
"""The first of the characters, used in no pattern, that replace tokens with names."""

_SYNTAX = r"\{[\d,]*\}|\\g<\w*>|\(\?P<\w*>|\\."
"""Parts of patterns and replacements in which no token's name is looked for."""

_PIECE = re.compile(r"\\(\d{1,2})|\\g<(\w+)>|\\(\W)|(.)", re.DOTALL)
"""A piece of a replacement: a group's number, a group's name, an escaped character, another."""

_EDGES = {"AT_BEGINNING": r"\A", "AT_END": r"\z"}
"""Edges of a string as RE2 spells them."""

_NO_TOKEN = r"[^\x00-\x{10FFFF}]"
"""A class that matches nothing."""


class Rewriter:
    """Replaces the matches of a pattern in strings.

    Raises:
        ConfigError: the pattern or the replacement cannot be read, has tokens outside the alphabet,
            or makes outputs that are too long.
    """

    def __init__(self, alphabet: Sequence[str], pattern: str, replacement: str) -> None:
        self._pattern = pattern
        self._replacement = replacement
        self._tokens = {
            token if len(token) == 1 else chr(_FIRST_NAME + letter): token
            for letter, token in enumerate(alphabet)
        }
        self._letters = {character: letter for letter, character in enumerate(self._tokens)}
        tree = self._parse()
        self._least = int(tree.getwidth()[0])
        if self._least == 0:
            raise self._refuse("it matches the empty string, which is at every place")
        self._widths = {0: int(tree.getwidth()[1])}
        self._regex = self._compile(tree)
        self._pieces = self._template(tree.state.groupdict)
        most = self._most(self._least)
        if most > MOST_GROWTH * self._least:
            raise ConfigError(
                f"replacement={shorten(replacement)}: it may make {most} tokens of {self._least}; "
                f"expected at most {MOST_GROWTH} for each token of a match"
            )

    def rewrite(self, letters: Sequence[int]) -> list[int]:
        """The letters of a string with every match replaced."""
        text = self._text(letters)
        parts: list[str] = []
        done = 0
        for match in self._regex.finditer(text):
            start, end = match.span()
            # A group that has no part in a match is None.
            filled = (x if isinstance(x, str) else match[x] or "" for x in self._pieces)
            parts += [text[done:start], *filled]
            done = end
        return [self._letters[character] for character in "".join([*parts, text[done:]])]

    def num_matches(self, letters: Sequence[int]) -> int:
        """Number of matches."""
        return sum(1 for _ in self._regex.finditer(self._text(letters)))

    def _text(self, letters: Sequence[int]) -> str:
        """A string with one character for each token."""
        characters = list(self._tokens)
        return "".join([characters[letter] for letter in letters])

    def longest(self, length: int) -> int:
        """The most tokens that `length` tokens become; exact if all matches have one length."""
        matches, others = divmod(length, self._least)
        gain = self._most(self._least) - self._least
        # More matches never give fewer tokens, unless each match loses some.
        growing = sum(self._width(piece) > self._least for piece in self._pieces)
        return length + max(0, matches * gain + others * max(0, growing - 1))

    def _most(self, length: int) -> int:
        """The most tokens that a match of `length` tokens becomes."""
        return sum(min(self._width(piece), length) for piece in self._pieces)

    def _width(self, piece: str | int) -> int:
        return 1 if isinstance(piece, str) else self._widths[piece]

    def writes_at_places(self) -> bool:
        """True if every match is one token, and becomes at most one."""
        return self._least == self._widths[0] == self._most(1) == 1

    def _encode(self, text: str, refuse: Callable[[str], ConfigError]) -> str:
        """A pattern or a replacement with one character for each token with a name."""
        if unknown := [x for x in text if self._tokens.get(x, x) != x]:
            raise refuse(f"{unknown[0]!r} is outside the alphabet")
        names = {name: character for character, name in self._tokens.items() if len(name) > 1}
        if not names:
            return text
        longest_first = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
        word = re.compile(rf"({_SYNTAX})|({longest_first})|\s+", re.DOTALL)
        return word.sub(lambda match: match[1] or names.get(match[2] or "", ""), text)

    def _parse(self) -> Any:
        def refuse(reason: str) -> ConfigError:
            # Reasons name tokens, and not the characters in their place.
            return self._refuse("".join([self._tokens.get(x, x) for x in reason]))

        return parse_pattern(self._encode(self._pattern, self._refuse), refuse)

    def _compile(self, tree: Any) -> Any:
        """The pattern compiled by RE2."""
        # Imported where it is used: help is fast.
        import re2

        options = re2.Options()
        # RE2 would write its errors to the terminal as well.
        options.log_errors = False
        try:
            return re2.compile(self._respell(tree), options)
        except RecursionError:
            raise self._refuse("its groups are nested too deep") from None
        except re2.error:
            raise self._refuse("with its repetitions written out it is too large") from None

    def _respell(self, tree: Any) -> str:
        """A parsed tree in the syntax of RE2."""
        return "".join([self._piece(operator.name, value) for operator, value in tree])

    def _piece(self, name: str, value: Any) -> str:
        if name in ("LITERAL", "NOT_LITERAL", "ANY", "IN"):
            # Written by code point, no character needs a backslash.
            members = sorted(map(ord, self._class_members(name, value)))
            return "[" + "".join(rf"\x{{{x:x}}}" for x in members) + "]" if members else _NO_TOKEN
        if name == "BRANCH":
            return f"(?:{'|'.join(map(self._respell, value[1]))})"
        if name in ("MAX_REPEAT", "MIN_REPEAT"):
            least, most, inner = value
            if most > 1 and inner.getwidth()[0] == 0:
                raise self._refuse("it repeats what may be empty")
            bounds = f"{least}," if most == MAXREPEAT else f"{least},{most}"
            lazy = "?" if name == "MIN_REPEAT" else ""
            return f"(?:{self._respell(inner)}){{{bounds}}}{lazy}"
        if name == "SUBPATTERN" and not value[1] and not value[2]:
            group, inner = value[0], value[3]
            if group is None:
                return f"(?:{self._respell(inner)})"
            self._widths[group] = int(inner.getwidth()[1])
            return f"({self._respell(inner)})"
        if name == "AT" and value.name in _EDGES:
            return _EDGES[value.name]
        raise self._refuse(obstacle(name, value))

    def _class_members(self, name: str, value: Any) -> frozenset[str]:
        """The characters that match one of the pattern."""
        if name == "IN" and any(operator.name == "CATEGORY" for operator, _ in value):
            raise self._refuse("write the tokens themselves, not a class such as \\w")
        members, named = class_members(name, value, self._tokens)
        for character in named:
            if character not in self._tokens:
                raise self._refuse(f"{character!r} is outside the alphabet")
        return members

    def _template(self, names: dict[str, int]) -> list[str | int]:
        """The replacement of a match: characters, and numbers of groups."""
        pieces: list[str | int] = []
        text = self._encode(self._replacement, self._no_replacement)
        for number, name, *character in _PIECE.findall(text):
            if group := number or name:
                known = int(group) if group.isdecimal() else names.get(group, -1)
                if known not in self._widths or number == "0":
                    raise self._no_replacement(f"the pattern has no group {group}")
                pieces.append(known)
            elif (token := "".join(character)) in self._tokens:
                pieces.append(token)
            else:
                raise self._no_replacement(f"{token!r} is outside the alphabet")
        return pieces

    def _refuse(self, reason: str) -> ConfigError:
        return ConfigError(
            f"pattern={shorten(self._pattern)}: {reason}; expected a regular expression over "
            "the alphabet that matches at least one token, such as 'ab*'"
        )

    def _no_replacement(self, reason: str) -> ConfigError:
        return ConfigError(
            f"replacement={shorten(self._replacement)}: {reason}; expected tokens of the "
            "alphabet and groups such as \\1"
        )


@dataclass(frozen=True)
class RewriteFields(PatternFields):
    r"""replacement: What `rewrite` puts in the place of every match of `pattern`; `\1` is its first
    group.
    """

    replacement: Annotated[Text, About("Task", 5)] = ""


@dataclass(frozen=True)
class Rewrite(RewriteFields, FormTransduction):
    r"""`cabb` becomes `cbba` with the pattern `a(b+)` and the replacement `\1a`."""

    form = "at least one token"

    def __post_init__(self) -> None:
        check_alphabet(self.alphabet, "rewrite")
        object.__setattr__(self, "alphabet", tokens_of(self.alphabet))
        if not self.pattern:
            raise ConfigError(
                "pattern='': task 'rewrite' expects a regular expression over the alphabet, such "
                f"as '{self.alphabet[0]}+'"
            )
        # Compiled now, so that a pattern that cannot be read is refused at once.
        assert self._rewriter

    @cached_property
    def _rewriter(self) -> Rewriter:
        return Rewriter(self.alphabet, self.pattern, self.replacement)

    @cached_property
    def decided_by(self) -> str | None:
        """Implements `Transduction.decided_by`: known where each token is replaced on its own."""
        if not self._rewriter.writes_at_places():
            return None
        # Alone, first, last and between others.
        tried = [[letter] * number for letter in range(len(self.alphabet)) for number in (1, 3)]
        written = [self._rewriter.rewrite(letters) for letters in tried]
        if any(len(output) < len(letters) for output, letters in zip(written, tried, strict=True)):
            return None
        return INPUT if written == tried else NEIGHBORS

    def answer(self, letters: list[int]) -> list[int]:
        return self._rewriter.rewrite(letters)

    def longest_target(self, length: int) -> int:
        return self._rewriter.longest(length)

    def features(self, strings: TokenStrings) -> Mapping[str, np.ndarray]:
        """The features of every transduction, and the number of matches."""
        rows = zip(strings.letters, strings.lengths.tolist(), strict=True)
        matches = [self._rewriter.num_matches(row[:length].tolist()) for row, length in rows]
        return {**super().features(strings), "matches": np.array(matches, dtype=np.int64)}

    def describe(self) -> str:
        what = self.replacement or "nothing"
        return f"The output is the input with {what} for every leftmost match of {self.pattern}."
