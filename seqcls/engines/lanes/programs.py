"""Which compiled program trains a network, and answers for it."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from seqcls.config import NetworkConfig
from seqcls.engines.compiled.training import Program
from seqcls.problem import Problem
from seqcls.results import Weights
from seqcls.tokens.strings import TokenStrings

# Each part's machine code is loaded, or made, only where it is used.


def program_of(problem: Problem) -> Program:
    """What trains a model."""
    if problem.network.architecture == "transformer":
        from seqcls.engines.lanes.transformer.program import TransformerProgram

        return TransformerProgram(problem)
    from seqcls.engines.lanes.recurrent.program import RecurrentProgram

    return RecurrentProgram(problem)


def lane_logits(
    config: NetworkConfig, weights: Sequence[Weights], strings: TokenStrings
) -> Float[np.ndarray, "member string"]:
    """Logits of models of one shape."""
    if not len(strings):
        return np.empty((len(weights), 0), np.float32)
    if config.architecture == "transformer":
        from seqcls.engines.lanes.transformer.program import transformer_logits

        return transformer_logits(config, weights, strings)
    from seqcls.engines.lanes.recurrent.program import recurrent_logits

    return recurrent_logits(config, weights, strings)
