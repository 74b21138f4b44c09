"""What a model is read from: tensors, each taken by name, and settings, each with its source."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from seqcls.adapters.formats import Format, Setting
from seqcls.adapters.vocabulary import short
from seqcls.errors import ConfigError
from seqcls.results import Weights


class Tensors:
    """The tensors of a file, by name: each is taken once, and one that is left has no place."""

    def __init__(self, tensors: Weights, causal_mask: str | None = None) -> None:
        self.left = dict(tensors)
        self.causal_mask = causal_mask
        """The buffer that says that a token attends to none after it."""
        self.sizes: dict[str, int] = {}
        """Sizes by the names of axes, as the first tensor has them that was taken."""
        self.within_blocks: tuple[str, ...] = ()
        """How names begin that are of blocks, once these were read."""
        self.read_as: dict[str, str] = {}
        """The names of tensors that are found by their shapes, by what they are taken for."""

    def take(self, name: str, *axes: str, parts: int = 1, transposed: bool = False) -> np.ndarray:
        """A tensor with axes of these names, whose sizes are those of the tensors before.

        Args:
            parts: how many of the first axis stand one after another.
            transposed: whether theirs has its axes the other way round.

        Raises:
            ConfigError: it is missing, or has another shape.
        """
        if name not in self.left:
            raise ConfigError(f"tensor {short(name)} is missing")
        found = self.left[name].T if transposed else self.left[name]
        if found.ndim == len(axes):
            # Inputs first: outputs are those of several parts.
            for axis, size in zip(reversed(axes), reversed(found.shape), strict=True):
                self.sizes.setdefault(axis, size)
        known = [self.sizes.get(axis) for axis in axes]
        if known[0] is not None:
            known[0] *= parts
        if list(found.shape) != known:
            sizes = ["any" if size is None else str(size) for size in known]
            sizes = sizes[::-1] if transposed else sizes
            expected = "a matrix" if sizes == ["any"] * 2 else f"({', '.join(sizes)})"
            raise ConfigError(
                f"tensor {short(name)} has the shape {self.left[name].shape}, expected {expected}"
            )
        # What nobody takes has no place, and is refused at the end.
        del self.left[name]
        return found

    def matrices_of(self, columns: int) -> list[str]:
        """Names of matrices with so many columns that are left, but of positions and of blocks."""
        return [
            name
            for name, tensor in sorted(self.left.items())
            if name.endswith("weight") and tensor.ndim == 2 and tensor.shape[1] == columns
            if not is_position(name) and not name.startswith(self.within_blocks)
        ]

    def find(self, what: str, named: Any, found: Sequence[str]) -> str | None:
        """The tensor that a setting names, with or without `.weight`, or the one that was found.

        Raises:
            ConfigError: several were.
        """
        if named is not None:
            return str(named) if str(named) in self.left else f"{named}.weight"
        if len(found) > 1:
            raise ConfigError(
                f"tensors {', '.join(found):.60} may each be the {what}: say which it is, as "
                f"{what}={found[-1].removesuffix('.weight')}"
            )
        return next(iter(found), None)


def bias_of(name: str) -> str:
    """The name of the bias beside a weight."""
    return f"{name.removesuffix('weight')}bias"


def is_position(name: str) -> bool:
    """Whether a tensor is called as tables of positions are."""
    # `pe` is the name in PyTorch's tutorial and `wpe` that in GPT-2; within words they mean
    # nothing.
    return "pos" in name.lower() or re.search(r"(^|\.)w?pe($|\.)", name) is not None


class Settings:
    """What the tensors do not say: of a folder's `config.json`, and what is given besides."""

    def __init__(
        self, form: Format, given: Mapping[str, Any], folder_settings: Mapping[str, Any]
    ) -> None:
        self.form = form
        self.given = given
        self.folder_settings = folder_settings
        self.found: dict[str, tuple[str, Any]] = {}
        """Each that was asked for: who says it (given, config.json, or nobody: assumed)."""
        self.read: set[str] = set()
        """What was looked for in `config.json`."""

    def get(self, name: str, default: Any = None) -> Any:
        """A setting as theirs has it; the default, where nothing says it, is that of its format.

        Raises:
            ConfigError: it has a value that it cannot have, or is missing.
        """
        about = self.form.settings[name]
        names = (name, *about.aliases)
        values = [self.folder_settings[x] for x in names if x in self.folder_settings]
        value, source = about.default if default is None else default, "assumed"
        if name in self.given or values:
            source = "given" if name in self.given else "config.json"
            value = self.given[name] if name in self.given else values[0]
        self.found[name] = source, value
        # Aliases count as read, too: none of them is reported as ignored.
        self.read.update(names)
        # A number of heads leaves no trace in any shape, and there is no usual one.
        if source == "assumed" and value is None and isinstance(about.values, range):
            raise ConfigError(f"{name} is not in the tensors: give it, as {name}=2")
        if source != "assumed" and (expected := mismatch(about, value)):
            raise ConfigError(f"{name}={short(value)}: expected {expected}")
        return value

    def check_sizes(self, found: Mapping[str, int]) -> None:
        """Refuses settings of a network of other sizes: they are not of these tensors.

        Raises:
            ConfigError: they name another size.
        """
        for name, size in found.items():
            self.read.add(name)
            value = self.given.get(name, self.folder_settings.get(name))
            if value is not None and value != size:
                raise ConfigError(
                    f"{name}={short(value)}, and by its tensors it is {size}: a tensor is missing, "
                    "or the settings are of another model"
                )


def mismatch(about: Setting, value: Any) -> str | None:
    """What a setting would be instead; None where it may have the value."""
    # To Python, True is an int; to whoever wrote the settings it is none.
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    if isinstance(about.values, range):
        fits = is_whole and (value in about.values or value == about.default)
        return None if fits else f"a whole number from 1 to {about.values[-1]}"
    if isinstance(about.default, float):
        fits = (is_whole or isinstance(value, float)) and 0 < value <= 1
        return None if fits else "a number above 0, up to 1"
    # 1 equals True, so types are compared, too.
    if not about.values or any(type(value) is type(x) and value == x for x in about.values):
        return None
    # As they are typed: true, not True.
    return " or ".join(x if isinstance(x, str) else json.dumps(x) for x in about.values)
