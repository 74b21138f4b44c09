"""Estimates of how long a sweep takes, before anything like it was trained."""

from typing import Any

import pytest

from seqcls.cancellation import Cancelled, cancelled_when
from seqcls.config import RunConfig
from seqcls.problem import configuration, resolve
from sweeps.grid.grouping import (
    PlannedRun,
    RunGroup,
    cost_of_checks,
    cost_of_training,
    mean_length,
)
from sweeps.grid.spec import SweepSpec, parse_spec
from sweeps.store.reads.workers import START_SECONDS
from sweeps.work import machine
from sweeps.work.estimate import (
    Times,
    assumed_epochs,
    estimate,
    known_times,
    time_group,
)

SMALL: dict[str, Any] = {
    "task": "parity", "architecture": "gru", "readout": "last", "dropout_rate": 0.1,
    "hidden_size": 4, "train_size": 640, "validation_size": 64, "test_size": 256,
    "test_max_length": 20, "validation_max_length": 20,
}  # fmt: skip
TEN: dict[str, Any] = {"max_num_epochs": 10, "min_num_epochs": 10}
TIMES = Times(epoch=2.0, test=3.0, drawing=0.25)


def always(_: RunGroup) -> Times:
    """A timer by which every group takes the same time."""
    return TIMES


def spec(axes: dict[str, list[Any]] | None = None, **fixed: Any) -> SweepSpec:
    fields = {name: value for name, value in {**SMALL, **fixed}.items() if name not in (axes or {})}
    return parse_spec({"name": "s", "model_seeds": "0..2", "fixed": fields, "axes": axes or {}})


def seconds_of(*specs: SweepSpec, processes: int = 1, timer: Any = always) -> float:
    judged = estimate(None, list(specs), processes, timer).seconds
    assert judged is not None
    return judged


def test_estimate_times_an_unknown_sweep_once() -> None:
    requested = spec(hidden_size=5)
    looks = iter([False, False, False])
    with pytest.raises(Cancelled), cancelled_when(lambda: next(looks, True)):
        estimate(None, [requested], 1, time_group)
    unknown = estimate(None, [requested], 1, known_times)
    assert unknown.seconds is None, "who leaves ends the timing"
    assert "time is unknown" in unknown.basis
    judged = estimate(None, [requested], 1, time_group)
    assert judged.seconds
    assert "by timing a few steps" in judged.basis
    assert estimate(None, [requested], 1, known_times) == judged


def test_estimate_does_not_time_runs_too_large_for_this_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(machine, "machine_bytes", lambda: 1_000_000)
    timed: list[PlannedRun] = []

    def timer(group: RunGroup) -> Times:
        timed.extend(group)
        return TIMES

    judged = estimate(None, [spec(hidden_size=512)], 1, timer)
    assert judged.seconds == 0.0
    assert "of the rest fail at once" in judged.basis
    judged = estimate(None, [spec({"hidden_size": [4, 512]})], 1, timer)
    assert {run.config.hidden_size for run in timed} == {4}
    assert judged.seconds
    assert "of the rest fail at once" in judged.basis


def test_estimate_adds_start_drawing_training_and_test() -> None:
    judged = seconds_of(spec(**TEN, train_seed=987_654))
    assert judged == pytest.approx(START_SECONDS + 10 * 0.25 + 3 * (10 * 2.0 + 3.0))
    # A group that was not timed is judged by one like it.
    both = spec(**TEN), spec(**TEN, train_size=1280)
    times = iter([TIMES])
    longer = seconds_of(*both, timer=lambda _: next(times))
    assert longer == pytest.approx(START_SECONDS + 1.5 * 3 * (10 * 2.0 + 3.0), abs=10 * 0.5)


def test_two_processes_share_several_groups() -> None:
    several = spec({"train_seed": [1, 2]}, **TEN)
    alone, together = (seconds_of(several, processes=x) for x in (1, 2))
    assert alone - together == pytest.approx(3 * (10 * 2.0 + 3.0))


def test_assumed_epochs_lie_between_fewest_and_most() -> None:
    until_right = {"stop_when_right": True}
    cases: list[tuple[dict[str, Any], float]] = [
        ({"max_num_epochs": 20}, 10),
        ({"max_num_epochs": 16, "min_num_epochs": 0}, 4),
        ({"max_num_epochs": 16, **until_right}, 4),
        # An epoch of 10,000 strings has 156 steps.
        ({"max_num_epochs": 16, **until_right, "check_every": 39}, 2),
        ({"max_num_epochs": 16, **until_right, "check_every": 400}, 4),
        ({"max_num_epochs": 3, "min_num_epochs": 5}, 3),
    ]
    for settings, epochs in cases:
        assert assumed_epochs(RunConfig.from_mapping(settings)) == pytest.approx(epochs), settings
    # The assumed number is reported where training may end early.
    part = spec(max_num_epochs=1, stop_when_right=True, check_every=1, train_size=6400)
    for own, words in ((spec(max_num_epochs=20), "10 of 20 epochs"), (part, "0.1 of 1 epoch")):
        assert words in estimate(None, [own], 1, always).basis
    assert "stop early" not in estimate(None, [spec(**TEN)], 1, always).basis


def test_estimate_adds_checks_within_epochs() -> None:
    (config,) = spec(stop_when_right=True, check_every=1).configs()
    # After every 64 training strings, those of up to 10 tokens are answered, of 64 of up to 20.
    assert cost_of_checks(resolve(config)) == pytest.approx(11 / 21 / 3)
    assert cost_of_checks(resolve(config.model_copy(update={"check_every": 100}))) < 0.01
    (without,) = spec().configs()
    assert cost_of_checks(resolve(without)) == 0
    until_right = spec(max_num_epochs=1, stop_when_right=True, check_every=10)
    more = seconds_of(until_right) - seconds_of(spec(max_num_epochs=1))
    assert more == pytest.approx(3 * 2.0 * 11 / 21 / 3 / 10)


def test_cost_counts_output_tokens_like_input_tokens() -> None:
    short, long = (
        resolve(configuration({"task": task, "train_max_length": 40, "architecture": "lstm"}))
        for task in ("parity_word", "copy")
    )
    assert mean_length(long) > 1.5 * mean_length(short)
    assert cost_of_training(long) > 1.5 * cost_of_training(short)
