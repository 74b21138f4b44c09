"""How hard the chaos is: short where all tests run, long in `make chaos`."""

import os

import pytest


@pytest.fixture(scope="session")
def long() -> bool:
    return os.environ.get("SEQCLS_CHAOS") == "long"
