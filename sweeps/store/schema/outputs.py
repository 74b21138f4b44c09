"""Wrong outputs of a transduction as JSON: what a run's take in the database."""

import json
from collections.abc import Sequence
from typing import Any, get_args

from seqcls.errors import InvalidStringError
from seqcls.results import ErrorKind
from seqcls.tokens.tokenizer import Tokenizer
from sweeps.results.digest import Output

ERROR_KINDS: tuple[str, ...] = get_args(ErrorKind)

MOST_PLACE = 2**31 - 1
"""What every database holds as a whole number."""


def packed_outputs(outputs: Sequence[Output]) -> str:
    """An array of outputs, each an array of its text, first wrong place and kind of error."""
    return json.dumps(outputs, ensure_ascii=False, separators=(",", ":"))


def unpacked_outputs(text: str) -> list[Output]:
    """What `packed_outputs` made text of.

    Raises:
        ValueError: it is no array of outputs, or one of none.
    """
    outputs = json.loads(text)
    if not isinstance(outputs, list) or not outputs or not all(map(_is_output, outputs)):
        raise ValueError("no outputs")
    return [(said, place, kind) for said, place, kind in outputs]


def is_beyond(output: Output) -> bool:
    """Whether the first wrong place is one that the output cannot have."""
    text, place, _ = output
    most = len(text)
    if "{" in text:
        try:
            # Of tokens with names there are fewer than characters.
            most = sum(Tokenizer(sorted(set(text))).counts(text))
        except InvalidStringError:
            return False
    return place > most


def _is_output(value: Any) -> bool:
    if not isinstance(value, list) or [type(part) for part in value] != [str, int, str]:
        return False
    text, place, kind = value
    # Tokens are printable, so that there is nothing that a database or a file cannot hold.
    return text.isprintable() and 0 <= place <= MOST_PLACE and kind in ERROR_KINDS
