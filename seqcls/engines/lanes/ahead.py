"""Machine code of this engine, compiled before processes need it that would each compile."""

from collections.abc import Mapping

import numpy as np

from seqcls.engines.compiled.machine_code import (
    RECURRENT,
    RECURRENT_OUTPUTS,
    TRANSFORMER,
    TRANSFORMER_OUTPUTS,
    mark_compiled,
)
from seqcls.problem import configuration, resolve

LEAST: Mapping[str, Mapping[str, str]] = {
    TRANSFORMER: {"task": "parity", "architecture": "transformer"},
    RECURRENT: {"task": "parity", "architecture": "rnn", "readout": "last"},
    TRANSFORMER_OUTPUTS: {"task": "copy", "architecture": "transformer"},
    RECURRENT_OUTPUTS: {"task": "copy", "architecture": "rnn"},
}
"""What makes each part compile all of it."""


def compile_ahead(part: str) -> None:
    """Compiles what training and testing need, so that no other process has to.

    Args:
        part: of the engine, as `seqcls.engines.compiled.machine_code` calls them.
    """
    config = configuration(
        {
            **LEAST[part],
            "train_size": 64,
            "train_max_length": 4,
            "validation_size": 64,
            "validation_max_length": 4,
            "max_num_epochs": 1,
        }
    )
    # Imported where it is used: this is what loads PyTorch and Numba.
    from seqcls.engines.compiled.training import train_one_by_one
    from seqcls.engines.lanes.programs import lane_outputs, program_of
    from seqcls.sampling.streams import stream

    problem = resolve(config)
    (trained,) = train_one_by_one(
        [(problem, 0)],
        None,
        program_of,
        engine="lanes",
        every_epoch=False,
        progress=lambda *_: None,
    )
    if problem.writes:
        inputs = stream(problem.validation).epoch(0).strings
        lane_outputs(problem, trained.kept_weights, inputs, np.ones(len(inputs), np.int64))
    mark_compiled("float32", part)
