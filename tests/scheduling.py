"""Number of test processes, the order of files, and the cost of tests.

Files are run by as many processes as there are cores, the longest first, by the seconds that
`--record` wrote into `seconds.json` when all of them ran. The summary lists the processor
seconds of each folder and the slowest tests.
"""

import json
import os
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

BROWSER = "tests/browser/"
SECONDS = Path(__file__).with_name("seconds.json")
"""The processor seconds of each file, as they were last recorded."""
SLOWEST = 10
QUICK = 0.06
"""Seconds that a test may take on average for its file to be one of the fast ones."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record", action="store_true", help="write tests/seconds.json anew")
    parser.addoption("--fast", action="store_true", help="only files whose tests are quick")


class Together(LoadFileScheduling):  # type: ignore[misc] # xdist has no annotations
    """Tests of a file stay in one process, and so do all that need a browser."""

    def _split_scope(self, nodeid: str) -> str:
        if nodeid.startswith(BROWSER):
            return BROWSER
        file: str = super()._split_scope(nodeid)
        return file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    return os.cpu_count() or 1


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Together | None:
    """Takes the place of `--dist loadfile`."""
    return Together(config, log) if config.getoption("dist") == "loadfile" else None


def file_of(nodeid: str) -> str:
    return nodeid.partition("::")[0]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The browser's first, then the longest files: so no process is left alone with one at the end.

    A file that was never recorded may take long. Tests of a file stay together, in their order.
    """
    known: dict[str, list[float]] = json.loads(SECONDS.read_text()) if SECONDS.exists() else {}
    if config.getoption("fast"):
        selected = [
            item
            for item in items
            if (found := known.get(file_of(item.nodeid))) and found[0] / found[1] <= QUICK
        ]
        left = set(items) - set(selected)
        config.hook.pytest_deselected(items=[item for item in items if item in left])
        items[:] = selected

    def rank(item: pytest.Item) -> tuple[bool, float]:
        found = known.get(file_of(item.nodeid), [float("inf"), 1])
        return not item.nodeid.startswith(BROWSER), -found[0]

    items.sort(key=rank)


def processor_seconds() -> float:
    """Processor seconds of this process and its ended children, user and system."""
    return sum(os.times()[:4])


_BEGAN = pytest.StashKey[float]()
_COST = "processor seconds"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    item.stash[_BEGAN] = processor_seconds()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if call.when == "teardown":
        report.user_properties.append((_COST, processor_seconds() - item.stash[_BEGAN]))
    return report


class Costs:
    """Costs of tests, gathered by the main process."""

    def __init__(self) -> None:
        self.tests: dict[str, float] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "teardown":
            cost = [value for name, value in report.user_properties if name == _COST]
            self.tests[report.nodeid] = float(str(cost[0])) if cost else 0.0

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter, config: pytest.Config
    ) -> None:
        """Prints the seconds of each folder and the slowest tests, where many have run."""
        files: dict[str, list[float]] = defaultdict(lambda: [0.0, 0])
        folders: dict[str, float] = defaultdict(float)
        for nodeid, seconds in self.tests.items():
            files[file_of(nodeid)][0] += seconds
            files[file_of(nodeid)][1] += 1
            folders[str(Path(file_of(nodeid)).parent)] += seconds
        if config.getoption("record"):
            found = {name: [round(x, 1), n] for name, (x, n) in sorted(files.items())}
            lines = [f"{json.dumps(name)}: {json.dumps(cost)}" for name, cost in found.items()]
            SECONDS.write_text("{\n" + ",\n".join(lines) + "\n}\n")
        if len(folders) < 2:
            return
        terminalreporter.section(f"{sum(folders.values()):,.0f} processor seconds")
        for name, seconds in sorted(folders.items(), key=lambda x: -x[1]):
            terminalreporter.write_line(f"{seconds:8,.1f}  {name}")
        for nodeid, seconds in sorted(self.tests.items(), key=lambda x: -x[1])[:SLOWEST]:
            terminalreporter.write_line(f"{seconds:8,.1f}  {nodeid}")


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Costs(), "costs")
