"""Tab *Why*."""

from dashboard.model.opened import Opened


def show(opened: Opened) -> None:
    """Draws the tab."""


def offer_handout(opened: Opened) -> None:
    """Draws the button."""
