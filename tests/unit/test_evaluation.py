"""Results, against counting string by string."""

from collections import Counter

import pytest

from seqcls.config import RunConfig
from seqcls.evaluation import drawn_test_set, evaluate
from seqcls.models.base import read_ids
from seqcls.models.initialization import initial_parameters
from seqcls.problem import resolve
from seqcls.results import Confusion
from seqcls.sampling.streams import stream
from seqcls.training import train_group
from tests.conftest import short_config
from tests.unit.networks import plain_model
from tests.unit.test_initialization import REPORT


def test_results_are_those_of_counting_string_by_string() -> None:
    config = short_config(test_max_length=60)
    weights = {k: v.numpy() for k, v in initial_parameters(resolve(config).network, 0).items()}
    result = evaluate(resolve(config), [weights])[0]

    import torch

    drawn = stream(resolve(config).test).epoch(0)
    model = plain_model(resolve(config).network, initial_parameters(resolve(config).network, 0))
    logits = model(torch.from_numpy(read_ids(drawn.strings, "first")).int()).tolist()
    tokenizer = resolve(config).tokenizer
    cells: Counter[tuple[str, int]] = Counter()
    wrong: Counter[str] = Counter()
    for ids, positive, logit in zip(drawn.strings.ids, drawn.labels, logits, strict=True):
        text = tokenizer.decode(ids)
        right = (logit > 0) == positive
        cell = ("t" if right else "f") + ("p" if logit > 0 else "n")
        length = sum(tokenizer.counts(text))
        cells[cell, length] += 1
        cells[cell, 0] += 1
        if not right:
            wrong[text] += 1

    def counted(length: int) -> Confusion:
        return Confusion(**{cell: cells[cell, length] for cell in ("tn", "fp", "fn", "tp")})

    assert result.confusion == counted(0)
    assert result.by_length == {
        length: counted(length) for length in sorted({x for _, x in cells} - {0})
    }
    of_each = result.by_length.values()
    assert result.tested_by_length.tolist() == [sum(own) for own in of_each]
    assert result.wrong_by_length.tolist() == [own.fp + own.fn for own in of_each]
    assert (result.tested, result.wrong) == (len(logits), wrong.total())
    test_set = drawn_test_set(resolve(config))
    numbers = result.errors.numbers.tolist()
    told = [(test_set.texts[number], test_set.occurrences[number]) for number in numbers]
    assert told == sorted(wrong.items())
    assert wrong, "an untrained model misclassifies something"
    for number, logit in zip(numbers, result.errors.logits, strict=True):
        assert test_set.lengths[number] == sum(tokenizer.counts(test_set.texts[number]))
        assert (logit > 0) != test_set.labels[number]
    assert result.solved_length == test_set.lengths[numbers].min() - 1


@pytest.mark.parametrize("members", [1, 3])
def test_members_are_evaluated_each_on_its_own(members: int) -> None:
    config = short_config()
    trained = train_group([(resolve(config), seed) for seed in range(members)])
    kept = [member.kept_weights for member in trained]
    together = evaluate(resolve(config), kept)
    for own, result in zip(kept, together, strict=True):
        assert evaluate(resolve(config), [own])[0].confusion == result.confusion


def test_without_errors_every_tested_length_is_solved() -> None:
    config = RunConfig(**REPORT)
    result = evaluate(resolve(config), [train_group([(resolve(config), 5)])[0].kept_weights])[0]
    assert len(result.errors) == 0
    assert result.solved_length == 200
    assert sum(x.tn + x.tp for x in result.by_length.values()) == 9984
    assert (result.tested, result.wrong) == (9984, 0)
