"""All figures of a model that reads letter counts, in their order, and which belong together."""

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from itertools import groupby

from dashboard.figures import vectors, whole_model
from dashboard.figures.epochs import Epochs, through_epochs
from dashboard.figures.figure import Figure
from dashboard.section import Panel, Section
from sweeps.api import Store

GROUPS: dict[str, tuple[int, ...]] = {
    "Tokens": (2, 3, 4),
    "Attention": (5, 6, 7, 8),
    "The stream": (9, 10, 11, 12, 13, 15),
    "Circuits": (16, 17),
    "Training": (1, 14),
}
"""Figures by what they are about."""

_DRAWN: dict[int, Sequence[Callable[[Epochs, Sequence[int]], Iterator[Figure]]]] = {
    1: [whole_model.loss_by_epoch],
    **{number: [partial(vectors.draw_tokens, number)] for number in vectors.TOKENS},
    **{number: [partial(vectors.draw_strings, number)] for number in vectors.STRINGS},
    8: [whole_model.attention_weights],
    14: [whole_model.parameter_magnitudes],
    16: [whole_model.readouts],
    17: [whole_model.score_circuits, whole_model.write_circuits],
}
NUMBERS = tuple(sorted(_DRAWN))


def figures(
    epochs: Epochs, numbers: Collection[int] = NUMBERS, heads: Sequence[int] | None = None
) -> Iterator[Figure]:
    """The figures of these numbers in order; one that a model has no part for is left out.

    Args:
        epochs: the strings to draw, through the run's model at every epoch.
        numbers: which figures.
        heads: the heads to draw, where a figure is of heads; all if none are given.
    """
    if heads is None:
        heads = range(epochs.config.num_attention_heads)
    for number in sorted(numbers):
        for draw in _DRAWN[number]:
            yield from draw(epochs, heads)


def sections(
    store: Store,
    run: int,
    strings: Sequence[str],
    numbers: Collection[int],
    epoch: int | None = None,
    heads: Sequence[int] | None = None,
) -> tuple[Section, ...]:
    """Figures of a run's model, a section each, with a caption on how to read it.

    Args:
        store: the database.
        run: the run's id.
        strings: to draw.
        numbers: which figures.
        epoch: whose model; by default the tested one.
        heads: as for `figures`.

    Raises:
        SeqclsError: as of `through_epochs`, or a string that is not of the alphabet.
    """
    drawn = figures(through_epochs(store, run, strings, epoch), numbers, heads)
    found = []
    # `groupby` joins neighbors alone; figures come in the order of their numbers.
    for (number, title), some in groupby(drawn, lambda figure: (figure.number, figure.title)):
        parts = list(some)
        panels = tuple(Panel(figure.spec, figure.part.capitalize()) for figure in parts)
        found.append(Section(f"{number}. {title}", (), None, panels, parts[0].note))
    return tuple(found)
