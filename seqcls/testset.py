"""The strings that configurations are tested on: which they are, and each one's number."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Bool, Int64

from seqcls.canonical import canonical_json
from seqcls.config import RunConfig, default_fields
from seqcls.problem import strings_read


def test_set_json(config: RunConfig) -> dict[str, Any]:
    """All of a configuration that determines its test strings."""
    return {name: getattr(config, name) for name in strings_read(config, "test")}


def test_set_key(config: RunConfig) -> str:
    """A hash of what determines the test strings, as 64 hexadecimal digits.

    As with a configuration's own key, a field added later, at its default, changes no key.
    """
    defaults = default_fields()
    changed = {k: v for k, v in test_set_json(config).items() if v != defaults[k]}
    return hashlib.sha256(canonical_json(changed).encode()).hexdigest()


@dataclass(frozen=True, eq=False)
class TestSet:
    """The distinct strings of a test set. A string's number is its place, sorted as text."""

    __test__: ClassVar[bool] = False

    texts: Sequence[str]
    lengths: Int64[np.ndarray, " string"]
    bits: Bool[np.ndarray, " string"] | None
    """The labels; None where the task is no language: what is right is then its target."""
    occurrences: Int64[np.ndarray, " string"]
    targets: Sequence[str] | None = None
    """None for languages."""

    @property
    def labels(self) -> Bool[np.ndarray, " string"]:
        """Which strings are in the language."""
        assert self.bits is not None
        return self.bits

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of the strings in their order, as 64 hexadecimal digits."""
        hasher = hashlib.sha256("\n".join(self.texts).encode())
        if self.targets is not None:
            hasher.update("\n".join(["", *self.targets]).encode())
        columns = (self.lengths, self.bits, self.occurrences)
        for column in (x for x in columns if x is not None):
            hasher.update(np.ascontiguousarray(column, dtype="<i8").tobytes())
        return hasher.hexdigest()
