"""The importance of settings: how far each moves a share."""

from typing import Any

import pandas as pd
import pytest

from seqcls.problem import configuration, unread_fields
from sweeps.statistics.importance import (
    importance,
    with_every_budget,
    with_largest_budget,
)
from sweeps.statistics.populations import without_unread

SETTINGS = pd.DataFrame(
    {"hidden_size": [2, 2, 16, 16], "num_attention_heads": [1, 2, 1, 2], "activation": "gelu"},
    index=pd.Index([1, 2, 3, 4], name="config_id"),
)


def models(*failing: int) -> pd.DataFrame:
    """Ten models of each configuration, of which so many have not learned, in order."""
    rows = [
        {"config_id": config_id, "model_seed": seed, "learned": int(seed >= wrong)}
        for config_id, wrong in enumerate(failing, start=1)
        for seed in range(10)
    ]
    return pd.DataFrame(rows)


def test_importance_ranks_settings_by_how_far_they_move_a_share() -> None:
    found = importance(models(9, 8, 1, 2), SETTINGS, "learned")
    assert found["field"].tolist() == ["hidden_size", "num_attention_heads"]
    first = found.iloc[0]
    assert (first["worst"], first["best"]) == ("2", "16")
    assert first["moves"] == pytest.approx(0.7)
    assert 0.4 < first["low"] < 0.7 < first["high"] < 0.9
    assert found.iloc[1]["low"] < 0, "of a setting that moves nothing the interval holds zero"


def test_importance_weighs_configurations_equally() -> None:
    more = pd.DataFrame({"config_id": 1, "model_seed": range(10, 1000), "learned": 1})
    frame = pd.concat([models(5, 5, 0, 0), more])
    found = importance(frame, SETTINGS, "learned").set_index("field")
    assert found.loc["hidden_size", "at_worst"] == pytest.approx((995 / 1000 + 0.5) / 2)


def test_seed_with_two_budgets_counts_once() -> None:
    """Two configurations of ten seeds; of the first those of the six that failed are trained with a
    larger budget, of the second those of the two.
    """
    before = models(6, 2)
    further = before[before["learned"] == 0].assign(config_id=lambda x: x["config_id"] + 2)
    further = further.assign(learned=[1, 1, 1, 0, 0, 0, 1, 0])
    runs = pd.concat([before, further], ignore_index=True)
    budgets = [{10: 1, 40: 3}, {10: 2, 40: 4}]
    once = with_largest_budget(runs, budgets)
    assert len(once) == 20, "no seed counts twice"
    assert once.groupby("config_id")["learned"].sum().to_dict() == {1: 7, 2: 9}
    every_budget = with_every_budget(runs, budgets)
    assert every_budget.groupby("config_id").size().to_dict() == dict.fromkeys([1, 2, 3, 4], 10)
    assert every_budget.groupby("config_id")["learned"].sum().to_dict() == {1: 4, 2: 8, 3: 7, 4: 9}
    settings = pd.DataFrame(
        {"hidden_size": [2, 4, 2, 4], "max_num_epochs": [10, 10, 40, 40]},
        index=pd.Index([1, 2, 3, 4], name="config_id"),
    )
    (size,) = importance(once, settings, "learned").to_dict("records")
    assert (size["field"], size["moves"], size["paired"]) == (
        "hidden_size",
        pytest.approx(0.2),
        True,
    )
    of_budgets = importance(every_budget, settings, "learned").set_index("field")
    assert of_budgets.loc["max_num_epochs", "moves"] == pytest.approx(0.2)
    assert of_budgets.loc["max_num_epochs", "paired"]


def test_importance_pairs_seeds_only_with_equal_starts() -> None:
    # Each seed is right on 0.02 more of the strings than the same seed of the other.
    rows = [(c, s, 0.5 + s / 20 + c / 50, int(s >= 5 - c)) for c in (1, 2) for s in range(8)]
    frame = pd.DataFrame(rows, columns=["config_id", "model_seed", "accuracy", "learned"])
    settings = SETTINGS.loc[[1, 2], ["hidden_size"]].assign(hidden_size=[8, 16])
    for column in ("learned", "accuracy"):
        (paired,), (apart,) = (
            importance(frame, settings, column, *are_apart, is_share=column == "learned").to_dict(
                "records"
            )
            for are_apart in ((), (lambda *_: True,))
        )
        assert (paired["paired"], apart["paired"]) == (True, False)
        assert paired["moves"] == apart["moves"]
        assert apart["high"] - apart["low"] > 1.4 * (paired["high"] - paired["low"])


def test_settings_that_vary_together_are_one_row() -> None:
    settings = SETTINGS.assign(readout=["first", "first", "last", "last"])
    first = importance(models(9, 8, 1, 2), settings, "learned").iloc[0]
    assert first["fields"] == ("hidden_size", "readout")
    same = SETTINGS.loc[[1, 2], ["activation"]]
    assert importance(models(1, 1), same, "learned").empty, "it does not differ"
    assert (first["worst"], first["best"]) == ("2, first", "16, last")


def test_unread_settings_have_no_importance() -> None:
    lstm = {"architecture": "lstm", "readout": "last", "layer_norm_eps": 0.0}
    own: list[dict[str, Any]] = [
        {"layer_norm_eps": 1e-5},
        {"layer_norm_eps": 1e-5, "hidden_size": 4},
        lstm,
        lstm,
    ]
    configs = {
        config_id: configuration({"task": "parity", **fields})
        for config_id, fields in enumerate(own, start=1)
    }
    fields = ["architecture", "readout", "hidden_size", "layer_norm_eps", "required_letters"]
    every = pd.DataFrame(
        [{name: getattr(config, name) for name in fields} for config in configs.values()],
        index=pd.Index(configs, name="config_id"),
    )
    settings = without_unread(every, {x: unread_fields(y) for x, y in configs.items()})
    assert settings["layer_norm_eps"].isna().tolist() == [False, False, True, True]
    assert settings["required_letters"].isna().all()
    found = importance(models(9, 8, 0, 0), settings, "learned")
    assert found["fields"].tolist()[0] == ("architecture", "readout")
    assert "layer_norm_eps" not in found["field"].tolist()
