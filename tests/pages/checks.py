"""What holds of every page: its numbers are those of SQL, and what it refuses has a reason."""

from typing import Any

from tests.oracles.compared import Compared
from tests.oracles.facts import Facts
from tests.oracles.reasons import Models, check_refusal
from tests.pages.shown import Shown


def check_page(models: Models, page: Shown, *, of_all: bool = True) -> int:
    """Checks what a page says about models of one kind, and gives how many numbers were compared.

    Args:
        models: those that it is about.
        page: what it shows.
        of_all: whether lines are shares of all strings, and not of those of one label.
    """
    for said in (*page.errors, *page.notes):
        check_refusal(models, said)
    return check_numbers(models.facts, models.kind.name, page, of_all=of_all)


def check_numbers(facts: Facts, sweep: str, page: Shown, *, of_all: bool = True) -> int:
    """Holds every number of a page about one sweep against SQL; gives how many there were."""
    compared = Compared(facts, sweep, page.run, of_all=of_all)
    for table in page.tables:
        compared.rows(table.to_dict("records"), "a table")
    for chart in page.charts:
        for frame in chart:
            compared.rows(frame.to_dict("records"), "a chart")
    _check_glance(compared, page.numbers)
    return compared.number


def _check_glance(compared: Compared, numbers: dict[str, str]) -> None:
    runs = compared.facts.sweeps[compared.sweep]
    done = [run for run in runs if run["state"] == "done"]
    failed = sum(run["state"] == "failed" for run in runs)
    failing = sum(run["wrong"] > 0 for run in done)
    true: dict[str, Any] = {
        "Models tested": len(done),
        "Queued or in training": len(runs) - len(done) - failed,
        "Training failed": failed,
        "Failing models": f"{failing} ({failing / len(done):.0%})" if done else "none yet",
    }
    if compared.run_id is not None:
        run = compared.facts.runs[compared.run_id]
        solved = run["solved_length"] if run["is_solved"] else "none"
        true |= {"Solved length": solved, "Misclassified": run["wrong"]}
        true |= {"False positives": run["fp"], "False negatives": run["fn"]}
        true |= {"Wrongly answered": run["wrong"]}
    for name in set(true) & set(numbers):
        assert numbers[name] == str(true[name]), name
        compared.number += 1
