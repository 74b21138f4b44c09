"""Checks a certificate that a recurrent network answers as an automaton on every string.

`python checker.py CERTIFICATE [WEIGHTS.npz]` needs NumPy alone, and no code of what finds these.
Regions stand for states of the automaton, say to which region every letter leads, and have a box of
network states, or none. What is checked: the empty string's state is in the first box; from every
box letters lead into the boxes that they should, and on the way and there the answer is right. By
induction it is on every string (docs/proofs.md). A set of vectors is rows c, r, G: all c + e G + d
with e in [-1, 1]^k and |d| <= r; of two sets the first generators are the same.
"""

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

UNIT = 2.0**-24  # of float32, in which the network runs
SPARE = 8  # roundings of a sum that are allowed for beside one for each term
FUNCTION = 2.0**-20  # what the library's tanh and logistic function may be off by
LEAST = 2.0**-100  # more than what is flushed to zero
LARGEST = 2.0**127  # half of what float32 holds: terms of no more together have no sum beyond it
GATES = {"rnn": 1, "gru": 3, "lstm": 4}
NUMBERS = [(int, float)]
REGION = {"state": int, "suffix": str, "next": [int]}
CLAIM = {"letters": [str], "letter_ids": [int], "end_id": (int, type(None)), "empty": bool}
CLAIM |= {"format": str, "cell": str, "weights_sha256": str}
CLAIM |= {"automaton": {"start": int, "accepting": [int], "transitions": [[int]]}}
REGIONS = [(REGION, {**REGION, "low": NUMBERS, "high": NUMBERS})]
FORM = {**CLAIM, "claim_sha256": str, "weights": dict, "regions": REGIONS}
MALFORMED = KeyError, IndexError, TypeError, ValueError, OverflowError, RecursionError


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


def claim_digest(certificate: dict[str, Any]) -> str:
    """SHA-256 of what is claimed, letters too, and of all that is said in words."""
    claim = [certificate[x] for x in sorted(CLAIM)], [x["suffix"] for x in certificate["regions"]]
    return hashlib.sha256(json.dumps(claim, sort_keys=True).encode()).hexdigest()


def fits(x: Any, form: Any) -> bool:
    """Whether JSON has a form: a type, a list of one form, a dict of forms, or one of several."""
    if isinstance(form, tuple):
        return any(fits(x, each) for each in form)
    if isinstance(form, list):
        return type(x) is list and all(fits(each, form[0]) for each in x)
    if isinstance(form, dict):
        return type(x) is dict and x.keys() == form.keys() and all(fits(x[y], form[y]) for y in x)
    return type(x) is form


def limit(size: Any) -> Any:
    need((size < LARGEST).all(), "a sum or a product may be larger than float32 holds")
    return size


def size(x: np.ndarray, center: int = 1) -> Any:
    return center * np.abs(x[0]) + np.abs(x[1:]).sum(axis=0)


def align(x: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
    return [np.pad(z, ((0, max(len(x), len(y)) - len(z)), (0, 0))) for z in (x, y)]


def share(x: np.ndarray) -> np.ndarray:
    return np.vstack([x[0], 0 * x[1], x[2:], np.diag(x[1])])


def join(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.hstack(align(x, y))


def add(x: np.ndarray, y: np.ndarray, sign: int = 1) -> Any:
    x, y = align(x, y)
    made = x + sign * y
    made[1] = x[1] + y[1] + SPARE * UNIT * limit(size(x) + size(y)) + LEAST
    return made


def multiply(x: np.ndarray, y: np.ndarray) -> Any:
    x, y = align(x, y)
    made = x[0] * y + y[0] * x
    made[0] = x[0] * y[0]
    made[1] = np.abs(x[0]) * y[1] + np.abs(y[0]) * x[1] + size(x, 0) * size(y, 0)
    ends = [(x[0] + i * size(x, 0)) * (y[0] + j * size(y, 0)) for i in (-1, 1) for j in (-1, 1)]
    low, high = np.min(ends, axis=0), np.max(ends, axis=0)
    wide = size(y, 0) > 1  # the box of the product is less than what is left of a linear one
    made[:, wide] = 0
    made[:2, wide] = ((low + high) / 2)[wide], ((high - low) / 2)[wide]
    made[1] += SPARE * UNIT * limit(size(x) * size(y)) + LEAST
    return made


def affine(x: np.ndarray, weight: np.ndarray, biases: list[np.ndarray]) -> Any:
    n, sizes = weight.shape[1] + len(biases) + SPARE, np.abs(weight)
    summed = limit(size(x) @ sizes.T + sum(np.abs(b) for b in biases))
    made = x @ weight.T
    made[0] += sum(biases)
    made[1] = x[1] @ sizes.T + n * UNIT / (1 - n * UNIT) * summed
    made[1] += LEAST * (1 + size(x).sum() + sizes.sum(axis=1))
    return made


def squash(x: np.ndarray, logistic: bool) -> Any:
    low, high = x[0] - size(x, 0), x[0] + size(x, 0)
    a, b = (np.tanh(v / 2) / 2 + 0.5 if logistic else np.tanh(v) for v in (low, high))
    slope = np.minimum(*(v * (1 - v) if logistic else 1 - v * v for v in (a, b)))
    least, most, made = a - slope * low, b - slope * high, slope * x
    made[:2] += (least + most) / 2, (most - least) / 2 + FUNCTION
    return made


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
        flat = self.embedding.ndim == 2 and self.head.shape == (1, self.hidden)
        need(flat and self.layers and not w, "other weights")
        self.units = len(self.layers) * self.kept
        # Programs may look up what the first layer makes of each token, of those not read too.
        for x in self.embedding:
            affine(np.array([x, 0 * x]), self.layers[0][0][:, : self.hidden], self.layers[0][1])

    def step(self, x: np.ndarray, token: int) -> np.ndarray:
        h, x, after = self.hidden, share(x), np.zeros((2, 0))
        given = np.vstack([self.embedding[token], np.zeros(h)])
        for number, (weight, biases) in enumerate(self.layers):
            state, kept = np.hsplit(x[:, number * self.kept : (number + 1) * self.kept], [h])
            read = join(given, state)
            if self.kind == "rnn":
                made = squash(affine(read, weight, biases), False)
            elif self.kind == "gru":
                gates = squash(affine(read, weight[: 2 * h], [b[: 2 * h] for b in biases]), True)
                own = affine(state, weight[2 * h :, h:], [b[2 * h :] for b in biases[1:]])
                told = affine(given, weight[2 * h :, :h], [b[2 * h :] for b in biases[:1]])
                new = share(squash(add(told, multiply(gates[:, :h], own)), False))
                made = add(new, multiply(gates[:, h:], add(state, new, -1)))
            else:
                i, f, g, o = np.hsplit(affine(read, weight, biases), 4)
                cell = multiply(squash(f, True), kept)
                cell = add(cell, multiply(squash(i, True), squash(g, False)))
                made = join(multiply(squash(o, True), squash(cell, False)), cell)
            after, given = join(after, made), made[:, :h]
        return after

    def answer(self, x: np.ndarray, end: int | None) -> tuple[Any, Any]:
        x = x if end is None else self.step(x, end)
        start = (len(self.layers) - 1) * self.kept
        logit = affine(x[:, start : start + self.hidden], self.head, self.offset)
        return logit[0] - size(logit, 0), logit[0] + size(logit, 0)


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    need(len(dict(pairs)) == len(pairs), "an object of its JSON has a key twice")
    return dict(pairs)


def read(path: str | Path) -> Any:
    """What a file of JSON holds."""
    return json.loads(Path(path).read_text(encoding="utf-8"), object_pairs_hook=once)


@np.errstate(all="ignore")
def check(certificate: dict[str, Any], weights: dict[str, np.ndarray] | None = None) -> int:
    """The number of regions of a certificate that proves its claim, of these weights if given."""
    need(certificate["format"] == "seqcls certificate 2", "it is no certificate of a known format")
    need(fits(certificate, FORM), "a key is missing, is one too many or has another type of value")
    own = {}
    for name, x in certificate["weights"].items():
        need(fits(x, {"type": str, "shape": [int], "values": NUMBERS}), "no weights")
        need(x["type"] in ("float32", "float64"), "weights of another type")
        own[name] = np.array(x["values"], dtype=x["type"]).reshape(x["shape"])
        need([*own[name].shape] == x["shape"], "weights of another shape")
    need(digest(own) == certificate["weights_sha256"], "its weights are not those of its digest")
    need(weights is None or digest(weights) == digest(own), "it is of other weights")
    claim = claim_digest(certificate) == certificate["claim_sha256"]
    need(claim, "its letters or the rest of its claim are not those of its digest")
    net, ids = Network(certificate["cell"], own), certificate["letter_ids"]
    end, letters = certificate["end_id"], certificate["letters"]
    need(len({*letters} - {""}) == len(letters) == len(ids), "its letters are not one a token")
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
    none = [np.nan] * net.units
    low, high = (np.array([x.get(side, none) for x in regions]) for side in ("low", "high"))
    need(low.shape == high.shape == (len(regions), net.units), "a box is not of this size")
    need(((low[0] <= 0) & (high[0] >= 0)).all(), "the empty string is not in the first box")
    asked = certificate["empty"] or any(0 in x["next"] for x in regions)
    pending = list[tuple[int, np.ndarray, int]]()

    def enter(number: int, x: np.ndarray, carried: int) -> None:
        (least,), (most,) = net.answer(x, end)
        right = least > 0 if regions[number]["state"] in machine["accepting"] else most < 0
        need(right or (number == 0 and not asked), f"region {number}: the answer is open")
        need(carried <= len(regions), "letters lead around without a box")
        pending.append((number, x, carried))

    for n in (n for n, each in enumerate(regions) if "low" in each):
        need(((low[n] <= high[n]) & np.isfinite([low[n], high[n]])).all(), f"region {n}: no box")
        enter(n, np.array([(low[n] + high[n]) / 2, (high[n] - low[n]) / 2]), 0)
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
    try:
        given = read(sys.argv[1])
        found = check(given, dict(np.load(sys.argv[2])) if len(sys.argv) > 2 else None)
    except Exception as error:
        sys.exit(f"rejected: {type(error).__name__}: {' '.join(str(error).split()):.200}")
    claim = json.dumps({name: given[name] for name in ("letters", "letter_ids", "empty")})
    print(f"accepted, {found} regions: {claim}")
