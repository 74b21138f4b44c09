"""Small frames as charts are given them."""

import pandas as pd

from dashboard.charts.readout import DIRECTIONS
from dashboard.views.losses import FINISHED

COLORS = {"b": "#0072B2", "a": "#009E73"}
MODELS = pd.DataFrame(
    {
        "configuration": ["b", "b", "a", "a"], "run_id": [1, 2, 3, 4], "model_seed": [0, 1, 0, 1],
        "accuracy": [1.0, 0.9, 0.8, 0.7], "errors": [0, 5, 4, 4],
        "false_positives": [0, 0, 3, 0], "false_negatives": [0, 5, 1, 4],
        "solved_length": [200, 50, 40, 30], "jitter": [0.0, 0.5, -0.5, 0.1],
        "outcome": ["generalizes", "fails beyond", "not learned", "not learned"],
    }
)  # fmt: skip
SEEDS = MODELS[["configuration", "model_seed", "run_id"]].assign(
    middle=5.5, lengths="1 to 10", strings=10, value=[1.0, 0.9, 0.8, 0.7]
)
MEDIANS = pd.DataFrame(
    {
        "configuration": ["b", "a"], "middle": 5.5, "lengths": "1 to 10",
        "median": [0.95, 0.75], "low": [0.9, None], "high": [1.0, None], "n": [2, 1],
    }
)  # fmt: skip
LIMITS = pd.DataFrame({"length": [10, 50], "label": ["end of training", "end of validation"]})
READERS = pd.DataFrame(
    {
        "configuration": ["b", "b", "a", "a"], "reader": "the bigrams that occur, linear",
        "middle": [5.5, 15.5, 5.5, 15.5], "value": [0.5, 0.6, 0.5, 0.6], "rank": [0, 0, 1, 1],
        "of": 2,
    }
)  # fmt: skip
CELLS = pd.DataFrame(
    {
        "hidden_size": ["2", "2", "16"], "heads": ["1", "2", "1"], "sampler": ["x", "x", "y"],
        "median": [0.9, 0.8, 1.0], "best": [1.0, 0.9, 1.0], "worst": [0.5, 0.6, 1.0],
        "failing_share": [0.5, 1.0, 0.0], "seeds": [4, 4, 8], "failing": [2, 4, 0],
        "configurations": 1, "predicted": "can",
    }
)  # fmt: skip
CURVES = pd.DataFrame(
    {
        "run_id": [1, 1, 2, 2], "configuration": ["a", "a", "b", "b"], "model_seed": 0,
        "state": FINISHED, "epoch": [1, 2, 1, 2], "loss": [0.7, 0.1, 0.7, 0.0],
    }
)  # fmt: skip
ATTENDED = pd.DataFrame(
    {
        "string": ["ab", "ab", "b"], "head": "head 0", "token": ["a", "b", "b"], "count": 1,
        "label": ["a x 1", "b x 1", "b x 1"], "score": [0.5, -0.5, 0.1], "weight": [0.7, 0.3, 1.0],
    }
)  # fmt: skip
STEPS = pd.DataFrame(
    {
        "string": "ab", "step": ["start", "logit"], "change": [0.5, -0.871], "start": 0,
        "end": [0.5, -0.871], "direction": [DIRECTIONS[0], DIRECTIONS[2]],
    }
)  # fmt: skip
REMOVED = pd.DataFrame(
    {
        "removed": [1, 2, 3], "part": ["a", "b", "c"], "errors": [0, 5, 70], "accuracy": 0.9,
        "loss": 0.1, "logit_change": 0.2,
    }
)  # fmt: skip
PAIRS = pd.DataFrame(
    {"head": ["head 0", "head 0", "head 1", "head 1"], "row": ["a", "b"] * 2, "column": "a",
     "value": [0.5, -1.0, 0.1, 0.2]}
)  # fmt: skip


def many_columns(number: int) -> pd.DataFrame:
    """Cells of two rows of many columns, of several languages each."""
    names = [f"C{each}" for each in range(number)]
    return pd.DataFrame(
        {
            "class": names * 2, "width": ["2"] * number + ["3"] * number, "cell": range(2 * number),
            "median": 0.973, "best": 1.0, "worst": 0.613, "failing_share": 0.5,
            "judged": 15, "learned": 12, "judged_beyond": 12, "learned_of": "12/15",
            "generalize_of": "7/12", "learned_share": 0.8, "generalizing_share": 7 / 12,
            "learned_n": "5 languages", "generalizing_n": "5 languages", "seeds": 15,
            "predicted": "cannot",
        }
    )  # fmt: skip
