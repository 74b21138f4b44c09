"""What a model's wrong outputs have in common: how they differ from their targets, and from where.

Each error is attributed by its kind (`seqcls.decoding.measures.error_kind`), and by where output
and target part: within as many tokens as the targets of training had at most, or only after as
many. Where all outputs that were looked at are the same string, that says it all.
"""

from collections.abc import Sequence

from seqcls.interpretability.causes.attributions import Attribution
from seqcls.interpretability.causes.mechanisms import CONSTANT, ROUNDING
from seqcls.interpretability.model.trained_model import TrainedModel
from seqcls.kinds import examples_of
from seqcls.tokens.strings import TokenStrings

FEW = 5
"""Outputs that are the same are no constant answer where there are fewer."""


def output_behaviours(model: TrainedModel, picked: Sequence[str]) -> tuple[Attribution, ...]:
    """The causes of some wrong outputs.

    Args:
        model: a model of a transduction.
        picked: inputs whose outputs are wrong.
    """
    # PyTorch, which takes a second or two to load.
    from seqcls.decoding.judging import judge

    strings = list(dict.fromkeys(picked))
    letters = [model.letters(string) for string in strings]
    inputs = TokenStrings.of_lists(model.num_letters, letters)
    judged = judge(model.problem, model.weights, examples_of(model.task, inputs))
    outputs = {tuple(output) for output in judged.outputs}
    if len(outputs) == 1 and len(judged.outputs) >= FEW:
        (output,) = outputs
        said = f"always {model.text(output) or 'nothing'}"
        return tuple(Attribution(string, CONSTANT, None, said) for string in picked)
    longest = model.problem.longest_target(model.problem.train.lengths[-1])
    # One that is right now hangs on rounding.
    causes = {string: Attribution(string, ROUNDING) for string in strings}
    wrong = [string for string, is_wrong in zip(strings, judged.is_wrong, strict=True) if is_wrong]
    places = judged.first_wrong.tolist()
    for string, kind, place in zip(wrong, judged.error_kinds, places, strict=True):
        side = "after" if place >= longest else "within"
        said = f"{side} the {longest} tokens of the longest target in training"
        causes[string] = Attribution(string, kind, None, said)
    return tuple(causes[string] for string in picked)
