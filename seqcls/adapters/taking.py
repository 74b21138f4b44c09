"""Sources of a model that is read: tensors, each taken by name, and settings with their source."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from seqcls.adapters.formats import Format, Setting
from seqcls.errors import ConfigError
from seqcls.results import Weights
from seqcls.text import short


class Tensors:
    """The tensors of a file by name; each is taken once, and any that is left has no place."""

    def __init__(self, tensors: Weights, causal_mask: str | None = None) -> None:
        self.left = dict(tensors)
        self.causal_mask = causal_mask
        """The name of the buffer that is a causal mask."""
        self.sizes: dict[str, int] = {}
        """Sizes by the names of axes, those of the first tensor taken with each."""
        self.within_blocks: tuple[str, ...] = ()
        """Prefixes of names within blocks, once these were read."""
        self.read_as: dict[str, str] = {}
        """The names of tensors that were found by shape, by their roles."""

    def take(self, name: str, *axes: str, parts: int = 1, transposed: bool = False) -> np.ndarray:
        """Takes a tensor with axes of these names, whose sizes are those of the tensors before.

        Args:
            parts: number of parts concatenated along the first axis.
            transposed: True if the file has the axes reversed.

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
        # A tensor that is never taken has no place, and is refused at the end.
        del self.left[name]
        return found

    def matrices_of(self, columns: int) -> list[str]:
        """Lists matrices left with so many columns, except of positions and of blocks."""
        return [
            name
            for name, tensor in sorted(self.left.items())
            if name.endswith("weight") and tensor.ndim == 2 and tensor.shape[1] == columns
            if not is_position(name) and not name.startswith(self.within_blocks)
        ]

    def find(self, what: str, named: Any, found: Sequence[str]) -> str | None:
        """Returns the tensor that a setting names, with or without `.weight`, or the one found.

        Raises:
            ConfigError: there are several candidates.
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
    """Returns the name of the bias beside a weight."""
    return f"{name.removesuffix('weight')}bias"


def is_position(name: str) -> bool:
    """True if a tensor has the name of a table of positions."""
    # `pe` is the name in PyTorch's tutorial and `wpe` that in GPT-2, both as whole words.
    return "pos" in name.lower() or re.search(r"(^|\.)w?pe($|\.)", name) is not None


class Settings:
    """Settings that tensors do not determine, from a folder's `config.json` or given."""

    def __init__(
        self, form: Format, given: Mapping[str, Any], folder_settings: Mapping[str, Any]
    ) -> None:
        self.form = form
        self.given = given
        self.folder_settings = folder_settings
        self.found: dict[str, tuple[str, Any]] = {}
        """Source (`given`, `config.json` or `assumed`) and value of each setting read."""
        self.read: set[str] = set()
        """Names that were looked up in `config.json`."""

    def get(self, name: str, default: Any = None) -> Any:
        """Returns a setting's value in the format; the format's default if it is not set.

        Raises:
            ConfigError: it has an impossible value, or is missing.
        """
        about = self.form.settings[name]
        names = (name, *about.aliases)
        values = [self.folder_settings[x] for x in names if x in self.folder_settings]
        value, source = about.default if default is None else default, "assumed"
        if name in self.given or values:
            source = "given" if name in self.given else "config.json"
            value = self.given[name] if name in self.given else values[0]
        self.found[name] = source, value
        # Aliases count as read too, so that none is reported as ignored.
        self.read.update(names)
        # The number of heads is in no shape, and there is no usual one.
        if source == "assumed" and value is None and isinstance(about.values, range):
            raise ConfigError(f"{name} is not in the tensors: give it, as {name}=2")
        if source != "assumed" and (expected := mismatch(about, value)):
            raise ConfigError(f"{name}={short(value)}: expected {expected}")
        return value

    def check_sizes(self, found: Mapping[str, int]) -> None:
        """Refuses settings that do not belong to these tensors.

        Raises:
            ConfigError: a size in them differs.
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
    """Returns the expected values of a setting; None if the value is one of them."""
    # True is an int in Python, but not in settings.
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    if isinstance(about.values, range):
        fits = is_whole and (value in about.values or value == about.default)
        return None if fits else f"a whole number from 1 to {about.values[-1]}"
    if isinstance(about.default, float):
        fits = (is_whole or isinstance(value, float)) and 0 < value <= 1
        return None if fits else "a number above 0, up to 1"
    # 1 equals True, so types are compared too.
    if not about.values or any(type(value) is type(x) and value == x for x in about.values):
        return None
    # In the notation of JSON: true, not True.
    return " or ".join(x if isinstance(x, str) else json.dumps(x) for x in about.values)
