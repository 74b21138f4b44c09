"""The names of tasks by the kind of their answers."""

from seqcls.kinds import kind_name
from seqcls.tasks import TASKS

_DEFINED = [name for name in TASKS if "dataset" not in TASKS[name].reads]
LANGUAGES = sorted(name for name in _DEFINED if kind_name(TASKS[name]) == "membership")
TRANSDUCTIONS = sorted(name for name in _DEFINED if kind_name(TASKS[name]) == "transduction")
