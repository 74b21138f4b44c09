"""Overlap of tests with training, against sets of texts, and its sentences."""

import json
import re
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from seqcls.cache import CACHE_VARIABLE
from seqcls.overlap import UNLIMITED, Effort, Overlap, _prints, overlap
from seqcls.problem import Problem, configuration, resolve
from seqcls.sampling import Sampler
from seqcls.sampling.streams import stream
from seqcls.strings.token_strings import TokenStrings
from seqcls.tasks.base import texts
from sweeps.api import overlaps
from sweeps.api.overlaps import majority, trained_on
from sweeps.cli.app import app
from sweeps.grid.spec import parse_spec

LENGTHS = {"train_max_length": 7, "validation_max_length": 7, "test_max_length": 12}
SIZES = {"train_size": 300, "test_size": 400, "max_num_epochs": 5}
ADDITION = {"task": "addition", "digit_order": "least_first", "base": 10}


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # What another test has drawn is as if it were not there.
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    stream.cache_clear()


def problem_of(**fields: Any) -> Problem:
    return resolve(configuration({**LENGTHS, **SIZES, **fields}))


def spelled(sampler: Sampler, epochs: int) -> list[str]:
    drawn = islice(sampler.epochs(), epochs)
    return [text for x in drawn for text in texts(sampler.task.alphabet, x.strings)]


def exact(problem: Problem, epochs: int | None = None) -> Overlap:
    found = overlap(problem, Effort(UNLIMITED), epochs)
    assert found is not None
    assert found.is_exact
    return found


DRAWN: list[dict[str, Any]] = [
    ADDITION,
    {"task": "copy", "num_tokens": 3, "train_set": "fixed"},
    {"task": "parity", "train_min_length": 4},
    {"task": "contains_all", "train_size": 320},
    {"task": "parity", "train_sampler": "fixed_length", "sequence_length": 6},
]


def test_overlap_equals_counting_texts() -> None:
    for fields in DRAWN:
        problem = problem_of(**fields)
        tested = [x for x in spelled(problem.test, 1) if len(x) in problem.train.lengths]
        for epochs in (1, 3):
            known = set(spelled(problem.train, epochs))
            found = exact(problem, epochs)
            assert 0 < len(tested) == len(found.lengths), fields
            assert found.is_known.sum() == sum(text in known for text in tested), fields
            counted = Counter(map(len, tested)), Counter(len(x) for x in tested if x in known)
            for length, (number, seen) in found.by_length.items():
                assert (number, seen) == (counted[0][length], counted[1][length]), fields


def test_overlap_counts_rows_of_a_file_in_two_splits(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text(
        "tokens,label,split\nab,1,train\nb,0,train\na,0,validation\nab,1,test\nba,0,test"
    )
    fixed = {"task": "file", "path": str(path)}
    (config,) = parse_spec({"name": "own", "model_seeds": [0], "fixed": fixed}).configs()
    assert (trained_on([config]) or "").startswith("50% of the 2 test strings")


def test_overlap_is_cached() -> None:
    problem = problem_of(**ADDITION, test_seed=3)
    assert overlap(problem, Effort(0)) is None
    share = exact(problem).share
    effort = Effort(0)
    again = overlap(problem, effort)
    assert again is not None
    assert again.is_exact
    assert again.share == share
    # A run that stopped earlier was trained on less.
    assert (exact(problem, 1).share or 0) < (share or 0)


def test_overlap_of_the_first_epochs_is_a_lower_bound() -> None:
    problem = problem_of(**ADDITION, test_seed=4)
    effort = Effort(400 + 2 * 300)
    least = overlap(problem, effort)
    assert least is not None
    assert (least.seen, least.epochs, least.is_exact) == (2, 5, False)
    sentence = trained_on([problem.config]) or ""
    assert sentence.startswith(f"At least {least.share:.1%} of the")
    assert "up to 5 epochs" in sentence
    assert "first 2 epochs" in sentence
    # Asking again does not draw more and more.
    again = overlap(problem, Effort(10_000))
    assert again is not None
    assert again.seen == 2
    whole = exact(problem)
    assert (least.is_known <= whole.is_known).all()
    assert trained_on([problem.config], epochs=2) == trained_on([problem.config], epochs=2)


def test_overlap_sentence_covers_none_and_unknown() -> None:
    problem = problem_of(**ADDITION, disjoint=True)
    assert exact(problem).share == 0
    assert "disjoint" in (trained_on([problem.config]) or "")
    apart = problem_of(task="parity", test_min_length=9)
    assert (trained_on([apart.config]) or "").startswith("No test string")
    problem = problem_of(**{**ADDITION, "train_size": 100_000, "test_seed": 5})
    sentence = trained_on([problem.config]) or ""
    for part in ("not known", "500,000", "`seqcls estimate SPEC --overlap`"):
        assert part in sentence


def test_majority_answer_is_computed_for_few_test_sets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    contains_ab = {"task": "regular", "alphabet": "ab", "pattern": "(a|b)*ab(a|b)*"}
    configs = [problem_of(**contains_ab, test_seed=seed).config for seed in range(5, 9)]
    large = problem_of(**contains_ab, test_size=100_000).config
    test = resolve(configs[0]).test
    monkeypatch.setattr(overlaps, "MOST_TOKENS", 3 * test.epoch_size * test.lengths[-1])
    assert majority(configs).endswith(" of longer test strings, in 3 of 4 test sets.")
    assert majority([large, *configs]).endswith(" of longer test strings, in 3 of 5 test sets.")
    sentence = majority(configs[:3])
    assert sentence.endswith(" of longer test strings.")
    assert not re.search(r"(\d+%) to \1", sentence), "one number where the tests agree"


def test_majority_answer_is_reported_where_it_is_often_right(tmp_path: Path) -> None:
    contains_ab = {"task": "regular", "alphabet": "ab", "pattern": "(a|b)*ab(a|b)*"}
    problem = problem_of(**contains_ab)
    drawn = stream(problem.test).epoch(0)
    longer = [bool(x) for n, x in zip(drawn.strings.lengths, drawn.labels, strict=True) if n > 7]
    negatives = drawn.strings.lengths[~drawn.labels]
    sentence = majority([problem.config])
    assert f"yes is right on {sum(longer) / len(longer):.0%} of longer test strings" in sentence
    assert f"{(negatives <= 7).mean():.0%} of negatives have 7 tokens or fewer" in sentence
    assert sentence in (trained_on([problem.config]) or "")
    assert majority([problem_of(**contains_ab, negative_lengths="uniform").config]) == ""
    # The command that submits a sweep prints it.
    spec, fixed = tmp_path / "ab.toml", {**LENGTHS, **SIZES, **contains_ab}
    settings = "\n".join(f"{name} = {json.dumps(value)}" for name, value in fixed.items())
    spec.write_text(f'name = "ab"\nmodel_seeds = "0..1"\n[fixed]\n{settings}\n')
    submitted = CliRunner().invoke(app, ["submit", str(spec), "--db", str(tmp_path / "x.db")])
    assert sentence in " ".join(submitted.output.split())


def test_overlap_of_several_test_sets_is_a_range() -> None:
    problems = [problem_of(**ADDITION, train_size=size) for size in (10, 300)]
    least, most = sorted(exact(problem).share or 0 for problem in problems)
    configs = [problem.config for problem in problems]
    same = problem_of(**ADDITION, learning_rate=0.5).config
    sentence = trained_on([*configs, same]) or ""
    assert sentence.startswith(f"In 2 test sets, {least:.1%} to {most:.1%} of the strings")
    unknown = problem_of(**{**ADDITION, "train_size": 100_000}).config
    assert (trained_on([*configs, unknown]) or "").endswith("; of 1 test set more it is not known.")


def test_fingerprints_differ_in_every_count() -> None:
    counts = np.array([[a, b] for a in (0, 1, 255, 256, 9_999) for b in (0, 1, 255, 256, 257)])
    prints = _prints(TokenStrings.of_counts(2, counts), True)
    assert len(set(prints.tolist())) == len(counts)
