"""What `seqcls figures` does."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import altair as alt

from dashboard.figures import any_model
from dashboard.figures.by_counts.gallery import figures
from dashboard.figures.by_counts.history import History
from dashboard.figures.figure import Figure
from dashboard.figures.figure_files import write_figures
from seqcls.errors import UnknownRunError
from seqcls.interpretability.model.obstacle import obstacle
from seqcls.problem import resolve
from sweeps.analysis.opened_models import trained_model
from sweeps.store.databases.engine import Store
from sweeps.store.opening import open_reader
from sweeps.store.reading import queries
from sweeps.store.reading.models import StoredModel, stored_model
from sweeps.terminal import say


def write_all(
    db: str | None,
    reference: str,
    strings: Sequence[str],
    out: Path,
    epoch: int | None,
    *,
    force: bool = False,
) -> None:
    """Writes every figure of a run's model for some strings, and says where.

    Args:
        db: the database.
        reference: the run, as `queries.find_run` takes it.
        strings: to draw.
        out: the folder.
        epoch: whose model; 0 is before training, None the kept epoch.
        force: replace files that this program wrote and nobody changed since.

    Raises:
        SeqclsError: no such run or epoch, a string that is not of the alphabet, or a file that
            may not be written.
    """
    written = write_figures(drawn(open_reader(db), reference, strings, epoch), out, force=force)
    say(f"{out}: {len(written)} files, {len(written) // 2} figures as PNG and SVG.")


def charts(store: Store, run: int | str, strings: Sequence[str], epoch: int | None) -> list[Any]:
    """What `sweeps.api.figures` hands out."""
    drawings = [figure.chart.copy(deep=False) for figure in drawn(store, str(run), strings, epoch)]
    for chart in drawings:
        # Pages alone read it, and charts with it could not be concatenated.
        chart.usermeta = alt.Undefined
    return drawings


def drawn(store: Store, reference: str, strings: Sequence[str], epoch: int | None) -> list[Figure]:
    """Every figure of a run's model for some strings; arguments and errors as of `write_all`."""
    run_id = queries.find_run(store, reference)
    if obstacle(resolve(queries.run_config(store, run_id)), "labels") is not None:
        return list(any_model.figures(trained_model(store, run_id, epoch), strings))
    return _by_letter_counts(stored_model(store, run_id), strings, epoch)


def _by_letter_counts(
    stored: StoredModel, strings: Sequence[str], epoch: int | None
) -> list[Figure]:
    history = History.of(stored, with_initial=True)
    shown = stored.kept_epoch if epoch is None else epoch
    if shown not in history.networks:
        known = ", ".join(map(str, history.networks))
        raise UnknownRunError(
            f"run {stored.run_id} has no weights of epoch {shown}; there are those of {known}"
        )
    traces = history.through(tuple(dict.fromkeys(strings)))
    heads = range(stored.config.num_attention_heads)
    return list(figures(traces, shown, heads))
