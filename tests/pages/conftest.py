"""Fixtures of tests of pages: the database of all kinds, and its SQL facts."""

import shutil
from pathlib import Path

import pytest

from tests.inside import inside
from tests.oracles.compared import stored_counts_agree
from tests.oracles.facts import Facts
from tests.world import kinds

__all__ = ["inside", "kinds"]


@pytest.fixture(scope="module")
def db(kinds: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy for a file of tests: pages may store findings, and change no result."""
    return Path(shutil.copy(kinds / "kinds.db", tmp_path_factory.mktemp("kinds")))


@pytest.fixture(scope="module")
def facts(db: Path) -> Facts:
    """The SQL facts of all kinds."""
    found = Facts(db)
    stored_counts_agree(found)
    return found
