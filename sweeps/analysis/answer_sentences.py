"""A model's answers in sentences, and what was found by asking for many."""

from seqcls.interpretability.minimal.minimal import Shortest
from seqcls.interpretability.minimal.nearest import Nearest
from seqcls.interpretability.model.trained_model import Answer


def said_of(answer: Answer) -> str:
    """One string's label and the model's answer."""
    return f"{named(answer)}: {label_and_answer(answer)}"


def named(answer: Answer) -> str:
    """A string as it is shown; the empty one needs a name."""
    return answer.string or "the empty string"


def label_and_answer(answer: Answer) -> str:
    """What is right of a string, and what the model says."""
    if isinstance(answer.label, str):
        return (
            f"is {answer.label}, predicted {answer.predicted} ({answer.number} {answer.logit:.4f})"
        )
    label, predicted = (("negative", "positive")[int(x)] for x in (answer.label, answer.predicted))
    return f"is {label}, predicted {predicted} (logit {answer.logit:.4f})"


def shortest_sentences(shortest: Shortest) -> list[str]:
    """What trying all strings has found."""
    if shortest.length is None:
        return [
            f"all {shortest.tried:,} strings of up to {shortest.max_length} tokens are classified "
            "correctly"
        ]
    said = [
        f"the shortest failing strings have {shortest.length} tokens: {shortest.count:,} of them "
        f"({shortest.tried:,} strings tried, all up to that length)"
    ]
    said += [f"  {named(answer)}: {label_and_answer(answer)}" for answer in shortest.answers]
    left = shortest.count - len(shortest.answers)
    return [*said, f"  and {left:,} more"] if left else said


def nearest_sentence(nearest: Nearest, given: Answer) -> str:
    """What the search for the nearest right string has found."""
    tried = f"{nearest.tried:,} strings tried"
    if nearest.answer is None:
        all_of_them = "" if nearest.complete else ", not all of them"
        return (
            f"no string within {nearest.edits} edits is classified correctly ({tried}{all_of_them})"
        )
    edits = "1 edit" if nearest.edits == 1 else f"{nearest.edits} edits"
    same = ""
    if nearest.answer.predicted == given.predicted:
        same = "; same prediction, different label"
    elif nearest.answer.label == given.label:
        same = "; same label, different prediction"
    return (
        f"nearest correctly classified string: {named(nearest.answer)}, {edits} away: "
        f"{label_and_answer(nearest.answer)}{same}"
    )
