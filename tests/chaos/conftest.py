"""How hard the chaos is: one case of each test where all tests run, all of them in `make chaos`."""

import os

import pytest

from tests.conftest import LONG

SEED = "SEQCLS_CHAOS_SEED"
"""Names the variable of the environment whose number has all cases be others."""


long_alone = pytest.mark.skipif(not LONG, reason="a part of `make chaos`")
"""What takes long, and is seen in part by a shorter test."""


@pytest.fixture(scope="session")
def long() -> bool:
    return LONG


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "cases(number): so many seeds are given in `make chaos`")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Gives a test that asks for a `seed` as many as its mark says, and one where all tests run."""
    if (cases := metafunc.definition.get_closest_marker("cases")) is not None:
        first = 1000 * int(os.environ.get(SEED, "0"))
        number = cases.args[0] if LONG else 1
        metafunc.parametrize("seed", range(first, first + number))
