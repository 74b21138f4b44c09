"""What stands beside every page: launch a sweep, see how sweeps go on, filter."""

from dashboard import filters, launch, running


def show() -> None:
    """Draws all of it."""
    launch.show()
    running.show()
    filters.show()
