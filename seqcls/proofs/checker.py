"""Checks a certificate that a recurrent network answers as an automaton on every string.

`python checker.py CERTIFICATE [WEIGHTS.npz]` needs NumPy alone, and no code of what finds these.
Regions stand for states of the automaton, say to which region every letter leads, and have a box of
network states, or none. What is checked: the empty string's state is in the first box; from every
box letters lead into the boxes that they should, and on the way and there the answer is right. By
induction it is on every string (docs/proofs.md). Sets of vectors are (c, G, r): all c + e G + d
with e in [-1, 1]^k and |d| <= r; of two sets the first generators are the same.
"""

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

Sets = tuple[np.ndarray, np.ndarray, np.ndarray]
UNIT = 2.0**-24  # of float32, in which the network runs
SPARE = 8  # roundings of a sum that are allowed for beside one for each term
FUNCTION = 2.0**-20  # what the library's tanh and logistic function may be off by
LEAST = 2.0**-100  # more than what is flushed to zero
GATES = {"rnn": 1, "gru": 3, "lstm": 4}


class RejectedError(Exception):
    """The certificate proves nothing; its text says why."""


def need(condition: Any, why: str) -> None:
    if not condition:
        raise RejectedError(why)


def digest(weights: dict[str, np.ndarray]) -> str:
    """SHA-256 of names, shapes and the bytes of numbers, in the order of the names."""
    made = hashlib.sha256()
    for name, value in sorted(weights.items()):
        made.update(f"{name} {list(value.shape)} {value.dtype.name}\n".encode())
        made.update(value.astype(value.dtype.newbyteorder("<")).tobytes())
    return made.hexdigest()


def size(x: Sets, center: int = 1) -> Any:
    return center * np.abs(x[0]) + np.abs(x[1]).sum(axis=0) + x[2]


def part(x: Sets, start: int, end: int) -> Sets:
    return x[0][start:end], x[1][:, start:end], x[2][start:end]


def align(x: Sets, y: Sets) -> Any:
    most = max(len(x[1]), len(y[1]))
    return [(c, np.pad(g, ((0, most - len(g)), (0, 0))), r) for c, g, r in (x, y)]


def share(x: Sets) -> Sets:
    return x[0], np.concatenate([x[1], np.diag(x[2])]), np.zeros_like(x[2])


def join(x: Sets, y: Sets) -> Sets:
    x, y = align(x, y)
    return np.hstack([x[0], y[0]]), np.hstack([x[1], y[1]]), np.hstack([x[2], y[2]])


def add(x: Sets, y: Sets, sign: int = 1) -> Sets:
    x, y = align(x, y)
    rounding = SPARE * UNIT * (size(x) + size(y)) + LEAST
    return x[0] + sign * y[0], x[1] + sign * y[1], x[2] + y[2] + rounding


def multiply(x: Sets, y: Sets) -> Sets:
    x, y = align(x, y)
    rest = np.abs(x[0]) * y[2] + np.abs(y[0]) * x[2] + size(x, 0) * size(y, 0)
    ends = [(x[0] + i * size(x, 0)) * (y[0] + j * size(y, 0)) for i in (-1, 1) for j in (-1, 1)]
    low, high = np.min(ends, axis=0), np.max(ends, axis=0)
    box = size(y, 0) > 1  # the box of the product is less than what is left of a linear one
    rest = np.where(box, (high - low) / 2, rest) + SPARE * UNIT * size(x) * size(y) + LEAST
    linear = np.where(box, 0, x[0] * y[1] + y[0] * x[1])
    return np.where(box, (low + high) / 2, x[0] * y[0]), linear, rest


def affine(x: Sets, weight: np.ndarray, biases: list[np.ndarray]) -> Sets:
    n = weight.shape[1] + len(biases) + SPARE
    summed = size(x) @ np.abs(weight).T + sum(np.abs(b) for b in biases)
    rest = x[2] @ np.abs(weight).T + n * UNIT / (1 - n * UNIT) * summed + LEAST
    return x[0] @ weight.T + sum(biases), x[1] @ weight.T, rest


def squash(x: Sets, logistic: bool) -> Sets:
    low, high = x[0] - size(x, 0), x[0] + size(x, 0)
    a, b = (np.tanh(v / 2) / 2 + 0.5 if logistic else np.tanh(v) for v in (low, high))
    slope = np.minimum(*(v * (1 - v) if logistic else 1 - v * v for v in (a, b)))
    least, most = a - slope * low, b - slope * high
    rest = slope * x[2] + (most - least) / 2 + FUNCTION
    return slope * x[0] + (least + most) / 2, slope * x[1], rest


class Network:
    def __init__(self, kind: str, weights: dict[str, np.ndarray]) -> None:
        w = {name: np.asarray(x, dtype=np.float64) for name, x in weights.items()}
        need(all(np.isfinite(x).all() for x in w.values()), "a weight is not finite")
        self.embedding, self.head = w.pop("embedding.weight"), w.pop("classifier.weight")
        self.offset = [w.pop("classifier.bias")] if "classifier.bias" in w else []
        self.kind, self.hidden, self.layers = kind, self.embedding.shape[1], list[Any]()
        self.kept = self.hidden * (2 if kind == "lstm" else 1)
        while (name := f"layers.{len(self.layers)}.") + "input_weight" in w:
            both = np.hstack([w.pop(name + x) for x in ("input_weight", "state_weight")])
            biases = [w.pop(name + x) for x in ("input_bias", "state_bias") if name + x in w]
            sizes = GATES[kind] * self.hidden, 2 * self.hidden
            need(both.shape == sizes, "a layer is not of this size")
            need([b.shape for b in biases] in ([], [sizes[:1]] * 2), "a bias is not of this size")
            self.layers.append((both, biases))
        need(self.head.shape == (1, self.hidden) and self.layers and not w, "other weights")
        self.units = len(self.layers) * self.kept

    def step(self, x: Sets, token: int) -> Sets:
        h, x = self.hidden, share(x)
        given, after = (self.embedding[token], np.zeros((0, h)), np.zeros(h)), part(x, 0, 0)
        for number, (weight, biases) in enumerate(self.layers):
            kept = part(x, number * self.kept, (number + 1) * self.kept)
            read, state = join(given, part(kept, 0, h)), part(kept, 0, h)
            if self.kind == "rnn":
                made = squash(affine(read, weight, biases), False)
            elif self.kind == "gru":
                gates = squash(affine(read, weight[: 2 * h], [b[: 2 * h] for b in biases]), True)
                own = affine(state, weight[2 * h :, h:], [b[2 * h :] for b in biases[1:]])
                told = affine(given, weight[2 * h :, :h], [b[2 * h :] for b in biases[:1]])
                new = share(squash(add(told, multiply(part(gates, 0, h), own)), False))
                made = add(new, multiply(part(gates, h, 2 * h), add(state, new, -1)))
            else:
                gates = affine(read, weight, biases)
                i, f, g, o = (part(gates, n * h, (n + 1) * h) for n in range(4))
                cell = multiply(squash(f, True), part(kept, h, 2 * h))
                cell = add(cell, multiply(squash(i, True), squash(g, False)))
                made = join(multiply(squash(o, True), squash(cell, False)), cell)
            after, given = join(after, made), part(made, 0, h)
        return after

    def answer(self, x: Sets, end: int | None) -> tuple[Any, Any]:
        x = x if end is None else self.step(x, end)
        start = (len(self.layers) - 1) * self.kept
        logit = affine(part(x, start, start + self.hidden), self.head, self.offset)
        return logit[0] - size(logit, 0), logit[0] + size(logit, 0)


def check(certificate: dict[str, Any], weights: dict[str, np.ndarray] | None = None) -> int:
    """The number of regions of a certificate that proves its claim, of these weights if given."""
    need(certificate["format"] == "seqcls certificate 1", "no certificate of a known format")
    own = {}
    for name, x in certificate["weights"].items():
        need(x["type"] in ("float32", "float64"), "weights of another type")
        own[name] = np.array(x["values"], dtype=x["type"]).reshape(x["shape"])
    need(digest(own) == certificate["weights_sha256"], "its weights are not those of its digest")
    need(weights is None or digest(weights) == digest(own), "it is of other weights")
    net, ids = Network(certificate["cell"], own), certificate["letter_ids"]
    end = certificate["end_id"]
    tokens = ids + ([] if end is None else [end])
    need(len({*tokens}) == len(tokens) and {*tokens} <= {*range(len(net.embedding))}, "bad tokens")
    machine, regions = certificate["automaton"], certificate["regions"]
    table, start = machine["transitions"], machine["start"]
    named = {start, *machine["accepting"], *(x["state"] for x in regions)}.union(*table)
    need(named <= {*range(len(table))}, "there is no such state")
    need({x for r in regions for x in r["next"]} <= {*range(len(regions))}, "no such region")
    need(all(len(row) == len(ids) for row in [*table, *(x["next"] for x in regions)]), "no letter")
    leads = all([regions[n]["state"] for n in x["next"]] == table[x["state"]] for x in regions)
    need(leads and regions[0]["state"] == start, "a letter leads to another state")
    sides = ([x.get(y, [np.nan] * net.units) for x in regions] for y in ("low", "high"))
    low, high = map(np.array, sides)
    need(low.shape == high.shape == (len(regions), net.units), "a box is not of this size")
    need(((low[0] <= 0) & (high[0] >= 0)).all(), "the empty string is not in the first box")
    asked = certificate["empty"] is not False or any(0 in x["next"] for x in regions)
    pending = list[tuple[int, Sets, int]]()

    def enter(number: int, x: Sets, carried: int) -> None:
        (least,), (most,) = net.answer(x, end)
        right = least > 0 if regions[number]["state"] in machine["accepting"] else most < 0
        need(right or (number == 0 and not asked), f"region {number}: the answer is open")
        need(carried <= len(regions), "letters lead around without a box")
        pending.append((number, x, carried))

    for n in (n for n, each in enumerate(regions) if "low" in each):
        need(((low[n] <= high[n]) & np.isfinite([low[n], high[n]])).all(), f"region {n}: no box")
        enter(n, ((low[n] + high[n]) / 2, np.zeros((0, net.units)), (high[n] - low[n]) / 2), 0)
    while pending:
        number, x, carried = pending.pop()
        for token, to in zip(ids, regions[number]["next"], strict=True):
            y = net.step(x, token)
            if "low" not in regions[to]:
                enter(to, y, carried + 1)
            inside = (y[0] - size(y, 0) >= low[to]) & (y[0] + size(y, 0) <= high[to])
            need("low" not in regions[to] or inside.all(), f"region {number} leads out of {to}")
    return len(regions)


if __name__ == "__main__":
    given = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    found = check(given, dict(np.load(sys.argv[2])) if len(sys.argv) > 2 else None)
    print(f"accepted, {found} regions; the empty string is {'' if given['empty'] else 'not '}meant")
