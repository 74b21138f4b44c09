"""Parts of a model that writes ablated, judged by a sample of its test inputs, teacher forced.

An input is answered right where every token of its target and `END` has the highest output after
those before it, as greedy decoding would write it. The loss is the cross entropy of all of them.
"""

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from seqcls.decoding.judging import readable_inputs
from seqcls.evaluation import DistinctStrings
from seqcls.interpretability.ablation.by_strings import SampledJudge
from seqcls.interpretability.model.readable_model import plain_network
from seqcls.interpretability.model.trained_model import TrainedModel
from seqcls.interpretability.model.written_output import from_separator
from seqcls.kinds import Examples
from seqcls.tokens.strings import TokenStrings

OfTokens = Float[np.ndarray, "token output"]
"""What the head gives at the tokens of target and `END`, input by input."""


def sampled_judge(model: TrainedModel, sample: int) -> SampledJudge:
    """A judge by a sample of test strings, of any model."""
    return WritingJudge(model, sample) if model.writes else SampledJudge(model, sample)


class WritingJudge(SampledJudge):
    """A model that writes, and a sample of its distinct test inputs with their targets."""

    def loss(self, outputs: OfTokens) -> float:
        """Implements `Judge.loss`."""
        return float(-self.margins(outputs).mean())

    def margins(self, outputs: OfTokens) -> Float[np.ndarray, " string"]:
        """Implements `Judge.margins`: the log-probability of each target and `END`."""
        return -self.kind.losses(torch.from_numpy(outputs), self._encoded, "default").numpy()

    def are_wrong(self, outputs: OfTokens) -> Bool[np.ndarray, " string"]:
        """Implements `Judge.are_wrong`."""
        return ~self.kind.are_right(torch.from_numpy(outputs), self._encoded).numpy()

    @property
    def _encoded(self) -> Tensor:
        network = plain_network(self._asked).model_copy(update={"head": "output"})
        examples = Examples(self.strings, self.targets)
        return torch.from_numpy(self.kind.encoded(self._asked.task, examples, network))

    def _readable(self, test: DistinctStrings) -> Bool[np.ndarray, " string"]:
        examples = Examples(test.strings, test.targets)
        return readable_inputs(self._asked.problem, examples)

    def _read(self) -> TokenStrings:
        examples = Examples(self.strings, self.targets)
        return self.kind.reading(self._asked.task, examples)

    def _chosen(self, ids: Tensor, outputs: Tensor) -> Tensor:
        return outputs[from_separator(self._asked, ids)]
