"""The parts of a network that a configuration names; to name one loads no PyTorch."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from seqcls.config import NetworkConfig
from seqcls.models.sizes import UNKNOWN, Sizes


def nothing(config: NetworkConfig) -> None:
    """What a part says that has no obstacle, or places without end."""
    del config


@dataclass(frozen=True)
class Entry:
    """An architecture or a position scheme: where its class is, and what it requires of settings.

    One from outside is its class itself, of which these are attributes and class methods.
    """

    path: str
    """Its module and its name in it, with a colon between."""
    reads: frozenset[str] = frozenset()
    """The settings that it reads beside the alphabet's and its own width, such as `num_blocks`."""
    obstacle: Callable[[NetworkConfig], str | None] = nothing
    """Why a network cannot have it, naming the setting; None where it can."""
    table_size: Callable[[NetworkConfig], int | None] = nothing
    """How many places a position scheme has; None where there is no end to them."""
    several_outputs: bool = False
    """Whether an architecture's head may give more than one number for each string."""
    sizes: Sizes = UNKNOWN
    """How large the models of an architecture are."""

    def load(self) -> Any:
        """Its class."""
        module, _, name = self.path.partition(":")
        return getattr(importlib.import_module(module), name)


def entry_of(part: Any) -> Entry:
    """What a class from outside says of itself."""
    path = f"{part.__module__}:{part.__qualname__}"
    table_size = getattr(part, "table_size", nothing)
    several = bool(getattr(part, "several_outputs", False))
    return Entry(path, frozenset(part.reads), part.obstacle, table_size, several)
