"""The numbers of the docs' known results: every model in a CSV file, and what pages make of them.

python -m benchmarks.known [DATABASE ...]

writes the tables between the marks of the pages, and their pictures, from the CSV files in
`docs/results`. Where databases are named, it first writes the files of what they hold.
"""

import sys
from collections.abc import Sequence

import pandas as pd

from benchmarks.atlases import ATLASES, Atlas, atlas_cells, atlas_picture, in_tables
from benchmarks.comparisons import COMPARISONS, Comparison
from benchmarks.mlregtest import SAMPLES, Sample, sample_cells
from benchmarks.published_memories import beside_published
from benchmarks.tables import DOCS, picture, put, results_file, write_picture
from sweeps.api import open_store, runs

KNOWN: tuple[Atlas | Comparison | Sample, ...] = (*ATLASES, *COMPARISONS, *SAMPLES)


def pages() -> dict[str, str]:
    """The pages as the CSV files have them, by name."""
    made: dict[str, str] = {}
    for own in (x for x in KNOWN if x.results.exists()):
        text = made.get(own.page) or (DOCS / own.page).read_text(encoding="utf-8")
        made[own.page] = put(text, own.tables(pd.read_csv(own.results)))
    return made


def write_results(db: str) -> None:
    """Writes the CSV files of what a database holds: of atlases any sweep, of others the first."""
    store = open_store(db)
    names = {name for own in runs(store)["sweeps"] for name in own}
    for own in KNOWN:
        held = [name for name in own.sweeps if name in names]
        if held and (own.name in held or isinstance(own, Atlas)):
            own.models(store, held).to_csv(own.results, index=False)


def main(databases: Sequence[str]) -> None:
    for db in databases:
        write_results(db)
    for name, text in pages().items():
        (DOCS / name).write_text(text, encoding="utf-8")
    for atlas in (x for x in ATLASES if x.results.exists()):
        found = in_tables(atlas, pd.read_csv(atlas.results))
        write_picture(atlas.name, atlas_picture(atlas_cells(found)))
        if atlas.ranges:
            beside = beside_published(found, atlas.ranges[-1])
            beside.to_csv(results_file(f"{atlas.name}_published"), index=False)
    for sample in (x for x in SAMPLES if x.results.exists()):
        cells = sample_cells(pd.read_csv(sample.results))
        write_picture(sample.name, picture(cells, "Learned", 118))


if __name__ == "__main__":
    main(sys.argv[1:])
