"""Training: each member as if it were alone, against a plain loop over one plain model."""

from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, LRScheduler, SequentialLR

from seqcls.config import NetworkConfig, RunConfig
from seqcls.engines.pytorch.training import choose_device
from seqcls.errors import DeviceError, GroupError
from seqcls.evaluation import evaluate
from seqcls.kinds import Examples
from seqcls.kinds.membership import sigmoid_scaled
from seqcls.models.base import Classifier
from seqcls.models.initialization import initial_parameters, make_model
from seqcls.models.positions import read_ids
from seqcls.models.positions.places import TrainingPlaces
from seqcls.problem import check, resolve
from seqcls.results import EpochLosses, TrainedMember
from seqcls.sampling.streams import stream
from seqcls.strings.tokenizer import PAD
from seqcls.training import train_group
from tests.conftest import short_config
from tests.unit.test_initialization import REPORT


def plainly_trained(config: RunConfig, seed: int) -> tuple[Classifier, list[float], list[float]]:
    """One plain model, trained for all epochs by PyTorch's own loss, optimizer and schedule."""
    dtype = getattr(torch, config.precision)
    model = make_model(resolve(config).network).to(dtype)
    model.load_state_dict(initial_parameters(resolve(config).network, seed))
    model.use_dropout_generator(torch.Generator().manual_seed(config.train_seed))
    loss_of = nn.BCEWithLogitsLoss()
    matrices = [x for x in model.parameters() if x.ndim >= 2]
    others: dict[str, Any] = {"params": [x for x in model.parameters() if x.ndim < 2]}
    if config.decay == "matrices":
        others["weight_decay"] = 0.0
    optimizer = torch.optim.AdamW(
        [{"params": matrices}, others], lr=config.learning_rate, weight_decay=config.weight_decay
    )
    schedule = schedule_of(config, optimizer)
    validation = stream(resolve(config).validation).epoch(0)
    places = TrainingPlaces(resolve(config).network, config.train_seed)
    train_losses, validation_losses = [], []

    def loss(drawn: Examples) -> torch.Tensor:
        ids = torch.from_numpy(read_ids(drawn.strings, config.readout)).int()
        longest = int((ids != PAD).sum(dim=1).max())
        own = places.draw(ids[:, :longest]) if model.training else None
        if own is not None:
            own = nn.functional.pad(own, (0, ids.shape[1] - own.shape[1]))
        logits = model(ids, own)
        if config.train_loss == "sigmoid_scaled":
            logits = sigmoid_scaled(logits)
        value: torch.Tensor = loss_of(logits, torch.from_numpy(drawn.labels).to(dtype))
        return value

    for epoch in range(config.max_num_epochs):
        strings = stream(resolve(config).train).epoch(epoch)
        total = 0.0
        model.train()
        for start in range(0, len(strings), config.train_batch_size):
            batch = strings.take(slice(start, start + config.train_batch_size))
            mean = loss(batch)
            mean.backward()
            if config.gradient_clip:
                nn.utils.clip_grad_norm_(model.parameters(), config.gradient_clip)
            optimizer.step()
            optimizer.zero_grad()
            total += mean.item() * len(batch)
            if config.learning_rate_interval == "step":
                schedule.step()
        if config.learning_rate_interval == "epoch":
            schedule.step()
        model.eval()
        train_losses.append(total)
        with torch.no_grad():
            validation_losses.append(loss(validation).item() * len(validation))
    return model, train_losses, validation_losses


def schedule_of(config: RunConfig, optimizer: torch.optim.Optimizer) -> LRScheduler:
    """The rates of a configuration, as PyTorch has them."""
    number, warm = config.max_num_epochs, config.warm_up_steps
    if config.learning_rate_interval == "step":
        number = number * config.train_size // config.train_batch_size - warm
    factor = config.final_learning_rate_factor
    falling: LRScheduler = LinearLR(optimizer, 1.0, factor, total_iters=number)
    if config.learning_rate_schedule == "cosine":
        falling = CosineAnnealingLR(optimizer, number, eta_min=factor * config.learning_rate)
    if not warm:
        return falling
    growing = LinearLR(optimizer, 1 / warm, 1.0, total_iters=warm - 1)
    return SequentialLR(optimizer, [growing, falling], milestones=[warm])


BY_STEPS: dict[str, Any] = {
    "learning_rate_interval": "step", "final_learning_rate_factor": 0.0, "biases": True,
    "decay": "matrices", "weight_decay": 0.5, "layer_norm": "nn",
}  # fmt: skip
ENGINES = ("fused", "torch")
BY_EITHER: tuple[dict[str, Any], ...] = (
    {},
    {"hidden_size": 5, "num_attention_heads": 3, "attention_head_size": 2},
    {"layer_norm": "nn", "no_attend_cls": True, "feed_forward_size": 0},
    {"layer_norm_eps": 0.0, "train_loss": "sigmoid_scaled", "num_attention_heads": 0},
    {"train_sampler": "fixed_length", "sequence_length": 5},  # 81 strings: a short last batch
    {**BY_STEPS, "gradient_clip": 0.1},
    {**BY_STEPS, "learning_rate_schedule": "cosine", "readout": "mean"},
    {**BY_STEPS, "warm_up_steps": 6, "positions": "alibi"},
)
BY_ONE = ("torch", {"dropout_rate": 0.3, "hidden_size": 4})  # the fused engine has no dropout


@pytest.mark.parametrize(("engine", "fields"), [*product(ENGINES, BY_EITHER), BY_ONE], ids=str)
def test_training_a_group_is_training_plain_models_one_by_one(
    fields: dict[str, Any], engine: str
) -> None:
    config = short_config(precision="float64", patience=99, **fields)
    members = train_group(
        [(resolve(config), seed) for seed in (0, 1)], engine=engine, every_epoch=True
    )
    for seed, member in enumerate(members):
        model, train_losses, validation_losses = plainly_trained(config, seed)
        assert member.train_losses == pytest.approx(train_losses, rel=1e-9)
        assert member.validation_losses == pytest.approx(validation_losses, rel=1e-9)
        for name, value in model.state_dict().items():
            np.testing.assert_allclose(member.weights[3][name], value, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize(
    "fields",
    [
        {"num_blocks": 2, "weight_decay": 0.5, "gradient_clip": 0.1},
        {"readout": "mean", "attention_scale": "log_length", "biases": True},
        {"positions": "alibi", "attention_scale": "learned_log_length", "num_blocks": 2},
        {"positions": "sinusoidal", "attention_mask": "causal", "readout": "last"},
        {"positions": "rotary", "position_range": 60, "num_blocks": 2, "gradient_clip": 0.1},
        {"positions": "learned", "position_range": 60, "weight_decay": 0.5},
        {"positions": "learned", "position_draw": "shifted", "embeddings_init_strategy": "gpt2"},
        {"positions": "learned", "position_draw": "shifted", "dropout_rate": 0.3},
        {"positions": "relative", "norm_placement": "post", "activation": "relu"},
        {"activation": "gelu_tanh", "final_norm": True, "final_learning_rate_factor": 0.0},
        {"positions": "alibi", "position_range": 60, "dropout_rate": 0.3},
        {"architecture": "rnn", "readout": "last", "biases": True, "gradient_clip": 0.1},
        {"architecture": "gru", "readout": "mean", "num_blocks": 2},
        {**BY_STEPS, "warm_up_steps": 6, "learning_rate_schedule": "cosine", "num_blocks": 2},
        {"architecture": "lstm", "readout": "last", "num_blocks": 2, "dropout_rate": 0.3},
    ],
    ids=str,
)
def test_a_group_of_any_network_trains_as_plain_models_one_by_one(fields: dict[str, Any]) -> None:
    config = short_config(
        precision="float64", patience=99, attention_head_size=2, test_max_length=50, **fields
    )
    check(config)
    members = train_group(
        [(resolve(config), seed) for seed in (0, 1)], engine="torch", every_epoch=True
    )
    for seed, member in enumerate(members):
        model, train_losses, validation_losses = plainly_trained(config, seed)
        assert member.train_losses == pytest.approx(train_losses, rel=1e-9)
        assert member.validation_losses == pytest.approx(validation_losses, rel=1e-9)
        for name, value in model.state_dict().items():
            np.testing.assert_allclose(member.weights[3][name], value, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize(
    "fields",
    [
        {"positions": "rotary", "position_range": 60, "gradient_clip": 0.1, "hidden_size": 16},
        {"architecture": "lstm", "readout": "last", "hidden_size": 7},
        {"positions": "alibi", "attention_mask": "causal", "readout": "mean", "num_blocks": 2},
    ],
    ids=str,
)
def test_string_by_string_a_member_is_to_the_last_bit_what_it_is_alone(
    fields: dict[str, Any],
) -> None:
    config = short_config(
        attention_head_size=2, test_max_length=50, patience=1, max_num_epochs=5, **fields
    )
    together = train_group([(resolve(config), seed) for seed in range(4)], engine="strings")
    for seed in (0, 3):
        alone = train_group([(resolve(config), seed)], engine="strings")[0]
        assert alone.validation_losses == together[seed].validation_losses
        for name, value in alone.kept_weights.items():
            assert np.array_equal(value, together[seed].kept_weights[name])


def same(one: TrainedMember, other: TrainedMember) -> None:
    """Asserts that two trainings are the same up to rounding in single precision."""
    assert one.best_epoch == other.best_epoch
    assert one.epochs == other.epochs
    for name, value in one.kept_weights.items():
        np.testing.assert_allclose(value, other.kept_weights[name], rtol=1e-3, atol=1e-4)
    kept = [own.kept_weights for own in (one, other)]
    results = evaluate(resolve(one.config), kept)
    assert results[0].confusion == results[1].confusion
    assert results[0].by_length == results[1].by_length


@pytest.mark.parametrize("engine", ENGINES)
def test_a_member_is_the_same_alone_and_among_64(engine: str) -> None:
    config = RunConfig(**REPORT, max_num_epochs=8, train_size=1600, patience=1)
    alone = train_group([(resolve(config), 5)], engine=engine)[0]
    together = train_group([(resolve(config), seed) for seed in range(64)], engine=engine)
    assert len({member.epochs for member in together}) > 1, "some members stop before others"
    same(alone, together[5])


DIVERGING = 1e30
"""Values of an embedding at which the loss is no number."""


@pytest.mark.parametrize("engine", ENGINES)
def test_a_member_that_diverges_fails_and_leaves_its_neighbours_alone(
    monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    def exploding(network: NetworkConfig, seed: int) -> dict[str, torch.Tensor]:
        parameters = initial_parameters(network, seed)
        if seed == 1:
            parameters["embedding.weight"] *= DIVERGING
        return parameters

    config = short_config(layer_norm_eps=0.0)
    beside_sane = train_group([(resolve(config), 0), (resolve(config), 2)], engine=engine)
    monkeypatch.setattr("seqcls.models.initialization.initial_parameters", exploding)
    first, failed, last = train_group(
        [(resolve(config), seed) for seed in (0, 1, 2)], engine=engine
    )
    assert failed.failure is not None
    assert failed.failure.startswith("diverged in epoch 1: the training loss became ")
    assert (failed.best_epoch, failed.weights, failed.train_losses) == (None, {}, [])
    with pytest.raises(ValueError, match="has no model: diverged"):
        _ = failed.kept_weights
    same(first, beside_sane[0])
    same(last, beside_sane[1])


def test_a_group_of_which_all_diverge_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    def exploding(network: NetworkConfig, seed: int) -> dict[str, torch.Tensor]:
        return {k: v * DIVERGING for k, v in initial_parameters(network, seed).items()}

    monkeypatch.setattr("seqcls.models.initialization.initial_parameters", exploding)
    members = train_group([(resolve(short_config(layer_norm_eps=0.0)), seed) for seed in (0, 1)])
    assert all(member.failure for member in members)


def test_dropout_does_not_depend_on_who_trains_beside() -> None:
    config = short_config(dropout_rate=0.2, hidden_size=4)
    together = train_group([(resolve(config), seed) for seed in range(3)])
    same(train_group([(resolve(config), 2)])[0], together[2])
    without = train_group([(resolve(short_config(hidden_size=4)), 2)])[0]
    assert without.train_losses != together[2].train_losses


def test_only_the_best_epochs_weights_are_kept_unless_all_are_asked_for() -> None:
    members = [(resolve(short_config()), 0)]
    best = train_group(members)[0]
    assert list(best.weights) == [best.best_epoch]
    every = train_group(members, every_epoch=True)[0]
    assert list(every.weights) == [1, 2, 3]
    for name, value in best.kept_weights.items():
        assert np.array_equal(value, every.kept_weights[name])


def test_members_of_one_group_may_start_differently() -> None:
    configs = [
        short_config(hidden_size=4, embeddings_init_strategy=x) for x in ("default", "linear_like")
    ]
    together = train_group([(resolve(config), 0) for config in configs])
    for config, member in zip(configs, together, strict=True):
        same(train_group([(resolve(config), 0)])[0], member)
    assert together[0].train_losses != together[1].train_losses


@pytest.mark.parametrize("engine", ENGINES)
def test_progress_is_told_until_all_is_done(engine: str) -> None:
    told: list[float] = []
    problem = resolve(short_config())
    members = [(problem, 0), (problem, 1)]
    train_group(members, engine=engine, progress=lambda done, _: told.append(done))
    assert told == sorted(told)
    assert told[-1] == 2


STOPPING: dict[str, Any] = {"max_num_epochs": 12, "min_num_epochs": 2, "patience": 2}
"""So that members stop early, each when its own losses say so."""


@pytest.mark.parametrize(
    ("engine", "fields"),
    [
        ("fused", {}),
        ("fused", {"positions": "rotary"}),
        ("counts", {}),
        ("strings", {"num_blocks": 2, "attention_mask": "causal"}),
        ("strings", {"architecture": "lstm"}),
    ],
)
def test_every_epochs_losses_are_told_as_they_end(engine: str, fields: dict[str, Any]) -> None:
    told: list[EpochLosses] = []
    problem = resolve(short_config(**STOPPING, learning_rate=0.05, **fields))
    members = [(problem, model_seed) for model_seed in range(4)]
    trained = train_group(members, engine=engine, progress=lambda _, epochs: told.extend(epochs))
    assert len({member.epochs for member in trained}) > 1, "all stop at once"
    for number, member in enumerate(trained):
        own = [epoch for epoch in told if epoch.member == number]
        assert [epoch.epoch for epoch in own] == list(range(1, member.epochs + 1))
        assert [epoch.train_loss for epoch in own] == member.train_losses
        assert [epoch.validation_loss for epoch in own] == member.validation_losses


def test_runs_of_different_shapes_are_refused() -> None:
    with pytest.raises(GroupError, match="2 runs cannot train together"):
        train_group([(resolve(short_config()), 0), (resolve(short_config(hidden_size=3)), 0)])
    with pytest.raises(GroupError, match="0 runs cannot train together"):
        train_group([])


def test_a_device_that_is_not_there_is_refused() -> None:
    assert choose_device("cpu") == torch.device("cpu")
    with pytest.raises(DeviceError, match="device 'tpu': expected auto, cpu or cuda"):
        choose_device("tpu")
    if not torch.cuda.is_available():
        assert choose_device("auto") == torch.device("cpu")
        with pytest.raises(DeviceError, match="this machine has no GPU"):
            choose_device("cuda")


def test_sigmoid_scaled_is_its_formula_twice() -> None:
    logits = torch.tensor([-30.0, -1.0, 0.0, 2.0, 30.0], dtype=torch.float64)

    def once(z: torch.Tensor) -> torch.Tensor:
        return -z / (1 + 1 / (1 + torch.exp(-z)))

    torch.testing.assert_close(sigmoid_scaled(logits), once(once(logits)))
    assert torch.equal(sigmoid_scaled(logits).sign(), logits.sign())
