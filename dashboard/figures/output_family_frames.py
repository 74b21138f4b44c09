"""Families of inputs of a model that writes as data frames for their charts."""

import pandas as pd

from seqcls.interpretability.families.output_family import OutputFamily

RIGHT = "right"


def outputs_frame(answers: OutputFamily) -> pd.DataFrame:
    """A row an input: its counts by their names, outcome, right_tokens, target_tokens, …

    And share (of the target's tokens that are right before the first wrong one, in [0, 1]), input,
    target, output.
    """
    rows = [
        {
            **dict(zip(answers.family.names, each.values, strict=True)),
            "outcome": each.error_kind or RIGHT,
            "right_tokens": each.right_tokens,
            "target_tokens": each.target_tokens,
            "share": each.right_tokens / max(each.target_tokens, 1),
            "input": each.input,
            "target": each.target,
            "output": each.output,
        }
        for each in answers.outputs
    ]
    return pd.DataFrame(rows)
