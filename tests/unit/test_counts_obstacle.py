"""What is said of models by letter counts is said of those only of which it is true."""

import pytest

from seqcls.config import RunConfig
from seqcls.errors import ConfigError
from seqcls.interpretability.network import Network, obstacle
from seqcls.problem import resolve


def test_the_reports_models_have_no_obstacle() -> None:
    assert obstacle(resolve(RunConfig())) is None
    assert (
        obstacle(resolve(RunConfig(dropout_rate=0.1, no_attend_cls=True, layer_norm_eps=0.0)))
        is None
    )


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"architecture": "lstm", "readout": "last"}, "architecture='lstm' may tell strings"),
        ({"positions": "rotary"}, "positions='rotary' makes equal tokens differ"),
        ({"attention_mask": "causal", "readout": "last"}, "attention_mask='causal' makes"),
        ({"num_blocks": 2}, "num_blocks=2: this analysis is of models with one block"),
        ({"readout": "mean"}, "readout='mean': this analysis is of models with a readout at CLS"),
        ({"attention_scale": "log_length"}, "attention_scale='log_length': this analysis"),
        ({"norm_placement": "post"}, "norm_placement='post': this analysis"),
        ({"activation": "relu"}, "activation='relu': this analysis is of models with GELU"),
        ({"activation": "gelu_tanh"}, "activation='gelu_tanh': this analysis is of models with"),
        ({"biases": True}, "biases=True: this analysis is of models with no biases"),
        ({"final_norm": True}, "final_norm=True: this analysis is of models with no norm after"),
    ],
)
def test_a_network_that_is_another_is_refused_by_the_name_of_its_setting(
    fields: dict[str, object], reason: str
) -> None:
    config = RunConfig.from_mapping(fields)
    assert (obstacle(resolve(config), "states") or "").startswith(reason)
    with pytest.raises(ConfigError, match="does not hold here"):
        Network.of(resolve(config), {})
