"""What `seqcls figures` does: the figures of any model, drawn and written into files."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import altair as alt
import vl_convert

from dashboard.charts import token_states
from dashboard.charts.attention import attention_matrix, output_attention
from dashboard.charts.readout import (
    DRAWN,
    prefixes_frame,
    steps_frame,
    token_names,
    waterfall,
    with_letters,
    with_margin,
)
from dashboard.charts.themes import LIGHT, themed
from dashboard.figures.figure import Figure
from dashboard.figures.gallery import figures
from dashboard.figures.history import History
from seqcls.errors import InvalidStringError, UnknownRunError
from seqcls.interpretability.attribution import has_residual_stream, logit_steps
from seqcls.interpretability.network import obstacle
from seqcls.interpretability.states_by_strings import (
    Kind,
    attention_kinds,
    attention_patterns,
    has_attention,
    has_decoder,
    has_units,
    layer_word,
    prefix_logits,
    principal_path,
    recurrent_units,
)
from seqcls.interpretability.states_of_outputs import output_tokens
from seqcls.interpretability.trained_model import Letters, TrainedModel
from seqcls.problem import resolve
from seqcls.text import with_nulls
from sweeps.api import presentation
from sweeps.api.models import trained_model
from sweeps.files import refuse_taken, whole_files
from sweeps.store.databases.engine import Store
from sweeps.store.opening import open_reader
from sweeps.store.reads import queries
from sweeps.store.reads.queries import StoredModel, stored_model
from sweeps.terminal import say

LONGEST_READ = 2 * DRAWN + 2
"""Tokens that are read of a string and its output at most, special ones among them."""


def figures_of_strings(model: TrainedModel, strings: Sequence[str]) -> Iterator[Figure]:
    """What each part adds to the logit, each prefix's logit, attention or units, string by string.

    Args:
        model: a Transformer with positions, or a recurrent network, for instance.
        strings: to draw.

    Raises:
        InvalidStringError: a string not of the alphabet, or longer than is drawn token by token.
    """
    for string in dict.fromkeys(strings):
        letters = model.letters(string)
        if len(letters) > DRAWN:
            raise InvalidStringError(
                f"{string[:60]!r} has {len(letters):,} tokens: this model's figures have a column "
                f"for each, up to {DRAWN}; shorten it"
            )
        yield from _of_string(model, letters)


def _of_string(model: TrainedModel, letters: Letters) -> Iterator[Figure]:
    text = model.display(letters) or "empty"
    figure = partial(Figure, None, panel=text)
    if has_residual_stream(model):
        steps = steps_frame(logit_steps(model, letters), text)
        ends: list[float] = steps[["start", "end"]].to_numpy().ravel().tolist()
        yield figure(
            title="What each part adds to the logit",
            note="Direct logit attribution: the parts sum to the logit.",
            data=steps,
            chart=waterfall(steps, with_margin(ends), text),
        )
    names = token_names(model, letters)
    if len(names) > LONGEST_READ:
        raise InvalidStringError(
            f"{text[:60]!r} is read as {len(names)} tokens with its output: this model's figures "
            f"have a column for each, up to {LONGEST_READ}; shorten it"
        )
    if model.problem.lacks("prefixes") is None:
        yield _prefixes(model, letters, names)
    if kinds := attention_kinds(model):
        for kind in kinds:
            yield from _decoder_attention(model, letters, kind)
    elif has_attention(model) and not has_decoder(model):
        yield from _attention(model, letters, names)
    if has_units(model):
        # A decoder's states are along what it reads, from SEP on.
        yield from _units(
            model, letters, names[len(letters) + 1 :] if has_decoder(model) else names
        )


def _prefixes(model: TrainedModel, letters: Letters, names: Sequence[str]) -> Figure:
    prefixes = prefixes_frame(model, letters, prefix_logits(model, letters))
    return Figure(
        None,
        panel=model.display(letters) or "empty",
        title="Logit of every prefix",
        note="Each prefix is classified as a separate string.",
        data=prefixes,
        chart=token_states.prefix_logits(prefixes, names).chart,
    )


def _attention(model: TrainedModel, letters: Letters, names: Sequence[str]) -> Iterator[Figure]:
    text = model.display(letters) or "empty"
    frame = presentation.attention_frame(attention_patterns(model, letters))
    frame = with_letters(model, frame).drop(columns="key")
    for (block, head), of_head in frame.groupby(["block", "head"]):
        title = f"block {block}, head {head}"
        yield Figure(
            None,
            "Attention weights",
            f"{title}, {text}",
            "What each token attends to: each row sums to 1.",
            of_head,
            attention_matrix(of_head, names, title).chart,
        )


def _decoder_attention(model: TrainedModel, letters: Letters, kind: Kind) -> Iterator[Figure]:
    """What a decoder attends to, a row for each token that it writes."""
    text = model.display(letters) or "empty"
    patterns = attention_patterns(model, letters, kind=kind)
    written = [token.token for token in output_tokens(model, letters)]
    blocks, heads = patterns.weights.shape[:2]
    for block, head in product(range(blocks), range(heads)):
        title = kind if blocks * heads == 1 else f"{kind}, block {block}, head {head}"
        of_head = presentation.output_attention_frame(patterns, 0, block, head)
        yield Figure(
            None,
            "Attention weights",
            f"{title}, {text}",
            "What each token that is written attends to: each row sums to 1.",
            of_head,
            output_attention(of_head, patterns.tokens, written, title).chart,
        )


def _units(model: TrainedModel, letters: Letters, names: Sequence[str]) -> Iterator[Figure]:
    text = model.display(letters) or "empty"
    units = recurrent_units(model, letters)
    frame = with_letters(model, presentation.units_frame(units))
    word = layer_word(model)
    for (layer, state), of_layer in frame.groupby(["layer", "state"]):
        title = f"{word} {layer}: {str(state).replace('_', ' ')}"
        chart = token_states.unit_states(of_layer, names, title).chart
        note = "Each unit after every token."
        yield Figure(None, "Units", f"{title}, {text}", note, of_layer, chart)
    for layer, states in enumerate(units.states):
        path = principal_path(states)
        points = with_letters(model, presentation.path_frame(path, units.tokens))
        chart = token_states.state_path(points, path.shares).chart
        note = "The state after every token, in its first two principal components."
        yield Figure(None, "Path of the state", f"{word} {layer}, {text}", note, points, chart)


SCALE = 2.0
"""Pixels of the PNG for one of the drawing."""


def write_figures(figures: Iterable[Figure], folder: Path, *, force: bool = False) -> list[Path]:
    """Each figure as a PNG and an SVG, on white; `folder` and `force` as for `whole_files`."""
    named = dict(_named(figures))
    paths = [folder / f"{name}.{kind}" for name in named for kind in ("png", "svg")]
    # Drawing takes longer than anybody wants to wait for a refusal.
    refuse_taken(paths, force=force)
    with whole_files(folder, force=force) as new:
        for name, figure in named.items():
            spec = themed(figure.chart.to_dict(), LIGHT) | {"background": LIGHT.background}
            chart = json.dumps(with_nulls(spec))
            (new / f"{name}.png").write_bytes(vl_convert.vegalite_to_png(chart, scale=SCALE))
            (new / f"{name}.svg").write_text(vl_convert.vegalite_to_svg(chart), encoding="utf-8")
    return paths


def _named(figures: Iterable[Figure]) -> Iterator[tuple[str, Figure]]:
    names = Counter[str]()
    for figure in figures:
        # Of strings that differ in brackets alone the names are the same.
        names[figure.file_name] += 1
        again = names[figure.file_name]
        yield figure.file_name if again == 1 else f"{figure.file_name}_{again}", figure


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
        return list(figures_of_strings(trained_model(store, run_id, epoch), strings))
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
