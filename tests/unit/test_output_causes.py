"""What a model's wrong outputs have in common, said of models whose outputs are known."""

import numpy as np
import pytest

from seqcls.decoding import judging
from seqcls.decoding.judging import Judged
from seqcls.interpretability.causes.attributions import summed_up
from seqcls.interpretability.causes.causes import attributions
from seqcls.interpretability.model.trained_model import TrainedModel
from seqcls.models.initialization import initial_parameters
from seqcls.problem import configuration, resolve
from seqcls.results import ErrorKind

PROBLEM = resolve(
    configuration(
        {
            "task": "copy", "architecture": "lstm", "hidden_size": 4, "train_max_length": 3,
            "validation_max_length": 3, "test_max_length": 8,
        }
    )
)  # fmt: skip
WRONG = ["ab", "aba", "abab", "babab", "bababa", "aaaabbb"]


def model_that_writes(
    monkeypatch: pytest.MonkeyPatch, outputs: dict[str, tuple[str, int, ErrorKind]]
) -> TrainedModel:
    """A model whose outputs, first wrong places and kinds of error are these; others are right."""
    weights = {x: y.numpy() for x, y in initial_parameters(PROBLEM.network, 0).items()}
    model = TrainedModel(PROBLEM, weights)

    def judged(_problem: object, _weights: object, examples: object) -> Judged:
        rows = examples.strings.letters.tolist()  # type: ignore[attr-defined]
        texts = [model.text([x for x in row if x != 255]) for row in rows]
        spelled = ["".join("ab"[x] for x in row if x != 255) for row in rows]
        assert len(texts) == len(spelled)
        found = [outputs[text] for text in spelled if text in outputs]
        return Judged(
            np.array([text in outputs for text in spelled]),
            np.zeros(len(rows), dtype=bool),
            np.zeros(len(rows)),
            np.zeros(len(rows), dtype=np.int64),
            [["ab".index(x) for x in said] for said, _, _ in found],
            np.array([place for _, place, _ in found]),
            [kind for _, _, kind in found],
        )

    monkeypatch.setattr(judging, "judge", judged)
    return model


def test_errors_are_told_apart_by_kind_and_place(monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_that_writes(
        monkeypatch,
        {
            "ab": ("a", 1, "stopped early"),
            "aba": ("abaa", 3, "went on"),
            "abab": ("aba", 3, "stopped early"),
            "babab": ("bab", 3, "stopped early"),
            "bababa": ("a", 0, "wrong token"),
        },
    )
    causes = summed_up(attributions(model, [*WRONG, "ab"]))
    bound = "the 3 tokens of the longest target in training"
    assert [(x.mechanism, x.tokens, x.strings) for x in causes] == [
        ("stopped early", f"within {bound}", 2),
        ("stopped early", f"after {bound}", 2),
        ("went on", f"after {bound}", 1),
        ("wrong token", f"within {bound}", 1),
        ("rounding", "", 1),
    ]
    assert sum(x.share for x in causes) == pytest.approx(1)


def test_one_output_for_all_says_it_all(monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_that_writes(monkeypatch, dict.fromkeys(WRONG, ("", 0, "stopped early")))
    (cause,) = summed_up(attributions(model, WRONG))
    assert (cause.mechanism, cause.tokens, cause.share) == ("constant answer", "always nothing", 1)
