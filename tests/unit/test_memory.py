"""What training takes of memory, told before it is tried."""

import pytest

from seqcls.data import network_of
from seqcls.models.initialization import initial_parameters
from sweeps import memory
from sweeps.grouping import PlannedRun, RunGroup
from sweeps.jobs import make_job
from tests.conftest import short_config

MODELS = [
    {},
    {"hidden_size": 5, "num_letters": 4, "feed_forward_size": 0},
    {"num_attention_heads": 3, "attention_head_size": 4, "layer_norm": "nn"},
    {"layer_norm_eps": 0.0, "precision": "float64", "num_attention_heads": 0},
]


@pytest.mark.parametrize("fields", MODELS, ids=str)
def test_a_models_size_is_that_of_its_parameters(fields: dict[str, object]) -> None:
    config = short_config(**fields)
    drawn = initial_parameters(network_of(config), 0).values()
    assert memory.parameter_bytes(config) == sum(value.nbytes for value in drawn)


def test_more_members_take_more() -> None:
    config = short_config(hidden_size=64)
    assert memory.training_bytes(config, 2) > memory.training_bytes(config)


def test_only_what_this_machine_has_no_room_for_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    config = short_config(hidden_size=64)
    needed = memory.training_bytes(config)
    monkeypatch.setattr(memory, "machine_bytes", lambda: needed)
    assert memory.shortage(config) is None
    assert memory.warning([config]) is None
    assert "fewer --workers" in (memory.warning([config], workers=2) or "")
    monkeypatch.setattr(memory, "machine_bytes", lambda: needed - 1)
    assert "at least" in (memory.shortage(config) or "")
    assert "such runs fail" in (memory.warning([short_config(), config]) or "")


def test_large_models_are_drawn_where_they_are_trained() -> None:
    def group(**fields: object) -> RunGroup:
        return (PlannedRun(1, short_config(**fields), 0, every_epoch=False, verdict=False),)

    assert make_job(group(), "auto", "cpu").initial is not None
    assert make_job(group(hidden_size=512, feed_forward_size=512), "auto", "cpu").initial is None
