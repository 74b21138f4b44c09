"""Names of tasks."""

from collections import Counter
from collections.abc import Iterable

from seqcls.config import default_fields


def task_name(task: str, *, usual_too: bool = False) -> str:
    """A task as people write it: without the names of its settings and without usual values.

    Args:
        usual_too: with all values.
    """
    name, *settings = task.split(", ")
    values = dict(x.split("=", 1) for x in settings if "=" in x)
    # A pattern defines its language by itself.
    if name == "regular" and not usual_too:
        return values.get("pattern", name)
    usual = {x: str(y).lower() for x, y in default_fields().items()}
    unusual = {x: y for x, y in values.items() if x != "alphabet" and y != usual.get(x)}
    more = values if usual_too else unusual
    return ", ".join(x.replace("_", " ") for x in (name, *(f"{x} {y}" for x, y in more.items())))


def task_names(tasks: Iterable[str]) -> dict[str, str]:
    """Tasks as people write them; with all their values where two would be called the same."""
    names = {task: task_name(task) for task in tasks}
    often = Counter(names.values())
    return {
        task: name if often[name] == 1 else task_name(task, usual_too=True)
        for task, name in names.items()
    }
