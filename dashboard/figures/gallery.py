"""All figures of a model in their order, and which belong together."""

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial

from dashboard.figures import cls_states, vectors, whole_model
from dashboard.figures.figure import Figure
from dashboard.figures.history import Traces

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
    1: (whole_model.loss_by_epoch,),
    2: (vectors.embeddings,),
    3: (vectors.string_embeddings,),
    4: (vectors.normalized_embeddings,),
    **{number: (partial(cls_states.cls_state, number),) for number in range(9, 14)},
    14: (whole_model.parameter_magnitudes,),
    15: (vectors.final_states,),
    16: (whole_model.readouts,),
}
_OF_HEADS: dict[int, tuple[HeadBuilder, ...]] = {
    5: (vectors.keys_and_queries,),
    6: (vectors.values,),
    7: (cls_states.attention_values,),
    8: (cls_states.weights,),
    17: (whole_model.score_circuits, whole_model.write_circuits),
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
