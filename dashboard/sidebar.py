"""What stands beside every page: launch a sweep, see how sweeps go on, filter."""

from dashboard import filters, running
from dashboard.launch import panel


def show() -> None:
    """Draws all of it."""
    panel.show()
    running.show()
    filters.show()
