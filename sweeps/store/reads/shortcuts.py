"""What shortcut readers make of test sets, as it is stored; and which have not been asked yet."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from sqlalchemy import exists, func, select

from seqcls.errors import SeqclsError
from seqcls.problem import Problem, resolve
from seqcls.shortcuts import READERS, decided_by, training_key
from seqcls.tasks import TASKS
from sweeps.records import read_rows
from sweeps.store.checks import read_config
from sweeps.store.database import Store
from sweeps.store.reads.misclassified import DrawnStrings
from sweeps.store.reads.overview import languages
from sweeps.store.reads.stored import problem_of
from sweeps.store.statements import one_of
from sweeps.store.tables import Config, Run, RunState, ShortcutRow, SweepRun, TestSetRow


@dataclass(frozen=True)
class Unread:
    """A test set that no readers were asked about that are fitted on one training."""

    test_set_id: int
    digest: str | None
    """That of its strings."""
    problem: Problem
    """One of those that are trained and tested so."""

    @property
    def training(self) -> str:
        """The hash of what determines the training strings."""
        return training_key(self.problem)


def unread_tests(store: Store, sweep_ids: Collection[int] | None = None) -> list[Unread]:
    """The tests of finished runs that no shortcut readers were asked about.

    Those of models trained elsewhere have none: nothing is known of their training strings.

    Args:
        sweep_ids: only of runs of these sweeps; of all where it is None.
    """
    finished = select(Run.id).where(Run.config_id == Config.id, Run.state == RunState.DONE)
    if sweep_ids is not None:
        members = select(SweepRun.run_id).where(one_of(SweepRun.sweep_id, sweep_ids))
        finished = finished.where(Run.id.in_(members))
    query = (
        select(Config.json, TestSetRow.id, TestSetRow.digest)
        .join(TestSetRow, TestSetRow.id == Config.test_set_id)
        .where(exists(finished.correlate(Config)), TestSetRow.digest.is_not(None))
        .order_by(Config.id)
    )
    known = select(ShortcutRow.test_set_id, ShortcutRow.training).distinct()
    with store.read() as connection:
        rows = connection.execute(query).all()
        read = {(row.test_set_id, row.training) for row in connection.execute(known)}
    unread: dict[tuple[int, str], Unread] = {}
    for text, test_set_id, digest in rows:
        problem = problem_of(text)
        if problem is None or problem.config.imported or not problem.kind.shortcut_readers:
            continue
        key = (test_set_id, training_key(problem))
        if key not in read:
            unread.setdefault(key, Unread(test_set_id, digest, problem))
    return list(unread.values())


def shortcut_scores(store: Store, config_ids: Collection[int]) -> pd.DataFrame:
    """What readers make of the tests of configurations, by length.

    Returns:
        config_id, reader (in the order of `seqcls.shortcuts.READERS`), reason (why it cannot be
        fitted), length, within (whether training strings have such a length), tested and right
        (strings, each as often as it occurs); a reader that cannot be fitted has one row without a
        length. Of tests that no readers were asked about there are no rows.
    """
    found: list[tuple[Any, ...]] = []
    for trained, ids, rows in _rows(store, config_ids, ("reader", "reason", "lengths")):
        for reader, reason, lengths in rows:
            each: list[tuple[Any, ...]]
            each = [(x, x in trained, *row) for x, *row in read_rows(lengths)]
            each = each or [(None, None, 0, 0)]
            found += [(config_id, reader, reason, *row) for config_id in ids for row in each]
    found.sort(key=lambda row: (row[0], _place(row[1])))
    columns = ["config_id", "reader", "reason", "length", "within", "tested", "right"]
    types: dict[str, Any]
    types = {"config_id": int, "length": "Int64", "within": "boolean", "tested": int, "right": int}
    return pd.DataFrame(found, columns=columns, dtype=object).astype(types)


def best_shortcut(scores: pd.DataFrame) -> pd.DataFrame:
    """The rows of the reader of each configuration that is right on most of its test strings.

    Of readers that are right on as many, those of the first in `seqcls.shortcuts.READERS`. There is
    none where no reader could be fitted.

    Args:
        scores: as `shortcut_scores` gives them.
    """
    fitted = scores[scores["length"].notna()]
    rights = fitted.groupby(["config_id", "reader"])["right"].sum()
    ranked = sorted(rights.index, key=lambda key: _rank(key[1], rights[key]))
    best = pd.DataFrame(ranked, columns=["config_id", "reader"]).drop_duplicates("config_id")
    return fitted.merge(best, on=["config_id", "reader"])


def _rank(reader: str, right: int) -> tuple[int, int]:
    """What readers are ordered by, the best first, by the strings that they are right on."""
    return -right, _place(reader)


def _place(reader: str) -> int:
    """Its place in `READERS`; a later version may have stored others, which come last."""
    return list(READERS).index(reader) if reader in READERS else len(READERS)


def shortcut_shares(scores: pd.DataFrame) -> pd.DataFrame:
    """What readers reach: config_id, reader, within, beyond, whole.

    Shares of the test strings that they are right on: of those of trained lengths, of those of
    others, of all; missing where there is none.

    Args:
        scores: as `shortcut_scores` gives them, or the best of them.
    """
    fitted = scores[scores["length"].notna()]
    sums = {}
    for name, chosen in (
        ("within", fitted["within"].astype(bool)),
        ("beyond", ~fitted["within"].astype(bool)),
        ("whole", fitted["length"].notna()),
    ):
        counts = fitted[["tested", "right"]].where(chosen, 0)
        both = counts.groupby([fitted["config_id"], fitted["reader"]], sort=False).sum()
        sums[name] = (both["right"] / both["tested"].where(both["tested"] > 0)).astype(float)
    return pd.DataFrame(sums).reset_index()


def best_shortcuts(store: Store, config_ids: Collection[int]) -> pd.DataFrame:
    """What the best reader of each configuration's test reaches: worked out once for each test.

    Returns:
        config_id, reader, within, beyond and whole, as `shortcut_shares`, tested (strings, each as
        often as it occurs) and all_read (whether the models were tested on all of them); no row of
        a test that no readers were asked about.
    """
    found: list[tuple[Any, ...]] = []
    for trained, ids, rows in _rows(store, config_ids, ("reader", "lengths")):
        read = {reader: read_rows(lengths) for reader, lengths in rows if lengths}
        if not read:
            continue
        best = min(read, key=lambda x: _rank(x, sum(right for *_, right in read[x])))
        counts = np.array([row[1:] for row in read[best]])  # strings, and right ones
        within = np.array([row[0] in trained for row in read[best]])
        sums = [counts[chosen].sum(axis=0) for chosen in (within, ~within, slice(None))]
        shares = [right / strings if strings else np.nan for strings, right in sums]
        found += [(config_id, best, *shares, sums[-1][0]) for config_id in ids]
    types = {"config_id": int, "reader": str, "within": float, "beyond": float, "whole": float}
    best_of_each = pd.DataFrame(found, columns=[*types, "tested"]).astype({**types, "tested": int})
    query = select(Run.config_id, func.max(Run.tested)).group_by(Run.config_id)
    with store.read() as connection:
        read_of = one_of(Run.config_id, [row[0] for row in found])
        tested = {row[0]: row[1] for row in connection.execute(query.where(read_of))}
    all_read = np.array([tested.get(row[0]) == row[-1] for row in found], dtype=bool)
    return best_of_each.assign(all_read=all_read)


def deciding(store: Store, config_ids: Collection[int]) -> dict[int, str | None]:
    """What decides the language of each configuration, as `seqcls.shortcuts.decided_by` says it."""
    every = languages(store)
    # One configuration of each language tells.
    first = {every[config_id]: config_id for config_id in config_ids}
    query = select(Config.id, Config.json).where(one_of(Config.id, first.values()))
    with store.read() as connection:
        problems = {every[row[0]]: problem_of(row[1]) for row in connection.execute(query)}
    by = {x: None if problem is None else decided_by(problem) for x, problem in problems.items()}
    return {config_id: by[every[config_id]] for config_id in config_ids}


def shortcuts_by_drawn(store: Store, config_ids: Collection[int]) -> pd.DataFrame:
    """What readers are right on by how test strings were drawn.

    Returns:
        config_id, reader, drawn (one of `seqcls.results.DRAWN`), tested, right (strings, each as
        often as it occurs); no row of tests of whose strings that is not known.
    """
    found: list[tuple[Any, ...]] = []
    every = list(_rows(store, config_ids, ("test_set_id", "reader", "correct")))
    with store.read() as connection:
        for _, ids, rows in every:
            strings = DrawnStrings.read(connection, rows[0].test_set_id) if rows else None
            for _, reader, correct in rows:
                if strings is None or not isinstance(correct, bytes | memoryview):
                    continue
                right = np.unpackbits(np.frombuffer(correct, dtype=np.uint8)).astype(bool)
                if len(right) >= len(strings.numbers):
                    right = right[: len(strings.numbers)]
                    counted = strings.tally(np.ones_like(right), right)
                    found += [(x, reader, *counts) for x in ids for counts in counted]
    return pd.DataFrame(found, columns=["config_id", "reader", "drawn", "tested", "right"])


def with_shortcuts(store: Store, runs: pd.DataFrame) -> pd.DataFrame:
    """Runs with what the best reader of their test reaches: `shortcut_within`, `shortcut_beyond`.

    Shares of the test strings of trained lengths, and of those of others; missing where no reader
    was asked, or none could be fitted.
    """
    shares = best_shortcuts(store, set(runs["config_id"].tolist())).set_index("config_id")
    reached = {
        f"shortcut_{name}": runs["config_id"].map(shares[name]).astype(float)
        for name in ("within", "beyond")
    }
    return runs.assign(**reached)


def _rows(
    store: Store, config_ids: Collection[int], names: Sequence[str]
) -> Iterator[tuple[range, list[int], list[Any]]]:
    """Columns of the rows of each test and training that these configurations have.

    Each with the lengths of the training strings and the ids of its configurations.
    """
    columns = [getattr(ShortcutRow, name) for name in names]
    with store.read() as connection:
        known = set(connection.scalars(select(ShortcutRow.test_set_id).distinct()))
        if not known:
            return
        query = select(Config.id, Config.json, Config.test_set_id)
        query = query.where(one_of(Config.id, config_ids), one_of(Config.test_set_id, known))
        tests: dict[tuple[int, str], tuple[range, list[int]]] = {}
        for config_id, text, test_set_id in connection.execute(query.order_by(Config.id)):
            training = _training(text)
            if training is not None and test_set_id is not None:
                key, lengths = training
                tests.setdefault((test_set_id, key), (lengths, []))[1].append(config_id)
        for (test_set_id, key), (trained, ids) in tests.items():
            own = select(*columns).where(ShortcutRow.test_set_id == test_set_id)
            yield trained, ids, list(connection.execute(own.where(ShortcutRow.training == key)))


@lru_cache(maxsize=2**15)
def _training(text: str) -> tuple[str, range] | None:
    """The training key and lengths of a stored configuration, where they are known here.

    Of each once: pages ask for all configurations whenever a run has ended.
    """
    problem = problem_of(text) or _of_our_network(text)
    if problem is None or problem.config.imported:
        return None
    return training_key(problem), problem.train.lengths


def _of_our_network(text: str) -> Problem | None:
    """The same strings for a network of our own, where the package of a network is not here; None
    where their language is from outside, too.
    """
    with suppress(SeqclsError, ValueError):
        config = read_config(text)
        if TASKS.is_own(config.task):
            ours = {"plugins": "", "architecture": "rnn", "positions": "none", "layers": ""}
            return replace(resolve(config.model_copy(update=ours)), config=config)
    return None
