"""Model seeds as they are typed, and as a specification has them."""

import re
from collections.abc import Sequence

_DASHED = re.compile(r"(\d{1,19})\s*(?:-|\u2013|\.{2,})\s*(\d{1,19})")


def seeds_of(text: str) -> str | list[int]:
    """Model seeds as a specification has them: `0-9` means `0..9`, `5` the first five."""
    if (number := text.strip()).isdecimal() and 0 < len(number) < 20 and int(number) > 0:
        return f"0..{int(number) - 1}"
    if dashed := _DASHED.fullmatch(text.strip()):
        return f"{dashed[1]}..{dashed[2]}"
    parts = [part.strip() for part in text.split(",")]
    if all(part.isdecimal() and len(part) < 20 for part in parts):
        return [int(part) for part in parts]
    return text.strip()


def written_seeds(seeds: str | Sequence[int]) -> str:
    """Model seeds of a specification as they are typed."""
    if isinstance(seeds, str):
        return seeds
    # A single number that is typed says how many.
    return f"{seeds[0]}..{seeds[0]}" if len(seeds) == 1 else ", ".join(map(str, seeds))
