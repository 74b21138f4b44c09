"""Loading and evaluation of a model in the file that `seqcls give` writes.

`seqcls.standalone` appends this to the files of the model's class, which is `MODEL` there; the
folder also has `config.json`, `vocabulary.json` and `model.safetensors`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

MODEL: type[nn.Module]

BEGIN, PADDING = 0, 1


class Config:
    """The network's settings."""

    def __init__(self, **settings: Any) -> None:
        vars(self).update(settings)

    def model_copy(self, update: Mapping[str, Any]) -> Config:
        return Config(**{**vars(self), **update})


@cache
def read(name: str) -> Any:
    """Reads a file of JSON beside this one."""
    return json.loads(Path(__file__).with_name(name).read_text(encoding="utf-8"))


def load() -> nn.Module:
    """Loads the model with its weights, without dropout."""
    about = read("config.json")
    settings = Config(**about["settings"])
    model = MODEL(settings).to(getattr(torch, about["settings"]["precision"]))
    values = load_file(str(Path(__file__).with_name("model.safetensors")))
    if other := {name for name, _ in model.named_parameters()} ^ values.keys():
        raise ValueError(f"model.safetensors: {min(other)}: not a tensor for each parameter")
    # Not strict, since buffers and parameters of several names have no values here.
    model.load_state_dict(values, strict=False)
    return model.eval()


def encode(string: str | Sequence[str]) -> list[int]:
    """Encodes a string, a text or a list of tokens, as the ids that the model reads.

    Raises:
        ValueError: the model has no such token, no positions for so many, or no such input.
    """
    about, ids = read("config.json"), read("vocabulary.json")
    alphabet, longest = about["alphabet"], about["longest"]
    if isinstance(string, str):
        named = any(len(token) > 1 for token in alphabet)
        string = string.split() if named else list(string)
    for place, token in enumerate(string, start=1):
        if token not in alphabet:
            raise ValueError(
                f"token {place} is {token!r:.60}, and the model reads {' '.join(alphabet):.200}"
            )
    if longest is not None and len(string) > longest:
        raise ValueError(f"{len(string)} tokens: the model has places for at most {longest}")
    if not string and not about["empty"]:
        raise ValueError("an input without tokens: expected at least one")
    letters = [ids[token] for token in string]
    if about["settings"]["writes"]:
        # The separator is the last token but one, before the end.
        return [BEGIN, *letters, len(ids) - 2]
    readout = about["settings"]["readout"]
    return [BEGIN] * (readout == "first") + letters + [BEGIN] * (readout == "last")


def check(numbers: Tensor) -> None:
    """Raises ValueError if a model has no answer, that is NaN."""
    if numbers.isnan().any():
        raise ValueError("what the model computes is NaN, so that it has no answer")


@torch.no_grad()
def logits(model: nn.Module, strings: Sequence[str | Sequence[str]]) -> Tensor:
    """Computes a logit for each string, positive if the model takes it to be in the language; for
    answers at every place the outputs at each, (string, place, output).

    Raises:
        ValueError: the model cannot read a string, or computes NaN.
    """
    rows = [encode(string) for string in strings]
    width = max(map(len, rows), default=0) or 1
    ids = torch.tensor([row + [PADDING] * (width - len(row)) for row in rows], dtype=torch.long)
    outputs: Tensor = model(ids.reshape(-1, width))
    for row, numbers in zip(rows, outputs, strict=True):
        check(numbers[: len(row)] if numbers.ndim else numbers)
    return outputs


@torch.no_grad()
def write(model: nn.Module, string: str | Sequence[str], longest: int | None = None) -> list[str]:
    """Writes the output for an input, by the decoding of the model's run.

    It ends where the run ends it, or after `longest` tokens.

    Raises:
        ValueError: the model cannot read the input, or computes NaN.
    """
    about, ids = read("config.json"), encode(string)
    # Limits are listed by the length of inputs, which are two ids shorter than `ids`.
    limit = int(about["limits"].split()[len(ids) - 2])
    limit = limit if longest is None else min(limit, longest)
    width, end = about["beam_width"], about["settings"]["vocabulary_size"] - 1
    beams: list[tuple[float, list[int]]] = [(0.0, [])]
    done: list[tuple[float, list[int]]] = [(-torch.inf, [])]
    for place in range(1, limit + 1):
        continued = []
        for score, written in beams:
            following = model(torch.tensor([ids + written]))[0, -1].double()
            check(following)
            scores = following.log_softmax(dim=0)
            # Tokens that begin, pad and separate are never written.
            scores[[BEGIN, PADDING, end - 1]] = -torch.inf
            best = scores.topk(min(width, len(scores)))
            found = zip(best.values.tolist(), best.indices.tolist(), strict=True)
            continued += [(score + more, [*written, token]) for more, token in found]
        continued = sorted(continued, key=lambda x: -x[0])[:width]
        is_done = [written[-1] == end or place == limit for _, written in continued]
        done += [x for x, ends in zip(continued, is_done, strict=True) if ends]
        best_done = max(score for score, _ in done)
        going_on = zip(continued, is_done, strict=True)
        # A longer output is never likelier, so only outputs above the best one done continue.
        beams = [x for x, ends in going_on if not ends and x[0] > best_done]
        if not beams:
            break
    _, written = max(done, key=lambda x: x[0])
    return [about["alphabet"][x - 2] for x in written if x != end]


def main(strings: Sequence[str]) -> int:
    """Prints the model's answer to each string; returns the exit status."""
    model, writes = load(), read("config.json")["settings"]["writes"]
    for string in strings:
        try:
            reply = write(model, string) if writes else [logits(model, [string])[0].tolist()]
        except ValueError as error:
            print(f"{string[:60]!r}: {error}", file=sys.stderr)
            return 2
        print(string, *reply)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
