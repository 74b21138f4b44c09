"""The rows of a query as a data frame."""

from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Select

from sweeps.store.databases.bulk import fetched
from sweeps.store.databases.engine import Store

if TYPE_CHECKING:
    # Imported where frames are made: a sweep begins half a second sooner without.
    import pandas as pd


def frame(store: Store, query: Select[*tuple[Any, ...]]) -> "pd.DataFrame":
    """All rows of a query, in a transaction of its own."""
    with store.begin() as connection:
        return read(connection, query)


def read(connection: Connection, query: Select[*tuple[Any, ...]]) -> "pd.DataFrame":
    """All rows of a query, as part of the connection's transaction.

    A column of whole numbers stays one where some are missing.
    """
    import pandas as pd

    # Not pandas.read_sql_query, whose own error would hide that of the database.
    names, rows = fetched(connection, query)
    frame = pd.DataFrame(rows, columns=names)
    for place, name in enumerate(names):
        # Pandas makes fractions of them; rounded ones, of great numbers.
        if frame[name].dtype == float and not any(isinstance(row[place], float) for row in rows):
            frame[name] = pd.array([row[place] for row in rows], dtype="Int64")
    return frame
