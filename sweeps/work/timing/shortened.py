"""A problem cut short, to be tried for a moment."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from seqcls.kinds import Examples
from seqcls.problem import Problem, resolve
from seqcls.sampling import Sampler
from seqcls.tasks import Task


def shortened(whole: Problem, part: str, strings: int, epochs: int = 1) -> Problem:
    """The same problem with fewer strings of a part, and fewer epochs."""
    config = whole.config
    share = strings / whole.sampler(part).epoch_size
    sizes = {part: strings}
    if part == "train":
        sizes["validation"] = max(1, round(share * whole.validation.epoch_size))
    update: dict[str, Any] = {f"{name}_size": size for name, size in sizes.items()}
    update |= {f"{x}_batch_size": min(n, whole.sampler(x).batch_size) for x, n in sizes.items()}
    update |= {"max_num_epochs": epochs, "min_num_epochs": epochs, "disjoint": False}
    problem = resolve(config.model_copy(update=update))
    # The network is that of all lengths, also where the strings of a file say them.
    longer = {x: size for x, size in sizes.items() if problem.sampler(x).epoch_size > size}
    samplers: dict[str, Any] = {x: _FirstOf(problem.sampler(x), n) for x, n in longer.items()}
    return replace(problem, network=whole.network, **samplers)


@dataclass(frozen=True)
class _FirstOf:
    """The first strings of each epoch of a sampler whose size no setting gives."""

    sampler: Sampler
    size: int
    reads: ClassVar[frozenset[str]] = frozenset()
    reads_of_part: ClassVar[Mapping[str, frozenset[str]]] = {}

    @property
    def task(self) -> Task:
        return self.sampler.task

    @property
    def batch_size(self) -> int:
        return self.sampler.batch_size

    @property
    def lengths(self) -> range:
        return self.sampler.lengths

    @property
    def epoch_size(self) -> int:
        return min(self.size, self.sampler.epoch_size)

    @property
    def repeats(self) -> bool:
        return self.sampler.repeats

    @classmethod
    def obstacle(cls, task: Task) -> str | None:
        del task
        return None

    def epochs(self) -> Iterator[Examples]:
        for epoch in self.sampler.epochs():
            yield epoch.take(slice(0, self.epoch_size))
