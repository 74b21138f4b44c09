"""Streams of strings are cached on disk, and damaged files are drawn again."""

import itertools
import shutil
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from seqcls.cache import Memory
from seqcls.config import RunConfig
from seqcls.kinds import examples_of
from seqcls.problem import resolve
from seqcls.sampling import Sampler
from seqcls.sampling.streams import Stream
from sweeps.work import jobs

TRAIN = resolve(RunConfig(train_size=256)).train
FIXED = resolve(RunConfig(train_sampler="fixed_length", sequence_length=5)).train


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SEQCLS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def in_threads(work: Callable[[int], object], number: int = 4) -> None:
    """Does the same in several threads that begin together and often take turns."""
    together, before = threading.Barrier(number), sys.getswitchinterval()

    def begin(thread: int) -> object:
        together.wait()
        return work(thread)

    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(number) as pool:
            list(pool.map(begin, range(number)))
    finally:
        sys.setswitchinterval(before)


def test_threads_read_one_stream_consistently(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seqcls.sampling.streams.MEMORY", Memory(1))
    expected = drawn(TRAIN, 6)
    for _ in range(2):
        shutil.rmtree(cache, ignore_errors=True)
        shared = Stream(TRAIN)

        def read(thread: int, shared: Stream = shared) -> None:
            for index in np.random.default_rng(thread).permutation(6).tolist():
                assert np.array_equal(shared.epoch(index).strings.letters, expected[index])

        in_threads(read)
        # What is on disk now is what every later process reads.
        same(Stream(TRAIN), TRAIN, 6)


def test_training_restores_the_number_of_torch_threads() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with jobs.on_one_thread("strings"):
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def drawn(sampler: Sampler, epochs: int) -> list[np.ndarray]:
    return [drawn.strings.letters for drawn in itertools.islice(sampler.epochs(), epochs)]


def same(stream: Stream, sampler: Sampler, epochs: int) -> None:
    for index, ids in enumerate(drawn(sampler, epochs)):
        read = stream.epoch(index)
        assert np.array_equal(read.strings.letters, ids)
        assert np.array_equal(read.labels, examples_of(sampler.task, read.strings).labels)


@pytest.mark.parametrize("sampler", [TRAIN, FIXED], ids=["variable", "fixed"])
def test_stream_read_from_disk_equals_the_drawn_one(sampler: Sampler, cache: Path) -> None:
    same(Stream(sampler), sampler, 3)
    assert len(list(cache.rglob("*.strings"))) == 3
    read = Stream(sampler)
    read._source = iter(())  # nothing may be drawn any more
    same(read, sampler, 3)


def test_later_epoch_may_be_read_first(cache: Path) -> None:
    assert np.array_equal(Stream(TRAIN).epoch(4).strings.letters, drawn(TRAIN, 5)[4])
    same(Stream(TRAIN), TRAIN, 7)
    assert len(list(cache.rglob("*.strings"))) == 7


@pytest.mark.parametrize(
    "damage", [lambda b: b[:-1], lambda b: b[:40] + b"?" + b[41:], lambda _: b""]
)
def test_damaged_strings_file_is_drawn_again(damage: object, cache: Path) -> None:
    assert callable(damage)
    same(Stream(TRAIN), TRAIN, 2)
    for file in cache.rglob("*.strings"):
        whole = file.read_bytes()
        file.write_bytes(damage(whole))
        same(Stream(TRAIN), TRAIN, 2)
        assert file.read_bytes() == whole


def test_strings_are_drawn_without_a_writable_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("SEQCLS_CACHE", str(tmp_path / "file"))
    same(Stream(TRAIN), TRAIN, 2)


def test_streams_of_different_settings_are_stored_apart(cache: Path) -> None:
    for fields in ({}, {"train_seed": 1}, {"train_alpha": 0.5}, {"train_batch_size": 32}):
        Stream(resolve(RunConfig(train_size=256, **fields)).train).epoch(0)
    assert len(list((cache / "strings").iterdir())) == 4


def test_fixed_length_shuffles_like_the_pytorch_loader() -> None:
    generator = torch.Generator().manual_seed(5)
    numbers: DataLoader[int] = DataLoader(
        range(3**4),  # type: ignore[arg-type]  # any sequence will do
        batch_size=64,
        shuffle=True,
        generator=generator,
    )
    sampler = resolve(
        RunConfig(train_sampler="fixed_length", sequence_length=5, train_seed=5)
    ).train
    place_values = 3 ** np.arange(4)[::-1]
    for ids in drawn(sampler, 4):
        order = torch.cat(list(numbers)).numpy()
        assert np.array_equal(ids.astype(int) @ place_values, order)
