"""Blocks with a memory of a fixed size, against other formulations of the same in float64."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from mambapy.mamba import MambaBlock, MambaConfig
from torch import Tensor
from torch.nn import functional

from seqcls.config import NetworkConfig
from seqcls.decode import KeepingStepper, start
from seqcls.engines.choice import choose_engine
from seqcls.engines.member import learning_rates
from seqcls.engines.pytorch.computations import OneByOne, Stacked, trimmed_ids
from seqcls.engines.pytorch.groups import FlatGroup, Losses, StackedGroup
from seqcls.errors import ConfigError, EngineError
from seqcls.interpretability.mechanisms import LONGER
from seqcls.interpretability.remedies import suggestions
from seqcls.interpretability.states_by_strings import recurrent_units
from seqcls.models.base import Recorder
from seqcls.models.batches import Batch
from seqcls.models.initialization import initial_parameters
from seqcls.models.mixing import Mixer, Mixing
from seqcls.models.positions.places import positions_of
from seqcls.problem import configuration, resolve
from seqcls.results import TrainedMember
from seqcls.strings.token_strings import TokenStrings
from seqcls.strings.tokenizer import PAD
from seqcls.training import train_group
from tests.unit.asked import untrained
from tests.unit.networks import plain_model

HIDDEN, HEADS, HEAD = 6, 2, 4
SIZES: dict[str, Any] = {
    "hidden_size": HIDDEN, "num_blocks": 2, "feed_forward_size": 8, "readout": "last",
    "precision": "float64", "num_letters": 3,
}  # fmt: skip
IN_HEADS = {"num_attention_heads": HEADS, "attention_head_size": HEAD}
NETWORKS: dict[str, dict[str, Any]] = {
    "deltanet": {"architecture": "deltanet", **IN_HEADS},
    "deltanet, signed": {
        "architecture": "deltanet", **IN_HEADS, "eigenvalue_range": "signed", "biases": True,
        "norm_placement": "post",
    },
    "deltanet, short": {"architecture": "deltanet", **IN_HEADS, "short_convolution": False},
    "gated_deltanet": {"architecture": "gated_deltanet", **IN_HEADS},
    "gated_deltanet, signed, short": {
        "architecture": "gated_deltanet", **IN_HEADS, "eigenvalue_range": "signed",
        "short_convolution": False,
    },
    "deltaproduct": {"architecture": "deltaproduct", **IN_HEADS},
    "deltaproduct, signed": {
        "architecture": "deltaproduct", **IN_HEADS, "eigenvalue_range": "signed",
        "householder_steps": 3,
    },
    "mamba": {"architecture": "mamba", "state_size": 5},
    "mamba, signed": {
        "architecture": "mamba", "state_size": 3, "expand": 1, "eigenvalue_range": "signed",
        "final_norm": True,
    },
    "slstm": {"architecture": "slstm", **IN_HEADS, "biases": True},
    "linear_attention": {"architecture": "linear_attention", **IN_HEADS, "readout": "mean"},
}  # fmt: skip
EVERY = pytest.mark.parametrize("name", NETWORKS)


def network(name: str, **fields: Any) -> NetworkConfig:
    return NetworkConfig(**{**SIZES, **NETWORKS[name], **fields})


def drawn(name: str, seed: int = 0, **fields: Any) -> Mixing:
    """A model whose every parameter is random."""
    config = network(name, **fields)
    torch.manual_seed(seed)
    values = {
        name: value + 0.5 * torch.randn_like(value)
        for name, value in initial_parameters(config, seed).items()
    }
    model = plain_model(config, values)
    assert isinstance(model, Mixing)
    return model


def mixer_of(name: str, **fields: Any) -> Mixer:
    (first, *_) = drawn(name, **fields).blocks
    return first.mixer


def some_states(tokens: int = 19) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(3, tokens, HIDDEN, generator=generator, dtype=torch.float64)


def weights_of(mixer: Mixer) -> dict[str, Tensor]:
    return {name: value.detach() for name, value in mixer.named_parameters()}


def convolved(rows: Tensor, weight: Tensor) -> Tensor:
    """Convolves one string: each channel's four last tokens, weighted; zeros before the first."""
    padded = torch.cat([rows.new_zeros(3, rows.shape[1]), rows])
    return torch.stack(
        [
            sum((padded[place + back] * weight[:, back] for back in range(4)), torch.zeros(()))
            for place in range(len(rows))
        ]
    )


def delta_rule_of(
    weights: dict[str, Tensor], states: Tensor, signed: bool, steps: int = 1
) -> Tensor:
    """One string, one head after another, as the papers write the recurrence."""
    parts = [states @ weights[f"{x}.weight"].T for x in ("query", "key", "value")]
    given = torch.cat(parts, dim=1)
    if "convolution.weight" in weights:
        given = convolved(given, weights["convolution.weight"])
    given = given * given.sigmoid()
    width = HEADS * HEAD
    query, key, value = given.split([width, steps * width, steps * width], dim=1)
    strengths = (states @ weights["strength.weight"].T).sigmoid() * (2 if signed else 1)
    kept = torch.ones(len(states), HEADS, dtype=torch.float64)
    if "fading.weight" in weights:
        faded = states @ weights["fading.weight"].T + weights["offset"]
        kept = (-weights["log_rate"].exp() * (1 + faded.exp()).log()).exp()
    outputs = []
    for head in range(HEADS):
        memory = torch.zeros(HEAD, HEAD, dtype=torch.float64)
        rows = []
        for place in range(len(states)):
            memory = kept[place, head] * memory
            for step in range(steps):
                own = slice(step * width + head * HEAD, step * width + (head + 1) * HEAD)
                k = key[place, own] / key[place, own].norm()
                beta = strengths[place, step * HEADS + head]
                memory = memory @ (torch.eye(HEAD).double() - beta * torch.outer(k, k))
                memory = memory + beta * torch.outer(value[place, own], k)
            q = query[place, head * HEAD : (head + 1) * HEAD]
            read = memory @ (q / q.norm())
            read = read / (read.square().mean() + 1e-5).sqrt() * weights["norm.weight"]
            rows.append(read)
        outputs.append(torch.stack(rows))
    mixed = torch.cat(outputs, dim=1)
    if "gate.weight" in weights:
        gate = states @ weights["gate.weight"].T
        mixed = mixed * gate * gate.sigmoid()
    return mixed @ weights["output.weight"].T


def linear_attention_of(weights: dict[str, Tensor], states: Tensor) -> Tensor:
    query, key, value = (states @ weights[f"{x}.weight"].T for x in ("query", "key", "value"))
    query, key = (torch.where(x > 0, x + 1, x.exp()) for x in (query, key))
    rows = []
    for place in range(len(states)):
        row = []
        for head in range(HEADS):
            own = slice(head * HEAD, (head + 1) * HEAD)
            scores = [float(query[place, own] @ key[s, own]) for s in range(place + 1)]
            mixed = sum((x * value[s, own] for s, x in enumerate(scores)), torch.zeros(HEAD))
            row.append(mixed / sum(scores))
        rows.append(torch.cat(row))
    return torch.stack(rows) @ weights["output.weight"].T


def slstm_of(weights: dict[str, Tensor], states: Tensor) -> Tensor:
    """Without a stabilizer: gates as they are written, for values that are not large."""
    size = 4 * HEAD
    given = states @ weights["input.weight"].T + weights["input.bias"]
    outputs = []
    for head in range(HEADS):
        h, c, n = (torch.zeros(HEAD, dtype=torch.float64) for _ in range(3))
        rows = []
        for place in range(len(states)):
            own = given[place, head * size : (head + 1) * size]
            i, f, z, o = (own + weights[f"recurrent.{head}.weight"] @ h).split(HEAD)
            c = f.sigmoid() * c + i.exp() * z.tanh()
            n = f.sigmoid() * n + i.exp()
            h = o.sigmoid() * c / n
            rows.append(h)
        outputs.append(torch.stack(rows))
    return torch.cat(outputs, dim=1) @ weights["output.weight"].T


@pytest.mark.parametrize("name", [name for name in NETWORKS if not name.startswith("mamba")])
@torch.no_grad()
def test_all_tokens_at_once_are_the_formula_token_by_token(name: str) -> None:
    mixer, states = mixer_of(name), some_states()
    found = mixer(states, Recorder())
    weights = weights_of(mixer)
    for row, own in enumerate(states):
        if name == "slstm":
            right = slstm_of(weights, own)
        elif name == "linear_attention":
            right = linear_attention_of(weights, own)
        else:
            steps = mixer.config.householder_steps if "product" in name else 1
            right = delta_rule_of(weights, own, "signed" in name, steps)
        torch.testing.assert_close(found[row], right, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", [name for name in NETWORKS if "delta" in name])
def test_gradients_are_those_of_the_published_recurrence(name: str) -> None:
    mixer, states = mixer_of(name), some_states(7)[:1].requires_grad_()
    steps = mixer.config.householder_steps if "product" in name else 1
    weights: dict[str, Tensor] = dict(mixer.named_parameters())
    found = mixer(states, Recorder())[0]
    right = delta_rule_of(weights, states[0], "signed" in name, steps)
    torch.testing.assert_close(found, right, rtol=1e-10, atol=1e-10)
    ours, theirs = (
        torch.autograd.grad(x.pow(3).sum(), [states, *weights.values()]) for x in (found, right)
    )
    for own, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(own, other, rtol=1e-10, atol=1e-10)


@torch.no_grad()
def test_one_step_of_deltaproduct_is_deltanet() -> None:
    one = drawn("deltaproduct", householder_steps=1)
    other = plain_model(network("deltanet"), dict(one.named_parameters()))
    torch.testing.assert_close(one(some_ids()), other(some_ids()), rtol=0, atol=0)


@torch.no_grad()
def test_the_recorded_memory_is_what_a_step_keeps() -> None:
    for name in ("deltanet", "gated_deltanet", "deltaproduct, signed"):
        mixer, states = mixer_of(name), some_states(6)
        kept = mixer.nothing(states[:, 0])
        recorded = dict[str, Tensor]()
        mixer(states, Recorder(kept=recorded))
        for place in range(6):
            _, kept = mixer.step(states[:, place], kept)
            torch.testing.assert_close(recorded["state"][:, place], kept[0].flatten(1))


def mambapy_block(mixer: Mixer) -> MambaBlock:
    """The package's block with the same weights."""
    config = mixer.config
    theirs = MambaBlock(
        MambaConfig(
            d_model=HIDDEN,
            n_layers=1,
            d_state=config.state_size,
            expand_factor=config.expand,
            pscan=False,
        )
    ).double()
    ours = weights_of(mixer)
    names = {
        "in_proj.weight": "input.weight",
        "conv1d.bias": "convolution.bias",
        "x_proj.weight": "selection.weight",
        "dt_proj.weight": "step_size.weight",
        "dt_proj.bias": "step_size.bias",
        "A_log": "log_rate",
        "D": "skip",
        "out_proj.weight": "output.weight",
    }
    values = {theirs_: ours[name] for theirs_, name in names.items()}
    values["conv1d.weight"] = ours["convolution.weight"].unsqueeze(1)
    theirs.load_state_dict(values)
    return theirs


@pytest.mark.parametrize("fields", [{}, {"expand": 3, "state_size": 1}])
def test_mamba_is_that_of_its_package(fields: dict[str, Any]) -> None:
    mixer, states = mixer_of("mamba", **fields), some_states().requires_grad_()
    theirs = mambapy_block(mixer)
    # The package computes rates and skips in single precision.
    with torch.no_grad():
        rate, skip = mixer.get_parameter("log_rate"), mixer.get_parameter("skip")
        rate.copy_(rate.float().exp().double().log())
        skip.copy_(skip.float())
    found, right = mixer(states, Recorder()), theirs(states)
    torch.testing.assert_close(found, right, rtol=1e-12, atol=1e-12)
    gradients = [torch.autograd.grad(x.square().sum(), states)[0] for x in (found, right)]
    torch.testing.assert_close(*gradients, rtol=1e-11, atol=1e-11)


@torch.no_grad()
def test_signed_mamba_decays_by_twice_the_factor_minus_one() -> None:
    mixer, states = mixer_of("mamba, signed"), some_states()
    weights, size = weights_of(mixer), mixer.config.state_size
    for row, own in enumerate(states):
        inner, gate = (own @ weights["input.weight"].T).chunk(2, dim=1)
        inner = convolved(inner, weights["convolution.weight"]) + weights["convolution.bias"]
        inner = inner * inner.sigmoid()
        step, write, read = (inner @ weights["selection.weight"].T).split([1, size, size], dim=1)
        raw = step @ weights["step_size.weight"].T + weights["step_size.bias"]
        steps = (1 + raw.exp()).log()
        memory = torch.zeros(inner.shape[1], size, dtype=torch.float64)
        rows = []
        for place in range(len(own)):
            rates = -weights["log_rate"].exp()
            factor = 2 * (steps[place][:, None] * rates).exp() - 1
            memory = factor * memory + torch.outer(steps[place] * inner[place], write[place])
            rows.append(memory @ read[place] + weights["skip"] * inner[place])
        mixed = torch.stack(rows) * gate * gate.sigmoid()
        right = mixed @ weights["output.weight"].T
        found = mixer(states, Recorder())[row]
        torch.testing.assert_close(found, right, rtol=1e-12, atol=1e-12)


def some_ids() -> Tensor:
    generator = torch.Generator().manual_seed(3)
    ids = torch.randint(2, 5, (6, 14), generator=generator)
    for row, length in enumerate((14, 1, 3, 9, 2, 6)):
        ids[row, length:] = PAD
    return ids


@EVERY
@torch.no_grad()
def test_a_string_does_not_depend_on_those_beside_it(name: str) -> None:
    model, ids = drawn(name), some_ids()
    together = model(ids)
    for row, own in enumerate(ids):
        alone = model(own[own != PAD].unsqueeze(0))
        torch.testing.assert_close(together[row : row + 1], alone, rtol=1e-11, atol=1e-12)


@EVERY
@torch.no_grad()
def test_a_step_is_what_the_whole_gives(name: str) -> None:
    model = drawn(name, head="output", num_outputs=5, readout="first")
    ids = torch.randint(2, 5, (4, 12), generator=torch.Generator().manual_seed(5))
    whole = model(ids)
    started = ids[:, :7].clone()
    started[1, 3:] = PAD
    stepper, outputs = start(model, started, 5)
    assert isinstance(stepper, KeepingStepper)
    torch.testing.assert_close(outputs[0], whole[0, 6], rtol=1e-11, atol=1e-12)
    torch.testing.assert_close(outputs[1], whole[1, 2], rtol=1e-11, atol=1e-12)
    stepper.take(torch.tensor([2, 0]))
    for place in range(7, 12):
        outputs = stepper.step(ids[[2, 0], place])
        torch.testing.assert_close(outputs, whole[[2, 0], place], rtol=1e-11, atol=1e-12)


@EVERY
@pytest.mark.parametrize("readout", ["last", "mean"])
def test_gradients_are_finite_of_any_length(name: str, readout: str) -> None:
    model = drawn(name, readout=readout)
    for ids in (some_ids(), torch.zeros(2, 1 if readout == "last" else 0, dtype=torch.long)):
        model.zero_grad()
        model(ids).square().sum().backward()
        for parameter in model.parameters():
            assert parameter.grad is None or parameter.grad.isfinite().all()


def test_the_gradient_of_the_scan_is_that_of_its_steps() -> None:
    from seqcls.models.mamba import scan

    generator = torch.Generator().manual_seed(0)
    decay, given = (
        torch.randn(2, 5, 3, generator=generator, dtype=torch.float64).requires_grad_()
        for _ in range(2)
    )
    assert torch.autograd.gradcheck(scan, (decay, given))


@pytest.mark.parametrize(
    "name",
    ["deltanet, signed", "gated_deltanet", "deltaproduct", "mamba", "slstm", "linear_attention"],
)
def test_members_beside_each_other_are_as_alone(name: str) -> None:
    config = network(name)
    members = [
        {name: value.numpy() for name, value in initial_parameters(config, seed).items()}
        for seed in range(3)
    ]
    strings = TokenStrings.of_lists(3, [[0, 1, 2, 2], [1], [], [2, 0, 0, 1, 1]])
    ids = trimmed_ids(config, strings, slice(None))
    batch = Batch(config, ids, positions_of(config, ids))
    losses = Losses(lambda logits: logits.square(), 4)
    cpu = torch.device("cpu")
    stacked, flat = StackedGroup(members, cpu), FlatGroup(members, cpu)
    Stacked(stacked, config, 4, cpu).backward(batch, losses)
    one_by_one = OneByOne(flat, config, 4, cpu)
    one_by_one.backward(batch, losses)
    for row, model in enumerate(one_by_one.models):
        for parameter, value in model.named_parameters():
            of_group = stacked.parameters[parameter].grad
            assert of_group is not None
            assert value.grad is not None
            torch.testing.assert_close(of_group[row], value.grad, rtol=1e-9, atol=1e-12)


TRAINED: dict[str, Any] = {
    "task": "parity", "train_max_length": 8, "validation_max_length": 8, "test_max_length": 12,
    "train_size": 128, "validation_size": 32, "test_size": 32, "max_num_epochs": 2,
    "min_num_epochs": 2, "readout": "last", "hidden_size": 4,
}  # fmt: skip


@pytest.mark.parametrize(
    "architecture",
    ["deltanet", "gated_deltanet", "deltaproduct", "mamba", "slstm", "linear_attention"],
)
def test_a_group_trains_as_each_alone(architecture: str) -> None:
    problem = resolve(configuration({**TRAINED, "architecture": architecture}))
    compiled = architecture in ("deltanet", "gated_deltanet", "mamba")
    choice = choose_engine(problem, device="cpu")
    assert choice.name == ("lanes" if compiled else "strings")
    assert compiled or choice.reason == f"architecture='{architecture}' is not compiled"
    with pytest.raises(EngineError, match="may tell strings of equal letter counts"):
        choose_engine(problem, "counts")
    together = train_group([(problem, 0), (problem, 1)], engine="strings", device="cpu")
    (alone,) = train_group([(problem, 1)], engine="strings", device="cpu")
    assert together[1].train_losses == alone.train_losses
    for name, value in alone.kept_weights.items():
        assert np.array_equal(together[1].kept_weights[name], value)


def test_steps_of_mamba_are_drawn_between_a_thousandth_and_a_tenth() -> None:
    values = initial_parameters(network("mamba", hidden_size=64), 0)
    steps = functional.softplus(values["blocks.0.mixer.step_size.bias"])
    assert 0.001 <= steps.min() < 0.003
    assert 0.05 < steps.max() <= 0.1
    rates = values["blocks.1.mixer.log_rate"].exp()
    assert rates[0].tolist() == pytest.approx([1, 2, 3, 4, 5])


@EVERY
def test_the_memory_is_looked_at_after_every_token(name: str) -> None:
    fields = {**SIZES, **NETWORKS[name], "task": "parity"}
    del fields["num_letters"]
    found = recurrent_units(untrained(**fields), [0, 1, 1])
    assert len(found.tokens) == (3 if fields["readout"] == "mean" else 4)
    blocks, places, numbers = found.states.shape
    assert (blocks, places) == (2, len(found.tokens))
    width = fields.get("expand", 2) * HIDDEN * fields.get("state_size", 0)
    of_heads = HEADS * HEAD * (1 if name == "slstm" else HEAD)
    assert numbers == (width or of_heads)
    if "delta" in name:
        least = -1 if "signed" in name else 0
        assert ((found.gates["eigenvalue"] > least) & (found.gates["eigenvalue"] < 1)).all()


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        (
            {"architecture": "lstm", "eigenvalue_range": "signed"},
            "eigenvalue_range='signed': not read by architecture 'lstm'; leave it out",
        ),
        (
            {"architecture": "slstm", "eigenvalue_range": "signed"},
            "eigenvalue_range='signed': not read by architecture 'slstm'",
        ),
        ({"architecture": "mamba", "short_convolution": False}, "not read by architecture"),
        ({"architecture": "deltanet", "state_size": 4}, "state_size=4: not read by"),
        ({"architecture": "deltanet", "expand": 3}, "expand=3: not read by"),
        ({"architecture": "deltanet", "householder_steps": 3}, "householder_steps=3: not read by"),
        (
            {"architecture": "deltaproduct", "householder_steps": 0},
            "expected greater than or equal to 1",
        ),
        ({"architecture": "mamba", "positions": "alibi"}, "positions='alibi': not read by"),
        ({"architecture": "mamba", "eigenvalue_range": "both"}, "expected 'positive' or 'signed'"),
        ({"architecture": "mamba", "readout": "first"}, "use readout='last' or 'mean'"),
        (
            {"architecture": "deltanet", "num_attention_heads": 0},
            "num_attention_heads=0 with architecture='deltanet': its memory is in heads",
        ),
        (
            {"architecture": "slstm", "embeddings_init_strategy": "gpt2"},
            "embeddings_init_strategy='gpt2' with architecture='slstm'",
        ),
        ({"architecture": "mamab", "readout": "last"}, "did you mean 'mamba'?"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError) as refused:
        configuration({"task": "parity", "readout": "last", **fields})
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


def test_signed_eigenvalues_are_suggested_where_they_are_positive() -> None:
    def suggested(**fields: Any) -> list[str]:
        config = configuration({"task": "parity", "readout": "last", **fields})
        return [x.text for x in suggestions(resolve(config), [LONGER])]

    text = "eigenvalue_range=signed (now positive)"
    for architecture in ("deltanet", "gated_deltanet", "deltaproduct"):
        assert text in suggested(architecture=architecture)
    assert text in suggested(architecture="mamba")
    assert text not in suggested(architecture="mamba", eigenvalue_range="signed")
    assert text not in suggested(architecture="slstm")


def test_the_rate_warms_up_by_steps_and_falls_as_a_cosine() -> None:
    def rates(**fields: Any) -> list[float]:
        sizes = {"train_size": 10, "train_batch_size": 4, "max_num_epochs": 10, "learning_rate": 1}
        config = configuration({**TRAINED, "architecture": "mamba", **sizes, **fields})
        return [rate for x in range(1, 11) for rate in learning_rates(resolve(config), x).tolist()]

    def cosine(done: float) -> float:
        return 0.1 + 0.9 * (1 + math.cos(math.pi * done)) / 2

    falling = {"learning_rate_schedule": "cosine", "final_learning_rate_factor": 0.1}
    by_epoch = [cosine(step // 3 / 10) for step in range(30)]
    assert rates(**falling) == pytest.approx(by_epoch, rel=1e-12)
    growing = [min(step / 4, 1) * rate for step, rate in enumerate(by_epoch, 1)]
    assert rates(**falling, warm_up_steps=4) == pytest.approx(growing, rel=1e-12)
    by_step = {**falling, "learning_rate_interval": "step"}
    assert rates(**by_step) == pytest.approx([cosine(step / 30) for step in range(30)], rel=1e-12)
    warm = [0.25, 0.5, 0.75, 1, *(cosine(step / 26) for step in range(26))]
    assert rates(**by_step, warm_up_steps=4) == pytest.approx(warm, rel=1e-12)
    endless = rates(**by_step, warm_up_steps=60)
    assert endless == pytest.approx([step / 60 for step in range(1, 31)], rel=1e-12)
    assert rates(**{**by_step, "learning_rate_schedule": "linear"})[15] == pytest.approx(
        0.55, rel=1e-12
    )


def test_warm_up_is_of_steps() -> None:
    fields = {**TRAINED, "architecture": "lstm", "max_num_epochs": 1, "min_num_epochs": 0}
    plain, slow = (
        resolve(configuration({**fields, "warm_up_steps": steps})) for steps in (0, 1_000_000)
    )
    assert choose_engine(slow, device="cpu").name == "lanes"
    (still,) = train_group([(slow, 0)], device="cpu")
    (moved,) = train_group([(plain, 0)], device="cpu")
    begun = {name: x.numpy() for name, x in initial_parameters(plain.network, 0).items()}

    def farthest(trained: TrainedMember) -> float:
        return max(float(np.abs(begun[name] - x).max()) for name, x in trained.kept_weights.items())

    assert farthest(still) < 1e-4 * farthest(moved)
