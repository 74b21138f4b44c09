"""Which tests stay in one process where several run tests."""

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

BROWSER = "tests/e2e/"


class OneBrowser(LoadFileScheduling):  # type: ignore[misc] # xdist has no annotations
    """Those of a file, and all that need a browser: to start one takes seconds."""

    def _split_scope(self, nodeid: str) -> str:
        return BROWSER if nodeid.startswith(BROWSER) else super()._split_scope(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> OneBrowser | None:
    """In the place of `--dist loadfile`."""
    return OneBrowser(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest first, so that no process is left alone with it at the end."""
    items.sort(key=lambda item: not item.nodeid.startswith(BROWSER))
