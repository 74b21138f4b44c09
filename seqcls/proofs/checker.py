"""Checks a certificate that a recurrent network answers as an automaton on every string.

It needs NumPy alone and shares no code with what finds certificates:

    python checker.py CERTIFICATE [WEIGHTS.safetensors]

A certificate has weights, an automaton, and regions: each stands for a state of the automaton, says which
region every letter leads to, and has a box of states, or none. Accepted means: the empty string's
state is in the first region's box; where a string's state is in a region's box, the state after any
further letters is in the box that these lead to, and on the way and there the answer is the
automaton's. By induction over letters the answer to every string is. See docs/proofs.md.

Sets of vectors are (c, G, r): all c + e G + d with e in [-1, 1]^k and |d| <= r, unit by unit.
"""

import hashlib
import json
import struct
import sys
from pathlib import Path

import numpy as np

UNIT = 2.0**-24  # of float32, in which the network runs
SPARE = 8  # roundings of a sum that are allowed for beside one for each term
FUNCTION = 2.0**-20  # what the library's tanh and logistic function may be off by
LEAST = 2.0**-100  # more than what is flushed to zero
GATES = {"rnn": 1, "gru": 3, "lstm": 4}


class Rejected(Exception):
    """The certificate proves nothing; its text says why."""


def need(condition, why):
    if not condition:
        raise Rejected(why)


def digest(weights):
    """SHA-256 of names, shapes and the bytes of float32 or float64 numbers, in the order of the names."""
    made = hashlib.sha256()
    for name in sorted(weights):
        value = weights[name]
        made.update(f"{name} {list(value.shape)} {value.dtype.name}\n".encode())
        made.update(value.astype(value.dtype.newbyteorder("<")).tobytes())
    return made.hexdigest()


def read_safetensors(data):
    """Arrays by name: eight bytes with the length of a JSON header, the header, numbers."""
    (length,) = struct.unpack("<Q", data[:8])
    kinds, arrays = {"F32": "<f4", "F64": "<f8"}, {}
    for name, about in json.loads(data[8 : 8 + length]).items():
        if name != "__metadata__":
            start, end = (8 + length + x for x in about["data_offsets"])
            arrays[name] = np.frombuffer(data[start:end], kinds[about["dtype"]]).reshape(about["shape"])
    return arrays


def radius(x):
    return np.abs(x[1]).sum(axis=0) + x[2]


def part(x, start, end):
    return x[0][start:end], x[1][:, start:end], x[2][start:end]


def join(x, y):
    return tuple(np.concatenate(pair, axis=-1) for pair in zip(x, y))


def rounded(c, g, r, size):
    return c, g, r + SPARE * UNIT * size + LEAST


def add(x, y, sign=1):
    size = sum(np.abs(v[0]) + radius(v) for v in (x, y))
    return rounded(x[0] + sign * y[0], x[1] + sign * y[1], x[2] + y[2], size)


def multiply(x, y):
    rest = np.abs(x[0]) * y[2] + np.abs(y[0]) * x[2] + radius(x) * radius(y)
    size = (np.abs(x[0]) + radius(x)) * (np.abs(y[0]) + radius(y))
    return rounded(x[0] * y[0], x[0] * y[1] + y[0] * x[1], rest, size)


def affine(x, weight, biases):
    n = weight.shape[1] + len(biases) + SPARE
    size = (np.abs(x[0]) + radius(x)) @ np.abs(weight).T + sum(np.abs(b) for b in biases)
    rest = x[2] @ np.abs(weight).T + n * UNIT / (1 - n * UNIT) * size + LEAST
    return x[0] @ weight.T + sum(biases), x[1] @ weight.T, rest


def squash(x, logistic):
    """tanh or 1 / (1 + exp(-x)), a line with the least slope between both ends, and what is left."""
    low, high = x[0] - radius(x), x[0] + radius(x)
    a, b = (np.tanh(v / 2) / 2 + 0.5 if logistic else np.tanh(v) for v in (low, high))
    slopes = [v * (1 - v) if logistic else 1 - v * v for v in (a, b)]
    slope = np.minimum(*slopes)
    least, most = a - slope * low, b - slope * high
    rest = slope * x[2] + (most - least) / 2 + FUNCTION
    return slope * x[0] + (least + most) / 2, slope * x[1], rest


class Network:
    """The network of a certificate."""

    def __init__(self, kind, weights):
        self.kind, w = kind, {name: np.asarray(x, dtype=np.float64) for name, x in weights.items()}
        need(all(np.isfinite(x).all() for x in w.values()), "a weight is not finite")
        self.embedding, self.head = w.pop("embedding.weight"), w.pop("classifier.weight")
        self.offset = [w.pop("classifier.bias")] if "classifier.bias" in w else []
        self.hidden, self.layers = self.embedding.shape[1], []
        self.kept = self.hidden * (2 if kind == "lstm" else 1)
        need(self.head.shape == (1, self.hidden), "the head is not of this size")
        while f"layers.{len(self.layers)}.input_weight" in w:
            name, rows = f"layers.{len(self.layers)}.", GATES[kind] * self.hidden
            both = np.concatenate([w.pop(name + x) for x in ("input_weight", "state_weight")], axis=1)
            biases = [w.pop(name + x) for x in ("input_bias", "state_bias") if name + x in w]
            need(both.shape == (rows, 2 * self.hidden), "a layer is not of this size")
            need(all(b.shape == (rows,) for b in biases), "a bias is not of this size")
            self.layers.append((both, biases))
        need(self.layers and not w, "there are no layers, or weights of something else")
        self.units = len(self.layers) * self.kept

    def step(self, x, token):
        x = (x[0], np.concatenate([x[1], np.diag(x[2])]), np.zeros_like(x[2]))
        h, none = self.hidden, np.zeros_like(x[1][:, : self.hidden])
        given, after = (self.embedding[token], none, np.zeros(self.hidden)), None
        for number, (weight, biases) in enumerate(self.layers):
            kept = part(x, number * self.kept, (number + 1) * self.kept)
            read, state = join(given, part(kept, 0, h)), part(kept, 0, h)
            if self.kind == "rnn":
                made = squash(affine(read, weight, biases), False)
            elif self.kind == "gru":
                gates = squash(affine(read, weight[: 2 * h], [b[: 2 * h] for b in biases]), True)
                reset, update = part(gates, 0, h), part(gates, h, 2 * h)
                own = affine(state, weight[2 * h :, h:], [b[2 * h :] for b in biases[1:]])
                told = affine(given, weight[2 * h :, :h], [b[2 * h :] for b in biases[:1]])
                new = squash(add(told, multiply(reset, own)), False)
                made = add(new, multiply(update, add(state, new, -1)))
            else:
                gates = affine(read, weight, biases)
                i, f, g, o = (part(gates, n * h, (n + 1) * h) for n in range(4))
                cell = multiply(squash(f, True), part(kept, h, 2 * h))
                cell = add(cell, multiply(squash(i, True), squash(g, False)))
                made = join(multiply(squash(o, True), squash(cell, False)), cell)
            after = made if after is None else join(after, made)
            given = part(made, 0, h)
        return after

    def answer(self, x, end):
        """The least and the greatest logit."""
        x = x if end is None else self.step(x, end)
        start = (len(self.layers) - 1) * self.kept
        logit = affine(part(x, start, start + self.hidden), self.head, self.offset)
        return (logit[0] - radius(logit)).item(), (logit[0] + radius(logit)).item()


def weights_of(certificate):
    return {
        name: np.array(x["values"], dtype=x["type"]).reshape(x["shape"])
        for name, x in certificate["weights"].items()
    }


def check(certificate, weights=None):
    """The number of regions of a certificate that proves its claim, of these weights where given.

    Raises:
        Rejected: it does not.
    """
    need(certificate["format"] == "seqcls certificate 1", "no certificate of a known format")
    own = weights_of(certificate)
    need(digest(own) == certificate["weights_sha256"], "its weights are not those of its digest")
    need(weights is None or digest(weights) == digest(own), "it is of other weights")
    net, ids, end = Network(certificate["cell"], own), certificate["letter_ids"], certificate["end_id"]
    tokens = [*ids, *([] if end is None else [end])]
    need(len(set(tokens)) == len(tokens), "two tokens are the same")
    need(set(tokens) <= set(range(len(net.embedding))), "a token is not in the vocabulary")
    machine, regions = certificate["automaton"], certificate["regions"]
    table, accepting = machine["transitions"], machine["accepting"]
    known = set(range(len(table)))
    for row in [*table, *(x["next"] for x in regions)]:
        need(len(row) == len(ids), "a letter leads nowhere")
    need(set(accepting) | {machine["start"]} | {x for row in table for x in row} <= known, "no state")
    need({x for each in regions for x in each["next"]} <= set(range(len(regions))), "no region")
    for each in regions:
        need(each["state"] in known, "a region is of no state")
        for letter, to in enumerate(each["next"]):
            leads = table[each["state"]][letter]
            need(regions[to]["state"] == leads, "a region's letter leads to another state")
    asked = bool(certificate["empty"]) or any(0 in x["next"] for x in regions)
    need("low" in regions[0], "the first region has no box")
    need(regions[0]["state"] == machine["start"], "the first region is not of the first state")
    low, high = (np.array([x.get(n, [np.nan] * net.units) for x in regions], float) for n in ("low", "high"))
    need(low.shape == high.shape == (len(regions), net.units), "a box is not of this size")
    need((low[0] <= 0).all() and (high[0] >= 0).all(), "the empty string is not in the first box")

    def is_right(number, x):
        least, most = net.answer(x, end)
        right = least > 0 if regions[number]["state"] in accepting else most < 0
        need(right or (number == 0 and not asked), f"region {number}: the answer is open")

    pending = []
    for number, each in enumerate(regions):
        if "low" in each:
            need((low[number] <= high[number]).all(), f"region {number}: its box is none")
            center = (low[number] + high[number]) / 2
            rest = np.maximum(high[number] - center, center - low[number])
            pending.append((number, (center, np.zeros((0, net.units)), rest), 0))
            is_right(number, pending[-1][1])
    while pending:
        number, x, carried = pending.pop()
        need(carried <= len(regions), "letters lead around without a box")
        for letter, to in enumerate(regions[number]["next"]):
            y = net.step(x, ids[letter])
            if "low" in regions[to]:
                inside = (y[0] - radius(y) >= low[to]) & (y[0] + radius(y) <= high[to])
                need(inside.all(), f"region {number}: letter {letter} leads out of region {to}")
            else:
                is_right(to, y)
                pending.append((to, y, carried + 1))
    return len(regions)


if __name__ == "__main__":
    given = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    file = read_safetensors(Path(sys.argv[2]).read_bytes()) if len(sys.argv) > 2 else None
    try:
        print(f"accepted: {check(given, file)} regions. {given['claim']}")
    except (Rejected, KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        sys.exit(f"rejected: {error}")
