"""When training ends, and which epoch is saved."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seqcls.config import RunConfig
from seqcls.engines.member import (
    MemberTraining,
    checks_within_epoch,
    whole_epochs_loss,
)
from seqcls.errors import ConfigError
from seqcls.evaluation import TrainedGroup
from seqcls.kinds.base import Questions
from seqcls.problem import Problem, configuration, obstacle_of, resolve
from seqcls.results import TrainedMember
from seqcls.sampling.streams import stream
from seqcls.strings.datasets import remember
from seqcls.training import train_group
from sweeps.datasets import read_dataset
from tests.conftest import asset


def epochs_and_best(losses: list[float], config: RunConfig) -> tuple[int, int]:
    training = MemberTraining(0, resolve(config), 0, every_epoch=False)
    for epoch, loss in enumerate(losses, start=1):
        if not training.goes_on_after(1.0, loss, dict):
            assert training.result.best_epoch is not None
            return epoch, training.result.best_epoch
    raise AssertionError("training did not end")


@pytest.mark.parametrize("model", asset("models.json"), ids=lambda m: m["experiment"])
def test_published_losses_stop_at_the_published_epoch(model: dict[str, object]) -> None:
    losses = model["validation_losses"]
    assert isinstance(losses, list)
    found = epochs_and_best([*losses, 1e9], RunConfig())
    assert found == (model["epochs"], model["best_epoch"])


@pytest.mark.parametrize(
    ("losses", "ends"),
    [
        # Below the threshold it stops, but not before the fifth epoch.
        ([0.01] * 5, (5, 1)),
        ([1, 1, 1, 1, 0.04], (5, 5)),
        ([1, 1, 1, 1, 0.05, 0.05, 0.05, 0.05], (8, 5)),
        # Patience looks only at the losses since epoch 5, however low earlier ones were.
        ([0.1, 9, 9, 9, 9, 8, 7, 6, 6, 6, 6], (11, 1)),
        # An equal loss is no improvement; a lower one gives all patience back.
        ([5, 5, 5, 5, 5, 5, 5, 4, 4, 4, 4], (11, 8)),
        # The last epoch always ends it; of equal epochs the first is saved.
        ([40 - epoch for epoch in range(30)], (30, 30)),
        ([5, 4, 4, *range(100, 73, -1)], (30, 2)),
    ],
)
def test_early_stopping_counts_patience_and_ties(
    losses: list[float], ends: tuple[int, int]
) -> None:
    assert epochs_and_best(losses, RunConfig()) == ends


UNTIL_RIGHT: dict[str, Any] = {
    "stop_when_right": True, "check_every": 7, "patience": 100, "min_validation_loss": 0.0,
    "train_size": 640, "train_batch_size": 32, "max_num_epochs": 16,
}  # fmt: skip
WRITES: dict[str, Any] = {
    "task": "copy", "train_max_length": 2, "validation_max_length": 6, "test_max_length": 8,
    "hidden_size": 16, "attention_head_size": 8, "feed_forward_size": 32,
}  # fmt: skip
NEXT: dict[str, Any] = {
    "task": "regular", "alphabet": "ab", "pattern": "(ab|b)*", "answers": "next_symbols",
    "architecture": "rnn", "hidden_size": 10, "train_max_length": 9, "validation_max_length": 9,
    "test_max_length": 14, "learning_rate": 0.02,
}  # fmt: skip
DOUBLE: dict[str, Any] = {"precision": "float64"}
CASES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "letter counts": ("fused", "counts", DOUBLE),
    "drawn places": (
        *("lanes", "strings"),
        {"positions": "learned", "position_range": 220, "learning_rate": 0.03},
    ),
    "cells": ("lanes", "strings", {"architecture": "gru", "readout": "last", "hidden_size": 8}),
    "writing attention": (
        *("lanes", "strings"),
        WRITES | {"positions": "learned", "position_draw": "shifted"},
    ),
    "next symbols": ("lanes", "strings", NEXT),
}
"""The engine, the PyTorch engine to compare with, and the fields."""


def problem_of(name: str, **fields: Any) -> Problem:
    return resolve(configuration({**UNTIL_RIGHT, **CASES[name][2], **fields}))


@cache
def trained(name: str, engine: str) -> TrainedMember:
    (member,) = train_group([(problem_of(name), 0)], engine=engine, device="cpu")
    return member


def all_trained_lengths_are_right(problem: Problem, member: TrainedMember) -> bool:
    """True if the saved model is right on all validation strings of trained lengths."""
    examples = stream(problem.validation).epoch(0)
    examples = examples.take(
        np.flatnonzero(np.isin(examples.strings.lengths, problem.trained_lengths))
    )
    assert len(examples) > 0
    models = TrainedGroup(problem, [member.kept_weights], engine="strings")
    (answers,) = models.ask(Questions.about(examples))
    return bool(answers.right.all())


@pytest.mark.parametrize("name", CASES)
def test_training_stops_at_the_first_check_with_trained_lengths_right(name: str) -> None:
    problem, member = problem_of(name), trained(name, CASES[name][0])
    assert member.best_epoch == member.epochs < problem.config.max_num_epochs
    assert all_trained_lengths_are_right(problem, member)
    # An epoch that ended early has the mean loss of the strings that it had seen.
    before, last = member.train_losses[-2:] if member.epochs > 1 else (np.inf, 0.0)
    assert last > before / 4 or member.epochs == 1
    by_pytorch = trained(name, CASES[name][1])
    assert member.epochs == by_pytorch.epochs
    near = 1e-9 if "precision" in CASES[name][2] else 2e-3
    for losses in ("train_losses", "validation_losses"):
        np.testing.assert_allclose(getattr(member, losses), getattr(by_pytorch, losses), rtol=near)


@pytest.mark.parametrize("name", ["letter counts", "cells", "next symbols"])
@pytest.mark.parametrize("every", [0, 7])
def test_train_more_steps_extends_training(name: str, every: int) -> None:
    fields = {"check_every": every, "max_num_epochs": 60}
    problem = problem_of(name, train_more_steps=50, **fields)
    (more,) = train_group([(problem, 0)], engine=CASES[name][0])
    (first,) = train_group([(problem_of(name, **fields), 0)], engine=CASES[name][0])
    # 20 steps an epoch; the last may have ended early.
    assert 2 <= more.epochs - first.epochs < 60 - first.epochs
    assert more.validation_losses[: first.epochs - 1] == first.validation_losses[:-1]
    assert more.best_epoch == more.epochs
    assert all_trained_lengths_are_right(problem, more)
    (by_pytorch,) = train_group([(problem, 0)], engine=CASES[name][1], device="cpu")
    assert by_pytorch.epochs == more.epochs


def test_extended_training_ends_when_all_is_right_again() -> None:
    problem = problem_of("letter counts", check_every=0, train_more_steps=50)
    training = MemberTraining(0, problem, 0, every_epoch=False)
    going_on = [
        training.goes_on_after(1.0, 1.0, dict, all_right=is_right)
        for is_right in (False, True, True, False, False, True)
    ]
    # First right after 40 steps, so not before 90; after 100 it is not.
    assert going_on == [True, True, True, True, True, False]
    assert training.result.best_epoch == 6
    # The last epoch is saved where all is right, however many steps that is.
    soon = problem_of("letter counts", check_every=0, train_more_steps=50, max_num_epochs=2)
    training = MemberTraining(0, soon, 0, every_epoch=False)
    assert training.goes_on_after(1.0, 1.0, dict, all_right=True)
    assert not training.goes_on_after(1.0, 2.0, dict, all_right=True)
    assert training.result.best_epoch == 2


@pytest.mark.parametrize("name", ["letter counts", "cells"])
def test_failed_checks_do_not_change_training(name: str) -> None:
    slow = {"learning_rate": 0.001, "learning_rate_interval": "step", "warm_up_steps": 9}
    slow |= {"max_num_epochs": 2}
    unchecked = slow | {"stop_when_right": False, "check_every": 0}
    (with_checks,), (without,) = (
        train_group([(problem_of(name, **fields), 0)], engine=CASES[name][0])
        for fields in (slow, unchecked)
    )
    assert with_checks.epochs == without.epochs == 2
    assert with_checks.validation_losses == without.validation_losses
    np.testing.assert_allclose(with_checks.train_losses, without.train_losses, rtol=1e-12)
    for parameter, values in without.kept_weights.items():
        np.testing.assert_array_equal(with_checks.kept_weights[parameter], values)


def test_checks_are_spaced_over_all_of_training() -> None:
    problem = problem_of("letter counts", train_size=320, check_every=4)
    # Ten steps an epoch; after the last one validation runs anyway.
    found = [list(checks_within_epoch(problem, epoch)) for epoch in (1, 2, 3)]
    assert found == [[4, 8], [2, 6], [4, 8]]
    assert list(checks_within_epoch(resolve(RunConfig(check_every=4)), 1)) == []
    assert whole_epochs_loss(problem, 3.0, 4) == pytest.approx(7.5)
    assert whole_epochs_loss(problem, 3.0, 10) == 3.0


def test_stopping_ignores_validation_strings_beyond_trained_lengths() -> None:
    fields = {"task": "parity", "train_max_length": 3, "validation_max_length": 200}
    problem = problem_of("cells", **fields, learning_rate=0.05)
    (member,) = train_group([(problem, 0)])
    assert member.best_epoch == member.epochs < 16
    assert member.validation_losses[-1] > 1
    assert all_trained_lengths_are_right(problem, member)


def test_stop_when_right_needs_validation_strings_of_trained_lengths() -> None:
    fields = {"task": "parity", "train_max_length": 10, "validation_max_length": 40}
    refused = (
        r"stop_when_right=True: training strings have 0 to 10 tokens, and no validation string has;"
    )
    with pytest.raises(ConfigError, match=refused):
        configuration({**fields, "stop_when_right": True, "validation_min_length": 11})
    # Some could be, but none is.
    few = {"validation_size": 1, "validation_max_length": 5_000}
    problem = resolve(configuration({**fields, **few, "stop_when_right": True}))
    with pytest.raises(ConfigError, match=refused):
        train_group([(problem, 0)])
    assert configuration({**fields, "validation_min_length": 11})


def test_stop_when_right_checks_validation_lengths_of_a_file(tmp_path: Path) -> None:
    for lengths, refused in (([7, 20], False), ([8], False), ([2, 20], True), ([9], True)):
        rows = ["ababab,1,train", "babababa,0,train", "a,0,test"]
        rows += [f"{'a' * length},1,validation" for length in lengths]
        (tmp_path / "rows.csv").write_text("\n".join(["tokens,label,split", *rows]))
        dataset = remember(read_dataset(tmp_path / "rows.csv"))
        fields = {"task": "file", "dataset": dataset, "train_batch_size": 2}
        obstacle = obstacle_of({**fields, "stop_when_right": True}) or ""
        assert ("no validation string has" in obstacle) == refused, lengths
    assert obstacle_of({"check_every": 10, "stop_when_right": True}) is None
