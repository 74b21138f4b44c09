"""Tokens of the texts of one column: characters, or words if any text has a space, or the items of
lists.
"""

import ast
import json
import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from seqcls.errors import DatasetError
from seqcls.strings.alphabets import compose, unseen_character
from seqcls.text import count

SPACES = " \t\r\n"
"""Characters that are stripped from the ends of a text."""


class Texts:
    """The texts of one column."""

    def __init__(self, name: str, values: Sequence[Any], spaced: bool | None = None) -> None:
        self.name = name
        self.texts: list[str] = []
        """The texts read so far; for lists their tokens, joined by spaces."""
        self.spaced = spaced
        """True if tokens are separated by spaces; None until all texts are known."""
        self._composed: list[int] = []
        """Indices of texts whose letters were not in normal form."""
        kinds = Counter[str | None]()
        for value in values:
            with suppress(DatasetError):
                kinds[_items_of(value)[1]] += 1
        # Ambiguous values do not count.
        del kinds[None]
        self.kind = max(kinds, key=lambda kind: kinds[kind], default=None)
        """The kind of most unambiguous values: `list`, `written` (a list as text), `text`."""

    @property
    def has_lists(self) -> bool:
        """True if its texts are lists."""
        return self.kind in ("list", "written")

    def add(self, value: Any) -> None:
        """Adds a text, or the tokens of a list joined by spaces.

        Raises:
            DatasetError: its kind differs from that of the column, or it has invalid tokens.
        """
        items, kind = _items_of(value)
        # An ambiguous value takes the column's kind, except that true lists are no texts.
        if kind not in (None, self.kind) or (kind is None and self.kind == "list"):
            raise DatasetError(
                f"texts and lists of tokens are mixed in one column: {value!r:.60} is "
                f"{'none' if items is None else 'a list'}; write all alike, and where brackets are "
                "tokens a space around every token"
            )
        text = _text_of(value, items or []) if self.has_lists else value.strip(SPACES)
        plain = text.isascii() and text.isprintable()
        if not plain and (unseen := unseen_character(text, allowed="\t")):
            raise DatasetError(f"{text!r:.60} has {unseen}")
        if not plain and (composed := compose(text)) != text:
            self._composed.append(len(self.texts))
            text = composed
        self.texts.append(text)

    def split(self, text: str) -> Sequence[str]:
        """The tokens of a text."""
        return text.split() if self.spaced else text

    def settle(self, places: Sequence[str]) -> str:
        """Decides on the tokens when all texts are known; returns a sentence with the reason.

        Args:
            places: the place of each text.
        """
        number = len(self.texts)
        words = [row for row, text in enumerate(self.texts) if " " in text or "\t" in text]
        if self.spaced is None:
            self.spaced = self.has_lists or bool(words)
        if self.has_lists:
            how = "lists" + " written as text" * (self.kind == "written")
        elif not self.spaced:
            how = "characters, since no text has a space"
        elif not words or len(words) == number:
            how = "words, with spaces between"
        else:
            has = "has" if len(words) == 1 else "have"
            advice = "; remove it there if characters are tokens" * (len(words) <= number / 2)
            how = (
                f"words, since {len(words):,} of {number:,} texts {has} a space, first "
                f"{places[words[0]]}, {self.texts[words[0]]!r:.60}{advice}"
            )
        if self._composed:
            first, has = self._composed[0], "has" if len(self._composed) == 1 else "have"
            how += (
                f"; {count(len(self._composed), 'text')} {has} letters in another form, read as "
                f"NFC has them, first {places[first]}, {self.texts[first]!r:.60}"
            )
        return f"{self.name}: read as {how}"


def _items_of(value: Any) -> tuple[list[Any] | None, str | None]:
    """The items of a list, or of a text that is one, and its kind: `list`, `written` as text, or
    `text`; None for the kind if it may be either of the latter two.
    """
    if isinstance(value, list):
        return value, "list"
    if not isinstance(value, str):
        raise DatasetError(f"{value!r:.60}, expected text or a list of tokens")
    items = written_list(text := value.strip(SPACES))
    return items, None if ANY_TEXT.fullmatch(text) else "text" if items is None else "written"


def _text_of(value: Any, items: Sequence[Any]) -> str:
    """The tokens in a list, joined by spaces.

    Raises:
        DatasetError: one of them is no token, or two adjacent ones compose to one letter.
    """
    # Tokens occur many times in a list.
    is_plain = {*map(type, items)} <= {str, int}
    for token in dict.fromkeys(items) if is_plain else items:
        is_text = isinstance(token, str) and token and not any(map(str.isspace, token))
        if not is_text and type(token) is not int:
            raise DatasetError(
                f"{value!r:.60} has a token that is not text without spaces: {token!r:.40}"
            )
    text = " ".join(tokens := [str(token) for token in items])
    if not text.isascii():
        side_by_side = "".join(x if len(x) == 1 else " " for x in tokens)
        if (composed := compose(side_by_side)) != side_by_side:
            letter = next(x for x, y in zip(composed, side_by_side, strict=False) if x != y)
            raise DatasetError(
                f"tokens side by side are the letter {letter!r} (U+{ord(letter):04X}); write it "
                "as one"
            )
    return text


# Lists of tokens in a cell as text, as written by Python, JSON, NumPy and PyTorch.

_QUOTED = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_BARE = r"[^\s,()\[\]{}'\"]+"
_NUMBER = r"-?(?:\d+(?:\.\d*)?|\.\d+)(?:e[-+]?\d+)?|True|False"
_OF_NUMPY = re.compile(
    rf"\[\s*(?:{_NUMBER}|\.\.\.|{_QUOTED})(?:\s+(?:{_NUMBER}|\.\.\.|{_QUOTED}))*\]"
)
_OF_BARE = re.compile(rf"\[{_BARE}(?:,\s*{_BARE})+\]")
_ITEMS = re.compile(rf"{_QUOTED}|{_BARE}")
_SET = re.compile(rf"\{{(?:(?:{_QUOTED})(?:, (?:{_QUOTED}))*|-?\d+(?:, -?\d+)+)\}}")
_LIBRARY = r"(?:(?:np|numpy|torch)\.)?"
_MORE = r"(?:,\s*\w+=[^()\[\],]*)*"
_ARRAY = re.compile(rf"{_LIBRARY}(?:array|tensor|Size)\((\[.*\]){_MORE}\)", re.DOTALL)
_SCALAR = re.compile(rf"(?:(?:np|numpy)\.\w+|tensor)\(({_QUOTED}|{_BARE}){_MORE}\)")
"""An item such as `np.int64(0)`, as written by NumPy 2 or PyTorch."""

ANY_TEXT = re.compile(r"\[\s*-?\d*\]|\(\)")
"""Texts that may be lists, or strings whose tokens are brackets."""


def written_list(text: str) -> list[Any] | None:
    """The items of a text that is a list; None for other texts.

    Raises:
        DatasetError: it was shortened when it was written, or is a set.
    """
    if text[-1:] not in "])}":
        return None
    if _SET.fullmatch(text):
        raise DatasetError(f"{text!r:.60} is a set, whose items have no order; write a list")
    if array := _ARRAY.fullmatch(text):
        text = array[1]
    # No program writes a space before the last bracket: there brackets are tokens.
    if text[:1] + text[-1:] not in ("[]", "()") or text[-2].isspace():
        return None
    text = _SCALAR.sub(r"\1", text)
    if _OF_NUMPY.fullmatch(text):
        items = _ITEMS.findall(text[1:-1])
        if "..." in items:
            raise DatasetError(f"{text!r:.60} was shortened to '...' when it was written")
        return [_item(x) for x in items]
    if "," not in text:
        return None
    # JSON has null and true, Python has None and quotes of both kinds.
    for parse in (json.loads, ast.literal_eval):
        try:
            found = parse(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        return list(found) if isinstance(found, list | tuple) else None
    return re.split(r",\s*", text[1:-1]) if _OF_BARE.fullmatch(text) else None


def _item(text: str) -> Any:
    """An item as written by NumPy; whole numbers stay texts, since 007 is a token."""
    if text[0] in "'\"":
        return text[1:-1]
    if text in ("True", "False"):
        return text == "True"
    return text if re.fullmatch(r"-?\d+", text) else float(text)
