"""Drawings along a string: built once for a length, and no more marks than they need."""

import re

import numpy as np
import pandas as pd
import vl_convert

from dashboard.charts import token_states
from dashboard.charts.attention import small_patterns
from dashboard.charts.parts import TokenDrawing, at_own_size
from seqcls.interpretability.states_by_strings import Patterns
from sweeps.api.presentation import head_frame, pattern_runs


def prefixes(string: str, logits: list[float]) -> TokenDrawing:
    frame = pd.DataFrame({"letter": range(len(logits)), "prefix": "x", "logit": logits, "label": 1})
    return token_states.prefix_logits(frame, ["", *string])


def test_strings_of_one_length_differ_in_their_data_alone() -> None:
    one, other = (
        at_own_size(prefixes(string, logits))
        for string, logits in (("01", [0.0, 1.0, 2.0]), ("10", [5.0, -1.0, 2.0]))
    )
    assert one["datasets"]["tokens"]["name"].tolist() == ["", "0", "1"]
    assert other["datasets"]["prefixes"]["answer"].tolist()[1] == "false negative"
    del one["datasets"], other["datasets"]
    assert one == other


def test_the_name_of_a_special_token_covers_no_letter() -> None:
    """CLS is longer than the place of a token where there are many."""
    frame = pd.DataFrame({"letter": range(46), "prefix": "x", "logit": 0.0, "label": 1})
    part = token_states.prefix_logits(frame, ["CLS", *"a" * 44, "SEP"])
    svg = vl_convert.vegalite_to_svg(part.chart.to_dict())
    drawn = re.findall(
        r'text-anchor="(\w+)" transform="translate\(([\d.]+),[\d.]+\)"[^>]*>(CLS|a|SEP)<', svg
    )
    assert [name for _, _, name in drawn] == ["CLS", *"a" * 44, "SEP"]
    (before, first, _), (_, letter, _), *_, (after, last, _) = drawn
    assert (before, after) == ("end", "start")
    step = float(drawn[2][1]) - float(letter)
    assert float(first) <= float(letter) - step / 2 < float(last)


def test_small_pictures_are_made_of_pieces_that_say_what_the_weights_are() -> None:
    weights = np.random.default_rng(0).dirichlet(np.full(9, 0.3), size=(2, 3, 9))
    runs = pattern_runs(Patterns(tuple("012345678"), weights))
    painted = np.full(weights.shape, np.nan)
    for own in runs.to_dict("records"):
        rows = slice(own["query"], own["query"] + own["rows"])
        painted[own["block"], own["head"], rows, own["first"] : own["last"] + 1] = own["weight"]
    assert np.abs(painted - weights).max() <= 0.5 / 20 + 1e-12
    even = pattern_runs(Patterns(tuple("ab" * 20), np.full((2, 4, 40, 40), 1 / 40)))
    assert len(even) <= 2 * 4 * (1 + 40), "a row of equal weights is one piece"
    part = small_patterns(runs, range(1, 10))
    assert sorted(set(part.data["columns"]["letter"])) == list(range(1, 10))
    assert len(part.data["columns"]) == 2 * 3 * 9


def test_an_opened_head_leaves_out_what_would_be_written_as_nothing() -> None:
    weights = np.zeros((1, 2, 2, 2))
    weights[0, 1] = [[1.0, 0.0], [0.00004, 0.99996]]
    frame = head_frame(Patterns(("a", "b"), weights), 0, 1)
    assert frame[["query", "key"]].to_numpy().tolist() == [[0, 0], [1, 1]]


def test_scales_are_rounded_so_that_most_strings_share_them() -> None:
    given = (1.0, 0.61, 0.3, 3.2, 0.0101)
    assert [token_states.rounded_up(value) for value in given] == [1.0, 0.7, 0.3, 4.0, 0.02]
