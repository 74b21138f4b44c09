"""Tab *Training*."""

from dashboard import data, page
from dashboard.model import training_sections as sections
from dashboard.model.opened import Opened

_losses = data.cached(sections.losses)


def show(opened: Opened) -> None:
    """Draws the tab."""
    page.render(_losses(opened.run), f"training {opened.run}")
