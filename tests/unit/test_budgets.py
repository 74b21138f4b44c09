"""What configurations have in common: budgets of one model, and fields that do not differ."""

from itertools import product
from typing import Any

from seqcls.config import RunConfig
from sweeps.grid.budgets import budget_fields, models_by_budget
from tests.conftest import short_config


def budgets_of(*configs: RunConfig) -> list[list[int]]:
    """The budgets of each model that has several."""
    stored = {number: config.model_dump() for number, config in enumerate(configs)}
    return [list(model) for model in models_by_budget(stored)]


def with_epochs(epochs: int, **fields: Any) -> RunConfig:
    return short_config(**{"max_num_epochs": epochs, "min_num_epochs": 0, "patience": 3, **fields})


def test_training_that_cannot_end_early_cannot_with_a_larger_budget() -> None:
    cases: list[tuple[dict[str, int], dict[str, int]]] = [
        ({"patience": 3}, {}),
        ({"patience": 12}, {"patience": 48}),
        ({"patience": 30}, {"patience": 48}),
        ({"patience": 100}, {"patience": 100}),
        ({"min_num_epochs": 5}, {}),
        ({"min_num_epochs": 12, "patience": 12}, {"min_num_epochs": 48, "patience": 48}),
        ({"warm_up_steps": 100}, {}),
    ]
    for fields, grown in cases:
        assert budget_fields(with_epochs(12, **fields), 48) == {"max_num_epochs": 48, **grown}


def test_a_model_stays_the_same_whatever_grows_with_its_budget() -> None:
    for epochs, patience, least in product([1, 3, 5, 12], [1, 3, 12, 100], [0, 5, 12]):
        config = with_epochs(epochs, patience=patience, min_num_epochs=least)
        larger = [
            config.model_copy(update=budget_fields(config, epochs * times)) for times in (2, 4, 20)
        ]
        again = larger[0].model_copy(update=budget_fields(larger[0], epochs * 8))
        assert budgets_of(config, *larger, again) == [[epochs * x for x in (1, 2, 4, 8, 20)]]


def test_an_axis_of_budgets_is_one_model_though_the_least_of_them_cannot_end_early() -> None:
    assert budgets_of(*(with_epochs(epochs) for epochs in (30, 1, 3))) == [[1, 3, 30]]


def test_models_that_differ_in_when_training_may_end_are_compared_not_joined() -> None:
    grid = [with_epochs(epochs, patience=patience) for epochs in (1, 30) for patience in (3, 30)]
    assert budgets_of(*grid) == [[1, 30], [1, 30]]


def test_other_settings_make_another_model() -> None:
    assert budgets_of(with_epochs(3), with_epochs(6, hidden_size=4)) == []
    assert budgets_of(with_epochs(3), with_epochs(6, warm_up_steps=9)) == []
    assert budgets_of(with_epochs(3), with_epochs(3, hidden_size=4)) == []


def test_fields_that_an_old_version_did_not_store_are_as_by_default() -> None:
    new = with_epochs(6).model_dump()
    old = {x: y for x, y in with_epochs(3).model_dump().items() if x != "stop_when_right"}
    assert [list(model) for model in models_by_budget({1: old, 2: new})] == [[3, 6]]
