"""What pages call errors and accuracy, by the kinds of answers of the models that they show."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

from dashboard import data
from seqcls.kinds import ACCURACY, KINDS, MISCLASSIFIED, Kind, Measure, Words
from seqcls.problem import obstacle_of, resolve
from sweeps.analysis.answer_sentences import ANY_WORDS
from sweeps.store.reading import overview

ANY_ACCURACY = Measure(
    "accuracy", "Accuracy", "Share of a model's test strings that it answers correctly."
)


@dataclass(frozen=True)
class KindWords:
    """The words that hold for all models of a page."""

    words: Words = MISCLASSIFIED
    accuracy: str = ACCURACY.meaning
    """In a sentence."""


def of(config_ids: Iterable[int]) -> KindWords:
    """The words for models of these configurations."""
    kinds = kinds_of(tuple(config_ids))
    words = {kind.words for kind in kinds}
    accuracy = {kind.measures()[0].meaning for kind in kinds}
    return KindWords(
        words.pop() if len(words) == 1 else ANY_WORDS,
        accuracy.pop() if len(accuracy) == 1 else ANY_ACCURACY.meaning,
    )


def of_languages(names: Iterable[str]) -> KindWords:
    """The words for models of these languages, or other tasks, by what these are called."""
    known = set(names)
    return of(config_id for config_id, name in data.languages().items() if name in known)


def has_cells(config_ids: Iterable[int]) -> bool:
    """Whether there are false positives and negatives of any of these configurations."""
    return any(kind.cells for kind in kinds_of(tuple(config_ids)))


def measures(config_ids: tuple[int, ...]) -> list[Measure]:
    """What may be said of all models of these configurations, accuracy first."""
    kinds = [kind.measures() for kind in kinds_of(config_ids)]
    if len(kinds) == 1:
        return list(kinds[0])
    shared = set.intersection(*({measure.title for measure in known} for known in kinds))
    return [ANY_ACCURACY, *(x for x in kinds[0][1:] if x.title in shared)]


@partial(data.shared, of=overview.configs_revision)
def kinds_of(config_ids: tuple[int, ...]) -> list[Kind]:
    """The kinds of answers of these configurations, each once; of languages where none is known."""
    languages = data.languages()
    # One configuration of each language tells.
    first = {languages[config_id]: config_id for config_id in config_ids}
    configs = data.some_configs(tuple(first.values())).values()
    # The kind of a plug-in's task is unknown unless it is installed.
    kinds = [resolve(config).kind for config in configs if obstacle_of(config) is None]
    each = {type(kind): kind for kind in kinds}
    return list(each.values()) or [KINDS["membership"]()]
