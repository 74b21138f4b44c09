"""What models came to, in words: whether they learned, and whether they generalize.

A model is judged on the lengths that it was trained on first. Of one that has not learned these,
nothing is said of longer strings.
"""

from seqcls.interpretability.wording import percent
from seqcls.kinds import MISCLASSIFIED, Words
from sweeps.results import LEARNED_AT


def meaning(words: Words = MISCLASSIFIED, learned_at: float = LEARNED_AT, below: float = 1) -> str:
    """What the outcomes are, at these thresholds in [0, 1].

    Args:
        words: of the models' tasks.
        learned_at: the accuracy on trained lengths from which on a model has learned.
        below: the accuracy on longer lengths below which it fails.
    """
    strings = words.plural("")
    longer = "all" if below >= 1 else f"at least {percent(below, 1)} of"
    return (
        f"Not learned: right on less than {percent(learned_at, 1)} of {strings} of trained "
        f"lengths. Generalizes: learned, and right on {longer} longer {strings}. Fails beyond: "
        f"learned, but does not generalize. Not known: there are no such {strings} to judge by."
    )
