"""A learned vector for every place, shared by the tokens of input and output that belong together.

Digits of one weight have one place, and an input token and its copy (position coupling, Cho et al.
2024); the task says which. Tokens that belong to no others, `CLS` and `SEP` among them, have place
0. Training moves all other places of a string by one offset, drawn anew every time, uniform among
those with which they still fit the table.
"""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from jaxtyping import Int64, Integer
from torch import Tensor

from seqcls.models.positions.learned import Learned
from seqcls.tasks import TASKS
from seqcls.tokens.tokenizer import FIRST_LETTER, PAD


class Coupled(Learned):
    """A table with room for the places of the longest test string, at least."""


def coupled_places(
    coupling: str, ids: Integer[Tensor, "string position"]
) -> Int64[Tensor, "string position"]:
    """The tokens' places, 0 for those that stand alone and for padding.

    Args:
        coupling: the task, as `NetworkConfig.coupling` has it.
        ids: what a model reads: `CLS`, an input, `SEP`, and some of its output.
    """
    task = _task(coupling)
    separator = FIRST_LETTER + len(task.alphabet)
    places = np.zeros(tuple(ids.shape), dtype=np.int64)
    for row, tokens in zip(places, ids.cpu().numpy(), strict=True):
        (separators,) = np.nonzero(tokens == separator)
        middle, end = int(separators[0]), int((tokens != PAD).sum())
        letters = (tokens - FIRST_LETTER).astype(np.uint8)
        of_input, of_output = task.couples(letters[1:middle], letters[middle + 1 : end])
        row[1:middle], row[middle + 1 : end] = of_input, of_output
    return torch.from_numpy(places).to(ids.device)


@lru_cache(maxsize=16)
def _task(coupling: str) -> Any:
    settings: Mapping[str, Any] = json.loads(coupling)
    made: Any = TASKS[settings["task"]]
    return made(**{name: value for name, value in settings.items() if name != "task"})
