"""Ablation: what a model can do without, each part alone, and pruned from the cheapest on.

How a model answers without parts, and which strings it is judged by, a `Judge` says: by letter
counts exactly, by the whole test set; else by running a sample of it (`ablation_by_strings`), also
where models write.
"""

from collections.abc import Iterator, Sequence

from seqcls.errors import ConfigError
from seqcls.interpretability.ablation_judge import Ablated, AblationMethod, CountedJudge, Judge
from seqcls.interpretability.network import as_network
from seqcls.interpretability.trained_model import TrainedModel
from seqcls.models.parts import Part

SAMPLE = 400
"""Distinct test strings that are run, unless another number is asked for."""


def judge_of(model: TrainedModel, sample: int = SAMPLE) -> Judge:
    """All test strings where letter counts decide; else a sample of them, which is run."""
    network = as_network(model, "labels")
    if network is not None:
        return CountedJudge(network)
    # Imported where it is used: PyTorch takes a second or two to load.
    from seqcls.interpretability.ablation_by_strings import SampledJudge

    return SampledJudge(model, sample)


def rank(judge: Judge, parts: Sequence[Part], how: AblationMethod = "zero") -> tuple[Ablated, ...]:
    """What the model is without each part alone, the dearest first."""
    outcomes = [judge.without({part: how}) for part in parts]
    return tuple(sorted(outcomes, key=lambda left: (-left.errors, -left.logit_change)))


def prune(judge: Judge, parts: Sequence[Part], how: AblationMethod = "zero") -> Iterator[Ablated]:
    """Without more and more parts, each time that one which costs the fewest errors.

    On a tie, the one with the least loss. The first has all parts (Michel, Levy & Neubig 2019, *Are
    Sixteen Heads Really Better than One?*).

    Raises:
        ConfigError: more than the judge's `max_pruned` parts.
    """
    if len(parts) > judge.max_pruned:
        others = any(part.kind != "unit" for part in judge.parts)
        raise ConfigError(
            f"{len(parts)} parts are too many to prune one by one: expected at most "
            f"{judge.max_pruned}; "
            + ("take heads, or feed-forwards" if others else "ablate each on its own instead")
        )
    best = judge.without({})
    yield best
    while len(best.parts) < len(parts):
        gone = dict.fromkeys(best.parts, how)
        tried = [judge.without({**gone, part: how}) for part in parts if part not in gone]
        best = min(tried, key=lambda left: (left.errors, left.loss))
        yield best
