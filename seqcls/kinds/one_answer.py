"""What kinds share whose models read a string and answer it at once."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from jaxtyping import Bool

from seqcls.kinds.base import MISCLASSIFIED, ErrorColumn, Examples, Words
from seqcls.tasks.base import Task
from seqcls.tokens.strings import TokenStrings

if TYPE_CHECKING:
    import torch


class OneAnswer(ABC):
    """Models read the string itself, and their head answers it once."""

    defaults: ClassVar[Mapping[str, Any]] = {}
    words: ClassVar[Words] = MISCLASSIFIED
    answer_columns: ClassVar[tuple[ErrorColumn, ErrorColumn]] = (
        ErrorColumn("predicted", "Predicted", "The model's answer."),
        ErrorColumn(
            "margin", "Margin", "By how much the model prefers its answer to the next best one."
        ),
    )

    @abstractmethod
    def num_outputs(self, task: Task) -> int:
        """Implements `Kind.num_outputs`."""

    @abstractmethod
    def answers(self, outputs: np.ndarray) -> np.ndarray:
        """Implements `Kind.answers`."""

    def network(self, task: Task, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """Implements `Kind.network`."""
        del fields
        return {"num_letters": len(task.alphabet), "num_outputs": self.num_outputs(task)}

    def reading(self, task: Task, examples: Examples) -> TokenStrings:
        """Implements `Kind.reading`: the string."""
        del task
        return examples.strings

    def longest_reading(self, task: Task, length: int) -> int:
        """Implements `Kind.longest_reading`: its length."""
        del task
        return length

    def units(self, targets: "torch.Tensor") -> int:
        """Implements `Kind.units`: the number of strings."""
        return len(targets)

    def are_right(
        self, outputs: "torch.Tensor", targets: "torch.Tensor"
    ) -> "Bool[torch.Tensor, '*member string']":
        """Implements `Kind.are_right`."""
        import torch

        answers = torch.from_numpy(self.answers(outputs.detach().cpu().numpy()))
        return answers.to(targets.device) == targets
