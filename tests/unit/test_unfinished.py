"""Interrupted training resumes from its progress file, bit for bit."""

import os
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import pytest

from seqcls.engines import member
from seqcls.problem import configuration, resolve
from seqcls.results import EpochLosses, TrainedMember
from seqcls.training import train_group
from tests.contracts.readable import compare_members

SMALL: dict[str, object] = {
    "train_size": 64, "train_batch_size": 16, "validation_size": 64, "max_num_epochs": 6,
    "min_num_epochs": 6,
}  # fmt: skip
WRITES: dict[str, object] = {
    "task": "copy", "hidden_size": 8, "num_blocks": 1, "feed_forward_size": 16,
    "attention_head_size": 8, "num_attention_heads": 1, "train_max_length": 6,
    "validation_max_length": 6, "test_max_length": 12,
}  # fmt: skip
SHIFTED: dict[str, object] = {"positions": "learned", "position_draw": "shifted"}
LSTM: dict[str, object] = {"architecture": "lstm", "readout": "last", "hidden_size": 8}
UNTIL_RIGHT: dict[str, object] = {"stop_when_right": True, "check_every": 3}
BY_STEPS: dict[str, object] = {
    "learning_rate_interval": "step",
    "warm_up_steps": 6,
    "decay": "matrices",
}
CASES: list[tuple[str, dict[str, object]]] = [
    ("fused", {"layer_norm": "rms"}),
    ("lanes", WRITES | SHIFTED | BY_STEPS),
    ("counts", {"num_blocks": 2} | BY_STEPS),
    ("strings", LSTM | {"dropout_rate": 0.1} | UNTIL_RIGHT),
    ("strings", WRITES | SHIFTED | {"warm_up_steps": 5, "gradient_clip": 1.0}),
]


class EndedError(Exception):
    """Raised in place of a signal."""


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The folder of progress files, written after every epoch, in an empty cache."""
    monkeypatch.setattr(member, "SECONDS", 0.0)
    monkeypatch.setattr(member, "cache_folder", lambda: tmp_path)
    return tmp_path / member.FOLDER


def trained(
    engine: str, fields: dict[str, object], ends_after: int | None = None
) -> tuple[list[TrainedMember], list[list[EpochLosses]]]:
    """Two members and their reported epochs; training ends after so many reports."""
    problem = resolve(configuration({**SMALL, **fields}))
    reported: list[list[EpochLosses]] = []

    def progress(_done: float, epochs: Sequence[EpochLosses]) -> None:
        if len(reported) == ends_after:
            raise EndedError
        reported.append(list(epochs))

    members = [(problem, 1), (problem, 2)]
    return train_group(members, engine=engine, device="cpu", progress=progress), reported


def assert_same(found: list[TrainedMember], expected: list[TrainedMember]) -> None:
    for one, other in zip(found, expected, strict=True):
        compare_members(one, other)


@pytest.mark.parametrize(("engine", "fields"), CASES)
def test_interrupted_training_resumes_bit_for_bit(
    engine: str, fields: dict[str, object], folder: Path
) -> None:
    whole, all_reported = trained(engine, fields)
    assert not any(folder.iterdir())

    # The second time it ends after it has resumed.
    for ends_after in (2, len(all_reported) - 3):
        with pytest.raises(EndedError):
            trained(engine, fields, ends_after)
    assert len(list(folder.iterdir())) == 1
    found, reported = trained(engine, fields)

    assert_same(found, whole)
    # It first reports earlier epochs again, then resumes from the last one saved.
    assert len(reported) == 3
    assert sorted(chain(*reported)) == sorted(chain(*all_reported))
    assert not any(folder.iterdir())


@pytest.mark.parametrize("engine", ["lanes", "strings"])
def test_resumed_training_stops_at_the_same_epoch(engine: str, folder: Path) -> None:
    learned = {"task": "parity", "train_max_length": 3, "learning_rate": 0.02, "train_size": 160}
    more = {"max_num_epochs": 60, "patience": 60, "min_validation_loss": 0.0}
    fields: dict[str, object] = {**LSTM, **UNTIL_RIGHT, **learned, **more}
    whole, all_reported = trained(engine, fields)
    first, second = sorted(member.epochs for member in whole)
    assert first > 2
    assert second < 60
    with pytest.raises(EndedError):
        trained(engine, fields, len(all_reported) - 2)
    assert len(list(folder.iterdir())) == 1
    assert_same(trained(engine, fields)[0], whole)


def test_damaged_progress_file_restarts_training(folder: Path) -> None:
    whole, all_reported = trained("lanes", WRITES)
    with pytest.raises(EndedError):
        trained("lanes", WRITES, 3)
    (file,) = folder.iterdir()
    content = file.read_bytes()
    middle = len(content) // 2
    flipped = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
    for damaged in (b"", content[:-1], flipped):
        file.write_bytes(damaged)
        found, reported = trained("lanes", WRITES)
        assert_same(found, whole)
        assert reported == all_reported
    file.write_bytes(content)
    assert len(trained("lanes", WRITES)[1]) < len(all_reported)


def test_other_runs_do_not_resume_from_a_progress_file(folder: Path) -> None:
    with pytest.raises(EndedError):
        trained("lanes", WRITES, 3)
    for change in ({"learning_rate": 0.02}, {"train_seed": 7}, {"task": "reverse"}):
        # A resumed run would first report several epochs.
        assert all(len(epochs) == 1 for epochs in trained("lanes", WRITES | change)[1]), change
        assert len(list(folder.iterdir())) == 1


def test_old_progress_files_are_removed(folder: Path) -> None:
    folder.mkdir()
    old, new = folder / "old", folder / "new"
    for file in (old, new):
        file.touch()
    os.utime(old, (1e9, 1e9))
    trained("lanes", WRITES)
    assert list(folder.iterdir()) == [new]


def test_short_training_writes_no_progress_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(member, "SECONDS", 60.0)
    with pytest.raises(EndedError):
        trained("lanes", WRITES, 3)
    assert not folder.exists()
