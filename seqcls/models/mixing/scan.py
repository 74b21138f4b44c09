"""h_t = a_t h_{t-1} + b_t, number by number, over all tokens: with its gradient written down."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

Numbers = Float[Tensor, "string position *numbers"]


class _Scan(torch.autograd.Function):
    """Token after token, without a step of autograd for each."""

    generate_vmap_rule = True

    @staticmethod
    def forward(decay: Numbers, given: Numbers) -> Numbers:
        states = torch.empty_like(given)
        if not given.shape[1]:
            return states
        state = given[:, 0]
        states[:, 0] = state
        for place in range(1, given.shape[1]):
            state = torch.addcmul(given[:, place], decay[:, place], state)
            states[:, place] = state
        return states

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Numbers, Numbers], output: Numbers) -> None:
        ctx.save_for_backward(inputs[0], output)

    @staticmethod
    def backward(ctx: Any, gradient: Numbers) -> tuple[Numbers, Numbers]:
        decay, states = ctx.saved_tensors
        of_given, of_decay = torch.empty_like(gradient), torch.zeros_like(decay)
        if not gradient.shape[1]:
            return of_decay, of_given
        carried = gradient[:, -1]
        of_given[:, -1] = carried
        for place in range(gradient.shape[1] - 2, -1, -1):
            carried = torch.addcmul(gradient[:, place], decay[:, place + 1], carried)
            of_given[:, place] = carried
        of_decay[:, 1:] = of_given[:, 1:] * states[:, :-1]
        return of_decay, of_given


def scan(decay: Numbers, given: Numbers) -> Numbers:
    """The state after every token, from 0 before the first."""
    states: Tensor = _Scan.apply(decay, given)  # type: ignore[no-untyped-call]
    return states
