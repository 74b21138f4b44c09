"""What a model makes of all strings up to a length."""

from seqcls.interpretability.model.trained_model import TrainedModel
from seqcls.interpretability.verdicts.by_counts import unaffordable, verdicts
from seqcls.interpretability.verdicts.by_outputs import output_verdict
from seqcls.interpretability.verdicts.by_strings import string_verdict
from seqcls.interpretability.verdicts.output_verdict import OutputVerdict
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


def verdict_of_outputs(model: TrainedModel) -> OutputVerdict:
    """What a model that writes makes of all inputs up to a length."""
    return output_verdict(model)
