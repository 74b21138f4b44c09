"""Tab *Limits*."""

from dashboard.model.opened import Opened


def show(opened: Opened) -> None:
    """Draws the tab."""
