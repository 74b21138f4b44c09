"""The keys of the shipped configurations: a database names its runs by them, so none may change."""

import pytest

from sweeps.grid.spec import load_specs

DEFAULT = "80b3222e31b7654ea7a90d22950515fe375141d7679b78d94887d0a7a61ad2ee"
KEYS = {
    "all_fixed_length_sequences": (
        "ddb32df6b83106eb362d28fc549e1587f685b16a05f353d247930fa92f130e1e"
    ),
    "all_initializations": DEFAULT,
    "attend_cls": "7f9a09dff26c6d43cb457916103f0857f04ba86487caaaca8de0c0e71f3c5ac0",
    "default_embeddings_initialization": (
        "d27d2ebabedcb41ab862c9404537021ed4dbb69b956067b16ace927e824098df"
    ),
    "generalization_errors": DEFAULT,
    "increased_dimensionality": "36e2bd8ab7033fd12a33ddfa719be6209e64c6685841754b3be0e074c30eb56f",
    "increased_num_attention_heads": (
        "1f440d09d00405f7d4a092c81698c9a4f2ccc2a7e7007f9ed47faf107cda212c"
    ),
    "lower_magnitude_initializations": (
        "db010010f8841573284ebad7e57015050ea586691184e3fbf7efa2b0ed902ab1"
    ),
    "walkthrough": DEFAULT,
}


def test_the_reports_sweeps_are_these() -> None:
    assert sorted(spec.name for spec in load_specs("report")) == sorted(KEYS)


@pytest.mark.parametrize("name", sorted(KEYS))
def test_the_key_of_a_shipped_configuration_stays(name: str) -> None:
    (spec,) = load_specs(f"report/{name}")
    assert [config.key for config in spec.configs()] == [KEYS[name]]
