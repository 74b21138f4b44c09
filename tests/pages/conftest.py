"""What tests of pages share: the database of all kinds, and what SQL says of it."""

import shutil
from pathlib import Path

import pytest

from tests.oracles.compared import stored_counts_agree
from tests.oracles.facts import Facts
from tests.stock import copy_of
from tests.world import kinds

__all__ = ["kinds"]


@pytest.fixture(scope="module")
def db(kinds: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy for a file of tests: pages may note what they find, and change no result."""
    return Path(shutil.copy(kinds / "kinds.db", tmp_path_factory.mktemp("kinds")))


@pytest.fixture(scope="module")
def facts(db: Path) -> Facts:
    """What SQL says of all kinds."""
    found = Facts(db)
    stored_counts_agree(found)
    return found


@pytest.fixture(scope="module")
def inside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database of small models that are looked into."""
    return copy_of("inside", "inside.db", tmp_path_factory.mktemp("inside"))
