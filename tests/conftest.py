"""Settings and fixtures of all tests."""

import gc
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, settings

from seqcls.config import RunConfig
from sweeps.processes import collect_seldom
from tests.temporary import keep_in_memory

LONG = os.environ.get("SEQCLS_CHAOS") == "long"
"""True in `make chaos`, where tests of many cases run all of them and not a part."""

# The first example of a test pays for what PyTorch sets up; that is no failure, and a busy machine
# is none either. All tests draw the same examples every time; `make chaos` draws others.
settings.register_profile(
    "seqcls",
    deadline=None,
    derandomize=not LONG,
    max_examples=1_000 if LONG else 25,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("seqcls")
# Readers of test sets take seconds each; tests of them turn them on.
os.environ["SEQCLS_SHORTCUTS"] = "off"
torch.set_num_threads(1)
keep_in_memory()
collect_seldom()

pytest_plugins = [
    "tests.built_commands",
    "tests.databases",
    "tests.plugins",
    "tests.scheduling",
    "tests.undrawn",
    "tests.world",
]


def pytest_collection_finish() -> None:
    """Excludes loaded modules from garbage collection."""
    gc.freeze()


def _settings() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.startswith("SEQCLS_")}


@pytest.fixture(autouse=True)
def _environment_stays() -> Iterator[None]:
    """A test that leaves the program's settings changed fails, not those that come after it."""
    before = _settings()
    yield
    assert _settings() == before


ROOT = Path(__file__).parent.parent
SHIPPED = ROOT / "runs.db"
"""The shipped database."""
ASSETS = Path(__file__).parent / "assets"

SHORT: dict[str, Any] = {
    "train_size": 256,
    "validation_size": 128,
    "test_size": 512,
    "max_num_epochs": 3,
    "min_num_epochs": 1,
    "min_validation_loss": 0.0,
}
"""Fields that make a run take a fraction of a second."""


def asset(name: str) -> Any:
    """The content of a JSON file of tests/assets."""
    return json.loads((ASSETS / name).read_text())


def short_config(**fields: Any) -> RunConfig:
    """A configuration that trains in a fraction of a second."""
    return RunConfig(**{**SHORT, **fields})


SHORT_SPEC = """
name = "short"
description = "Three seeds of two sizes."
model_seeds = "0..2"

[fixed]
train_size = 256
validation_size = 128
test_size = 512
max_num_epochs = 3

[axes]
hidden_size = [2, 4]
"""


@pytest.fixture
def short_spec(tmp_path: Path) -> Path:
    """A file with a sweep of six runs that trains in a second or two."""
    path = tmp_path / "short.toml"
    path.write_text(SHORT_SPEC)
    return path
