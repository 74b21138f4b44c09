"""The store of most tests: its contract holds for every kind of database."""

import pytest

from sweeps.store.database import Store
from sweeps.store.opening import open_writer


@pytest.fixture
def store(any_db: str) -> Store:
    return open_writer(any_db)
