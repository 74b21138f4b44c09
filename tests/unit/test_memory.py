"""Estimated cost and memory of training."""

import pytest

from seqcls.problem import configuration, resolve
from sweeps.grid.grouping import cost_of_training, mean_length
from sweeps.work import machine
from tests.conftest import short_config


def test_cost_counts_output_tokens_like_input_tokens() -> None:
    short, long = (
        resolve(configuration({"task": task, "train_max_length": 40, "architecture": "lstm"}))
        for task in ("parity_word", "copy")
    )
    assert mean_length(long) > 1.5 * mean_length(short)
    assert cost_of_training(long) > 1.5 * cost_of_training(short)


def test_shortage_is_reported_only_where_memory_is_too_small(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = short_config(hidden_size=64)
    six_copies = 6 * machine.parameter_bytes(resolve(config))
    monkeypatch.setattr(machine, "machine_bytes", lambda: six_copies)
    assert machine.shortage(resolve(config)) is None
    assert "at least" in (machine.shortage(resolve(config), members=2) or "")
    assert "or the workers" in (machine.shortage(resolve(config), workers=2) or "")
    monkeypatch.setattr(machine, "machine_bytes", lambda: six_copies - 1)
    assert "lower the sizes" in (machine.shortage(resolve(config)) or "")
