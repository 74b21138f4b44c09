"""What is made of the known results' models: outcomes, cells, tables, pages."""

from typing import Any

import pandas as pd
import pytest

from benchmarks import known
from benchmarks.known import ATLASES, DOCS, atlas_cells, rates_table, tables_of


def model(seed: int, within: int = 0, beyond: int = 0) -> dict[str, Any]:
    """A model with so many wrong strings of 200 of trained lengths, and of 400 longer ones."""
    return {
        "task": "parity",
        "model": "rnn",
        "learning_rate": 0.005,
        "model_seed": seed,
        "predicted": "can",
        "budget": 1000,
        "epochs": 3,
        "validation_loss": 1.0,
        "tested_within": 200,
        "wrong_within": within,
        "tested_beyond": 400,
        "wrong_beyond": beyond,
        "solved_length": 20,
        "reader_within": 0.7,
        "reader_beyond": 0.5,
    }


def test_only_what_learned_generalizes() -> None:
    found = pd.DataFrame([model(0), model(1, 2), model(2, 2, 1), model(3, 3)])
    ((learned, general),) = atlas_cells(found)[["learned", "generalizes"]].to_numpy().tolist()
    assert (learned, general) == (3, 2)


def test_of_a_cell_that_is_not_learned_no_accuracy_beyond_is_told() -> None:
    nine_of_ten = [model(seed, beyond=40) for seed in range(9)] + [model(9, 50)]
    eight_of_ten = [{**x, "model": "lstm"} for x in [*nine_of_ten[:8], model(8, 50), model(9, 50)]]
    made = tables_of(ATLASES[0], pd.DataFrame([*nine_of_ten, *eight_of_ten]))
    assert made["atlas: beyond"].splitlines()[-1] == (
        "| `parity` | 70.0% / 50.0% | 90.0% | not learned |"
    )
    assert made["atlas: solved"].splitlines()[-1] == "| `parity` | 20 | not learned |"
    assert made["atlas: learned"].splitlines()[-1] == (
        "| `parity` | 9 of 10 | 8 of 10, not learned at 1,000 |"
    )


def test_the_learning_rate_of_a_cell_is_that_of_the_lower_validation_loss() -> None:
    slow = {"learning_rate": 0.002, "validation_loss": 0.5}
    found = pd.DataFrame([model(0), model(1), model(0, 50) | slow, model(1, 50) | slow])
    assert atlas_cells(found)[["learning_rate", "learned"]].to_numpy().tolist() == [[0.002, 0]]
    assert rates_table(found).splitlines()[-1] == (
        "| `parity` | rnn | 0.002: 0 of 2; 0.005: 2 of 2 | 0.002 |"
    )


def test_a_cell_keeps_its_place_whichever_learning_rate_is_chosen() -> None:
    slow = {"learning_rate": 0.002, "validation_loss": 0.5}
    found = pd.DataFrame([model(0), model(0) | {"model": "lstm"}, model(0) | slow])
    assert atlas_cells(found)[["model", "learning_rate"]].to_numpy().tolist() == [
        ["rnn", 0.002],
        ["lstm", 0.005],
    ]


@pytest.mark.parametrize("page", sorted({atlas.page for atlas in ATLASES}))
def test_a_page_says_what_its_results_say(page: str) -> None:
    anew = known.pages()[page]
    assert (DOCS / page).read_text() == anew, "python -m benchmarks.known writes it anew"


@pytest.mark.parametrize("atlas", ATLASES, ids=lambda atlas: atlas.name)
def test_a_picture_has_the_lines_of_every_cell(atlas: known.Atlas) -> None:
    shown = (DOCS / f"{atlas.name}.svg").read_text()
    lines = pd.Series(known.picture_texts(atlas_cells(pd.read_csv(atlas.results)))).explode()
    for line, times in lines.value_counts().items():
        assert shown.count(f">{line}<") == times
