"""Names that many rows share: sent once, and put into the rows by the browser."""

from collections.abc import Sequence

import altair as alt
import pandas as pd

NAMED = "configuration"
NUMBER = "configuration_number"


def chart_of(frame: pd.DataFrame, names: Sequence[str]) -> alt.Chart:
    """A chart of a frame whose column `configuration` holds some of these names.

    The names of settings are long, and with each of thousands of rows they would be most of what
    is sent.
    """
    places = pd.Index(names).get_indexer(pd.Index(frame[NAMED].astype(str)))
    numbered = frame.drop(columns=NAMED).assign(**{NUMBER: places})
    # Looked up: as an expression, the list of names would be gone through for every row.
    table = pd.DataFrame({NUMBER: range(len(names)), NAMED: list(names)})
    return alt.Chart(numbered).transform_lookup(
        lookup=NUMBER, from_=alt.LookupData(data=table, key=NUMBER, fields=[NAMED])
    )
