"""What came out of one run, as a worker process hands it back."""

from dataclasses import dataclass, field

from seqcls.results import Evaluation, Verdict


@dataclass(frozen=True)
class Outcome:
    """The results of one run, or the reason why there are none."""

    train_losses: list[float]
    validation_losses: list[float]
    train_seconds: float
    engine: str
    failure: str | None = None
    best_epoch: int | None = None
    evaluation: Evaluation | None = None
    verdict: Verdict | None = None
    checkpoints: dict[int, bytes] = field(default_factory=dict)
    """Weights by epoch, as safetensors bytes."""
