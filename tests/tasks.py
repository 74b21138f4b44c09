"""The names of tasks by the kind of their answers."""

from seqcls.kinds import kind_name
from seqcls.tasks import TASKS

LANGUAGES = sorted(name for name in TASKS if kind_name(TASKS[name]) == "membership")
TRANSDUCTIONS = sorted(name for name in TASKS if kind_name(TASKS[name]) == "transduction")
