"""Ways of drawing strings, one a file. A new one is a file and a line here."""

from collections.abc import Mapping

from seqcls.sampling.balanced import BalancedStrings
from seqcls.sampling.by_length import FixedLength, VariableLength
from seqcls.sampling.dataset_rows import DatasetRows
from seqcls.sampling.streams import Sampler
from seqcls.sampling.uniform_inputs import UniformInputs
from seqcls.tasks.base import InputTask, LanguageTask, Task
from seqcls.tasks.files import RowsTask
from seqcls.tasks.letter_counts import ContainsAll

SAMPLERS: dict[str, type[Sampler]] = {
    "balanced_strings": BalancedStrings,
    "dataset_rows": DatasetRows,
    "fixed_length": FixedLength,
    "uniform_inputs": UniformInputs,
    "variable_length": VariableLength,
}

_DRAWN: Mapping[str, tuple[type, str]] = {
    "balanced_strings": (LanguageTask, "it draws strings of languages; use uniform_inputs"),
    "dataset_rows": (RowsTask, "it takes strings of files only (task = 'file' or 'pairs')"),
    "uniform_inputs": (
        InputTask, "it draws inputs, not the strings of a language; use balanced_strings"
    ),
    "variable_length": (
        ContainsAll, "it draws strings of 'contains_all' only; take 'balanced_strings'"
    ),
}  # fmt: skip
"""The tasks whose strings a sampler draws, and the reason why it draws no others."""


def sampler_obstacle(name: str, task: Task) -> str | None:
    """Why a sampler cannot draw the strings of a task; None where it can."""
    if isinstance(task, RowsTask) and name in ("balanced_strings", "uniform_inputs"):
        return f"its strings are those of a file; use {task.sampler}"
    drawn, reason = _DRAWN.get(name, (object, ""))
    return None if isinstance(task, drawn) else reason


__all__ = ["SAMPLERS", "Sampler", "sampler_obstacle"]
