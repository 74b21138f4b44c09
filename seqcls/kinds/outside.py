"""A kind from outside, held against what it says of itself before anything is trained for it."""

from typing import Any

import numpy as np

from seqcls.kinds.base import Kind, Words
from seqcls.plugins import UnfitError
from seqcls.tasks.base import InputTask, Task
from seqcls.tokens.strings import TokenStrings

TRIED = 8
"""Inputs that are drawn to be held against random outputs."""


def check_kind(kind: Kind, task: Task) -> None:
    """Has a kind judge random outputs, and refuses what cannot be stored or shown.

    Raises:
        UnfitError: as said.
    """
    outputs = kind.num_outputs(task)
    if not isinstance(outputs, int) or outputs < 1:
        raise UnfitError(f"has num_outputs={outputs!r:.60}, expected a whole number from 1")
    if not isinstance(task, InputTask):
        raise UnfitError(f"is of {type(task).__name__}, which draws no inputs")
    rng = np.random.default_rng(0)
    lengths = [length for length in range(TRIED) if task.has_input(length)]
    rows = [task.draw_input(rng, length).tolist() for length in lengths]
    strings = TokenStrings.of_lists(len(task.alphabet), rows)
    targets = kind.targets(task, strings)
    said = rng.normal(size=(len(rows), outputs) if outputs > 1 else len(rows))
    answered: dict[str, Any] = {
        "targets": targets,
        "answers": kind.answers(said),
        "margins": kind.margins(said, targets),
        "texts": kind.texts(task, targets),
    }
    for name, values in answered.items():
        if values is None or len(values) != len(rows):
            raise UnfitError(f"gives {name} as {values!r:.60}, expected one for each string")
    for part, wanted in (("words", Words), ("answer_columns", tuple)):
        if not isinstance(getattr(kind, part, None), wanted):
            raise UnfitError(f"has no {part}, which `seqcls.kinds.one_answer.OneAnswer` gives")
    if kind.cells:
        raise UnfitError(f"has cells={kind.cells!r:.60}, expected none: only languages have them")
