"""Names that many rows share: sent once, and put into the rows by the browser."""

import json
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
    chart: alt.Chart = alt.Chart(numbered).transform_calculate(
        **{NAMED: f"{json.dumps(list(names))}[datum.{NUMBER}]"}
    )
    return chart
