"""Training in stages of longer strings, and with parts that are held fixed at first."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seqcls.config import RunConfig
from seqcls.problem import Problem, configuration, resolve
from seqcls.sampling.streams import stream
from sweeps.api import open_store, protocol, submit

STAGES = [[4, 0.25], [8, 0.6], [12, 1.0]]
SHORT: dict[str, Any] = {
    "task": "parity", "readout": "last", "architecture": "lstm", "hidden_size": 4,
    "train_max_length": 12, "validation_max_length": 12, "test_max_length": 20,
    "train_size": 60, "train_batch_size": 10, "validation_size": 20, "test_size": 20,
    "max_num_epochs": 4, "min_num_epochs": 4,
}  # fmt: skip


def problem_of(**fields: Any) -> Problem:
    return resolve(configuration({**SHORT, **fields}))


@pytest.mark.parametrize(
    "fields",
    [{}, {"task": "copy", "readout": "first"}, {"answers": "prefixes"}, {"train_set": "fixed"}],
    ids=str,
)
def test_every_batch_has_the_lengths_of_its_stage(fields: dict[str, Any]) -> None:
    answered = {"readout": "first"} if "answers" in fields else {}
    problem = problem_of(train_lengths=STAGES, **fields, **answered)
    assert problem.train.epoch_size == 60
    # 24 batches: the first stage ends after 6 of them, the second after 14.
    for batch in range(24):
        epoch, within = divmod(batch, 6)
        drawn = stream(problem.train).epoch(epoch)
        strings = drawn.strings.take(slice(10 * within, 10 * within + 10))
        most = 4 if batch < 6 else 8 if batch < 14 else 12
        assert strings.lengths.max() <= most
        expected = problem.kind.targets(problem.task, drawn.strings)
        assert np.array_equal(expected, drawn.targets)
    assert problem.trained_lengths == problem_of(**fields, **answered).trained_lengths
    last = stream(problem.train).epoch(3).strings
    assert last.lengths.max() > 8


def test_one_stage_equals_training_on_all_lengths() -> None:
    whole, plain = problem_of(train_lengths=[[12, 1]]), problem_of()
    assert whole.train == plain.train
    assert whole.longest_train == problem_of(train_lengths=STAGES).longest_train == plain.train


def test_stage_begins_with_the_first_epoch_of_its_sampler() -> None:
    staged = problem_of(train_lengths=[[4, 0.5], [12, 1.0]])
    short = problem_of(train_max_length=4)
    drawn = [stream(staged.train).epoch(epoch) for epoch in range(4)]
    for part, sampler in ((0, short.train), (2, problem_of().train)):
        for epoch in range(2):
            own = stream(sampler).epoch(epoch)
            assert np.array_equal(own.strings.letters, drawn[part + epoch].strings.letters)


def test_curriculum_has_one_key_as_list_and_as_text() -> None:
    as_lists = configuration({**SHORT, "train_lengths": [[4, 0.5], [12, 1]]})
    as_text = configuration({**SHORT, "train_lengths": "[[4,0.50],[12,1.0]]"})
    assert as_lists.train_lengths == "[[4, 0.5], [12, 1.0]]"
    assert as_lists.key == as_text.key != configuration(SHORT).key
    assert RunConfig.from_mapping(as_lists.model_dump()) == as_lists
    parts = [["head", 0.1], ["blocks", 0.3]]
    keys = {configuration({**SHORT, "freeze": x}).key for x in (parts, parts[::-1])}
    assert len(keys) == 1


def test_protocol_describes_stages_and_frozen_parts(tmp_path: Path) -> None:
    store = open_store(tmp_path / "staged.db")
    fields = {**SHORT, "train_lengths": STAGES, "freeze": [["head", 0.3]]}
    submit(store, {"name": "staged", "model_seeds": [0], "fixed": fields})
    text = " ".join(protocol(store, "staged/0"))
    assert "up to 4 tokens until 25% of training; up to 8 tokens until 60%" in text
    assert "head fixed until 30% of training" in text
