"""What is made of the known results' models: outcomes, cells, tables, pages."""

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks import gpt2s, known
from benchmarks.known import (
    ATLASES,
    COMPARISONS,
    DOCS,
    SAMPLES,
    Comparison,
    atlas_cells,
    compared_models,
    comparison_table,
    rates_table,
    sample_tables,
    tables_of,
)
from seqcls.problem import configuration, resolve
from seqcls.strings.token_strings import TokenStrings
from sweeps.grid.spec import load_specs
from sweeps.store.opening import open_reader


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


def test_only_what_learned_generalizes_and_of_the_rest_no_accuracy_beyond_is_told() -> None:
    found = pd.DataFrame([model(0), model(1, 2), model(2, 2, 1), model(3, 3)])
    ((learned, general),) = atlas_cells(found)[["learned", "generalizes"]].to_numpy().tolist()
    assert (learned, general) == (3, 2)
    nine_of_ten = [model(seed, beyond=40) for seed in range(9)] + [model(9, 50)]
    eight_of_ten = [{**x, "model": "lstm"} for x in [*nine_of_ten[:8], model(8, 50), model(9, 50)]]
    made = tables_of(ATLASES[0], pd.DataFrame([*nine_of_ten, *eight_of_ten]))
    for name, cells in {
        "beyond": ["70.0% / 50.0%", "90.0%", "not learned"],
        "solved": ["20", "not learned"],
        "learned": ["9 of 10", "8 of 10, not learned at 1,000"],
    }.items():
        assert cells_of(made[f"atlas: {name}"])[-1] == ["`parity`", *cells]


def cells_of(table: str) -> list[list[str]]:
    """The rows of a table in Markdown, without its head."""
    return [line.strip("| ").split(" | ") for line in table.splitlines()[2:]]


def test_the_learning_rate_of_a_cell_is_that_of_the_lower_validation_loss() -> None:
    slow = {"learning_rate": 0.002, "validation_loss": 0.5}
    found = pd.DataFrame([model(0), model(1), model(0, 50) | slow, model(1, 50) | slow])
    assert atlas_cells(found)[["learning_rate", "learned"]].to_numpy().tolist() == [[0.002, 0]]
    told = ["`parity`", "rnn", "0.002: 0 of 2; 0.005: 2 of 2", "0.002"]
    assert cells_of(rates_table(found)) == [told]
    # A cell keeps its place whichever is chosen.
    found = pd.DataFrame([model(0), model(0) | {"model": "lstm"}, model(0) | slow])
    places = atlas_cells(found)[["model", "learning_rate"]].to_numpy().tolist()
    assert places == [["rnn", 0.002], ["lstm", 0.005]]


def compared(width: int, fresh: bool, *models: tuple[int, int, int]) -> list[dict[str, Any]]:
    """Models of a width: their seeds, wrong strings of trained lengths, and wrong longer ones."""
    return [
        {
            "hidden_size": width,
            "fresh": fresh,
            "model_seed": seed,
            "tested_within": 200,
            "wrong_within": within,
            **dict.fromkeys(("tested_beyond", "tested_21_40"), 400),
            **dict.fromkeys(("wrong_beyond", "wrong_21_40"), beyond),
        }
        for seed, within, beyond in models
    ]


def test_models_are_compared_by_configuration_with_fresh_seeds_below() -> None:
    some = compared(8, False, (0, 0, 0), (1, 2, 40), (2, 60, 40), (3, 2, 100))
    none = compared(16, False, (0, 60, 0), (1, 80, 0), (2, 100, 0))
    fresh = compared(8, True, (101, 0, 0), (102, 0, 0), (104, 0, 0))
    made = comparison_table(Comparison("", ((21, 40),)), pd.DataFrame(some + none + fresh))
    assert made.splitlines()[0].split(" | ")[-2:] == ["generalize", "21 to 40 tokens |"]
    first, later, unlearned = cells_of(made)
    assert first == ["`8`", "0 to 3", "3 of 4; not learned: 70%", "1 of 3", "75% / 90% / 100%"]
    assert later[:2] == ["`8`", "101 to 102, 104, fresh"]
    # Of models that have not learned, accuracy on trained lengths alone is told.
    assert unlearned == ["`16`", "0 to 2", "0 of 3; not learned: 50% / 60% / 70%", "—", "—"]


def test_the_file_of_a_comparison_has_every_model_and_what_differs() -> None:
    store = open_reader(str(DOCS.parent / "runs.db"))
    sweeps = ("default_embeddings_initialization", "all_initializations")
    found = compared_models(store, sweeps, ((11, 60), (61, 200)))
    assert found.groupby("fresh").size().tolist() == [8, 8]
    assert list(found.columns[: found.columns.get_loc("fresh")]) == [
        "hidden_size",
        "attention_init_strategy",
        "feed_forward_init_strategy",
    ]
    for name in ("tested", "wrong"):
        longer = found[f"{name}_11_60"] + found[f"{name}_61_200"]
        assert longer.tolist() == found[f"{name}_beyond"].tolist()


def sampled(name: str, language: int, network: str, border: float, seeds: int = 2) -> list[Any]:
    """Models of a language that all learn, with so much right at the border."""
    wrong = round(200 * (1 - border))
    return [
        {
            "language_class": name,
            "width": 2,
            "language_seed": language,
            "model": network,
            "fresh": language > 4,
            "model_seed": seed,
            "epochs": 30,
            "tested_within": 400,
            "wrong_within": wrong,
            "tested_beyond": 400,
            "wrong_beyond": 2 * wrong,
            "random_within": 1.0,
            "border_within": border,
            "random_beyond": 0.98,
            "border_beyond": border - 0.1,
            "bigrams_random": 0.9,
            "bigrams_border": 0.55,
        }
        for seed in range(seeds)
    ]


def test_a_sample_is_told_over_languages_and_of_fresh_ones_besides() -> None:
    rows: list[Any] = []
    for language in range(10):
        rows += sampled("SL", language, "lstm", 1.0)
        rows += sampled("SL", language, "gru", 0.9)
        rows += sampled("SL", language, "rnn", 0.8 - language / 100)
        rows += sampled("SP", language, "lstm", 1.0 if language % 5 else 0.5)
        rows += sampled("SP", language, "gru", 0.7)
        rows += sampled("SP", language, "rnn", 0.6)
    made = sample_tables(SAMPLES[0], pd.DataFrame(rows))
    learned = cells_of(made["mlregtest_sample: learned"])
    assert learned[0] == ["SL", "100% (57% to 100%)", "0% (0% to 43%)", "0% (0% to 43%)"]
    assert learned[1][1] == "80% (38% to 96%)", "four of five languages"
    assert cells_of(made["mlregtest_sample: generalizing"])[1][-2:] == ["—", "—"]
    accuracies = cells_of(made["mlregtest_sample: accuracies"])[1]
    assert accuracies[1:3] == ["100% / 100% / 98% / 90%", "100% / 70% / 98% / 60%"]
    assert cells_of(made["mlregtest_sample: readers"])[0] == ["SL", "90%", "55%", "lstm: 100%"]
    border = made["mlregtest_sample: reading"].splitlines()[-1]
    assert "of 30 pairs" in border
    # Of longer strings 98% of the random ones are right, which is less than is asked of any.
    assert border.count("on longer strings 0 of 0 (LR, LA)") == 2


TRAINED = [own for own in COMPARISONS if own.results.exists()]


def test_every_cell_of_the_memory_table_has_a_name_of_its_own() -> None:
    (spec,) = load_specs("known/memory")
    runs = [config.model_dump() for config in spec.configs()]
    cells = [(known.name_task(run), known.name_model(run)) for run in runs]
    assert len({*cells}) == len(runs) == 96
    assert len({task for task, _ in cells}) == 8
    assert {known.family(model) for _, model in cells} >= {"Transformers", "LSTM", "hybrids"}
    named = {(task.partition(",")[0], known.family(model)) for task, model in cells}
    assert known.PUBLISHED.keys() <= named, "what is published stands beside a cell"


def memories(**generalizing: list[bool]) -> pd.DataFrame:
    """Models of parity by name, a seed each; those that do not generalize have one wrong string."""
    rows = [
        model(seed, beyond=int(not solves))
        | {"model": name.replace("_", " ").replace(" signed", ", signed")}
        | {"tested_33_48": 100, "wrong_33_48": int(not solves)}
        for name, seeds in generalizing.items()
        for seed, solves in enumerate(seeds)
    ]
    return pd.DataFrame(rows).replace({"model": {"rotary": "rotary, 2 blocks"}})


def test_whether_hybrids_lose_parity_is_read_off_the_models() -> None:
    lost = memories(rotary=[False] * 5, gated_deltanet_signed=[True] * 5, hybrid_ga=[False] * 5)
    trained, generalizing, parity = known.read_memories(lost)
    assert "15 models of 3 cells, 5 seeds each" in trained
    assert "all of signed Gated DeltaNet; none of Transformers, hybrids" in generalizing
    assert "hybrids lose it (0 of 5;" in parity
    assert "p = 0.0079" in parity, "Fisher's exact test of 0 of 5 and 5 of 5"
    few = memories(rotary=[False], gated_deltanet_signed=[True, True], hybrid_ga=[False])
    assert "4 models of 3 cells, 1 to 2 seeds each" in known.read_memories(few)[0]
    assert "that hybrids lose it is not shown (0 of 1;" in known.read_memories(few)[-1]
    none = memories(rotary=[True], gated_deltanet_signed=[False], hybrid_ga=[False])
    assert "hybrids have nothing" in known.read_memories(none)[-1]
    found = memories(gated_deltanet_signed=[True, False, True])
    (beside,) = cells_of(known.beside_published(found, (33, 48)))
    assert beside[:7] == [
        *("`parity`", "Gated DeltaNet, signed", "0 to 2", "3 of 3", "2 of 3", "3 of 3", "can")
    ]
    assert "11 of 12" in beside[7]


@pytest.mark.parametrize(
    ("name", "published", "first"),
    [
        (
            "next_symbols",
            {"generalizes": 10, "fails beyond": 3, "fails beyond without positions": 4},
            "brackets, at most 2 open",
        ),
        ("depth_hierarchy", {"generalizes": 6, "fails beyond": 6}, "1"),
    ],
)
def test_what_is_published_stands_beside_every_configuration(
    name: str, published: dict[str, int], first: str
) -> None:
    (own,) = (x for x in COMPARISONS if x.name == name)
    (spec,) = load_specs(f"known/{name}")
    fields = ["num_blocks", "max_depth", "pattern"]
    counts = compared(8, False, (0, 0, 0), (1, 2, 40))
    ranges = {
        f"{x}_{known.range_name(ends)}": 400 for x in ("tested", "wrong") for ends in own.ranges
    }
    rows = [
        {**{field: dict(config)[field] for field in fields}, **run, **ranges, "predicted": "can"}
        for config in spec.configs()
        for run in counts
    ]
    table = comparison_table(own, pd.DataFrame(rows))
    cells = cells_of(table)
    assert cells[0][0] == first
    assert len({tuple(row[:2]) for row in cells}) == len(cells) == len(rows) // 2
    at = table.splitlines()[0].strip("| ").split(" | ").index("published")
    assert pd.Series([row[at] for row in cells]).value_counts().to_dict() == published
    assert {(row[at + 1], row[at + 3], row[at + 4]) for row in cells} == {
        ("can", "2 of 2", "1 of 2")
    }


def test_comparisons_have_a_name_for_every_language_and_models_that_are_judged() -> None:
    for own in TRAINED:
        found = pd.read_csv(own.results)
        fields = [*found.columns[: found.columns.get_loc("fresh")]]
        assert not own.names or len(own.names) == len(found.drop_duplicates(fields)), own.name
        assert (found[["tested_within", "tested_beyond"]] > 0).all(axis=None), own.name
        assert not found.duplicated([*fields, "fresh", "model_seed"]).any(), own.name


TRAINED_ATLASES = [atlas for atlas in ATLASES if atlas.results.exists()]


def test_pages_and_pictures_say_what_their_results_say() -> None:
    for page, anew in known.pages().items():
        assert (DOCS / page).read_text() == anew, "python -m benchmarks.known writes it anew"
    for atlas in TRAINED_ATLASES:
        shown = (DOCS / f"{atlas.name}.svg").read_text()
        own = known.in_tables(atlas, pd.read_csv(atlas.results))
        lines = pd.Series(known.picture_texts(atlas_cells(own))).explode()
        for line, times in lines.value_counts().items():
            assert shown.count(f">{line}<") == times, atlas.name


def test_what_is_read_of_the_atlas_holds_of_the_seeds_that_were_trained_afterwards() -> None:
    found = pd.read_csv(ATLASES[0].results)
    later = found["model_seed"] >= ATLASES[0].read_from
    one, other = (known.statements(own) for own in (found[~later], found[later]))
    assert one["without positions"] == other["without positions"]
    for said in (one, other):
        assert "and 0 of these generalize" in said["what theory excludes at every length"]
        assert said["the hardest"].startswith("`modular_arithmetic`:")
        learned, models, general = numbers(said["Transformers"])
        assert learned > models / 2
        assert general < learned / 20
        learned, _, general = numbers(said["recurrent networks"])
        assert general > learned / 3


def test_what_is_read_of_the_memories_holds_of_fresh_seeds() -> None:
    (atlas,) = (x for x in ATLASES if x.name == "atlas_memories")
    found = pd.read_csv(atlas.results)
    cells = atlas_cells(known.in_tables(atlas, found))
    every = known.with_outcomes(found.merge(cells[[*known.CELL, "learning_rate"]]))
    later = every["model_seed"] >= atlas.read_from
    # Every cell has all seeds at the learning rate that was chosen.
    assert len(every[~later]) == 10 * len(cells)
    assert len(every[later]) == 5 * len(cells)
    few_states = ["first", "even_pairs", "repeat_01", "parity"]
    for own in (every[~later], every[later]):
        excluded, general = own[own["predicted"] == "cannot"], own[own["generalizes"]]
        assert own["learned"].mean() == pytest.approx(0.7, abs=0.05)
        assert excluded["learned"].mean() == pytest.approx(0.7, abs=0.05)
        assert len(general) / own["learned"].sum() == pytest.approx(0.25, abs=0.05)
        assert general["task"].isin(few_states).mean() > 0.95
        solved = excluded[excluded["generalizes"]]
        assert set(solved["model"]) == {"linear attention"}
        assert set(solved["task"]) == {"majority"}
        generalizing = own.groupby(known.CELL)["generalizes"].mean()
        assert generalizing["parity", "slstm"] == 1
        assert generalizing["parity", "mamba"] == 0
        assert all(generalizing["repeat_01", x] == 1 for x in ("deltanet", "deltanet, signed"))
        assert generalizing["repeat_01", "linear attention"] == 0
        assert not own[own["task"] == "modular_arithmetic"]["learned"].any()
    signed = every[(every["task"] == "parity") & (every["model"] == "mamba, signed")]
    assert signed.groupby(later)["generalizes"].sum().tolist() == [4, 0]


def numbers(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"\b\d+\b", text)]


def test_what_is_said_of_copying_with_four_blocks_holds_of_every_seed() -> None:
    found = pd.read_csv(known.results_file("copying_controls"))
    assert known.with_outcomes(found)["learned"].all()
    assert (found["wrong_101_150"] == found["tested_101_150"]).all()
    longer = known.accuracy(found, "51_100").sort_values()
    assert len(longer) == 10
    assert longer.iloc[-1] > 0.4875, "what Huang et al. report"
    assert longer.iloc[-2] < 0.26


@pytest.mark.parametrize("published", gpt2s.MODELS, ids=lambda x: x.folder)
def test_strings_are_drawn_for_published_models_as_their_tasks_have_them(
    published: gpt2s.Published,
) -> None:
    problem = resolve(configuration(dict(published.task)))
    rng = np.random.default_rng(0)
    drawn = [published.draw(rng, x) for x in published.lengths(1, 60) for _ in range(3)]
    assert [len(x) for x in drawn[::3]] == published.lengths(1, 60)
    strings = TokenStrings.of_lists(len(problem.task.alphabet), drawn)
    # Of other strings nothing is right.
    assert len(problem.kind.targets(problem.task, strings)) == len(drawn)
