"""Misclassified strings, from their packs and the strings of test sets; kinds of errors."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from sqlalchemy import Connection, Row, select

from seqcls.errors import StoreDamagedError
from seqcls.results import StringErrors
from sweeps.results import Output
from sweeps.store.columns import ERROR_KINDS, unpacked, unpacked_outputs
from sweeps.store.databases.engine import Store
from sweeps.store.databases.statements import one_of, read
from sweeps.store.reads.overview import last_lengths
from sweeps.store.tables import Config, ErrorPack, OutputPack, Run, TestString

if TYPE_CHECKING:
    import pandas as pd


STRING_COLUMNS = ("string", "length", "label", "occurrences", "target")

OUTPUT_COLUMNS = ("output", "first_wrong", "log_probability", "error_kind")
"""What is known of a transduction's errors besides."""


def errors_of_runs(connection: Connection, run_ids: Sequence[int]) -> "pd.DataFrame":
    """Misclassified strings of these runs, by run and number, which sorts them as text.

    Returns:
        run_id, number, string, length, label, logit, occurrences; and target, where any of the
        runs is of a task that is no language, whose strings have no label; and `OUTPUT_COLUMNS`,
        where any is of a transduction: the output, where it and the target part (tokens), the
        log-probability of the target (nats) and the kind of the error.
    """
    import pandas as pd

    rows = packs_of(connection, run_ids)
    strings = {
        test_set_id: strings_of(connection, test_set_id)
        for test_set_id in {row.test_set_id for row in rows}
    }
    outputs = outputs_of(connection, run_ids)
    parts = []
    for run_id, test_set_id, numbers, logits in rows:
        errors = errors_in(run_id, bytes(numbers), bytes(logits))
        part = those_of(strings[test_set_id], errors.numbers).reset_index()
        part.insert(0, "run_id", run_id)
        part["logit"] = errors.logits
        if run_id in outputs:
            given = one_each(run_id, outputs[run_id], len(errors))
            part = part.join(pd.DataFrame(given, columns=["output", "first_wrong", "error_kind"]))
            part["log_probability"] = part["logit"]
        parts.append(part)
    columns = ["run_id", "number", "string", "length", "label", "logit", "occurrences"]
    if not parts:
        return _none(columns)
    joined = pd.concat(parts, ignore_index=True)
    if outputs:
        joined = joined.astype({"label": "Int64", "first_wrong": "Int64"})
        return joined[[*columns, "target", *OUTPUT_COLUMNS]]
    if joined["target"].isna().all():
        return joined[columns]
    return joined.astype({"label": "Int64"})[[*columns, "target"]]


def packs_of(
    connection: Connection, run_ids: Sequence[int]
) -> Sequence[Row[int, int | None, bytes, bytes]]:
    """The packed errors of these runs: run_id, test_set_id, numbers, logits, by run."""
    packs = (
        select(ErrorPack.run_id, Config.test_set_id, ErrorPack.numbers, ErrorPack.logits)
        .join(Run, Run.id == ErrorPack.run_id)
        .join(Config, Config.id == Run.config_id)
        .where(one_of(ErrorPack.run_id, run_ids))
        .order_by(ErrorPack.run_id)
    )
    return connection.execute(packs).all()


def outputs_of(connection: Connection, run_ids: Sequence[int]) -> dict[int, list[Output]]:
    """What those of these runs that are of transductions gave for the strings they got wrong.

    Raises:
        StoreDamagedError: a pack is none.
    """
    packs = select(OutputPack.run_id, OutputPack.outputs).where(one_of(OutputPack.run_id, run_ids))
    rows = connection.execute(packs.order_by(OutputPack.run_id)).all()
    return {run_id: unpacked_outputs(outputs) for run_id, outputs in rows}


def one_each(run_id: int, outputs: list[Output], errors: int) -> list[Output]:
    """A run's outputs, of which there is one for each error.

    Raises:
        StoreDamagedError: there is not.
    """
    if len(outputs) != errors:
        said = f"{len(outputs):,} outputs of {errors:,} misclassified strings"
        raise StoreDamagedError(f"run {run_id} (output_pack): {said}")
    return outputs


def strings_of(connection: Connection, test_set_id: int) -> "pd.DataFrame":
    """A test set's strings: `STRING_COLUMNS`, indexed by number."""
    query = select(TestString.number, *(getattr(TestString, name) for name in STRING_COLUMNS))
    query = query.where(TestString.test_set_id == test_set_id)
    return read(connection, query.order_by(TestString.number)).set_index("number")


def errors_in(run_id: int, numbers: bytes, logits: bytes) -> StringErrors:
    """A pack of errors as what it says.

    Raises:
        StoreDamagedError: its numbers and logits are not of equally many strings.
    """
    try:
        return unpacked(numbers, logits)
    except ValueError as error:
        raise StoreDamagedError(f"run {run_id} (error_pack): {error}") from None


def those_of(strings: "pd.DataFrame", numbers: np.ndarray) -> "pd.DataFrame":
    """Rows of `strings_of` by their numbers.

    Raises:
        StoreDamagedError: the test set has no string of such a number.
    """
    missing = np.setdiff1d(numbers, strings.index.to_numpy())
    if len(missing):
        raise StoreDamagedError(
            f"test_string: {len(missing):,} strings that runs got wrong are missing from their "
            f"test set, number {missing[0]} among them"
        )
    return strings.loc[numbers]


def _none(columns: list[str]) -> "pd.DataFrame":
    """No error, in columns of the types that errors have."""
    import pandas as pd

    types = {"string": object, "logit": np.float64}
    return pd.DataFrame({name: pd.Series(dtype=types.get(name, np.int64)) for name in columns})


# Reads of how a transduction's run fails: kinds of errors, and where outputs leave targets.


def error_kinds_by_length(store: Store, run_id: int, width: int) -> pd.DataFrame:
    """How often a run made each kind of error on strings of similar length.

    Args:
        store: where to read.
        run_id: of a transduction; another has no row.
        width: lengths that make one row: with 10, the lengths 0 to 10, 11 to 20, and so on.

    Returns:
        first_length, last_length, error_kind, strings (each as often as it occurs in the test
        set), kinds in the order of `ERROR_KINDS`; no row where there is no such error.
    """
    table = _summed(store, run_id, width, "error_kind")
    table["error_kind"] = pd.Categorical(table["error_kind"], ERROR_KINDS)
    table = table.sort_values(["first_length", "error_kind"], ignore_index=True)
    return table.astype({"error_kind": object})


def first_wrong_places(store: Store, run_id: int, width: int) -> pd.DataFrame:
    """How often a run's outputs part from their targets at each place, on strings as above.

    Returns:
        first_length, last_length, first_wrong (tokens that are right before), strings.
    """
    return _summed(store, run_id, width, "first_wrong")


def _summed(store: Store, run_id: int, width: int, what: str) -> pd.DataFrame:
    """The test strings that a run got wrong, by length and what their outputs say."""
    with store.begin() as connection:
        errors = errors_of_runs(connection, [run_id])
    # Of no transduction there is nothing to count.
    errors = errors if what in errors else errors.head(0).assign(**{what: None})
    first = (errors["length"] - 1) // width * width + 1
    # The empty string is with those of one token, unless each length has a row of its own.
    first = first.where(errors["length"] > width, 0) if width > 1 else errors["length"]
    counted = errors.assign(first_length=first).groupby(["first_length", what])["occurrences"].sum()
    table = counted.rename("strings").reset_index()
    table.insert(1, "last_length", last_lengths(table["first_length"], width))
    return table
