"""Checks a certificate that a recurrent network answers as an automaton on every string.

`python checker.py CERTIFICATE [WEIGHTS.npz]` needs NumPy alone, and no code of what finds these.
Regions represent states of the automaton, name the region after every letter, and have a box of
network states, or none. What is checked: the empty string's state is in the first box; from every
box letters lead into the boxes that they should, and on the way and there the answer is right. By
induction it is on every string (docs/proofs.md). What finds certificates steps by these functions
too; what a certificate is worth is up to `check` alone.
"""

import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

UNIT = 2.0**-24  # of float32, in which the network runs
SPARE = 8  # roundings of a sum that are allowed for beside one for each term
FUNCTION = 2.0**-20  # what the library's tanh and logistic function may be off by
FLUSHED = 2.0**-100  # more than what is flushed to zero
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
    """The certificate proves nothing; its text names the reason."""


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
    """SHA-256 of what is claimed, letters too, and of all suffixes."""
    claim = [certificate[x] for x in sorted(CLAIM)], [x["suffix"] for x in certificate["regions"]]
    return hashlib.sha256(json.dumps(claim, sort_keys=True).encode()).hexdigest()


def fits(x: Any, form: Any) -> bool:
    """True if JSON has a form: a type, a list of one form, a dict of forms, or one of several."""
    if isinstance(form, tuple):
        return any(fits(x, option) for option in form)
    if isinstance(form, list):
        return type(x) is list and all(fits(item, form[0]) for item in x)
    if isinstance(form, dict):
        return type(x) is dict and x.keys() == form.keys() and all(fits(x[y], form[y]) for y in x)
    return type(x) is form


class Forms(NamedTuple):
    """Sets of vectors: all center + e generators + d with e in [-1, 1]^k and |d| <= rest. Of two
    the first generators are the same. Axes before the last ones are of many sets.
    """

    center: np.ndarray
    generators: np.ndarray
    rest: np.ndarray

    @property
    def radius(self) -> Any:
        return np.abs(self.generators).sum(axis=-2) + self.rest

    @property
    def size(self) -> Any:
        return np.abs(self.center) + self.radius

    @property
    def ends(self) -> tuple[Any, Any]:
        radius = self.radius
        return self.center - radius, self.center + radius

    def units(self, start: int, end: int) -> "Forms":
        return Forms(*(x[..., start:end] for x in self))


def limit(size: Any) -> Any:
    why = f"a sum or a product in the network may be larger than {LARGEST:.1e}, and so overflow"
    need((size < LARGEST).all(), f"{why} in float32")
    return size


def align(x: Forms, y: Forms) -> Iterator[Forms]:
    most = max(x.generators.shape[-2], y.generators.shape[-2])
    for c, g, r in (x, y):
        # Generators that one of them lacks move the other alone.
        none = np.zeros((*c.shape[:-1], most - g.shape[-2], c.shape[-1]))
        yield Forms(c, np.concatenate([g, none], axis=-2), r)


def share(x: Forms) -> Forms:
    # Rests become generators, so that what follows from a unit twice is known to move together.
    own = x.rest[..., None] * np.eye(x.rest.shape[-1])
    return Forms(x.center, np.concatenate([x.generators, own], axis=-2), 0 * x.rest)


def join(x: Forms, y: Forms) -> Forms:
    return Forms(*(np.concatenate(sides, axis=-1) for sides in zip(*align(x, y), strict=True)))


def add(x: Forms, y: Forms, sign: int = 1) -> Forms:
    x, y = align(x, y)
    rest = x.rest + y.rest + SPARE * UNIT * limit(x.size + y.size) + FLUSHED
    return Forms(x.center + sign * y.center, x.generators + sign * y.generators, rest)


def multiply(x: Forms, y: Forms) -> Forms:
    x, y = align(x, y)
    ends = [end * other for end in x.ends for other in y.ends]
    low, high = np.min(ends, axis=0), np.max(ends, axis=0)
    wide = y.radius > 1  # the box of the product is less than what is left of a linear one
    # (c + dx)(k + dy) = ck + c dy + k dx + dx dy, of which the last is bounded by the radii.
    rest = np.abs(x.center) * y.rest + np.abs(y.center) * x.rest + x.radius * y.radius
    rest = np.where(wide, (high - low) / 2, rest) + SPARE * UNIT * limit(x.size * y.size) + FLUSHED
    made = x.center[..., None, :] * y.generators + y.center[..., None, :] * x.generators
    center = np.where(wide, (low + high) / 2, x.center * y.center)
    return Forms(center, np.where(wide[..., None, :], 0, made), rest)


def affine(x: Forms, weight: np.ndarray, biases: list[np.ndarray]) -> Forms:
    n, sizes, size = weight.shape[1] + len(biases) + SPARE, np.abs(weight), x.size
    # A dot product of n terms, in any order of summation: Higham 2002, section 3.1.
    summed = limit(size @ sizes.T + sum(np.abs(b) for b in biases))
    rest = x.rest @ sizes.T + n * UNIT / (1 - n * UNIT) * summed
    rest = rest + FLUSHED * (1 + size.sum(axis=-1, keepdims=True) + sizes.sum(axis=1))
    made = np.tensordot(x.generators, weight, (-1, -1))
    return Forms(x.center @ weight.T + sum(biases), made, rest)


def squash(x: Forms, logistic: bool) -> Forms:
    low, high = x.ends
    a, b = (np.tanh(v / 2) / 2 + 0.5 if logistic else np.tanh(v) for v in (low, high))
    # The least slope on an interval is at one of its ends; what it leaves of the function
    # never falls, so the ends bound that as well (Singh et al. 2018).
    slope = np.minimum(*(v * (1 - v) if logistic else 1 - v * v for v in (a, b)))
    least, most = a - slope * low, b - slope * high
    rest = slope * x.rest + (most - least) / 2 + FUNCTION
    return Forms(slope * x.center + (least + most) / 2, slope[..., None, :] * x.generators, rest)


class Network:
    def __init__(self, kind: str, weights: dict[str, np.ndarray]) -> None:
        w = {name: np.asarray(x, dtype=np.float64) for name, x in weights.items()}
        # Each weight that is used is taken out: what is left over is of another network.
        self.embedding, self.head = w.pop("embedding.weight"), w.pop("classifier.weight")
        self.offset = [w.pop("classifier.bias")] if "classifier.bias" in w else []
        self.kind, self.hidden, self.layers = kind, self.embedding.shape[1], list[Any]()
        self.layer_units = self.hidden * (2 if kind == "lstm" else 1)
        while (name := f"layers.{len(self.layers)}.") + "input_weight" in w:
            both = np.hstack([w.pop(name + x) for x in ("input_weight", "state_weight")])
            biases = [w.pop(name + x) for x in ("input_bias", "state_bias") if name + x in w]
            sizes = GATES[kind] * self.hidden, 2 * self.hidden
            need(both.shape == sizes, "a layer is not of this size")
            need([b.shape for b in biases] in ([], [sizes[:1]] * 2), "a bias is not of this size")
            self.layers.append((both, biases))
        flat = self.embedding.ndim == 2 and self.head.shape == (1, self.hidden)
        need(flat and self.layers and not w, "other weights")
        self.units = len(self.layers) * self.layer_units
        self.finite = all(np.isfinite(x).all() for x in weights.values())

    def bound_tokens(self) -> None:
        """Programs may look up what the first layer makes of each token, of those not read too."""
        need(self.finite, "a weight is not finite")
        weight, biases = self.layers[0]
        affine(self.read(slice(None), len(self.embedding)), weight[:, : self.hidden], biases)

    def read(self, token: Any, *rows: int) -> Forms:
        given = np.broadcast_to(self.embedding[token], (*rows, self.hidden))
        return Forms(given, np.zeros((*rows, 0, self.hidden)), np.zeros_like(given))

    def step(self, x: Forms, token: int) -> Forms:
        h, x = self.hidden, share(x)
        given, after = self.read(token, *x.center.shape[:-1]), x.units(0, 0)
        for number, (weight, biases) in enumerate(self.layers):
            own = x.units(number * self.layer_units, (number + 1) * self.layer_units)
            state, old_cell = own.units(0, h), own.units(h, 2 * h)
            read = join(given, state)
            if self.kind == "rnn":
                made = squash(affine(read, weight, biases), False)
            elif self.kind == "gru":
                gates = squash(affine(read, weight[: 2 * h], [b[: 2 * h] for b in biases]), True)
                # As in PyTorch, the reset gate scales what the matrix makes of the state.
                own = affine(state, weight[2 * h :, h:], [b[2 * h :] for b in biases[1:]])
                from_input = affine(given, weight[2 * h :, :h], [b[2 * h :] for b in biases[:1]])
                new = share(squash(add(from_input, multiply(gates.units(0, h), own)), False))
                made = add(new, multiply(gates.units(h, 2 * h), add(state, new, -1)))
            else:
                gates = affine(read, weight, biases)
                i, f, g, o = (gates.units(n * h, (n + 1) * h) for n in range(4))
                cell = multiply(squash(f, True), old_cell)
                cell = add(cell, multiply(squash(i, True), squash(g, False)))
                made = join(multiply(squash(o, True), squash(cell, False)), cell)
            after, given = join(after, made), made.units(0, h)
        return after

    def answer(self, x: Forms, end: int | None) -> tuple[Any, Any]:
        x = x if end is None else self.step(x, end)
        start = (len(self.layers) - 1) * self.layer_units
        return affine(x.units(start, start + self.hidden), self.head, self.offset).ends


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    need(len(dict(pairs)) == len(pairs), "an object of its JSON has a key twice")
    return dict(pairs)


def read(path: str | Path) -> Any:
    """Reads a file of JSON."""
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
    net.bound_tokens()
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
    # NaN for its ends keeps everything outside of a box that is missing.
    none = [np.nan] * net.units
    low, high = (np.array([x.get(side, none) for x in regions]) for side in ("low", "high"))
    need(low.shape == high.shape == (len(regions), net.units), "a box is not of this size")
    need(((low[0] <= 0) & (high[0] >= 0)).all(), "the empty string is not in the first box")
    asks_empty = certificate["empty"] or any(0 in x["next"] for x in regions)
    pending = list[tuple[int, Forms, int]]()

    def enter(number: int, x: Forms, carried: int) -> None:
        (least,), (most,) = net.answer(x, end)
        # Comparisons with NaN are false, so an answer that is no number is never right.
        right = least > 0 if regions[number]["state"] in machine["accepting"] else most < 0
        need(right or (number == 0 and not asks_empty), f"region {number}: the answer is open")
        # More letters than regions, and one has come twice without a box in between.
        need(carried <= len(regions), "letters lead around without a box")
        pending.append((number, x, carried))

    for n in (n for n, region in enumerate(regions) if "low" in region):
        need(((low[n] <= high[n]) & np.isfinite([low[n], high[n]])).all(), f"region {n}: no box")
        center, generators = (low[n] + high[n]) / 2, np.zeros((0, net.units))
        enter(n, Forms(center, generators, np.maximum(high[n] - center, center - low[n])), 0)
    while pending:
        number, x, carried = pending.pop()
        for token, to in zip(ids, regions[number]["next"], strict=True):
            y = net.step(x, token)
            if "low" not in regions[to]:
                enter(to, y, carried + 1)
            least, most = y.ends
            inside = (least >= low[to]) & (most <= high[to])
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
