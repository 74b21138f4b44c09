"""Forms: optional methods of a model's class beside `run`, found by their names.

A form computes the same as `run` in less time, or gives more of the model. A subclass may compute
something else, so a form is not inherited past a class that defines functions: such a class
repeats it (`step = EncoderDecoder.step`). Without any form everything works, but slower.
"""

from collections.abc import Callable
from types import FunctionType
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn

from seqcls.models.base import Ids

Tokens = Int64[Tensor, " string"]
"""One token of each string."""

Scores = Float[Tensor, "string *output"]
"""The head's outputs at the last token of each string: when writing, a number for each token that
may come next."""

Cached = Any
"""Tuples, lists and dictionaries of tensors, a string a row; None if nothing is cached."""


@runtime_checkable
class Stepping(Protocol):
    """A model that reads one more token, given a cache of those before.

    One that can begin without tokens also has `nothing(strings)`, its empty cache, which a step
    does not change.
    """

    def begin(self, ids: Ids, most_tokens: int) -> tuple[Scores, Cached]:
        """Reads the beginnings of strings, with `PAD` after each, before at most so many tokens."""
        ...

    def step(self, tokens: Tokens, cached: Cached) -> tuple[Scores, Cached]:
        """Reads one token of each string; it may overwrite the cache that it gets."""
        ...


_FUNCTIONS = (FunctionType, classmethod, property, staticmethod)


def form(model: nn.Module, name: str) -> Any:
    """The form of that name; None if the model's class does not have it."""
    for cls in type(model).__mro__:
        if name in vars(cls):
            return getattr(model, name)
        if any(isinstance(value, _FUNCTIONS) for value in vars(cls).values()):
            return None
    return None


def map_cached(change: Callable[..., Tensor], cached: Cached, *others: Cached) -> Cached:
    """Applies `change` to each tensor of a cache, with the same tensors of other caches."""
    if cached is None or isinstance(cached, Tensor):
        return None if cached is None else change(cached, *others)
    if isinstance(cached, dict):
        named = map_cached(change, *([*x.values()] for x in (cached, *others)))
        return dict(zip(cached, named, strict=True))
    values = [map_cached(change, *parts) for parts in zip(cached, *others, strict=True)]
    # A named tuple takes its fields one by one, a plain tuple or list one iterable.
    return type(cached)(*values) if hasattr(cached, "_fields") else type(cached)(values)


def read_on(
    step: Callable[[Tokens, Cached], tuple[Scores, Cached]],
    cached: Cached,
    ids: Ids,
    read: Bool[Tensor, "string position"],
) -> tuple[Scores, Cached]:
    """Reads beginnings step by step; the outputs and cache of a string that has ended stay."""
    outputs, cached = step(ids[:, 0], cached)
    for place in range(1, ids.shape[1]):
        goes_on = read[:, place]

        def choose(further: Tensor, before: Tensor, goes_on: Tensor = goes_on) -> Tensor:
            return torch.where(goes_on.view(-1, *[1] * (further.ndim - 1)), further, before)

        further, after = step(ids[:, place], cached)
        outputs, cached = choose(further, outputs), map_cached(choose, after, cached)
    return outputs, cached
