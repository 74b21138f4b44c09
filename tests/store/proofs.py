"""Databases of recurrent networks made by hand, before and after proofs: a part of the stock."""

import shutil
from pathlib import Path

from sweeps import api
from sweeps.store.opening import open_reader, open_writer
from tests.databases import change, load_parity, reseal

JUDGED = (
    "UPDATE run SET tested_within = 100, wrong_within = 0, within_from = 'test', "
    "tested_beyond = 100, wrong_beyond = 0 WHERE id = 2"
)


def make(folder: Path) -> None:
    """Makes `loaded.db`, a network that is right on every string; `proved.db`, once it is proved;
    `both.db`, with one beside it without a test error, which a repetition refutes; `every.db`, with
    a third that is not decided.
    """
    load_parity(folder / "loaded.db")
    shutil.copy(folder / "loaded.db", folder / "proved.db")
    assert api.prove(open_reader(str(folder / "proved.db")), "hand/0").outcome == "proved"
    shutil.copy(folder / "proved.db", folder / "both.db")
    load_parity(folder / "both.db", 2.1, "soft", 8)
    assert api.prove(open_reader(str(folder / "both.db")), "soft/0").outcome == "refuted"
    shutil.copy(folder / "both.db", folder / "every.db")
    load_parity(folder / "every.db", 6.0, "open", 8)
    third = api.prove(open_reader(str(folder / "every.db")), "open/0", regions=1)
    assert third.outcome == "not decided"
    change(folder / "both.db", JUDGED)
    reseal(open_writer(str(folder / "both.db")))
