"""Misclassified strings as pages search them, and test strings as they show them."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from sqlalchemy import select

from seqcls.errors import InvalidStringError
from seqcls.problem import tokenizer_of
from seqcls.results import DRAWN
from sweeps.store.database import Store
from sweeps.store.reads import misclassified, queries
from sweeps.store.reads.misclassified import errors_of_runs
from sweeps.store.reads.selection import KINDS, Kind
from sweeps.store.reads.test_sets import are_tested, stored_test_set
from sweeps.store.tables import Config, Run


@dataclass(frozen=True)
class ErrorSearch:
    """Which misclassified strings to read."""

    text: str = ""
    """Text that the string contains, as it is stored, such as `ab{100}`, as it is shown, or with
    its repetitions written out."""
    kind: Kind | None = None
    drawn: str | None = None
    """How it was drawn, one of `seqcls.results.DRAWN`."""


EVERY_ERROR = ErrorSearch()


def string_errors(
    store: Store,
    run_id: int,
    search: ErrorSearch = EVERY_ERROR,
    limit: int | None = None,
    offset: int = 0,
) -> pd.DataFrame:
    """Those of a run's misclassified strings that are searched, the shortest first."""
    errors = misclassified.string_errors(store, run_id)
    if search.drawn is not None:
        errors = errors[errors["drawn"] == search.drawn] if "drawn" in errors else errors.head(0)
    if search.text:
        errors = errors[_contain(store, run_id, errors["string"], search.text)]
    if search.kind is not None:
        errors = errors[errors["label"] == KINDS.index(search.kind)]
    end = None if limit is None else offset + limit
    return errors.iloc[offset:end].reset_index(drop=True)


def _contain(store: Store, run_id: int, strings: "pd.Series[str]", text: str) -> "pd.Series[bool]":
    """Which strings contain a text as they are stored, as pages show them, or written out."""
    tokenizer = tokenizer_of(queries.run_config(store, run_id))
    contain = strings.str.contains(text, regex=False)
    if tokenizer is None:
        return contain
    shown = strings.map(tokenizer.display)
    contain |= shown.str.contains(tokenizer.display(text), regex=False)
    try:
        length = len(tokenizer.encode(text))
    except InvalidStringError:
        return contain  # A part of the notation, such as `{10`.
    part = tokenizer.characters(text, length)
    has_counts = strings.str.contains("{", regex=False)
    written = strings[has_counts & ~contain].map(lambda x: tokenizer.characters(x, length))
    contain[written.index] = written.str.contains(part, regex=False)
    return contain


def strings_by_drawn(store: Store, run_id: int, each: int) -> pd.DataFrame:
    """Some test strings of a run of each kind, by how they were drawn: right ones and wrong ones.

    Args:
        each: of right ones and of wrong ones at most so many of each kind, evenly from the shortest
            to the longest.

    Returns:
        drawn (one of `seqcls.results.DRAWN`, in their order), right, string, length; no row where
        it is not known how they were drawn.
    """
    query = select(Config.id, Config.test_set_id).join(Run, Run.config_id == Config.id)
    with store.read() as connection:
        config_id, test_set_id = connection.execute(query.where(Run.id == run_id)).one()
        test = stored_test_set(connection, test_set_id or 0)
        wrong = errors_of_runs(connection, [run_id])["number"].to_numpy(dtype=np.int64)
    right = np.ones(len(test.texts), dtype=bool)
    right[wrong] = False
    columns = {"drawn": test.drawn, "right": right, "string": test.texts, "length": test.lengths}
    table = pd.DataFrame(columns)[are_tested(queries.configs(store, (config_id,))[config_id], test)]
    table = table[table["drawn"].notna()].sort_values("length", kind="stable")
    parts = [
        rows.iloc[np.linspace(0, len(rows) - 1, min(each, len(rows))).round().astype(int)]
        for drawn in DRAWN
        for is_right in (False, True)
        for rows in [table[(table["drawn"] == drawn) & (table["right"] == is_right)]]
        if len(rows)
    ]
    return pd.concat([table.head(0), *parts], ignore_index=True)
