"""What tasks are called."""

from collections.abc import Iterable

from seqcls.config import default_fields


def task_name(task: str) -> str:
    """A task as people write it: without the names of its settings and without usual values."""
    name, *settings = task.split(", ")
    values = dict(x.split("=", 1) for x in settings if "=" in x)
    if name == "regular":
        return values.get("pattern", name)
    usual = {x: str(y).lower() for x, y in default_fields().items()}
    more = [f"{x} {y}" for x, y in values.items() if x != "alphabet" and y != usual.get(x)]
    return ", ".join([name, *more]).replace("_", " ")


def task_names(tasks: Iterable[str]) -> dict[str, str]:
    """Tasks as people write them; as they are stored where two would be called the same."""
    names = {task: task_name(task) for task in tasks}
    return names if len({*names.values()}) == len(names) else {task: task for task in names}
