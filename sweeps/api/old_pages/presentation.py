"""A model's states as data frames, one a figure. Pure functions."""

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from seqcls.interpretability.patching import Patched
    from seqcls.interpretability.states_by_strings import Path, Patterns, Prefixes, Units

LEAST_WEIGHT = 0.00005
"""Half of the last of four decimals: less would be written as 0.0000."""
WEIGHT_STEPS = 20


def head_frame(patterns: "Patterns", block: int, head: int, *, whole: bool = False) -> pd.DataFrame:
    """Query and key (places), weight of one head, without weights that round to 0.0000."""
    weights = patterns.weights[block, head]
    query, key = np.nonzero((weights >= LEAST_WEIGHT) | whole)
    return pd.DataFrame({"query": query, "key": key, "weight": weights[query, key]})


def output_attention_frame(patterns: "Patterns", start: int, block: int, head: int) -> pd.DataFrame:
    """Row (of the token that is written), letter (place of the token read), weight of one head.

    Args:
        patterns: of an input with its output.
        start: the row of `SEP`, from which on tokens are written; 0 where the output is apart.
    """
    frame = head_frame(patterns, block, head)
    frame = frame[frame["query"] >= start]
    return pd.DataFrame(
        {"row": frame["query"] - start, "letter": frame["key"], "weight": frame["weight"]}
    ).reset_index(drop=True)


def pattern_runs(patterns: "Patterns") -> pd.DataFrame:
    """What small pictures of all heads are made of: neighbors of about one weight as one piece.

    block, head, query and rows (places that attend), first and last (places attended to), weight
    in steps of `1 / WEIGHT_STEPS`. The first piece of each head is the whole of it, of weight 0.
    """
    levels = np.rint(patterns.weights * WEIGHT_STEPS).astype(int)
    starts = np.diff(levels, axis=3, prepend=-1) != 0
    block, head, query, first = np.nonzero(starts)
    tokens = levels.shape[3]
    # In the order of the array a piece ends before the next begins, or with its row.
    last = np.where(np.roll(first, -1) == 0, tokens, np.roll(first, -1)) - 1
    level = levels[block, head, query, first]
    pieces = pd.DataFrame(
        {
            "block": [patterns.number_of(x) for x in block.tolist()],
            "head": head,
            "query": query,
            "rows": 1,
            "first": first,
            "last": last,
            "weight": level / WEIGHT_STEPS,
        }
    )
    wholes = pieces[["block", "head"]].drop_duplicates()
    wholes = wholes.assign(query=0, rows=tokens, first=0, last=tokens - 1, weight=0.0)
    return pd.concat([wholes, pieces[pieces["weight"] > 0]], ignore_index=True)


def prefixes_frame(prefixes: "Prefixes") -> pd.DataFrame:
    """One row a prefix: length, token (its last), logit, label."""
    return pd.DataFrame(
        {
            "length": range(len(prefixes.logits)),
            "token": prefixes.tokens,
            "logit": prefixes.logits,
            "label": prefixes.labels,
        }
    )


def layer_frame(units: "Units", state: str, layer: int) -> pd.DataFrame:
    """place, unit, value: of one layer its state (`state`), or one of its gates."""
    values = (units.states if state == "state" else units.gates[state])[layer]
    place, unit = np.indices(values.shape).reshape(2, -1)
    return pd.DataFrame({"place": place, "unit": unit, "value": values.ravel()})


def path_frame(path: "Path", tokens: tuple[str, ...]) -> pd.DataFrame:
    """place, token, first and second (principal components)."""
    return pd.DataFrame(
        {
            "place": range(len(tokens)),
            "token": tokens,
            "first": path.points[:, 0],
            "second": path.points[:, 1],
        }
    )


def patched_frame(patched: "Patched", most_units: int | None = None) -> pd.DataFrame:
    """site, place (of those that it has), base_token, source_token, logit, restored, flips.

    Args:
        most_units: how many of a recurrent network's units to keep, those that restore most.
    """
    units = patched.most_restoring_units(len(patched.sites) if most_units is None else most_units)
    restored, flips = patched.restored, patched.flips
    rows = [
        (
            site.text,
            place,
            patched.base_tokens[place],
            patched.source_tokens[place],
            float(patched.logits[row, place]),
            float(restored[row, place]),
            bool(flips[row, place]),
        )
        for row, site in enumerate(patched.sites)
        if site.name != "unit" or row in units
        for place in np.flatnonzero(patched.is_place[row]).tolist()
    ]
    columns = ["site", "place", "base_token", "source_token", "logit", "restored", "flips"]
    return pd.DataFrame(rows, columns=columns)
