"""Pages that are opened while somebody else deletes sweeps and trains others."""

import random
import threading
from itertools import count
from pathlib import Path

import pytest

from sweeps.store import writer
from sweeps.store.database import Store
from sweeps.store.opening import open_reader, open_writer
from sweeps.store.verification import verify
from sweeps.work.machine import WorkOptions
from sweeps.work.worker import work
from tests.app import PAGES, open_app
from tests.conftest import LONG, SHORT
from tests.databases import spec, stored_sweeps

FIXED = {**SHORT, "max_num_epochs": 1}


def submit(store: Store, number: int) -> int:
    """One more sweep of two models, whose settings no other sweep has."""
    own = spec(
        name=f"sweep_{number}",
        model_seeds=[number, number + 1],
        fixed={**FIXED, "feed_forward_size": number % 50 + 1},
    )
    sweep_id = writer.submit(store, own)
    work(store, [sweep_id], WorkOptions(0))
    return sweep_id


def change(store: Store, over: threading.Event, changes: list[str], seed: int) -> None:
    """Deletes a sweep or trains another, again and again, as people may."""
    generator = random.Random(seed)
    numbers = count(10)
    while not over.wait(0.3):
        known = stored_sweeps(store)["id"].tolist()
        if len(known) > 1 and generator.random() < 0.6:
            writer.delete(store, generator.choice(known))
            changes.append("deleted")
        else:
            submit(store, next(numbers))
            changes.append("trained")


@pytest.mark.cases(10)
def test_pages_are_drawn_while_sweeps_come_and_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    db = tmp_path / "x.db"
    store = open_writer(str(db))
    for number in range(4):
        submit(store, number)
    over, changes = threading.Event(), list[str]()
    thread = threading.Thread(target=change, args=(open_writer(str(db)), over, changes, seed))
    thread.start()
    enough, needed = (2 if LONG else 1) * len(PAGES), {"deleted", "trained"}
    try:
        for number in range(10 * enough):
            app = open_app(monkeypatch, db, PAGES[number % len(PAGES)])
            page = PAGES[number % len(PAGES)]
            assert not app.exception, page
            # A wrong answer to a string is shown as an error, too.
            errors = [x.value for x in app.error if "but the model predicts" not in x.value]
            assert not errors, f"{page} shows an error in place of content"
            # Where pages are drawn faster than sweeps change, more of them are.
            if number + 1 >= enough and needed <= set(changes):
                break
    finally:
        over.set()
        thread.join()
    print({what: changes.count(what) for what in sorted(needed)}, "meanwhile")
    assert needed <= set(changes)
    assert verify(open_reader(str(db))).damages == []
