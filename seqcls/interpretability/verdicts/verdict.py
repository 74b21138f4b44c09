"""What a model makes of all strings up to a length."""

from seqcls.interpretability.model.trained_model import TrainedModel
from seqcls.interpretability.verdicts.by_counts import unaffordable, verdicts
from seqcls.interpretability.verdicts.by_strings import string_verdict
from seqcls.results import Verdict


def verdict_of(model: TrainedModel) -> Verdict:
    """By letter counts where these decide and there are few enough; else string by string.

    Raises:
        ConfigError: the task is no language.
    """
    if unaffordable(model.problem) is not None:
        return string_verdict(model)
    (verdict,) = verdicts(model.problem, [model.weights])
    return verdict
