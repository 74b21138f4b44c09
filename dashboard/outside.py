"""Sections that other packages bring, by entry point: below those of Results, and in reports.

A package that declares `[project.entry-points."seqcls.sections"]` with
`my_section = "my_package:my_section"` has its function asked for each task.
"""

from collections.abc import Callable
from typing import Any

from dashboard.section import Section
from seqcls.errors import PluginError
from seqcls.plugins import Registry
from sweeps.api import Store
from sweeps.api.old_pages.reading import Selection

Maker = Callable[[Store, Selection], Section]
"""What makes a section of the models of one task."""

MAKERS: Registry[Maker] = Registry("seqcls.sections", {})


def sections(store: Store, selection: Selection) -> list[Section]:
    """The sections of other packages on the models of a task; one that breaks says so."""
    return [_make(name, store, selection) for name in MAKERS]


def _make(name: str, store: Store, selection: Selection) -> Section:
    try:
        found: Any = MAKERS[name](store, selection)
    except PluginError as error:
        return Section(name, (str(error),))
    except Exception as error:
        # Of a package that is not ours, whatever it raises.
        return Section(name, (f"{MAKERS.package(name)}: {type(error).__name__}: {error}",))
    if not isinstance(found, Section):
        return Section(name, (f"{MAKERS.package(name)}: it gave no Section, but {found!r:.60}",))
    return found
