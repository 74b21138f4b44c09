"""Why each of a failing model's errors is one: by its mechanism, or by what it does.

Where letter counts give an exact account of a model, every error's mechanism is shown by a
counterfactual (`by_counts`). The errors of other models are attributed by what they have in common
(`behaviours`), as wrong outputs are, and by how they differ from their targets
(`output_behaviours`).
"""

from collections.abc import Sequence

from seqcls.interpretability.causes.attributions import Attribution, spread_evenly
from seqcls.interpretability.causes.behaviours import behaviours
from seqcls.interpretability.causes.interventions import mechanism_of_error
from seqcls.interpretability.causes.mechanisms import ROUNDING, SAMPLE, Mechanism
from seqcls.interpretability.causes.output_behaviours import output_behaviours
from seqcls.interpretability.model.network import Network, as_network
from seqcls.interpretability.model.trained_model import TrainedModel
from seqcls.results import Cause


def attributions(
    model: TrainedModel, wrong: Sequence[str], sample: int = SAMPLE
) -> tuple[Attribution, ...]:
    """The causes of a sample of a model's errors.

    Args:
        model: the model.
        wrong: all test strings that it misclassifies, the shortest first, each as often as it
            occurs in the test set.
        sample: how many of them to look at, spread evenly.
    """
    picked = [wrong[place] for place in spread_evenly(len(wrong), sample)]
    if model.problem.writes:
        return output_behaviours(model, wrong, picked)
    network = as_network(model)
    if network is not None:
        return tuple(_exact(network, string) for string in picked)
    return behaviours(model, wrong, picked)


def summed_up(attributions: Sequence[Attribution]) -> list[Cause]:
    """The causes of some errors, the most frequent first."""
    times: dict[tuple[str, int | None, str, float | None], int] = {}
    for attribution in attributions:
        key = (attribution.mechanism, attribution.head, attribution.tokens, attribution.agreement)
        times[key] = times.get(key, 0) + 1
    ranked = sorted(times.items(), key=lambda item: -item[1])
    return [
        Cause(mechanism, head, tokens, count / len(attributions), count, agrees)
        for (mechanism, head, tokens, agrees), count in ranked
    ]


def _exact(network: Network, string: str) -> Attribution:
    """The mechanism of one error of a model that has an exact account."""
    mechanism = mechanism_of_error(network, string)
    if mechanism is None:
        return Attribution(string, ROUNDING)
    return Attribution(string, mechanism.name, mechanism.head, tokens_of(mechanism))


def tokens_of(mechanism: Mechanism) -> str:
    """The tokens, or the unit, that a mechanism is about."""
    letter, by = mechanism.letter, mechanism.by
    match mechanism.name:
        case "dilution":
            return f"{letter} by {by}"
        case "value interference" if letter is None:
            return f"several for {by}"
        case "value interference":
            return f"{letter} for {by}" if by else f"{letter}"
        case "two heads on one letter":
            return f"{letter}, none on {by}"
        case "feed-forward saturation":
            return f"unit {mechanism.unit}"
    return ""
