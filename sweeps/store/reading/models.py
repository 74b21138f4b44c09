"""A run as a model to look into: its configuration, and its weights at every stored epoch."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import select

from seqcls.config import RunConfig
from seqcls.errors import StoreError, UnknownRunError
from sweeps.store.databases.engine import Store
from sweeps.store.reading.queries import epochs, run_config, why_no_weights
from sweeps.store.results.stored import config_of
from sweeps.store.schema.tables import Checkpoint, Config, Run, RunState

if TYPE_CHECKING:
    import pandas as pd


@contextmanager
def of_run(run_id: int) -> Iterator[None]:
    """Names the run in what is said of weights that cannot be used."""
    try:
        yield
    except StoreError as error:
        raise StoreError(f"run {run_id}: {error}") from error


@dataclass(frozen=True, eq=False)
class StoredModel:
    """A finished run. Epochs are counted from 1; 0, before training, is not stored."""

    run_id: int
    config: RunConfig
    model_seed: int
    kept_epoch: int
    """The epoch with the lowest validation loss, whose model was tested."""
    weights: dict[int, bytes]
    """Safetensors bytes by epoch, the kept one among them."""
    losses: "pd.DataFrame"
    """epoch, train_loss, validation_loss (sums over an epoch's strings, in nats)."""


def stored_epochs(store: Store, run_id: int) -> tuple[int, ...]:
    """The epochs of a run whose weights are stored, the kept one last.

    Raises:
        UnknownRunError: none are.
    """
    stored = select(Checkpoint.epoch, Run.best_epoch).join(Run, Run.id == Checkpoint.run_id)
    query = stored.where(Checkpoint.run_id == run_id).order_by(Checkpoint.epoch)
    with store.begin() as connection:
        rows = connection.execute(query).all()
    kept = rows[0].best_epoch if rows else None
    if kept is None and (reason := why_no_weights(run_config(store, run_id))) is not None:
        raise UnknownRunError(f"run {run_id}: {reason}")
    if kept is None:
        raise UnknownRunError(f"the weights of run {run_id} are not stored")
    return (*(row.epoch for row in rows if row.epoch != kept), kept)


def stored_model(store: Store, run_id: int) -> StoredModel:
    """What the database holds of a run's model.

    Raises:
        UnknownRunError: there is no such run, it is not done, or its weights are not stored.
    """
    of_run = select(Run.state, Run.error, Run.model_seed, Run.best_epoch)
    of_config = of_run.add_columns(Config.id.label("config_id"), Config.json)
    query = of_config.join(Config, Config.id == Run.config_id).where(Run.id == run_id)
    stored = select(Checkpoint.epoch, Checkpoint.weights).where(Checkpoint.run_id == run_id)
    with store.begin() as connection:
        row = connection.execute(query).one_or_none()
        weights = dict(connection.execute(stored.order_by(Checkpoint.epoch)).all())
        config = None if row is None else config_of(row.config_id, row.json)
    if row is None or config is None:
        raise UnknownRunError(f"no run {run_id}; `seqcls runs` lists those there are")
    if row.state != RunState.DONE:
        reason = f": {row.error}" if row.error else ""
        raise UnknownRunError(f"run {run_id} is {row.state} and has no model to look into{reason}")
    if (absent := why_no_weights(config)) is not None:
        raise UnknownRunError(f"run {run_id}: {absent}")
    if row.best_epoch not in weights:
        raise UnknownRunError(
            f"the weights of run {run_id} are not stored, so its model cannot be opened; "
            "train it again in another database"
        )
    return StoredModel(
        run_id, config, row.model_seed, row.best_epoch, weights, epochs(store, run_id)
    )
