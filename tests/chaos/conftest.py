"""How hard the chaos is: short where all tests run, long in `make chaos`."""

import pytest

from tests.conftest import LONG


@pytest.fixture(scope="session")
def long() -> bool:
    return LONG
