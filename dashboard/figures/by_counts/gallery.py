"""All figures of a model in their order, and which belong together."""

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial

from dashboard.figures.by_counts import cls_states, tokens, whole
from dashboard.figures.by_counts import heads as of_head
from dashboard.figures.by_counts.history import Traces
from dashboard.figures.figure import Figure

Builder = Callable[[Traces, int], Iterator[Figure]]
HeadBuilder = Callable[[Traces, int, Sequence[int]], Iterator[Figure]]

GROUPS: dict[str, tuple[int, ...]] = {
    "Tokens": (2, 3, 4),
    "Attention": (5, 6, 7, 8),
    "The stream": (9, 10, 11, 12, 13, 15),
    "Circuits": (16, 17),
    "Training": (1, 14),
}
"""Figures by what they are about."""

_OF_MODEL: dict[int, tuple[Builder, ...]] = {
    1: (whole.loss_by_epoch,),
    2: (tokens.embeddings,),
    3: (tokens.string_embeddings,),
    4: (tokens.normalised,),
    **{number: (partial(cls_states.cls_state, number),) for number in range(9, 14)},
    14: (whole.parameter_magnitudes,),
    15: (tokens.transformed,),
    16: (whole.readouts,),
}
_OF_HEADS: dict[int, tuple[HeadBuilder, ...]] = {
    5: (of_head.keys_and_queries,),
    6: (of_head.values,),
    7: (cls_states.attention_values,),
    8: (cls_states.weights,),
    17: (whole.score_circuits, whole.write_circuits),
}
NUMBERS = tuple(sorted([*_OF_MODEL, *_OF_HEADS]))


def figures(
    traces: Traces, epoch: int, heads: Sequence[int], numbers: Collection[int] = NUMBERS
) -> Iterator[Figure]:
    """The figures of these numbers in order; one that a model has no part for is left out.

    Args:
        traces: the strings to draw, through the run's model at every epoch.
        epoch: which of them is drawn; limits are those of all.
        heads: the heads to draw, where a figure is of heads.
        numbers: which figures.
    """
    for number in sorted(numbers):
        for of_model in _OF_MODEL.get(number, ()):
            yield from of_model(traces, epoch)
        for of_each in _OF_HEADS.get(number, ()):
            yield from of_each(traces, epoch, heads)
