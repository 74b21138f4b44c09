"""What stands beside every page: launch a sweep, see how sweeps go on, filter."""

from dashboard import filters, running
from dashboard.launch import panel


def show(page: str, filtered: bool) -> None:
    """Draws all of it.

    Args:
        page: the path of the page that is shown.
        filtered: whether the page obeys the filters.
    """
    panel.show()
    running.show()
    filters.show(filtered, page)
