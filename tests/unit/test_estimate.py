"""How long a sweep takes, said before anything of its kind was trained here."""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import pytest

from seqcls.cancellation import Cancelled, cancelled_when
from seqcls.config import RunConfig
from seqcls.problem import configuration, resolve
from sweeps.grid.grouping import cost_of_checks
from sweeps.grid.spec import SweepSpec, parse_spec
from sweeps.work import machine, timing
from sweeps.work.estimate import GroupTime, GroupToTime, Times, estimate, fewest_epochs
from sweeps.work.timing import known_times, time_groups
from sweeps.work.trial import shorten

SMALL: dict[str, Any] = {
    "task": "parity", "architecture": "gru", "readout": "last", "dropout_rate": 0.1,
    "hidden_size": 4, "train_size": 640, "validation_size": 64, "test_size": 256,
    "test_max_length": 20, "validation_max_length": 20,
}  # fmt: skip
TEN: dict[str, Any] = {"max_num_epochs": 10, "min_num_epochs": 10}
TIME = GroupTime(
    epoch=2.0, epoch_once=0.5, test=3.0, test_once=1.0, draw_epoch=0.25, draw_tests=0.125
)


def always(asked: Sequence[GroupToTime]) -> Times:
    """As if every group took this long."""
    return Times(4.0, {each.config.group_key: TIME for each in asked})


def spec(axes: dict[str, list[Any]] | None = None, **fixed: Any) -> SweepSpec:
    fields = {name: value for name, value in {**SMALL, **fixed}.items() if name not in (axes or {})}
    return parse_spec({"name": "s", "model_seeds": "0..2", "fixed": fields, "axes": axes or {}})


def seconds_of(*specs: SweepSpec, processes: int = 1, timer: Any = always) -> float:
    judged = estimate(None, list(specs), processes, timer).seconds
    assert judged is not None
    return judged


def test_a_groups_time_counts_what_is_done_once_and_what_each_member_does() -> None:
    assert TIME.seconds(3, 10) == 10 * 0.5 + 1.0 + 3 * (10 * 2.0 + 3.0)


def test_what_was_never_trained_here_is_timed_in_a_moment() -> None:
    times = time_groups([GroupToTime(configuration(SMALL), 3)])
    (time,) = times.groups.values()
    assert min(times.start, time.epoch, time.test) > 0
    judged = estimate(None, [spec()], 1, time_groups)
    assert judged.seconds
    assert "timing a part of an epoch" in judged.basis


def test_what_this_machine_cannot_train_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "machine_bytes", lambda: 1_000_000)
    timed: list[GroupToTime] = []

    def timer(asked: Sequence[GroupToTime]) -> Times:
        timed.extend(asked)
        return always(asked)

    judged = estimate(None, [spec(hidden_size=512)], 1, timer)
    assert judged.seconds == 0.0
    assert "All of the rest fail at once" in judged.basis
    judged = estimate(None, [spec({"hidden_size": [4, 512]})], 1, timer)
    assert [each.config.hidden_size for each in timed] == [4]
    assert judged.seconds
    assert "3 of the rest fail at once" in judged.basis


def test_start_drawing_training_and_test_are_all_counted() -> None:
    judged = seconds_of(spec(**TEN, train_seed=987_654))
    drawing = 10 * 0.25 + 0.125
    assert judged == pytest.approx(4.0 + TIME.seconds(3, 10) + drawing, abs=0.2)
    # A group that was not timed is judged by one like it.
    both = spec(**TEN), spec(**TEN, train_size=1280)
    assert seconds_of(*both, timer=lambda asked: always(asked[:1])) > TIME.seconds(3, 10)


def test_two_processes_share_what_is_more_than_a_group() -> None:
    several = spec({"num_blocks": [1, 2]}, **TEN)
    alone, together = (seconds_of(several, processes=x) for x in (1, 2))
    assert alone - together == pytest.approx(TIME.seconds(3, 10))


def test_the_fewest_epochs_are_those_of_early_stopping() -> None:
    until_right = {"stop_when_right": True}
    cases: list[tuple[dict[str, Any], float]] = [
        ({}, 5),
        ({"min_num_epochs": 0}, 1),
        ({"min_validation_loss": 0.0}, 7),
        (until_right, 1),
        # An epoch of 10,000 strings has 156 steps.
        ({**until_right, "check_every": 39}, 0.25),
        ({**until_right, "check_every": 400}, 1),
        ({"max_num_epochs": 3, "min_num_epochs": 5}, 3),
    ]
    for settings, fewest in cases:
        assert fewest_epochs(RunConfig.from_mapping(settings)) == fewest, settings
    # It is said how many are assumed, where training may end early.
    part = spec(max_num_epochs=1, stop_when_right=True, check_every=1, train_size=6400)
    for own, words in ((spec(max_num_epochs=20), "10 of 20 epochs"), (part, "0.1 of 1 epoch")):
        assert words in estimate(None, [own], 1, always).basis
    assert "stop early" not in estimate(None, [spec(**TEN)], 1, always).basis


def test_checks_within_epochs_take_time_and_are_not_timed() -> None:
    (config,) = spec(stop_when_right=True, check_every=1).configs()
    # After every 64 strings that are trained on, those of up to 10 tokens are asked of 64 of up
    # to 20.
    assert cost_of_checks(resolve(config)) == pytest.approx(11 / 21 / 3)
    assert cost_of_checks(resolve(config.model_copy(update={"check_every": 100}))) < 0.01
    (without,) = spec().configs()
    assert cost_of_checks(resolve(without)) == 0
    # Few strings are soon right.
    assert not shorten(resolve(config), "train", 4).config.stop_when_right
    until_right = spec(max_num_epochs=1, stop_when_right=True, check_every=10)
    more = seconds_of(until_right) - seconds_of(spec(max_num_epochs=1))
    assert more == pytest.approx(3 * 2.0 * 11 / 21 / 3 / 10)


@pytest.fixture
def nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "_known", OrderedDict())


@pytest.mark.usefixtures("nothing_known")
def test_what_was_timed_to_its_end_is_known_as_long_as_the_process_lives(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked, other = (GroupToTime(configuration({**SMALL, "hidden_size": x}), 2) for x in (4, 8))
    looks = iter([False, False, False])
    with pytest.raises(Cancelled), cancelled_when(lambda: next(looks, True)):
        time_groups([asked])
    assert known_times([asked]) == Times(), "who leaves ends the timing"
    timed = time_groups([asked])
    assert timed.groups
    assert known_times([asked, other]) == timed == time_groups([asked])
    # Of a second there is not enough for any further group.
    monkeypatch.setattr(timing, "MOST_SECONDS", -1.0)
    assert time_groups([asked, other]) == timed
