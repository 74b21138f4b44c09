"""What a model's wrong outputs have in common: how they differ from their targets, and from where.

Where all outputs that were looked at are the same string, that says it all. Otherwise an error is
attributed by the first statement about the model's wrong outputs that holds of it
(`seqcls.interpretability.causes.output_statements`); the others follow, and its kind
(`seqcls.decoding.measures.error_kind`). One of which none holds is attributed by its kind, and by
where output and target part: within as many tokens as the targets of training had at most, or only
after as many.
"""

from collections.abc import Sequence

import numpy as np

from seqcls.evaluation import distinct_test_strings
from seqcls.interpretability.causes.attributions import Attribution
from seqcls.interpretability.causes.mechanisms import CONSTANT, ROUNDING
from seqcls.interpretability.causes.output_statements import FEW, WrongOutputs, statements
from seqcls.interpretability.model.trained_model import TrainedModel
from seqcls.interpretability.wording import EMPTY
from seqcls.kinds import Examples, examples_of
from seqcls.kinds.transduction import target_lengths
from seqcls.results import ErrorKind
from seqcls.tokens.strings import TokenStrings


def output_behaviours(
    model: TrainedModel, wrong: Sequence[str], picked: Sequence[str]
) -> tuple[Attribution, ...]:
    """The causes of some wrong outputs.

    Args:
        model: a model of a transduction.
        wrong: all test inputs whose outputs are wrong.
        picked: those to attribute.
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
        said = f"always {model.display(output) or EMPTY}"
        return tuple(Attribution(string, CONSTANT, None, said) for string in picked)
    # One that is right now hangs on rounding.
    causes = {string: Attribution(string, ROUNDING) for string in strings}
    rows = np.flatnonzero(judged.is_wrong)
    held = statements(_with_test(model, wrong, inputs.take(rows), judged.first_wrong))
    longest = model.problem.longest_target(model.problem.train.lengths[-1])
    each = zip(rows.tolist(), judged.error_kinds, judged.first_wrong.tolist(), strict=True)
    for number, (row, kind, place) in enumerate(each):
        string, of_it = strings[row], [x for x in held if x.holds[number]]
        if of_it:
            said = "; ".join([*(x.text for x in of_it), _as_a_clause(kind)])
            causes[string] = Attribution(string, of_it[0].mechanism, None, said)
        else:
            side = "after" if place >= longest else "within"
            said = f"{side} the {longest} tokens of the longest target in training"
            causes[string] = Attribution(string, kind, None, said)
    return tuple(causes[string] for string in picked)


def _as_a_clause(kind: ErrorKind) -> str:
    return f"the output {'has a wrong token' if kind == 'wrong token' else kind}"


def _with_test(
    model: TrainedModel, wrong: Sequence[str], inputs: TokenStrings, first_wrong: np.ndarray
) -> WrongOutputs:
    from seqcls.decoding.judging import readable_inputs

    test, failing = distinct_test_strings(model.problem.test), set(wrong)
    rows = np.flatnonzero(readable_inputs(model.problem, Examples(test.strings, test.targets)))
    is_wrong = np.array([test.texts[row] in failing for row in rows], dtype=bool)
    lengths = target_lengths(test.targets[rows])
    return WrongOutputs(inputs, first_wrong, test.strings.take(rows), lengths, is_wrong)
