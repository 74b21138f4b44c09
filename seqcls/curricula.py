"""Curricula: stages of training with longer and longer strings, and parts frozen at first.

Both are lists of pairs, `[[8, 0.2], [40, 1.0]]` and `[["embeddings", 0.2]]`, whose second number is
a share of training: of the steps of `max_num_epochs` epochs. A configuration holds them as JSON, so
that each is one value like any other.
"""

import json
import re
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from seqcls.errors import ConfigError

STAGES = "[[8, 0.2], [40, 1.0]]"
FROZEN = '[["embeddings", 0.2]]'

# How names of parameters begin, in networks of every architecture.
_PARAMETER_PATTERNS = {
    "embeddings": r"embedding\.",
    "positions": r"(.*\.)?positions\.",
    "blocks": r"(.*\.)?(blocks|layers)\.",
    "head": r"classifier\.",
}
_BLOCK = re.compile(r"block (\d{1,2})")


def stages_as_json(value: Any) -> str:
    """Returns stages of training as JSON; an empty text for none.

    Raises:
        ValueError: they are not stages; the message does not repeat the value.
    """
    pairs = _pairs(value, f"a longest length and a share of training, such as {STAGES}")
    for length, _ in pairs:
        if isinstance(length, bool) or not isinstance(length, int) or not 1 <= length <= 10_000:
            raise ValueError(f"expected whole numbers from 1 to 10000 as lengths, not {length!r}")
    for what, place in (("lengths", 0), ("shares", 1)):
        numbers = [pair[place] for pair in pairs]
        if any(after <= before for before, after in pairwise(numbers)):
            raise ValueError(f"expected {what} that rise from stage to stage, not {numbers}")
    if pairs and pairs[-1][1] != 1:
        raise ValueError(f"ends at a share of {pairs[-1][1]}; expected the last to be 1.0")
    return json.dumps(pairs) if pairs else ""


def frozen_as_json(value: Any) -> str:
    """Returns frozen parts as JSON, sorted by name; an empty text for none.

    Raises:
        ValueError: they are not parts; the message does not repeat the value.
    """
    pairs = _pairs(value, f"a part and a share of training, such as {FROZEN}")
    for part, _ in pairs:
        if not isinstance(part, str) or not (part in _PARAMETER_PATTERNS or _BLOCK.fullmatch(part)):
            raise ValueError(
                f"expected {', '.join(_PARAMETER_PATTERNS)} or 'block 0', not {part!r:.60}"
            )
    if len({part for part, _ in pairs}) < len(pairs):
        raise ValueError("expected each part once")
    # Their order has no meaning, so they are sorted to give equal settings one key.
    return json.dumps(sorted(pairs)) if pairs else ""


def _pairs(value: Any, expected: str) -> list[list[Any]]:
    try:
        pairs = json.loads(value or "[]") if isinstance(value, str) else value
        if not isinstance(pairs, list | tuple):
            raise TypeError
        found = [[what, share] for what, share in pairs]
    except (ValueError, TypeError, RecursionError):
        raise ValueError(f"expected pairs of {expected}") from None
    for pair in found:
        share = pair[1]
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
            raise ValueError(f"expected shares of training above 0, up to 1.0, not {share!r}")
        # 1 and 1.0 are one share and have to be one text.
        pair[1] = float(share)
    return found


def stages_of(train_lengths: str) -> list[tuple[int, float]]:
    """Returns the longest length of each stage, and the share of training at which it ends."""
    return [(length, share) for length, share in json.loads(train_lengths or "[]")]


def frozen_parts(freeze: str) -> dict[str, float]:
    """Returns the frozen parts, each with the share of training until which it is frozen."""
    return dict(json.loads(freeze or "[]"))


def block_number(part: str) -> int | None:
    """Returns the number of a part that is one block; None for any other."""
    found = _BLOCK.fullmatch(part)
    return int(found[1]) if found else None


def frozen_parameters(freeze: str, names: Iterable[str], steps: int) -> dict[str, int]:
    """Returns the frozen parameters among `names`, each with the number of steps it is frozen for.

    Raises:
        ConfigError: a part has no parameters.
    """
    found: dict[str, int] = {}
    names = list(names)
    for part, share in frozen_parts(freeze).items():
        number = block_number(part)
        pattern = (
            _PARAMETER_PATTERNS["blocks"] + rf"{number}\."
            if number is not None
            else _PARAMETER_PATTERNS[part]
        )
        matched = [name for name in names if re.match(pattern, name)]
        if not matched:
            raise ConfigError(f"freeze={freeze!r}: this network has no weights in {part!r}")
        # A parameter of two parts is frozen as long as the later of them.
        found |= {name: max(round(share * steps), found.get(name, 0)) for name in matched}
    return found
