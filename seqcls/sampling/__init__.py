"""Ways of drawing strings, one a file. A new one is a file and a line here."""

from seqcls.sampling.balanced import BalancedStrings
from seqcls.sampling.by_length import FixedLength, VariableLength
from seqcls.sampling.dataset_rows import DatasetRows
from seqcls.sampling.streams import Sampler
from seqcls.sampling.uniform_inputs import UniformInputs

SAMPLERS: dict[str, type[Sampler]] = {
    "balanced_strings": BalancedStrings,
    "dataset_rows": DatasetRows,
    "fixed_length": FixedLength,
    "uniform_inputs": UniformInputs,
    "variable_length": VariableLength,
}

__all__ = ["SAMPLERS", "Sampler"]
