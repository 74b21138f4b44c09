"""Strings with free counts, `ab{n}`, `a{m}b{n}` or `<ab>{n}`: where answers change as they grow.

Where letter counts decide and the family has no groups, every change up to a million is told
(`by_counts`). Else strings are run (`by_strings`); between the values that are tried the answer may
change and change back unseen, but every change that is reported is one between neighbours. Where
the strings are inputs of a transduction, outputs are held against targets (`by_outputs`).
"""

from seqcls.interpretability.families import by_counts, by_outputs, by_strings
from seqcls.interpretability.families.curves import Curve, Map
from seqcls.interpretability.families.notation import parse_family
from seqcls.interpretability.families.output_family import OutputFamily
from seqcls.interpretability.model.network import as_network
from seqcls.interpretability.model.trained_model import TrainedModel


def answers(model: TrainedModel, text: str) -> Curve | Map:
    """What a model says of the family that a text stands for: by letter counts where they decide.

    Raises:
        ConfigError: the task is no language.
        InvalidStringError: as `parse_family`, or the family is too long to be run.
    """
    model.problem.require_language()
    family = parse_family(model.tokenizer, text)
    one = len(family.names) == 1
    network = None if "<" in text else as_network(model)
    if network is not None:
        return by_counts.curve(network, family) if one else by_counts.area(network, family)
    return by_strings.curve(model, family) if one else by_strings.area(model, family)


def output_family(model: TrainedModel, text: str) -> OutputFamily:
    """What a model that writes makes of the family that a text stands for.

    Raises:
        InvalidStringError: as `parse_family`, or none of its strings can be answered.
    """
    family = parse_family(model.tokenizer, text)
    one = len(family.names) == 1
    return by_outputs.curve(model, family) if one else by_outputs.area(model, family)
