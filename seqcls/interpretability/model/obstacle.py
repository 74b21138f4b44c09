"""Which models analyses by letter counts are true of: asked by them, by commands and by pages."""

from typing import Literal

from seqcls.config import REPORT_TASK, NetworkConfig
from seqcls.counts.invariance import counts_suffice
from seqcls.errors import ConfigError
from seqcls.problem import Problem
from seqcls.tasks import CountTask

Needs = Literal["states", "labels", "required letters"]
"""What an analysis rests on, each on all before it.

`states`: the model is the function of letter counts that `network` computes.
`labels`: letter counts decide what is right, too. `required letters`: what is right is that each
of some letters occurs, of which the sentences on mechanisms, families and proofs speak.
"""

_AS_WRITTEN: tuple[tuple[str, object, str], ...] = (
    ("num_blocks", 1, "one block"),
    ("readout", "first", "a readout at CLS"),
    ("attention_scale", "sqrt", "scores that do not depend on the length"),
    ("norm_placement", "pre", "norms before attention and feed-forward"),
    ("activation", "gelu", "GELU"),
    ("biases", False, "no biases"),
    ("final_norm", False, "no norm after the last block"),
)


def obstacle(problem: Problem, needs: Needs = "required letters") -> str | None:
    """Why an analysis by letter counts would say what is not so of a model; None where it holds.

    Args:
        problem: what the model was trained for.
        needs: what the analysis rests on.
    """
    network = problem.network
    reason = (
        problem.no_language or counts_suffice(network, training=False) or _other_network(network)
    )
    if reason is not None or needs == "states":
        return reason
    task = problem.config.task
    if problem.unknown_labels is not None:
        return problem.unknown_labels
    if not isinstance(problem.task, CountTask):
        return f"in task={task!r} the order of tokens decides, not letter counts"
    if needs == "required letters" and task != REPORT_TASK:
        return f"the analysis is of required letters, and task={task!r} requires none"
    return None


def refuse(problem: Problem, needs: Needs = "required letters") -> None:
    """Refuses a model that the analysis does not hold for.

    Raises:
        ConfigError: with the reason of `obstacle`.
    """
    reason = obstacle(problem, needs)
    if reason is not None:
        raise ConfigError(f"this analysis does not hold here: {reason}")


def _other_network(config: NetworkConfig) -> str | None:
    for field, written, words in _AS_WRITTEN:
        value = getattr(config, field)
        if value != written:
            return f"{field}={value!r}: this analysis is of models with {words}"
    return None
