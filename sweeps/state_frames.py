"""One data frame a figure, of what `seqcls.interpretability.strings` finds. Pure functions."""

import pandas as pd

from seqcls.interpretability.strings.attribution import Step
from seqcls.interpretability.strings.families import GroupCurve
from seqcls.interpretability.strings.patching import Patched
from seqcls.interpretability.strings.states import Path, Patterns, Prefixes, Units


def attention_frame(found: Patterns) -> pd.DataFrame:
    """block, head, query and key (places), query_token, key_token, weight in [0, 1]."""
    rows = [
        (block, head, query, key, found.tokens[query], found.tokens[key], weight)
        for block, heads in enumerate(found.weights.tolist())
        for head, queries in enumerate(heads)
        for query, keys in enumerate(queries)
        for key, weight in enumerate(keys)
    ]
    columns = ["block", "head", "query", "key", "query_token", "key_token", "weight"]
    return pd.DataFrame(rows, columns=columns)


def steps_frame(found: tuple[Step, ...]) -> pd.DataFrame:
    """part, block, head, adds (to the logit), logit (after it), in the order of computation."""
    frame = pd.DataFrame([vars(step) for step in found])
    return frame.astype({"block": "Int64", "head": "Int64"})


def prefixes_frame(found: Prefixes) -> pd.DataFrame:
    """One row a prefix: length, token (its last), logit, label."""
    return pd.DataFrame(
        {
            "length": range(len(found.logits)),
            "token": found.tokens,
            "logit": found.logits,
            "label": found.labels,
        }
    )


def units_frame(found: Units) -> pd.DataFrame:
    """Of every unit: state (`state`, or a gate's name), layer, place, token, unit, value."""
    rows = [
        (name, layer, place, found.tokens[place], unit, value)
        for name, values in {"state": found.states, **found.gates}.items()
        for layer, places in enumerate(values.tolist())
        for place, units in enumerate(places)
        for unit, value in enumerate(units)
    ]
    return pd.DataFrame(rows, columns=["state", "layer", "place", "token", "unit", "value"])


def path_frame(found: Path, tokens: tuple[str, ...]) -> pd.DataFrame:
    """place, token, first and second (principal components)."""
    return pd.DataFrame(
        {
            "place": range(len(tokens)),
            "token": tokens,
            "first": found.points[:, 0],
            "second": found.points[:, 1],
        }
    )


def patched_frame(found: Patched) -> pd.DataFrame:
    """site, place, base_token, source_token, logit, restored (0 to 1), flips."""
    restored, flips = found.restored, found.flips
    rows = [
        (
            site.text,
            place,
            found.base_tokens[place],
            found.source_tokens[place],
            float(found.logits[row, place]),
            float(restored[row, place]),
            bool(flips[row, place]),
        )
        for row, site in enumerate(found.sites)
        for place in range(len(found.base_tokens))
    ]
    columns = ["site", "place", "base_token", "source_token", "logit", "restored", "flips"]
    return pd.DataFrame(rows, columns=columns)


def family_frame(found: GroupCurve) -> pd.DataFrame:
    """n, label, logit: one row a string of the family that was tried."""
    return pd.DataFrame({"n": found.n, "label": found.labels, "logit": found.logits})
