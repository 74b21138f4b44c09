"""Tiny sequence models: strings in, trained and measured models out.

import seqcls

problem = seqcls.resolve(seqcls.RunConfig(task="parity"))
trained = seqcls.train([(problem, model_seed) for model_seed in range(8)])
print(seqcls.evaluate(problem, [run.kept_weights for run in trained]))
print(seqcls.TrainedModel(problem, trained[0].kept_weights).answer("0110"))
"""

from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seqcls.config import RunConfig
    from seqcls.evaluation import evaluate
    from seqcls.interpretability.trained_model import RunModel, TrainedModel
    from seqcls.models import MODELS
    from seqcls.problem import Problem, resolve
    from seqcls.tasks import TASKS
    from seqcls.training import train_group as train

__version__ = "0.4.0"

__all__ = [
    "MODELS",
    "TASKS",
    "Problem",
    "RunConfig",
    "TrainedModel",
    "evaluate",
    "load_run",
    "resolve",
    "train",
]  # fmt: skip

_PLACES = {
    "MODELS": "seqcls.models:MODELS",
    "Problem": "seqcls.problem:Problem",
    "RunConfig": "seqcls.config:RunConfig",
    "TASKS": "seqcls.tasks:TASKS",
    "TrainedModel": "seqcls.interpretability.trained_model:TrainedModel",
    "evaluate": "seqcls.evaluation:evaluate",
    "resolve": "seqcls.problem:resolve",
    "train": "seqcls.training:train_group",
}
"""Where each name is defined; it is imported once it is asked for, since some take a second."""


def load_run(db: Any, run: int | str, epoch: int | None = None) -> "RunModel":
    """A stored run's model, of the best epoch if none is named: `load_run("runs.db", "heads/2")`.

    Raises:
        StoreError: there is no such database, run, or weights.
    """
    # A notebook's first line. What is stored is known above, where nothing here may import from.
    (known,) = entry_points(group="seqcls.api", name="load_run")
    model: RunModel = known.load()(db, run, epoch)
    return model


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, defined = _PLACES[name].partition(":")
    globals()[name] = found = getattr(import_module(module), defined)
    return found


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
