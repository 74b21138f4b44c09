"""Machine code of the fused engine, compiled before processes need it that would each compile."""

from seqcls.engines.compiled.machine_code import MEAN, TABLES, mark_compiled
from seqcls.problem import configuration, resolve


def compile_ahead(precision: str, part: str) -> None:
    """Compiles what training and testing at a precision need, so that no other process has to.

    Args:
        precision: `float32` or `float64`.
        part: of the engine, as `seqcls.engines.compiled.machine_code` calls them.
    """
    config = configuration(
        {
            "precision": precision,
            "positions": "alibi" if part == TABLES else "none",
            "readout": "mean" if part == MEAN else "first",
            "train_size": 64,
            "validation_size": 64,
            "max_num_epochs": 1,
        }
    )
    # Imported where it is used: this is what loads PyTorch and Numba.
    from seqcls.engines.compiled.training import train_one_by_one
    from seqcls.engines.fused.training import program_of

    train_one_by_one(
        [(resolve(config), 0)],
        None,
        program_of,
        engine="fused",
        every_epoch=False,
        progress=lambda *_: None,
    )
    mark_compiled(precision, part)
