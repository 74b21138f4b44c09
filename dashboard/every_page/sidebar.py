"""The sidebar of every page: launch a sweep, watch sweeps in training, filter."""

from dashboard.every_page import filters
from dashboard.launch import panel
from dashboard.sweeps_page import running


def show(page: str, filtered: bool) -> None:
    """Draws all of it.

    Args:
        page: the path of the page that is shown.
        filtered: whether the page obeys the filters.
    """
    panel.show_link(page)
    running.show()
    filters.show(filtered, page)
