"""Lists of tokens that stand in a cell as text, as Python, JSON, NumPy and PyTorch write them."""

import ast
import json
import re
from typing import Any

from seqcls.errors import DatasetError

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
"""An item as `np.int64(0)`, as NumPy 2 writes those of a list, or as PyTorch writes one."""

ANY_TEXT = re.compile(r"\[\s*-?\d*\]|\(\)")
"""What is a list beside other lists, and a text beside other texts: brackets may be tokens."""


def written_list(text: str) -> list[Any] | None:
    """The items of a text that is a list; None of others.

    Raises:
        DatasetError: it was shortened when it was written, or is a set.
    """
    if text[-1:] not in "])}":
        return None
    if _SET.fullmatch(text):
        raise DatasetError(f"{text!r:.60} is a set, whose items have no order; write a list")
    if array := _ARRAY.fullmatch(text):
        text = array[1]
    # A space before the last bracket is nobody's list: brackets are tokens there.
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
    for parse in (json.loads, ast.literal_eval):
        try:
            found = parse(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        return list(found) if isinstance(found, list | tuple) else None
    return re.split(r",\s*", text[1:-1]) if _OF_BARE.fullmatch(text) else None


def _item(text: str) -> Any:
    """An item as NumPy writes it: digits of whole numbers stay as they are, as 007 is a token."""
    if text[0] in "'\"":
        return text[1:-1]
    if text in ("True", "False"):
        return text == "True"
    return text if re.fullmatch(r"-?\d+", text) else float(text)
