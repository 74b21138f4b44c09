"""The page of all fields, from their declarations.

python -m benchmarks.fields > docs/fields.md
"""

from collections.abc import Iterator
from typing import Any, get_args

from seqcls.config import ABOUT, default_fields
from seqcls.declarations import Group
from seqcls.fields import limits_of, readers
from seqcls.kinds import KINDS
from seqcls.models import MODELS
from seqcls.models.positions import POSITIONS
from seqcls.plugins import Registry
from seqcls.tasks import TASKS

MAX_LISTED_READERS = 6
"""Names of readers that a cell has; of more, what they are."""

HEAD = """# Fields

Every field of a configuration, in the order of *New sweep*. A specification sets it in `[fixed]`,
in `[axes]` or in one of its `[[configurations]]`. A field that nothing of a run reads is refused by
name where it has another value than the usual one, but for some that the first version had.
"""


def page() -> str:
    """The page, as `docs/fields.md` has it."""
    return "\n".join([HEAD, *(line for group in get_args(Group) for line in table(group))])


def table(group: str) -> Iterator[str]:
    """The lines of a group's table."""
    yield from (f"## {group}", "", "| field | usual | values | read by | what it is |")
    yield "|---|---|---|---|---|"
    for name, about in ABOUT.items():
        if about.group == group:
            usual, values = default_fields()[name], limits_of(name)
            usual_text = str(usual).lower() if isinstance(usual, bool) else str(usual)
            cells = (f"`{usual_text}`" if usual_text else "", values, who_reads(name), about.says)
            yield f"| `{name}` | {' | '.join(x.replace('|', chr(92) + '|') for x in cells)} |"
    yield ""


def who_reads(name: str) -> str:
    """The parts of runs that read a field; nothing where every run does."""
    registries: dict[str, Registry[Any]] = {
        "task": TASKS, "kind": KINDS, "architecture": MODELS, "positions": POSITIONS,
    }  # fmt: skip
    parts = readers().get(name, ())
    known = [
        part
        for kind in parts
        for part in registries.get(kind, ())
        if name.removeprefix("test_") in registries[kind][part].reads
    ]
    if not 0 < len(known) <= MAX_LISTED_READERS:
        return ", ".join(f"`{part}`" for part in parts)
    return ", ".join(f"`{part}`" for part in known)


if __name__ == "__main__":
    print(page(), end="")
