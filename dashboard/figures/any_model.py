"""Figures of a model whose states are looked at token by token: any architecture, any language."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product

import pandas as pd

from dashboard.charts.model import token_states
from dashboard.charts.model.output_attention import output_attention
from dashboard.charts.model.readout import waterfall
from dashboard.figures.figure import Figure
from dashboard.figures.string_axes import DRAWN, steps_frame, token_names, with_letters, with_margin
from seqcls.errors import InvalidStringError
from seqcls.interpretability.attribution.by_strings import has_residual_stream, logit_steps
from seqcls.interpretability.model.trained_model import Letters, TrainedModel
from seqcls.interpretability.states.by_strings import (
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
from seqcls.interpretability.states.output_tokens import output_tokens
from sweeps.analysis import state_frames

LONGEST_READ = 2 * DRAWN + 2
"""Tokens that are read of a string and its output at most, special ones among them."""


def figures(model: TrainedModel, strings: Sequence[str]) -> Iterator[Figure]:
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
    if not model.writes:
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
    frame = state_frames.prefixes_frame(prefix_logits(model, letters))
    prefixes = frame.assign(
        letter=frame["length"],
        prefix=[model.display(letters[:end]) or "the empty string" for end in frame["length"]],
        label=pd.Series(
            [int(x) if isinstance(x, bool) else x for x in frame["label"]], dtype=object
        ),
    )
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
    frame = state_frames.attention_frame(attention_patterns(model, letters))
    frame = frame.assign(
        letter=with_letters(model, frame["key"]), query=with_letters(model, frame["query"])
    ).drop(columns="key")
    for (block, head), of_head in frame.groupby(["block", "head"]):
        title = f"block {block}, head {head}"
        yield Figure(
            None,
            "Attention weights",
            f"{title}, {text}",
            "What each token attends to: each row sums to 1.",
            of_head,
            token_states.attention_matrix(of_head, names, title).chart,
        )


def _decoder_attention(model: TrainedModel, letters: Letters, kind: Kind) -> Iterator[Figure]:
    """What a decoder attends to, a row for each token that it writes."""
    text = model.display(letters) or "empty"
    patterns = attention_patterns(model, letters, kind=kind)
    written = [token.token for token in output_tokens(model, letters)]
    blocks, heads = patterns.weights.shape[:2]
    for block, head in product(range(blocks), range(heads)):
        title = kind if blocks * heads == 1 else f"{kind}, block {block}, head {head}"
        of_head = state_frames.output_attention_frame(patterns, 0, block, head)
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
    frame = state_frames.units_frame(units)
    frame = frame.assign(letter=with_letters(model, frame["place"]))
    word = layer_word(model)
    for (layer, state), of_layer in frame.groupby(["layer", "state"]):
        title = f"{word} {layer}: {str(state).replace('_', ' ')}"
        chart = token_states.unit_states(of_layer, names, title).chart
        note = "Each unit after every token."
        yield Figure(None, "Units", f"{title}, {text}", note, of_layer, chart)
    for layer, states in enumerate(units.states):
        path = principal_path(states)
        points = state_frames.path_frame(path, units.tokens)
        points = points.assign(letter=with_letters(model, points["place"]))
        chart = token_states.state_path(points, path.shares).chart
        note = "The state after every token, in its first two principal components."
        yield Figure(None, "Path of the state", f"{word} {layer}, {text}", note, points, chart)
