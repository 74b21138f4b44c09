"""Which tests stay in one process where several run tests."""

import os
from collections import Counter

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

BROWSER = "tests/browser/"
UNIT = "tests/unit/"
WITH = {"tests/integration/test_plugin_package.py": "tests/chaos/test_dask.py"}
"""Files that share what takes long to train, and of which: in two processes it is trained twice."""


class Together(LoadFileScheduling):  # type: ignore[misc] # xdist has no annotations
    """Those of a file, those that share what was trained, and all that need a browser."""

    def _split_scope(self, nodeid: str) -> str:
        if nodeid.startswith(BROWSER):
            return BROWSER
        file: str = super()._split_scope(nodeid)
        return WITH.get(file, file)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Two more than there are cores: that of the browser waits, and tests wait for processes."""
    return min(os.cpu_count() or 1, 4) + 2


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Together | None:
    """In the place of `--dist loadfile`."""
    return Together(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest first, so that no process is left alone with it at the end.

    The browser's, then whole commands and pages, then units: files that take seconds, and of the
    others those with the most tests. Tests of a file stay together, in their order.
    """
    tests = Counter(item.path for item in items)
    slow = {item.path for item in items if item.get_closest_marker("slow")}

    def rank(item: pytest.Item) -> tuple[int, bool, int]:
        if not item.nodeid.startswith(UNIT):
            return 1 - item.nodeid.startswith(BROWSER), False, 0
        return 2, item.path not in slow, -tests[item.path]

    items.sort(key=rank)
