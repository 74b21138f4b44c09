"""Weights of the models of finished runs, by epoch. Epochs count from 1; 0, before training, is not
stored.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import select

from seqcls.errors import StoreError, UnknownRunError
from sweeps.store.database import Store
from sweeps.store.reads.queries import check_done, run_config, why_no_weights
from sweeps.store.tables import Checkpoint, Run


@contextmanager
def of_run(run_id: int) -> Iterator[None]:
    """Names the run in errors about weights that cannot be used."""
    try:
        yield
    except StoreError as error:
        raise StoreError(f"run {run_id}: {error}") from error


def stored_epochs(store: Store, run_id: int) -> tuple[int, ...]:
    """The epochs of a run whose weights are stored, the best one last: the epoch whose model was
    tested, of the lowest validation loss, or the last where training ended as all was right.

    Raises:
        UnknownRunError: none are.
    """
    query = select(Checkpoint.epoch, Run.best_epoch).join(Run, Run.id == Checkpoint.run_id)
    rows = store.rows(query.where(Checkpoint.run_id == run_id).order_by(Checkpoint.epoch))
    epochs, best = [row.epoch for row in rows], rows[0].best_epoch if rows else None
    if best not in epochs:
        raise UnknownRunError(
            f"run {run_id}: {absent}"
            if (absent := why_no_weights(run_config(store, run_id))) is not None
            else f"the weights of run {run_id} are not stored, so its model cannot be opened; "
            "train it again in another database"
        )
    return (*(epoch for epoch in epochs if epoch != best), best)


def weights(store: Store, run_id: int, epoch: int | None = None) -> bytes:
    """A run's weights after an epoch, by default its best, as safetensors bytes.

    Raises:
        UnknownRunError: the run has no such weights.
    """
    check_done(store, run_id, "has no weights")
    # One snapshot for both reads, so that a listed epoch still has its weights.
    with store.read():
        stored = stored_epochs(store, run_id)
        chosen = stored[-1] if epoch is None else epoch
        if chosen not in stored:
            first, last = min(stored), max(stored)
            is_range = last - first == len(stored) - 1 > 1
            listed = f"{first} to {last}" if is_range else ", ".join(map(str, sorted(stored)))
            raise UnknownRunError(
                f"run {run_id} has no weights of epoch {chosen}; stored epochs: {listed}"
            )
        of_epoch = (Checkpoint.run_id == run_id, Checkpoint.epoch == chosen)
        return bytes(store.one(select(Checkpoint.weights).where(*of_epoch))[0])
