"""A package as somebody else would write it: a kind of answer with several classes, and one task.

The answer is a remainder: 0, 1 or 2. The head gives a number for each, the highest is the answer.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from seqcls.kinds.membership import OneAnswer


class Remainder(OneAnswer):
    """One of several classes."""

    reads: ClassVar = frozenset()
    sampler: ClassVar = "uniform_inputs"
    cells: ClassVar = ()

    def num_outputs(self, task):
        return task.modulus

    def targets(self, task, strings):
        return task.targets(strings)

    def encoded(self, task, examples, network):
        del task, network
        return examples.targets

    def losses(self, outputs, targets, train_loss):
        from torch.nn import functional

        del train_loss
        scores = functional.log_softmax(outputs, dim=-1)
        chosen = targets.expand(scores.shape[:-1]).unsqueeze(-1)
        return -scores.gather(-1, chosen).squeeze(-1)

    def answers(self, outputs):
        return outputs.argmax(axis=-1)

    def cell(self, answers, targets):
        raise NotImplementedError

    def margins(self, outputs, targets):
        chosen = np.take_along_axis(outputs, targets[..., None], axis=-1)
        others = outputs.copy()
        np.put_along_axis(others, targets[..., None], -np.inf, axis=-1)
        return chosen[..., 0] - others.max(axis=-1)

    def texts(self, task, answers):
        del task
        return [f"remainder {answer}" for answer in answers.tolist()]

    def error_columns(self):
        return {"target": "Target", "logit": "Margin"}


@dataclass(frozen=True)
class OnesModulo:
    """The number of 1s modulo 3."""

    kind: ClassVar = "remainder"
    order_sensitive: ClassVar = False
    reads: ClassVar = frozenset()
    alphabet: ClassVar = "01"
    modulus: ClassVar = 3

    def targets(self, strings):
        return strings.counts[:, 1] % self.modulus

    def has_input(self, length):
        return length >= 1

    def draw_input(self, rng, length):
        return rng.integers(2, size=length, dtype=np.uint8)

    def features(self, strings):
        return {"1's": strings.counts[:, 1]}

    def describe(self):
        return "The answer is the number of 1s modulo 3."
