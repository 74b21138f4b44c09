"""Stored models, opened to be asked about any string of their language."""

from seqcls.interpretability.model.trained_model import TrainedModel
from seqcls.parameters import weights_of
from seqcls.problem import Problem, resolve
from seqcls.results import Weights
from sweeps.store.databases.engine import Store
from sweeps.store.reading import queries
from sweeps.store.reading.models import of_run, stored_model


def trained_model(store: Store, run_id: int, epoch: int | None = None) -> TrainedModel:
    """A run's model after an epoch; of the best epoch if none is named.

    Raises:
        UnknownRunError: the run has no such weights.
    """
    problem = resolve(queries.run_config(store, run_id))
    return TrainedModel(problem, stored_weights(store, run_id, problem, epoch))


def untrained_model(store: Store, run_id: int) -> TrainedModel:
    """A run's model before its training."""
    from seqcls.engines.initial import draw_initial

    stored = stored_model(store, run_id)
    problem = resolve(stored.config)
    (weights,) = draw_initial([(problem, stored.model_seed)])
    return TrainedModel(problem, weights)


def ask_on_one_thread() -> None:
    """From now on PyTorch keeps to one thread in this process.

    A tiny model's operations are too small to share out: threads only wait for each other, which
    takes several times as long where other processes want the cores too.
    """
    import torch

    torch.set_num_threads(1)


def stored_weights(
    store: Store, run_id: int, problem: Problem, epoch: int | None = None
) -> Weights:
    """A run's parameters after an epoch; of the best epoch if none is named.

    Raises:
        UnknownRunError: the run has no such weights.
        StoreError: they are damaged, or no weights of the run's configuration.
    """
    data = queries.weights(store, run_id, epoch)
    with of_run(run_id):
        return weights_of(problem, data)
