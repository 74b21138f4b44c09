"""Data frames to charts: pure functions."""

import altair as alt

# Each chart limits its own size; thousands of rows are still drawn at once.
alt.data_transformers.disable_max_rows()
