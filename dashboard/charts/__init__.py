"""Data frames to charts: pure functions."""

import altair as alt

# Whoever makes a chart sees to its size; with thousands of rows it is still drawn at once.
alt.data_transformers.disable_max_rows()
