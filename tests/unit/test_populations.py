"""Shares over languages: seeds of one language are no further languages."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from sweeps.results import Outcome
from sweeps.statistics.intervals import clustered_wilson, wilson
from sweeps.statistics.populations import (
    class_named,
    language_shares,
    median_accuracies,
    settings_apart,
)

SEEDS = 3


@pytest.mark.parametrize("languages", [5, 10, 30])
@pytest.mark.parametrize("alike", ["all seeds", "some", "none"])
def test_the_interval_over_languages_holds_the_share_however_alike_their_seeds_are(
    languages: int, alike: str
) -> None:
    rng, held, pooled = np.random.default_rng(0), [], []
    for share in rng.uniform(0.1, 0.9, 1000):
        own = {
            "all seeds": (rng.random(languages) < share).astype(float),
            "some": rng.beta(share, 1 - share, languages),
            "none": np.full(languages, share),
        }[alike]
        counts = rng.binomial(SEEDS, own).tolist()
        found = clustered_wilson(counts, [SEEDS] * languages)
        held.append(found.low <= share <= found.high)
        of_seeds = wilson(sum(counts), SEEDS * languages)
        pooled.append(of_seeds.low <= share <= of_seeds.high)
    assert np.mean(held) >= 0.94
    if alike == "all seeds":
        assert np.mean(pooled) < 0.85, "an interval over seeds would say too much"


def test_seeds_that_agree_tell_no_more_than_one_and_those_that_do_not_no_more_than_all() -> None:
    agree = clustered_wilson([3, 3, 0, 3, 0, 3], [3] * 6)
    of_languages = wilson(4, 6)
    assert agree.value == pytest.approx(4 / 6)
    assert agree.low == pytest.approx(of_languages.low)
    assert agree.high == pytest.approx(of_languages.high)
    assert clustered_wilson([3] * 6, [3] * 6) == wilson(6, 6)
    assert clustered_wilson([1] * 6, [2] * 6) == wilson(6, 12)
    assert clustered_wilson([2], [4]) == wilson(0.5, 1)
    # A language counts by its share, however many seeds it has.
    assert clustered_wilson([9, 0], [9, 1]).value == 0.5


def outcomes(network: str, **languages: str) -> list[dict[str, Any]]:
    """Models by their language: g generalizes, b fails beyond, n not learned, ? not known."""
    words = {
        "g": Outcome.GENERALIZES,
        "b": Outcome.FAILS_BEYOND,
        "n": Outcome.NOT_LEARNED,
        "?": Outcome.NOT_KNOWN,
    }
    return [
        {
            "network": network,
            "language": language,
            "outcome": words[letter].value,
            "learned": {"n": 0, "?": None}.get(letter, 1),
        }
        for language, letters in languages.items()
        for letter in letters
    ]


def test_a_language_counts_by_the_share_of_its_seeds() -> None:
    models = pd.DataFrame(
        [
            *outcomes("lstm", a="ggg", b="gbn", c="nnn", d="???"),
            *outcomes("rnn", a="nn", b="nn"),
            *outcomes("alone", a="gg"),
        ]
    )
    lstm, rnn = language_shares(models, ["network"]).to_dict("records")
    assert (lstm["network"], lstm["languages"], lstm["seeds"]) == ("lstm", 4, 12)
    assert (lstm["learned"], lstm["learned_languages"]) == (pytest.approx((1 + 2 / 3) / 3), 3)
    assert (lstm["generalize"], lstm["generalize_languages"]) == (pytest.approx((1 + 1 / 2) / 2), 2)
    assert lstm["learned_low"] < lstm["learned"] < lstm["learned_high"]
    # Of what is not learned, nothing is said of longer strings.
    assert (rnn["learned"], rnn["generalize_languages"]) == (0, 0)
    assert np.isnan(rnn["generalize"])


def test_populations_are_told_apart_by_the_fewest_settings() -> None:
    settings = pd.DataFrame(
        {
            "hidden_size": [8, 8, 16, 16],
            "architecture": ["rnn", "rnn", "lstm", "lstm"],
            "pattern": ["a*", "b*", "a*", "b*"],
            "readout": [None, None, "mean", "mean"],
        }
    )
    assert settings_apart(settings, ["regular"]) == ["architecture"]
    settings["language_class"] = ["SL", "SP", "SL", "SP"]
    assert settings_apart(settings, ["regular"]) == ["language_class", "architecture"]
    settings["architecture"] = "rnn"
    assert settings_apart(settings, ["regular"]) == ["language_class", "hidden_size"]


def test_a_file_of_the_benchmark_names_its_class() -> None:
    assert class_named("04.03.TcoSL.2.1.0_Train.txt") == "TcoSL"
    assert class_named("64.64.Zp.5.1.9.att") == "Zp"
    assert class_named("words.csv") is None


def test_accuracy_at_the_border_is_a_median_over_languages() -> None:
    counts = pd.DataFrame(
        [
            {"name": "models", "language": language, "run_id": run, "drawn": drawn}
            | {"network": "rnn", "tested": 10, "right": right}
            for language, run, right in (("a", 1, 10), ("a", 2, 8), ("a", 3, 2), ("b", 4, 6))
            for drawn in ("positive", "uniform", "border", "edited")
        ]
    )
    found = median_accuracies(counts, ["network"]).set_index("strings")
    assert found["median"].to_dict() == {"border": pytest.approx(0.7), "random": pytest.approx(0.7)}
    assert found["n"].tolist() == [2, 2]
