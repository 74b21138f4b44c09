"""What training takes of memory, told before it is tried."""

import pytest

from seqcls.problem import configuration, resolve
from sweeps.grid.grouping import cost_of_training, mean_length
from sweeps.work import machine
from tests.conftest import short_config


def test_an_output_costs_as_much_as_what_is_read() -> None:
    short, long = (
        resolve(configuration({"task": task, "train_max_length": 40, "architecture": "lstm"}))
        for task in ("parity_word", "copy")
    )
    assert mean_length(long) > 1.5 * mean_length(short)
    assert cost_of_training(long) > 1.5 * cost_of_training(short)


def test_only_what_this_machine_has_no_room_for_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    config = short_config(hidden_size=64)
    needed = machine.training_bytes(resolve(config))
    assert machine.training_bytes(resolve(config), 2) > needed
    monkeypatch.setattr(machine, "machine_bytes", lambda: needed)
    assert machine.shortage(resolve(config)) is None
    assert machine.warning([resolve(config)]) is None
    assert "fewer workers" in (machine.warning([resolve(config)], workers=2) or "")
    monkeypatch.setattr(machine, "machine_bytes", lambda: needed - 1)
    assert "at least" in (machine.shortage(resolve(config)) or "")
    assert "such runs fail" in (machine.warning([resolve(short_config()), resolve(config)]) or "")
