"""Outputs of models that write: what they write for an input, and what they read of an output."""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from seqcls.decoding.judging import best_written, letter_rows
from seqcls.interpretability.model.trained_model import Letters, TrainedModel
from seqcls.kinds import Examples
from seqcls.kinds.transduction import end_id, separator_id, target_lengths
from seqcls.tokens.strings import TokenStrings
from seqcls.tokens.tokenizer import FIRST_LETTER, PAD


class Output(NamedTuple):
    """An output of one input."""

    letters: Letters
    ended: bool = True
    """Whether `END` follows; without, the output was cut off."""

    @property
    def read(self) -> Letters:
        """What is read of it before its last token is written."""
        return self.letters if self.ended else self.letters[:-1]


@lru_cache(maxsize=256)
def written(model: TrainedModel, letters: Letters) -> Output:
    """What a model writes for an input, by the decoding of its configuration.

    Raises:
        InvalidStringError: the string is no input of the task.
    """
    strings = TokenStrings.of_lists(model.num_letters, [letters])
    model.problem.check_inputs(strings)
    (output,) = best_written(model.problem, model.weights, strings)
    return Output(tuple(token - FIRST_LETTER for token in output.tokens), output.ended)


def target(model: TrainedModel, letters: Sequence[int]) -> Output:
    """The output that is right.

    Raises:
        InvalidStringError: the string is no input of the task.
    """
    strings = TokenStrings.of_lists(model.num_letters, [letters])
    targets = model.problem.kind.targets(model.task, strings)
    return Output(tuple(targets[0, : target_lengths(targets)[0]].tolist()))


def with_outputs(
    model: TrainedModel, strings: TokenStrings, outputs: Sequence[Output]
) -> TokenStrings:
    """What a model reads of inputs and their outputs."""
    examples = Examples(strings, letter_rows([output.read for output in outputs]))
    return model.problem.kind.reading(model.task, examples)


def token_ids(model: TrainedModel, output: Output) -> list[int]:
    """The tokens that are written, `END` among them."""
    ids = [letter + FIRST_LETTER for letter in output.letters]
    return [*ids, end_id(model.problem.network)] if output.ended else ids


def log_probabilities(
    model: TrainedModel, outputs: Float[Tensor, "string position output"], start: int, of: Output
) -> Float[Tensor, " string"]:
    """The log-probability of one output, teacher forced, by what the head gives.

    Args:
        model: whose head it is.
        outputs: at every place of strings that are read with this output.
        start: the place of `SEP`.
        of: the output.
    """
    ids = torch.tensor(token_ids(model, of))
    scores = outputs[:, start : start + len(ids)].log_softmax(dim=-1)
    return scores.gather(-1, ids.expand(len(scores), -1).unsqueeze(-1)).sum(dim=(1, 2))


def from_separator(model: TrainedModel, ids: Tensor) -> Bool[Tensor, "string position"]:
    """At which tokens a model says the next one of its output."""
    separators = ids == separator_id(model.problem.network)
    return (ids != PAD) & (separators.cumsum(dim=1) > 0)
