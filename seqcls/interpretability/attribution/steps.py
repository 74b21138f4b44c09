"""Direct logit attribution: a logit as the sum of what each part of a model adds to it."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    """One part of a model and what it adds to the logit."""

    part: str
    """`embedding`, `head`, `feed-forward`, `bias` or `norm`."""
    block: int | None
    """None where there is one."""
    head: int | None
    adds: float
    logit: float
    """What the logit would be if the classifier read the stream after this part."""

    @property
    def text(self) -> str:
        """What the step is called, such as `block 0: head 1`."""
        part = self.part if self.head is None else f"head {self.head}"
        return part if self.block is None else f"block {self.block}: {part}"


def summed(parts: Iterable[tuple[str, int | None, int | None, float]]) -> tuple[Step, ...]:
    """Steps of part, block, head and what is added, in the order of the computation."""
    steps = []
    total = 0.0
    for part, block, head, adds in parts:
        total += adds
        steps.append(Step(part, block, head, adds, total))
    return tuple(steps)
