"""Sections that other packages bring, by entry point: below those of Results, and in reports.

A package that declares `[project.entry-points."seqcls.sections"]` with
`my_section = "my_package:my_section"` has its function called for each task.
"""

from importlib.metadata import EntryPoint, entry_points
from typing import Any

from dashboard.section import Section
from seqcls.errors import describe_error
from sweeps.api import Store
from sweeps.api.reading import Selection

GROUP = "seqcls.sections"


def sections(store: Store, selection: Selection) -> list[Section]:
    """Sections of other packages on a task's models; one that raises shows its error."""
    return [_make(point, store, selection) for point in entry_points(group=GROUP)]


def _make(point: EntryPoint, store: Store, selection: Selection) -> Section:
    package = point.dist.name if point.dist else point.value
    try:
        found: Any = point.load()(store, selection)
    except Exception as error:
        # Of a package that is not ours, whatever it raises.
        return Section(point.name, (f"{package}: {describe_error(error)}",))
    if not isinstance(found, Section):
        return Section(point.name, (f"{package}: expected a Section, not {found!r:.60}",))
    return found
