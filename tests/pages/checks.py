"""Checks of every page: its numbers equal those of SQL, and its refusals have a reason."""

from tests.oracles.compared import Compared
from tests.oracles.facts import Facts
from tests.oracles.reasons import Models, check_refusal
from tests.pages.shown import Shown


def check_page(models: Models, page: Shown) -> int:
    """Checks a page about models of one kind; returns how many numbers were compared.

    Args:
        models: those that it is about.
        page: what it shows.
    """
    for message in (*page.errors, *page.notes):
        check_refusal(models, message)
    return check_numbers(models.facts, models.kind.name, page)


def check_numbers(facts: Facts, sweep: str, page: Shown) -> int:
    """Compares every number of a page about one sweep with SQL; returns how many there were."""
    compared = Compared(facts, sweep)
    for table in page.tables:
        compared.rows(table.to_dict("records"), "a table")
    for chart in page.charts:
        for frame in chart:
            compared.rows(frame.to_dict("records"), "a chart")
    return compared.number
