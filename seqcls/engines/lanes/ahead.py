"""Machine code of this engine, compiled before processes need it that would each compile."""

from seqcls.engines.compiled.machine_code import TRANSFORMER, mark_compiled
from seqcls.problem import configuration, resolve


def compile_ahead(part: str) -> None:
    """Compiles what training and testing need, so that no other process has to.

    Args:
        part: of the engine, as `seqcls.engines.compiled.machine_code` calls them.
    """
    config = configuration(
        {
            "task": "parity",
            "architecture": "transformer" if part == TRANSFORMER else "rnn",
            "readout": "last",
            "train_size": 64,
            "train_max_length": 4,
            "validation_size": 64,
            "validation_max_length": 4,
            "max_num_epochs": 1,
        }
    )
    # Imported where it is used: this is what loads PyTorch and Numba.
    from seqcls.engines.compiled.training import train_one_by_one
    from seqcls.engines.lanes.programs import program_of

    train_one_by_one(
        [(resolve(config), 0)], None, program_of, every_epoch=False, progress=lambda *_: None
    )
    mark_compiled("float32", part)
