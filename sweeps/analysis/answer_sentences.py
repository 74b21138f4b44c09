"""A model's answers in sentences, and what was found by asking for many."""

from typing import TYPE_CHECKING

from seqcls.config import RunConfig
from seqcls.interpretability.minimal.minimal import Shortest
from seqcls.interpretability.minimal.nearest import Nearest
from seqcls.interpretability.model.trained_model import Answer
from seqcls.interpretability.wording import EMPTY
from seqcls.kinds import MISCLASSIFIED, Words
from seqcls.problem import Problem, obstacle_of, resolve, tokenizer_of

if TYPE_CHECKING:
    # Imported where frames are made: a sweep begins half a second sooner without.
    import pandas as pd

TEXTS = ("string", "target", "output")
"""The columns of tables whose texts are strings of the alphabet."""

ANY_WORDS = Words(
    *("string", "get {} wrong", "gets {} wrong", "wrongly answered", "task", "label or target"),
    "rightly answered",
)

_SIGNS = ("negative", "positive")


def words_of(*configs: RunConfig) -> Words:
    """What errors are called; as those of languages where no task's kind is known here."""
    known = {resolve(config).kind.words for config in configs if obstacle_of(config) is None}
    return ANY_WORDS if len(known) > 1 else next(iter(known), MISCLASSIFIED)


def displayed(frame: "pd.DataFrame", *configs: RunConfig) -> "pd.DataFrame":
    """A table of strings as it is shown; what is looked up stays as it is stored.

    Args:
        frame: with any of the columns `TEXTS`.
        configs: of the models that it is about; their tasks have one alphabet.
    """
    tokenizer = next(filter(None, map(tokenizer_of, configs)), None)
    texts = [name for name in TEXTS if name in frame] if tokenizer is not None else []
    if tokenizer is None or not texts:
        return frame
    shown = frame[texts].map(tokenizer.display, na_action="ignore")
    return frame.assign(**{name: shown[name] for name in texts})


def said_of(answer: Answer) -> str:
    """One string's label and the model's answer."""
    return f"{named(answer)}: {label_and_answer(answer)}"


def named(answer: Answer) -> str:
    """A string as it is shown; the empty one needs a name."""
    return answer.tokenizer.display(answer.string) or "the empty string"


def label_and_answer(answer: Answer) -> str:
    """What is right of a string, and what the model says."""
    writes = isinstance(answer.predicted, str)
    if answer.label is None:
        right = f"{'target' if writes else 'label'} not known"
    else:
        right = f"is {_shown(answer, answer.label)}"
    if not answer.is_answered:
        return f"{right}, and has no answer: what the model computes for it is NaN"
    number = answer.number if writes else "logit"
    return f"{right}, predicted {_shown(answer, answer.predicted)} ({number} {answer.logit:.4f})"


def _shown(answer: Answer, said: bool | str) -> str:
    """What is right, or what the model says: a sign of a language, else text."""
    if isinstance(said, str):
        return answer.tokenizer.display(said) or EMPTY
    return _SIGNS[int(said)]


def whose_known(problem: Problem) -> str:
    """Which strings are meant by all, where nobody knows what is right of the others."""
    return "" if problem.known_strings is None else f" whose {problem.kind.words.right} is known"


def shortest_sentences(shortest: Shortest, words: Words, whose: str = "") -> list[str]:
    """What trying all strings, or those of `whose_known`, has found."""
    if shortest.length is None:
        return [
            f"all {shortest.tried:,} {words.plural('')}{whose} of up to {shortest.max_length} "
            f"tokens are {words.hit}"
        ]
    said = [
        f"the shortest failing {words.plural('')} have {shortest.length} tokens: "
        f"{shortest.count:,} of them ({shortest.tried:,} {words.plural('')} tried, all{whose} up "
        "to that length)"
    ]
    said += [f"  {named(answer)}: {label_and_answer(answer)}" for answer in shortest.answers]
    left = shortest.count - len(shortest.answers)
    return [*said, f"  and {left:,} more"] if left else said


def nearest_sentence(nearest: Nearest, given: Answer, words: Words, whose: str = "") -> str:
    """What the search for the nearest right string, of all or of `whose_known`, has found."""
    tried = f"{nearest.tried:,} {words.plural('')} tried"
    if nearest.answer is None and not nearest.tried:
        return f"of no {words.string} within {nearest.edits} edits is it known what is right"
    if nearest.answer is None:
        all_of_them = "" if nearest.complete else ", not all of them"
        return (
            f"no {words.string}{whose} within {nearest.edits} edits is {words.hit} "
            f"({tried}{all_of_them})"
        )
    near = how_near(nearest.edits, nearest.answer, given)
    return (
        f"nearest {words.hit} {words.string}{whose}: {named(nearest.answer)}, {near}: "
        f"{label_and_answer(nearest.answer)}"
    )


def how_near(edits: int, found: Answer, given: Answer) -> str:
    """How many edits a string that was found is away, and what it has in common with the given."""
    away = "1 edit away" if edits == 1 else f"{edits} edits away"
    if given.label is None:
        same = "same" if found.predicted == given.predicted else "different"
        return f"{away}, {same} prediction"
    if found.predicted == given.predicted:
        return f"{away}, same prediction, different label"
    return f"{away}, same label, different prediction" if found.label == given.label else away
