"""Ways of drawing strings, one a file. A new one is a file and a line here."""

from seqcls.sampling.fixed_length import MAX_FIXED_LENGTH_STRINGS, FixedLength
from seqcls.sampling.strings import Sampler, Strings
from seqcls.sampling.variable_length import VariableLength

SAMPLERS: dict[str, type[Sampler]] = {
    "fixed_length": FixedLength,
    "variable_length": VariableLength,
}

__all__ = [
    "MAX_FIXED_LENGTH_STRINGS",
    "SAMPLERS",
    "FixedLength",
    "Sampler",
    "Strings",
    "VariableLength",
]
