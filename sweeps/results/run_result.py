"""The results of one run, as a worker process returns them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from seqcls.results import Confusion, Evaluation, Verdict
from sweeps.results.digest import OUTPUT_COUNTS, Columns, Output, run_digest


@dataclass(frozen=True)
class RunResult:
    """The results of one run, or the reason why there are none."""

    train_losses: list[float]
    validation_losses: list[float]
    train_seconds: float
    engine: str
    engine_reason: str = ""
    failure: str | None = None
    best_epoch: int | None = None
    evaluation: Evaluation | None = None
    verdict: Verdict | None = None
    checkpoints: dict[int, bytes] = field(default_factory=dict)
    """Weights by epoch, as safetensors bytes."""
    digest: str | None = None
    """The digest of the results; see `sealed`."""

    def summary(self) -> dict[str, Any]:
        """The results in the run's own row."""
        assert self.evaluation is not None
        best = self.best_epoch
        return {
            # Of a model trained elsewhere there may be no losses.
            "epochs": len(self.train_losses) or None,
            "best_epoch": best,
            "best_validation_loss": None if best is None else self.validation_losses[best - 1],
            "solved_length": self.evaluation.solved_length,
            **self._confusion(),
            "tested": self.evaluation.tested,
            "wrong": self.evaluation.wrong,
        }

    def _confusion(self) -> dict[str, int | None]:
        assert self.evaluation is not None
        if not self.evaluation.has_confusion:
            return dict.fromkeys(Confusion._fields)
        return self.evaluation.confusion._asdict()

    def tables(self) -> Mapping[str, Columns]:
        """The rows of results, by table and column."""
        assert self.evaluation is not None
        evaluation = self.evaluation
        none = np.full(len(evaluation.lengths), None)
        cells = dict.fromkeys(Confusion._fields, none)
        if evaluation.cells is not None:
            cells = dict(zip(Confusion._fields, evaluation.cells.T, strict=True))
        counts = dict.fromkeys(OUTPUT_COUNTS, none)
        if evaluation.outputs is not None:
            counts = {name: getattr(evaluation.outputs, name) for name in OUTPUT_COUNTS}
        return {
            "epoch": {
                "epoch": np.arange(1, len(self.train_losses) + 1),
                "train_loss": np.array(self.train_losses, dtype=np.float64),
                "validation_loss": np.array(self.validation_losses, dtype=np.float64),
            },
            "length_score": {
                "length": evaluation.lengths,
                **cells,
                "tested": evaluation.tested_by_length,
                "wrong": evaluation.wrong_by_length,
                **counts,
            },
            "string_error": {
                "number": evaluation.errors.numbers,
                "logit": evaluation.errors.logits,
            },
        }

    def outputs(self) -> list[Output] | None:
        """What a transduction gave for each misclassified string; None of other kinds."""
        assert self.evaluation is not None
        if (outputs := self.evaluation.outputs) is None:
            return None
        places = outputs.first_wrong.tolist()
        return list(zip(outputs.texts, places, outputs.error_kinds, strict=True))

    def sealed(self, config_key: str, model_seed: int) -> Self:
        """The same with the digest of its results, by which what is stored of them is checked."""
        if self.evaluation is None:
            return self
        digest = run_digest(
            config_key,
            model_seed,
            self.summary(),
            self.tables(),
            self.checkpoints,
            self.evaluation.test_set,
            self.outputs(),
        )
        return replace(self, digest=digest)
