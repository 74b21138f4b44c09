"""The time of a training step of transductions, and the savings of a cache in decoding."""

import math
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.plain import STEPS, medians
from seqcls import decode
from seqcls.config import RunConfig
from seqcls.decode import beginnings, output_limits
from seqcls.engines.lanes.engine import Lanes
from seqcls.engines.pytorch.members import trimmed_ids
from seqcls.kinds.transduction import NO_TARGET
from seqcls.models.initialization import make_model
from seqcls.problem import Problem, configuration, resolve
from seqcls.sampling.streams import stream
from seqcls.strings.tokenizer import PAD
from seqcls.training import train_group

DECODED = 256
"""Number of outputs that are decoded, of up to 100 tokens without an earlier end."""

CASES: dict[str, dict[str, Any]] = {
    "width 64, 2 blocks": {"hidden_size": 64, "num_blocks": 2},
    "width 32, 2 blocks": {"hidden_size": 32, "num_blocks": 2},
    "width 16, 2 blocks": {"hidden_size": 16, "num_blocks": 2},
    "LSTM of 16": {"architecture": "lstm", "hidden_size": 16},
    "LSTM of 64": {"architecture": "lstm", "hidden_size": 64},
    "encoder-decoder of 32": {
        "architecture": "encoder_decoder", "hidden_size": 32, "num_blocks": 2,
    },
    "Gated DeltaNet of 32": {"architecture": "gated_deltanet", "hidden_size": 32, "num_blocks": 2},
}  # fmt: skip


def main() -> None:
    """Prints microseconds per step, seconds of decoding, and the ratios."""
    torch.set_num_threads(1)
    print("strings to strings: microseconds per step, 64 inputs of 1 to 40 tokens, copied")
    print(
        f"  {'':<22} {'torch.nn':>9} {'strings':>9} {'lanes':>9}  strings/torch.nn lanes/strings"
        "   decoding: again / kept, kept / lanes"
    )
    for name, fields in CASES.items():
        problem = resolve(_config(fields))
        members = [(problem, 0)]
        epochs = [partial(train_group, members, engine=x) for x in ("strings", "lanes")]
        strings, lanes, *others = medians(*epochs, *_reference(problem))
        theirs = others[0] if others else math.nan
        cached, again, compiled = _decoding(problem)
        print(
            f"  {name:<22} {theirs:>9.0f} {strings:>9.0f} {lanes:>9.0f} {strings / theirs:>17.2f} "
            f"{lanes / strings:>13.2f} {again:>9.2f} {cached:>6.2f} {compiled:>6.3f} s "
            f"{again / cached:>6.1f} x {cached / compiled:>6.1f} x",
            flush=True,
        )


def _reference(problem: Problem) -> list[Callable[[], object]]:
    """Returns a training step of the same network in PyTorch's own layers, if there are such."""
    known = problem.network.architecture in ("transformer", "lstm")
    return [partial(_pytorch_epoch, problem)] if known else []


def _config(fields: dict[str, Any]) -> RunConfig:
    hidden = fields["hidden_size"]
    own = {
        "num_attention_heads": 2,
        "attention_head_size": hidden // 2,
        "feed_forward_size": 4 * hidden,
        "positions": "sinusoidal",
        "layer_norm": "nn",
    }
    return configuration(
        {
            "task": "copy",
            "num_tokens": 20,
            "train_max_length": 40,
            "train_size": 64 * STEPS,
            "validation_max_length": 40,
            "validation_size": 1,
            "test_max_length": 100,
            "test_size": DECODED,
            "max_num_epochs": 1,
            "biases": True,
            **({} if "architecture" in fields else own),
            **fields,
        }
    )


class _Decoder(nn.Module):
    """The network as one would write it with PyTorch's own layers: a causal encoder."""

    def __init__(self, problem: Problem) -> None:
        super().__init__()
        config = problem.network
        hidden = config.hidden_size
        self.embedding = nn.Embedding(config.vocabulary_size, hidden, PAD)
        self.recurrent = config.architecture == "lstm"
        self.body: nn.Module
        if self.recurrent:
            self.body = nn.LSTM(hidden, hidden, config.num_blocks, batch_first=True)
        else:
            layer = nn.TransformerEncoderLayer(
                hidden, 2, 4 * hidden, 0.0, "gelu", norm_first=True, batch_first=True
            )
            self.body = nn.TransformerEncoder(layer, config.num_blocks, enable_nested_tensor=False)
        self.head = nn.Linear(hidden, config.num_outputs)
        angles = torch.arange(300)[:, None] * 10_000 ** (-torch.arange(0, hidden, 2) / hidden)
        self.waves = torch.cat([angles.sin(), angles.cos()], dim=1)

    def forward(self, ids: Tensor) -> Tensor:
        states = self.embedding(ids)
        if self.recurrent:
            states = self.body(states)[0]
        else:
            mask = nn.Transformer.generate_square_subsequent_mask(ids.shape[1])
            states = self.body(states + self.waves[: ids.shape[1]], mask=mask, is_causal=True)
        outputs: Tensor = self.head(states)
        return outputs


def _pytorch_epoch(problem: Problem) -> None:
    model = _Decoder(problem)
    optimizer = torch.optim.AdamW(model.parameters(), lr=problem.config.learning_rate)
    examples = stream(problem.train).epoch(0)
    read = problem.kind.reading(problem.task, examples)
    encoded = problem.kind.encoded(problem.task, examples, problem.network)
    for start in range(0, len(examples), 64):
        rows = slice(start, start + 64)
        ids = trimmed_ids(problem.network, read, rows).long()
        targets = torch.full(ids.shape, -100)
        lengths = examples.strings.lengths[rows].tolist()
        for row, length, target in zip(targets, lengths, encoded[rows], strict=True):
            known = target[target != NO_TARGET]
            row[length + 1 : length + 1 + len(known)] = torch.from_numpy(known)
        outputs = model(ids)
        functional.cross_entropy(outputs.flatten(0, 1), targets.flatten()).backward()
        optimizer.step()
        optimizer.zero_grad()


@torch.no_grad()
def _decoding(problem: Problem) -> tuple[float, float, float]:
    """Returns the seconds of greedy decoding: with a cache, without one, and compiled."""
    torch.manual_seed(0)
    model = make_model(problem.network).eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.2)
    inputs = stream(problem.test).epoch(0).strings
    ids, limits = beginnings(problem, inputs), torch.from_numpy(output_limits(problem, inputs))
    # As long as the inputs: a trained model would end there.
    settings = (ids, torch.minimum(limits, torch.from_numpy(inputs.lengths)), -1)
    seconds = []
    for reader in (decode.stepping(model), decode.Anew(model)):
        started = time.process_time()
        decode.beam(reader, *settings, 1)
        seconds.append(time.process_time() - started)
    weights = {name: value.numpy() for name, value in model.state_dict().items()}
    most = np.minimum(limits.numpy(), inputs.lengths)
    # END ends an output here; if no model predicts it, each output has its input's length.
    weights["classifier.bias"][-1] = -1e9
    Lanes().write(problem, weights, inputs.take(np.arange(1)), most[:1])
    started = time.process_time()
    Lanes().write(problem, weights, inputs, most)
    return seconds[0], seconds[1], time.process_time() - started


if __name__ == "__main__":
    main()
