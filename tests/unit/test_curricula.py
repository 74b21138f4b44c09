"""Training in stages of longer strings, and with parts that are held fixed at first."""

from typing import Any

import numpy as np
import pytest
import torch

from seqcls.config import RunConfig
from seqcls.engines.choice import choose_engine
from seqcls.engines.pytorch.groups import FlatGroup, StackedGroup
from seqcls.errors import ConfigError
from seqcls.models.initialization import initial_parameters
from seqcls.problem import Problem, configuration, resolve
from seqcls.sampling.streams import stream
from seqcls.training import train_group
from sweeps.api.protocols import _optimizer, _strings
from sweeps.grid.spec import parse_spec

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
        kept = problem.kind.targets(problem.task, drawn.strings)
        assert np.array_equal(kept, drawn.targets)
    assert problem.trained_lengths == problem_of(**fields, **answered).trained_lengths
    last = stream(problem.train).epoch(3).strings
    assert last.lengths.max() > 8


def test_one_stage_is_training_on_all_lengths() -> None:
    whole, plain = problem_of(train_lengths=[[12, 1]]), problem_of()
    assert whole.train == plain.train
    assert whole.longest_train == problem_of(train_lengths=STAGES).longest_train == plain.train


def test_the_first_epoch_of_a_stage_is_the_first_of_its_sampler() -> None:
    staged = problem_of(train_lengths=[[4, 0.5], [12, 1.0]])
    short = problem_of(train_max_length=4)
    drawn = [stream(staged.train).epoch(epoch) for epoch in range(4)]
    for part, sampler in ((0, short.train), (2, problem_of().train)):
        for epoch in range(2):
            own = stream(sampler).epoch(epoch)
            assert np.array_equal(own.strings.letters, drawn[part + epoch].strings.letters)


REPORT: dict[str, Any] = {
    "train_lengths": [[4, 0.5], [10, 1.0]], "train_size": 256, "validation_size": 64,
    "test_size": 64, "test_batch_size": 64, "max_num_epochs": 2, "min_num_epochs": 2,
    "precision": "float64",
}  # fmt: skip


@pytest.mark.parametrize("engine", ["counts", "strings"])
def test_every_engine_trains_in_stages(engine: str) -> None:
    problem, plain = (resolve(configuration(x)) for x in (REPORT, {**REPORT, "train_lengths": ""}))
    (compiled,) = train_group([(problem, 0)], engine="fused")
    (own,) = train_group([(problem, 0)], engine=engine, device="cpu")
    assert own.train_losses == pytest.approx(compiled.train_losses, rel=1e-6)
    (other,) = train_group([(plain, 0)], engine="fused")
    assert other.train_losses[0] != pytest.approx(compiled.train_losses[0], rel=1e-3)


@pytest.mark.parametrize("make", [FlatGroup, StackedGroup])
@pytest.mark.parametrize("clip", [0.0, 0.05])
def test_a_fixed_part_moves_as_if_training_began_when_it_is_let_go(
    make: type[FlatGroup | StackedGroup], clip: float
) -> None:
    config = problem_of(freeze=[["embeddings", 0.5], ["block 0", 0.75]], num_blocks=2)
    weights = {x: y.double() for x, y in initial_parameters(config.network, 0).items()}
    numbers = {name: value.numpy() for name, value in weights.items()}
    group = make(
        [numbers, numbers], torch.device("cpu"), weight_decay=0.1, gradient_clip=clip,
        freeze=config.config.freeze, steps=8,
    )  # fmt: skip
    plain = {x: torch.nn.Parameter(y.clone()) for x, y in weights.items()}
    optimizer = torch.optim.AdamW(plain.values(), weight_decay=0.1)
    generator = torch.Generator().manual_seed(0)
    for step in range(8):
        done = step / 8
        optimizer.param_groups[0]["lr"] = 0.1 / (step + 1)
        frozen = [x for x in plain if done < 0.5 and x.startswith("embedding")]
        frozen += [x for x in plain if done < 0.75 and x.startswith("layers.0")]
        gradients: dict[str, torch.Tensor] = {}
        for name, value in plain.items():
            gradients[name] = torch.randn(value.shape, generator=generator, dtype=value.dtype)
            value.grad = None if name in frozen else gradients[name].clone()
        if clip:
            torch.nn.utils.clip_grad_norm_(plain.values(), clip)
        optimizer.step()
        if isinstance(group, FlatGroup):
            group.forget_gradients()
            for name in plain:
                block = group._block(name)
                group._slice(block.gradients, name).copy_(gradients[name].expand(2, -1, -1))
        else:
            for name, stacked in group.parameters.items():
                stacked.grad = torch.stack([gradients[name]] * 2)
        group.step(0.1 / (step + 1), step)
        for name, moved in group.parameters.items():
            assert torch.equal(moved[0], moved[1])
            if name in frozen:
                assert torch.equal(moved[0].detach(), weights[name])
            torch.testing.assert_close(moved[1].detach(), plain[name].detach(), rtol=1e-9, atol=0)
        if step == 6 and isinstance(group, FlatGroup):
            group.keep([1, 0])


@pytest.mark.parametrize("engine", ["lanes", "strings"])
def test_a_part_is_fixed_until_its_share_of_training(engine: str) -> None:
    fields = {"freeze": [["embeddings", 0.5], ["head", 1.0]], "learning_rate": 0.1}
    problem = problem_of(**fields)
    (trained,) = train_group([(problem, 3)], engine=engine, every_epoch=True, device="cpu")
    begun = {x: y.numpy() for x, y in initial_parameters(problem.network, 3).items()}
    for epoch, weights in trained.weights.items():
        same = {x for x, value in weights.items() if np.array_equal(value, begun[x])}
        assert ("embedding.weight" in same) == (epoch <= 2)
        assert "classifier.weight" in same
        assert not any(x.startswith("layers") for x in same)


@pytest.mark.parametrize(
    ("fields", "engine", "other"),
    [
        ({**REPORT, "train_lengths": ""}, "fused", "counts"),
        (
            {**REPORT, "train_lengths": "", "readout": "mean", "decay": "matrices"},
            "fused",
            "strings",
        ),
        ({**SHORT, "gradient_clip": 0.05, "weight_decay": 0.1}, "lanes", "strings"),
        ({**SHORT, "task": "copy", "readout": "first", "num_blocks": 2}, "lanes", "strings"),
    ],
    ids=str,
)
def test_compiled_engines_hold_parts_fixed_as_pytorch_does(
    fields: dict[str, Any], engine: str, other: str
) -> None:
    freeze = [["embeddings", 0.3], ["head", 0.61]]
    problem = resolve(configuration({**fields, "freeze": freeze}))
    assert choose_engine(problem, device="cpu").name == engine
    ours, theirs = (
        train_group([(problem, 0)], engine=x, device="cpu", every_epoch=True)[0]
        for x in (engine, other)
    )
    assert ours.train_losses == pytest.approx(theirs.train_losses, rel=1e-4)
    for epoch, weights in theirs.weights.items():
        for name, value in weights.items():
            np.testing.assert_allclose(ours.weights[epoch][name], value, rtol=2e-3, atol=1e-4)


def test_engines_train_in_stages_and_with_fixed_parts() -> None:
    of_both = problem_of(train_lengths=STAGES, freeze=[["embeddings", 0.5]])
    assert choose_engine(of_both, device="cpu").name == "lanes"
    assert choose_engine(resolve(RunConfig(freeze='[["blocks", 1.0]]'))).name == "fused"


def test_the_same_curriculum_has_one_key_however_it_is_written() -> None:
    as_lists = configuration({**SHORT, "train_lengths": [[4, 0.5], [12, 1]]})
    as_text = configuration({**SHORT, "train_lengths": "[[4,0.50],[12,1.0]]"})
    assert as_lists.train_lengths == "[[4, 0.5], [12, 1.0]]"
    assert as_lists.key == as_text.key != configuration(SHORT).key
    assert RunConfig.from_mapping(as_lists.model_dump()) == as_lists
    parts = [["head", 0.1], ["blocks", 0.3]]
    keys = {configuration({**SHORT, "freeze": x}).key for x in (parts, parts[::-1])}
    assert len(keys) == 1


def test_a_specification_has_them_as_lists_and_as_axes() -> None:
    fixed = {**SHORT, "freeze": [["embeddings", 0.2]]}
    spec = parse_spec(
        {
            "name": "staged",
            "model_seeds": [0],
            "fixed": fixed,
            "axes": {"train_lengths": ["", STAGES, "[[6, 0.5], [12, 1.0]]"]},
        }
    )
    assert [config.train_lengths for config in spec.configs()] == [
        "", "[[4, 0.25], [8, 0.6], [12, 1.0]]", "[[6, 0.5], [12, 1.0]]",
    ]  # fmt: skip
    assert {config.freeze for config in spec.configs()} == {'[["embeddings", 0.2]]'}


def test_the_protocol_says_how_training_changed() -> None:
    problem = problem_of(train_lengths=STAGES, freeze=[["head", 0.3]])
    assert "up to 4 tokens until 25% of training; up to 8 tokens until 60%" in _strings(
        problem, "train", ""
    )
    assert "head fixed until 30% of training" in _optimizer(problem.config)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"train_lengths": [[8, 0.2], [10, 1.0]]}, "ends at length 10, and train_max_length=12"),
        ({"train_lengths": [[8, 0.2], [12, 0.9]]}, "ends at a share of 0.9; expected the last"),
        ({"train_lengths": [[8, 0.5], [12, 0.2]]}, "expected shares that rise from stage to stage"),
        ({"train_lengths": [[12, 0.5], [8, 1.0]]}, "expected lengths that rise"),
        ({"train_lengths": [[8.5, 0.5], [12, 1.0]]}, "expected whole numbers from 1 to 10000"),
        ({"train_lengths": [[8, 1.5], [12, 1.0]]}, "expected shares of training above 0, up to 1"),
        ({"train_lengths": "8 then 12"}, "expected pairs of a longest length and a share"),
        ({"train_lengths": 12}, "expected pairs of a longest length and a share"),
        ({"train_lengths": [8, 12]}, "expected pairs of a longest length and a share"),
        (
            {"freeze": [["embedings", 0.2]]},
            "expected embeddings, positions, blocks, head or 'block 0', not 'embedings'",
        ),
        ({"freeze": [[["head"], 0.2]]}, "not ['head']"),
        ({"freeze": [["block 1", 0.2]]}, "there is no block 1; expected 'block 0' to 0"),
        ({"freeze": [["head", 0.2], ["head", 0.3]]}, "expected each part once"),
        ({"freeze": [["head", 0]]}, "expected shares of training above 0, up to 1.0, not 0"),
        ({"freeze": [["positions", 0.2]]}, "positions='none' has no weights"),
        (
            {"freeze": [["embeddings", 0.2], ["blocks", 0.2], ["head", 0.2]]},
            "nothing is left to be trained at the start",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError) as refused:
        configuration({**SHORT, **fields})
    assert says in str(refused.value)
    assert str(refused.value).startswith(f"{next(iter(fields))}=")
    assert "\n" not in str(refused.value)


def test_strings_of_no_stages_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"train_lengths=.* not read by train_sampler"):
        configuration({"train_sampler": "fixed_length", "train_lengths": [[10, 1.0]]})
    with pytest.raises(ConfigError, match=r"max_length=2"):
        problem_of(train_lengths=[[2, 0.5], [12, 1.0]], train_min_length=3)
