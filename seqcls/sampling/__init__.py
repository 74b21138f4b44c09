"""Ways of drawing strings, one a file. A new one is a file and a line here."""

from seqcls.sampling.balanced import BalancedStrings
from seqcls.sampling.base import Sampler
from seqcls.sampling.dataset_rows import DatasetRows
from seqcls.sampling.fixed_length import FixedLength
from seqcls.sampling.uniform_inputs import UniformInputs
from seqcls.sampling.variable_length import VariableLength

SAMPLERS: dict[str, type[Sampler]] = {
    "balanced_strings": BalancedStrings,
    "dataset_rows": DatasetRows,
    "fixed_length": FixedLength,
    "uniform_inputs": UniformInputs,
    "variable_length": VariableLength,
}

__all__ = ["SAMPLERS", "Sampler"]
