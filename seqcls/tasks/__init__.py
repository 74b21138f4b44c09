"""The languages to learn, one a file. A new one is a file and a line here."""

from seqcls.tasks.base import CountTask, Task
from seqcls.tasks.contains_all import ContainsAll

TASKS: dict[str, type[Task]] = {"contains_all": ContainsAll}

__all__ = ["TASKS", "CountTask", "Task"]
