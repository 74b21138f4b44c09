"""TOML that others wrote: what would take gigabytes to parse is refused before it is parsed."""

import re
import tomllib
from typing import Any

from seqcls.errors import SpecError

MAX_PARTS = 16
"""The most parts of a dotted key, each of which is a table of its own; a specification needs
three at most."""

# Within strings and comments, dots mean nothing. One that has no end goes on to where it could have
# one at the latest, so that no text is looked through twice.
_STRINGS = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*(?:"""|\Z)|'
    r"'''(?:[^']|'(?!''))*(?:'''|\Z)|"
    r'"(?:[^"\\\n]|\\.)*"?|'
    r"'[^'\n]*'?|"
    r"#[^\n]*",
    re.DOTALL,
)
_PART = r"[^\s.=,#\[\]{}]"
_DEEP = re.compile(rf"(?<!{_PART})(?:{_PART}+[ \t]*\.[ \t]*){{{MAX_PARTS}}}")


def parse_toml(text: str) -> dict[str, Any]:
    """What a TOML file says.

    Raises:
        SpecError: a key of too many parts, for which the parser makes tables within tables.
        ValueError, RecursionError: it is no TOML, or nested too deeply.
    """
    bare = _STRINGS.sub(lambda deep: "" if deep[0].startswith("#") else "_", text)
    if deep := _DEEP.search(bare):
        raise SpecError(
            f"the key {deep[0][:40]!r}… has more than {MAX_PARTS} parts; no setting has so many"
        )
    return tomllib.loads(text)
