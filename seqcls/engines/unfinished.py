"""Training that takes long is kept in the cache folder now and then, and goes on from there.

A process that is killed, a machine that goes down and a sweep that is stopped then cost what was
trained since, not all of it. What is trained after that is the same to the last bit. A file is
found by all that its training depends on: members and their initial parameters, the strings, the
engine, and the source and the libraries that compute. It begins with its hash, and a damaged one is
as good as none.
"""

import contextlib
import hashlib
import sys
import time
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from importlib.metadata import version
from pathlib import Path

from seqcls.caching.cache import cache_folder, keep_checked, read_checked, use
from seqcls.engines.base import Member
from seqcls.models import MODELS
from seqcls.models.positions import POSITIONS
from seqcls.problem import Problem
from seqcls.results import Weights
from seqcls.sampling.streams import stream

FOLDER = "unfinished"
"""The folder of the cache."""

SECONDS = 60.0
"""How long a group trains before it is kept, and between two times."""

FORGOTTEN_SECONDS = 30 * 24 * 3600.0
"""After so long without use a file makes room: nobody went on."""


class Unfinished:
    """Where the training of one group is kept.

    Args:
        engine: its name, and where it computes.
        members: of the group, in their order.
        initial: their initial parameters.
        every_epoch: whether the weights of all epochs are kept.
    """

    def __init__(
        self,
        engine: str,
        members: Sequence[Member],
        initial: Sequence[Weights],
        *,
        every_epoch: bool,
    ) -> None:
        self._engine = engine
        self._members = members
        self._initial = initial
        self._every_epoch = every_epoch
        self._kept_at = time.monotonic()

    def read(self) -> bytes | None:
        """What was kept of it; None where there is nothing."""
        folder = cache_folder() / FOLDER
        # To name the file takes longer than to train a small group for an epoch.
        with contextlib.suppress(OSError):
            if any(folder.iterdir()):
                use(self._path)
                return read_checked(self._path)
        return None

    def keep(self, packed: Callable[[], bytes]) -> None:
        """Keeps what training goes on from, where `SECONDS` have passed."""
        if time.monotonic() - self._kept_at < SECONDS:
            return
        keep_checked(self._path, packed())
        _remove_forgotten()
        self._kept_at = time.monotonic()

    def forget(self) -> None:
        """Removes what was kept: training has ended."""
        if "_path" in self.__dict__:
            with contextlib.suppress(OSError):
                self._path.unlink()

    @cached_property
    def _path(self) -> Path:
        key = hashlib.sha256(f"{self._engine} {self._every_epoch} {_computing()}".encode())
        for problem, model_seed in self._members:
            drawn = [stream(problem.sampler(part)).key for part in ("train", "validation")]
            key.update(f"{problem.config!r} {_code(problem)} {model_seed} {drawn}".encode())
        for weights in self._initial:
            for name, values in weights.items():
                key.update(name.encode())
                key.update(values.tobytes())
        return cache_folder() / FOLDER / key.hexdigest()[:32]


def _code(problem: Problem) -> list[str]:
    """The code of parts of the network that are from outside, which may change in one version."""
    config = problem.config
    parts = ((MODELS, config.architecture), (POSITIONS, config.positions))
    return [
        registry.code_of(registry[name].load())
        for registry, name in parts
        if not registry.is_own(name)
    ]


@lru_cache(maxsize=1)
def _computing() -> str:
    """What computes: the source, and the versions of Python and the libraries."""
    source = hashlib.sha256()
    for path in sorted(Path(__file__).parents[1].rglob("*.py")):
        source.update(path.read_bytes())
    return f"{sys.version} {version('torch')} {version('numpy')} {source.hexdigest()}"


def _remove_forgotten() -> None:
    before = time.time() - FORGOTTEN_SECONDS
    with contextlib.suppress(OSError):
        for path in (cache_folder() / FOLDER).iterdir():
            if path.stat().st_mtime < before:
                path.unlink(missing_ok=True)
