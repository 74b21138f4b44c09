"""The model of a run: its configuration, and its weights at every stored epoch."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import select

from seqcls.config import RunConfig
from seqcls.errors import StoreError, UnknownRunError
from sweeps.store.database import Store
from sweeps.store.reads.queries import check_done, epochs, refuse_misfit, run_config, why_no_weights
from sweeps.store.reads.stored import read_runs
from sweeps.store.tables import Checkpoint

if TYPE_CHECKING:
    import pandas as pd


@contextmanager
def of_run(run_id: int) -> Iterator[None]:
    """Names the run in errors about weights that cannot be used."""
    try:
        yield
    except StoreError as error:
        raise StoreError(f"run {run_id}: {error}") from error


@dataclass(frozen=True, eq=False)
class StoredModel:
    """A finished run and its weights. Epochs count from 1; 0, before training, is not stored."""

    run_id: int
    config: RunConfig
    model_seed: int
    kept_epoch: int
    """The epoch whose model was tested: with the lowest validation loss, or the last where training
    ended because every answer was right."""
    weights: dict[int, bytes]
    """Safetensors bytes by epoch, including the kept one."""
    losses: "pd.DataFrame"
    """epoch, train_loss, validation_loss (sums over an epoch's strings, in nats)."""


def stored_model(store: Store, run_id: int) -> StoredModel:
    """Reads the model of a run.

    Raises:
        UnknownRunError: there is no such run, it is not done, or its weights are not stored.
        StoreDamagedError: its results do not fit their digest.
    """
    with store.read() as connection:
        stored = next(read_runs(connection, [run_id]), None)
        if stored is None:
            raise UnknownRunError(f"no run {run_id}; `seqcls runs` lists those there are")
        check_done(store, run_id, "has no model to look into")
        config, losses = run_config(store, run_id), epochs(store, run_id)
    if (absent := why_no_weights(config)) is not None:
        raise UnknownRunError(f"run {run_id}: {absent}")
    seed, kept_epoch = stored.run["model_seed"], stored.run["best_epoch"]
    if kept_epoch not in stored.checkpoints:
        raise UnknownRunError(_not_stored(run_id))
    refuse_misfit(store, stored)
    return StoredModel(run_id, config, seed, kept_epoch, stored.checkpoints, losses)


def _not_stored(run_id: int) -> str:
    return (
        f"the weights of run {run_id} are not stored, so its model cannot be opened; "
        "train it again in another database"
    )


def weights(store: Store, run_id: int, epoch: int | None = None) -> bytes:
    """A run's weights after an epoch, by default its best, as safetensors bytes.

    Raises:
        UnknownRunError: the run has no such weights.
    """
    status = check_done(store, run_id, "has no weights")
    if (absent := why_no_weights(run_config(store, run_id))) is not None:
        raise UnknownRunError(f"run {run_id}: {absent}")
    chosen = status.best_epoch if epoch is None else epoch
    of_run = Checkpoint.run_id == run_id
    # One snapshot for both reads, so that a listed epoch still has its weights.
    with store.read():
        stored = store.column(select(Checkpoint.epoch).where(of_run).order_by(Checkpoint.epoch))
        if not stored:
            raise UnknownRunError(_not_stored(run_id))
        if chosen is None or chosen not in stored:
            first, last = stored[0], stored[-1]
            is_range = last - first == len(stored) - 1 > 1
            listed = f"{first} to {last}" if is_range else ", ".join(map(str, stored))
            raise UnknownRunError(
                f"run {run_id} has no weights of epoch {chosen}; stored epochs: {listed}"
            )
        of_epoch = select(Checkpoint.weights).where(of_run, Checkpoint.epoch == chosen)
        return bytes(store.one(of_epoch)[0])
