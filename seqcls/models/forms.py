"""What a model may do beside `run`: optional methods of its class, which are found by asking it.

A form computes the same as `run`, on a shorter way, or says more of the model. A subclass may
compute something else, so a form is not inherited past a class that defines functions: such a
class says again that it has it (`step = EncoderDecoder.step`). Without any form all works, slower.
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
"""What the head gives at the last token of each string: of an output, a number for each token that
may come next."""

Cached = Any
"""Tuples and lists of tensors, a string a row; None where nothing is kept."""


@runtime_checkable
class Stepping(Protocol):
    """A model that reads one token more, given what it has kept of those before.

    One that begins with nothing says besides what it has kept then: `nothing(strings)`. A step
    leaves that as it was.
    """

    def begin(self, ids: Ids, most_tokens: int) -> tuple[Scores, Cached]:
        """Reads the beginnings of strings, `PAD` after each; at most so many tokens come after."""
        ...

    def step(self, tokens: Tokens, cached: Cached) -> tuple[Scores, Cached]:
        """Reads one token of each string; what was kept before may be used up by it."""
        ...


_FUNCTIONS = (FunctionType, classmethod, property, staticmethod)


def form(model: nn.Module, name: str) -> Any:
    """The optional method of that name; None where the model's own class does not say it has it."""
    for cls in type(model).__mro__:
        if name in vars(cls):
            return getattr(model, name)
        if any(isinstance(value, _FUNCTIONS) for value in vars(cls).values()):
            return None
    return None


def map_cached(change: Callable[..., Tensor], cached: Cached, *others: Cached) -> Cached:
    """What is kept, with each of its tensors changed, beside those in the same place of others."""
    if cached is None or isinstance(cached, Tensor):
        return None if cached is None else change(cached, *others)
    values = [map_cached(change, *parts) for parts in zip(cached, *others, strict=True)]
    # A named tuple takes its fields one by one, a plain tuple or list all at once.
    return type(cached)(*values) if hasattr(cached, "_fields") else type(cached)(values)


def read_on(
    step: Callable[[Tokens, Cached], tuple[Scores, Cached]],
    cached: Cached,
    ids: Ids,
    read: Bool[Tensor, "string position"],
) -> tuple[Scores, Cached]:
    """Steps through beginnings; where a string has ended, all stays as it was."""
    outputs, cached = step(ids[:, 0], cached)
    for place in range(1, ids.shape[1]):
        goes_on = read[:, place]

        def choose(further: Tensor, before: Tensor, goes_on: Tensor = goes_on) -> Tensor:
            return torch.where(goes_on.view(-1, *[1] * (further.ndim - 1)), further, before)

        further, after = step(ids[:, place], cached)
        outputs, cached = choose(further, outputs), map_cached(choose, after, cached)
    return outputs, cached
