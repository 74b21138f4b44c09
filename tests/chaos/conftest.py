"""Number of cases: one of each test in `make test`, all of them in `make chaos`."""

import os

import pytest

from tests.conftest import LONG

SEED = "SEQCLS_CHAOS_SEED"
"""Names the variable of the environment whose number has all cases be others."""


long_alone = pytest.mark.skipif(not LONG, reason="a part of `make chaos`")
"""Marks tests that take long, and are covered in part by a shorter one."""


@pytest.fixture(scope="session")
def long() -> bool:
    return LONG


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "cases(number): so many seeds are given in `make chaos`")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Gives a test with a `seed` as many as its mark has, and one in `make test`."""
    if (cases := metafunc.definition.get_closest_marker("cases")) is not None:
        first = 1000 * int(os.environ.get(SEED, "0"))
        number = cases.args[0] if LONG else 1
        metafunc.parametrize("seed", range(first, first + number))
