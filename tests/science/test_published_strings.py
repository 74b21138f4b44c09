"""Strings, drawn exactly as published."""

import itertools
from collections.abc import Iterator

import numpy as np
import pytest

from seqcls.config import RunConfig
from seqcls.kinds import Examples
from seqcls.problem import configuration, resolve
from seqcls.sampling.streams import stream
from seqcls.strings.tokenizer import LETTERS, Tokenizer
from tests.conftest import asset

FIXED = RunConfig(train_sampler="fixed_length")
STREAMS = {
    "variable_length/train": (resolve(RunConfig()).train, 0),
    "variable_length/train, second epoch": (resolve(RunConfig()).train, 1),
    "variable_length/validation": (resolve(RunConfig()).validation, 0),
    "variable_length/test": (resolve(RunConfig()).test, 0),
    "variable_length/batches of 4": (resolve(RunConfig(train_batch_size=4)).train, 0),
    "fixed_length/train, epoch 1": (resolve(FIXED).train, 0),
    "fixed_length/train, epoch 2": (resolve(FIXED).train, 1),
}


def test_batches_equal_the_published_ones() -> None:
    tokenizer = Tokenizer(LETTERS[:3])
    for name, (sampler, epoch) in STREAMS.items():
        strings = stream(sampler).epoch(epoch)
        batches = asset("strings.json")[name]
        assert batches
        for number, batch in enumerate(batches):
            start = number * sampler.batch_size
            drawn = strings.take(slice(start, start + len(batch)))
            texts = [tokenizer.decode(ids) for ids in drawn.strings.ids]
            # The published text of unsorted strings is spelled out.
            assert texts == [tokenizer.decode(tokenizer.encode(text)) for text, _ in batch], name
            assert drawn.labels.tolist() == [bool(label) for _, label in batch], name


def test_epochs_have_the_published_sizes() -> None:
    problem = resolve(RunConfig())
    sizes = [len(stream(x).epoch(0)) for x in (problem.train, problem.validation)]
    assert sizes == [156 * 64, 15 * 64]
    test = stream(problem.test).epoch(0)
    assert (len(test), int(test.labels.sum())) == (9984, 5655)
    drawn = stream(resolve(FIXED).train).epoch(0)
    assert len({ids.tobytes() for ids in drawn.strings.ids}) == len(drawn) == 3**9
    assert drawn.strings.lengths.tolist() == [9] * 3**9
    assert int((~drawn.labels).sum()) == 1023


def naive_batch(config: RunConfig, seed: int) -> tuple[list[list[int]], int]:
    """One batch of `variable_length`, drawn as the protocol describes it, and the next seed."""
    alphabet = resolve(config).tokenizer.alphabet
    required = sorted(config.required_letters)
    others = [x for x in alphabet if x not in required]
    rng = np.random.RandomState(seed)
    sets = [
        [x for bit, x in enumerate(required) if number & (1 << bit)]
        for number in range(2 ** len(required))
    ]
    parts = np.array_split(range(config.train_batch_size), len(sets) + len(required) + 1)
    sizes = [len(part) for part in parts]
    budgets = [*sizes[: len(sets) - 1], sum(sizes[len(sets) - 1 :])]
    counts = []
    while any(budgets):
        available = [number for number, budget in enumerate(budgets) if budget > 0]
        chosen = available[rng.randint(len(available))]
        budgets[chosen] -= 1
        letters = sets[chosen]
        length = rng.randint(max(len(letters), 1), config.train_max_length + 1)
        occurring: list[str] = []
        if letters:
            m = rng.randint(len(letters), length + 1)
            p = rng.dirichlet(config.train_alpha * np.ones(len(letters)) / len(letters))
            for letter, more in zip(letters, rng.multinomial(m - len(letters), p), strict=True):
                occurring += [letter] * (1 + int(more))
        if length > len(occurring):
            more = rng.randint(len(others), size=length - len(occurring))
            occurring += [others[number] for number in more]
        counts.append([occurring.count(x) for x in alphabet])
    return counts, int(rng.randint(2**32))


@pytest.mark.parametrize(
    ("num_letters", "required", "batch_size", "seed"),
    [
        (3, "ab", 64, 7),
        (2, "b", 5, 1),
        (5, "bd", 17, 3),
        (9, "aceg", 40, 2**32 - 1),
        (26, "z", 8, 0),
    ],
)
def test_other_alphabets_follow_the_published_protocol(
    num_letters: int, required: str, batch_size: int, seed: int
) -> None:
    letters = {"num_letters": num_letters, "required_letters": required, "train_seed": seed}
    sizes = {"train_batch_size": batch_size, "train_size": 3 * batch_size}
    config = configuration({**letters, **sizes, "train_max_length": 23, "train_alpha": 0.3})

    def naive_epochs() -> Iterator[list[list[int]]]:
        next_seed = seed
        while True:
            epoch: list[list[int]] = []
            for _ in range(3):
                batch, next_seed = naive_batch(config, next_seed)
                epoch += batch
            yield epoch

    drawn = resolve(config).train.epochs()
    for strings, expected in itertools.islice(zip(drawn, naive_epochs(), strict=False), 3):
        assert strings.strings.counts.tolist() == expected


def test_runs_share_one_stream() -> None:
    first = stream(resolve(RunConfig()).train)
    again = stream(resolve(RunConfig(hidden_size=16)).train)
    assert first is again
    assert first.epoch(0) is again.epoch(0)
    assert stream(resolve(RunConfig(train_seed=1)).train) is not first


def test_first_batches_do_not_depend_on_epoch_size() -> None:
    short: Examples = next(resolve(RunConfig(train_size=128)).train.epochs())
    whole = stream(resolve(RunConfig()).train).epoch(0)
    assert np.array_equal(short.strings.counts, whole.strings.counts[:128])
