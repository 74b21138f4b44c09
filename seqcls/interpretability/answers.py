"""What comes of questions to one model that look into it from several sides.

Each answer has `record()`, what programs read, and `describe(model)`: sentences and tables.
"""

from typing import Any, NamedTuple

from seqcls.interpretability.minimal import Minimal, Nearest, whose_known
from seqcls.interpretability.trained_model import TrainedModel


class Reduced(NamedTuple):
    """A misclassified string, made as short as it can be, and the nearest right one."""

    minimal: Minimal
    nearest: Nearest

    def record(self) -> dict[str, Any]:
        """What programs read of it."""
        found = {**self.minimal.found.record(), "tried": self.minimal.tried}
        near = self.nearest.record()
        return {"given": self.minimal.given.record(), "minimal": found, "nearest_right": near}

    def describe(self, model: TrainedModel) -> list[str]:
        """The string, its shortest failing part and the nearest right string."""
        given, words = self.minimal.given, model.problem.kind.words
        return [
            given.text,
            f"minimal failing {words.string}: {self.minimal.found.text} (no single deletion"
            f"{whose_known(model.problem)} fails; {self.minimal.tried:,} {words.plural('')} tried)",
            self.nearest.describe(model, given),
        ]
