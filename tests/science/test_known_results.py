"""Tables and pictures of known results in the docs agree with their results."""

from collections import Counter
from typing import Any

import pandas as pd

from benchmarks import known, proofs, stops
from benchmarks.atlases import ATLASES, atlas_cells, in_tables, picture_texts
from benchmarks.comparisons import COMPARISONS, comparison_table
from benchmarks.mlregtest import SAMPLES, sample_cells
from benchmarks.published_memories import beside_published
from benchmarks.tables import DOCS, range_name, results_file
from sweeps.grid.spec import load_specs


def cells_of(table: str) -> list[list[str]]:
    """The rows of a table in Markdown, without its head."""
    return [line.strip("| ").split(" | ") for line in table.splitlines()[2:]]


def compared(*models: tuple[int, int, int]) -> list[dict[str, Any]]:
    """Models by their seeds, wrong strings of trained lengths, and wrong longer ones."""
    shared = {"hidden_size": 8, "fresh": False, "tested_within": 200}
    shared |= dict.fromkeys(("tested_beyond", "tested_21_40"), 400)
    return [
        {**shared, "model_seed": x, "wrong_within": y, "wrong_beyond": z, "wrong_21_40": z}
        for x, y, z in models
    ]


def test_compared_configurations_have_their_published_result() -> None:
    generalizes = {"generalizes": 10, "fails beyond": 3, "fails beyond without positions": 4}
    depths = {"generalizes": 6, "fails beyond": 6}
    for name, published in (("next_symbols", generalizes), ("depth_hierarchy", depths)):
        (own,) = (x for x in COMPARISONS if x.name == name)
        (spec,) = load_specs(f"known/{name}")
        names = [f"{x}_{range_name(y)}" for x in ("tested", "wrong") for y in own.ranges]
        counts = {**dict.fromkeys(names, 400), "predicted": "can"}
        rows = [
            {x: dict(config)[x] for x in ("num_blocks", "max_depth", "pattern")} | run | counts
            for config in spec.configs()
            for run in compared((0, 0, 0), (1, 2, 40))
        ]
        table = comparison_table(own, pd.DataFrame(rows))
        cells, head = cells_of(table), table.splitlines()[0].strip("| ").split(" | ")
        assert len({tuple(row[:2]) for row in cells}) == len(cells) == len(rows) // 2
        at = head.index("published")
        assert Counter(row[at] for row in cells) == published
        beside = {(row[at + 1], row[at + 3], row[at + 4]) for row in cells}
        assert beside == {("can", "2 of 2", "1 of 2")}


def test_docs_and_pictures_agree_with_their_results() -> None:
    for page, anew in {**known.pages(), "proofs.md": proofs.page()}.items():
        assert (DOCS / page).read_text() == anew, "python -m benchmarks.known writes it anew"
    page = (DOCS / "memory.md").read_text()
    assert stops.read_stops(pd.read_csv(stops.RESULTS)) in page, "python -m benchmarks.stops"
    for atlas in ATLASES:
        if not atlas.results.exists():
            continue
        own = in_tables(atlas, pd.read_csv(atlas.results))
        if atlas.ranges:
            beside = beside_published(own, atlas.ranges[-1]).to_csv(index=False)
            assert results_file(f"{atlas.name}_published").read_text() == beside
        check_picture(atlas.name, pd.Series(picture_texts(atlas_cells(own))).explode())
    for sample in SAMPLES:
        cells = sample_cells(pd.read_csv(sample.results))
        check_picture(sample.name, cells["text"].str.split("\n").explode())


def check_picture(name: str, lines: "pd.Series[str]") -> None:
    """Asserts that a picture in the docs has these lines in its cells."""
    shown = (DOCS / f"{name}.svg").read_text()
    for line, times in lines.value_counts().items():
        assert shown.count(f">{line}<") == times, name
