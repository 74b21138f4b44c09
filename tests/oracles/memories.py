"""Blocks with a memory by the equations of their papers, one string and one head at a time."""

import torch
from mambapy.mamba import MambaBlock, MambaConfig
from torch import Tensor

from seqcls.models.mixing import Mixer

HEADS, HEAD = 2, 4


def convolved(rows: Tensor, weight: Tensor) -> Tensor:
    """Convolves one string: each channel's four last tokens, weighted; zeros before the first."""
    padded = torch.cat([rows.new_zeros(3, rows.shape[1]), rows])
    return torch.stack(
        [
            sum((padded[position + back] * weight[:, back] for back in range(4)), torch.zeros(()))
            for position in range(len(rows))
        ]
    )


def delta_rule_of(
    weights: dict[str, Tensor], states: Tensor, signed: bool, steps: int = 1
) -> Tensor:
    """Outputs for one string by the published delta rule, one head at a time."""
    parts = [states @ weights[f"{x}.weight"].T for x in ("query", "key", "value")]
    given = torch.cat(parts, dim=1)
    if "convolution.weight" in weights:
        given = convolved(given, weights["convolution.weight"])
    given = given * given.sigmoid()
    width = HEADS * HEAD
    query, key, value = given.split([width, steps * width, steps * width], dim=1)
    strengths = (states @ weights["strength.weight"].T).sigmoid() * (2 if signed else 1)
    retention = torch.ones(len(states), HEADS, dtype=torch.float64)
    if "fading.weight" in weights:
        faded = states @ weights["fading.weight"].T + weights["offset"]
        retention = (-weights["log_rate"].exp() * (1 + faded.exp()).log()).exp()
    outputs = []
    for head in range(HEADS):
        memory = torch.zeros(HEAD, HEAD, dtype=torch.float64)
        rows = []
        for position in range(len(states)):
            memory = retention[position, head] * memory
            for step in range(steps):
                own = slice(step * width + head * HEAD, step * width + (head + 1) * HEAD)
                k = key[position, own] / key[position, own].norm()
                beta = strengths[position, step * HEADS + head]
                memory = memory @ (torch.eye(HEAD).double() - beta * torch.outer(k, k))
                memory = memory + beta * torch.outer(value[position, own], k)
            q = query[position, head * HEAD : (head + 1) * HEAD]
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
    for position in range(len(states)):
        row = []
        for head in range(HEADS):
            own = slice(head * HEAD, (head + 1) * HEAD)
            scores = [query[position, own] @ key[s, own] for s in range(position + 1)]
            mixed = sum((x * value[s, own] for s, x in enumerate(scores)), torch.zeros(HEAD))
            row.append(mixed / sum(scores, torch.zeros(())))
        rows.append(torch.cat(row))
    return torch.stack(rows) @ weights["output.weight"].T


def slstm_of(weights: dict[str, Tensor], states: Tensor) -> Tensor:
    """Outputs of sLSTM without a stabilizer, for values that are not large."""
    size = 4 * HEAD
    given = states @ weights["input.weight"].T + weights["input.bias"]
    outputs = []
    for head in range(HEADS):
        h, c, n = (torch.zeros(HEAD, dtype=torch.float64) for _ in range(3))
        rows = []
        for position in range(len(states)):
            own = given[position, head * size : (head + 1) * size]
            i, f, z, o = (own + weights[f"recurrent.{head}.weight"] @ h).split(HEAD)
            c = f.sigmoid() * c + i.exp() * z.tanh()
            n = f.sigmoid() * n + i.exp()
            h = o.sigmoid() * c / n
            rows.append(h)
        outputs.append(torch.stack(rows))
    return torch.cat(outputs, dim=1) @ weights["output.weight"].T


def mambapy_block(mixer: Mixer) -> MambaBlock:
    """The package's block with the same weights."""
    config = mixer.config
    theirs = MambaBlock(
        MambaConfig(
            d_model=config.hidden_size,
            n_layers=1,
            d_state=config.state_size,
            expand_factor=config.expand,
            pscan=False,
        )
    ).double()
    ours = {name: value.detach() for name, value in mixer.named_parameters()}
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


def signed_mamba_of(weights: dict[str, Tensor], states: Tensor, size: int) -> Tensor:
    """Outputs of Mamba for one string, with decay factors mapped from (0, 1) to (-1, 1)."""
    inner, gate = (states @ weights["input.weight"].T).chunk(2, dim=1)
    inner = convolved(inner, weights["convolution.weight"]) + weights["convolution.bias"]
    inner = inner * inner.sigmoid()
    step, write, read = (inner @ weights["selection.weight"].T).split([1, size, size], dim=1)
    raw = step @ weights["step_size.weight"].T + weights["step_size.bias"]
    steps = (1 + raw.exp()).log()
    memory = torch.zeros(inner.shape[1], size, dtype=torch.float64)
    rows = []
    for position in range(len(states)):
        rates = -weights["log_rate"].exp()
        factor = 2 * (steps[position][:, None] * rates).exp() - 1
        memory = factor * memory + torch.outer(steps[position] * inner[position], write[position])
        rows.append(memory @ read[position] + weights["skip"] * inner[position])
    mixed = torch.stack(rows) * gate * gate.sigmoid()
    return mixed @ weights["output.weight"].T
