"""Tiny sequence models: strings in, trained and measured models out.

import seqcls

problem = seqcls.resolve(seqcls.RunConfig(task="parity"))
trained = seqcls.train([(problem, model_seed) for model_seed in range(8)])
print(seqcls.evaluate(problem, [run.kept_weights for run in trained]))
print(seqcls.TrainedModel(problem, trained[0].kept_weights).answer("0110"))

db = seqcls.open("runs.db")
print(db.runs("all_initializations", failing=True))
print(db.model("all_initializations/2").answer("aab"))
"""

from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    open: Any  # noqa: A001 (it opens a database, as others open a file)
    sweep: Any
    from seqcls.config import RunConfig
    from seqcls.evaluation import evaluate
    from seqcls.interpretability.trained_model import TrainedModel
    from seqcls.models import MODELS
    from seqcls.problem import Problem, resolve
    from seqcls.questions import RunModel
    from seqcls.tasks import TASKS
    from seqcls.training import train_group as train

__version__ = "0.9.0"

__all__ = [
    "MODELS",
    "TASKS",
    "Problem",
    "RunConfig",
    "TrainedModel",
    "evaluate",
    "load_run",
    "open",
    "resolve",
    "sweep",
    "train",
]  # fmt: skip

_DEFINED_IN = {
    "MODELS": "seqcls.models:MODELS",
    "Problem": "seqcls.problem:Problem",
    "RunConfig": "seqcls.config:RunConfig",
    "TASKS": "seqcls.tasks:TASKS",
    "TrainedModel": "seqcls.interpretability.trained_model:TrainedModel",
    "evaluate": "seqcls.evaluation:evaluate",
    "resolve": "seqcls.problem:resolve",
    "train": "seqcls.training:train_group",
}
"""The module and name of each public name, imported on first use, since some take a second."""


def load_run(db: Any, run: int | str, epoch: int | None = None) -> "RunModel":
    """Loads a stored run's model, by default of the best epoch: `load_run("runs.db", "heads/2")`.

    Raises:
        StoreError: there is no such database, run, or weights.
    """
    # Packages above know databases, and this one may not import from them.
    (known,) = entry_points(group="seqcls.api", name="load_run")
    model: RunModel = known.load()(db, run, epoch)
    return model


_FROM_ENTRY_POINTS = ("open", "sweep")
"""Names of packages above, which know databases: `seqcls.open("runs.db").runs("heads")`."""


def __getattr__(name: str) -> object:
    if name in _FROM_ENTRY_POINTS:
        (known,) = entry_points(group="seqcls.api", name=name)
        globals()[name] = above = known.load()
        return above
    if name not in _DEFINED_IN:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, defined = _DEFINED_IN[name].partition(":")
    # A global is found without calling this function again.
    globals()[name] = found = getattr(import_module(module), defined)
    return found


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
