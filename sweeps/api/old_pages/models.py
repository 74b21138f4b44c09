"""A stored model before its training."""

from seqcls.problem import resolve
from seqcls.questions import RunModel
from sweeps.store.database import Store
from sweeps.store.reads.checkpoints import stored_model


def untrained_model(store: Store, run_id: int) -> RunModel:
    """A run's model before its training."""
    from seqcls.engines.member import draw_initial

    stored = stored_model(store, run_id)
    problem = resolve(stored.config)
    (weights,) = draw_initial([(problem, stored.model_seed)])
    return RunModel(problem, weights, run=run_id)
