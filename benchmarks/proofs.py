"""Proofs and refutations of the recurrent networks of a database, and tests of proved models.

python -m benchmarks.proofs DATABASE FOLDER SWEEP ... [SECONDS]
python -m benchmarks.proofs read FOLDER SECONDS
python -m benchmarks.proofs change FOLDER COUNT

The first writes a line for each model to `docs/results/proofs.csv`, its certificate to the folder,
and the table of `docs/proofs.md`. Models that have a line are left, but for those that were not
decided within fewer seconds of a core. The second has the models of the certificates read strings
for so long, random ones and words that repeat, and judges every prefix. The third changes a number
of a certificate, and a weight of a model by 0.01.
"""

import itertools
import json
import sys
import time
from collections.abc import Sequence
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from benchmarks.tables import DOCS, markdown, put, results_file
from seqcls.interpretability.trained_model import TrainedModel
from seqcls.problem import configuration, resolve
from seqcls.proofs import checker
from seqcls.proofs.certificate import to_text
from seqcls.proofs.checker import GATES
from seqcls.proofs.prover import ProofBudget, prove
from seqcls.tasks.automaton import Automaton
from sweeps.api import model, open_store, runs

RESULTS = results_file("proofs")

SECONDS = 12.0
"""Time of one core for each model, where none is named."""

MOST_REGIONS = 100
"""Regions at most of certificates that are changed."""

LANGUAGES = {
    "1*": "Tomita 1",
    "(10)*": "Tomita 2",
    "0*((11)+0+|1(11)*(00)+)*1*": "Tomita 3",
    "(1|01|001)*(()|0|00)": "Tomita 4",
    "(00|11|(01|10)(00|11)*(01|10))*": "Tomita 5",
    "(01|(1|00)(10)*(0|11))*": "Tomita 6",
    "0*1*0*1*": "Tomita 7",
}


def prove_all(db: str, folder: Path, sweeps: Sequence[str], seconds: float) -> None:
    """Proves what has no line yet, and writes lines and certificates."""
    torch.set_num_threads(1)
    store, lines = open_store(db), list[dict[str, Any]]()
    if RESULTS.exists():
        found = pd.read_csv(RESULTS, keep_default_na=False)
        again = (found["outcome"] == "not decided") & (found["seconds"] < seconds)
        lines = [
            {str(name): x for name, x in row.items()} for row in found[~again].to_dict("records")
        ]
    done = {(x["sweep"], x["architecture"], x["language"], x["seed"]) for x in lines}
    folder.mkdir(exist_ok=True)
    for sweep in sweeps:
        found = runs(store, sweep=sweep)
        columns = ["id", "pattern", "task", "architecture", "model_seed", "wrong"]
        for row in found.reindex(columns=columns).to_dict("records"):
            language = LANGUAGES.get(str(row["pattern"]), str(row["task"]).replace("_", " "))
            key = sweep, str(row["architecture"]), language, int(row["model_seed"])
            if key in done or row["architecture"] not in GATES:
                continue
            trained = model(store, int(row["id"]))
            # Of processors: other programs run beside it.
            begun = time.process_time()
            proof = prove(trained, budget=ProofBudget(seconds=seconds))
            if proof.certificate is not None:
                text = to_text(proof.certificate)
                (folder / f"{sweep}-{row['id']}.json").write_text(text, encoding="utf-8")
            lines.append(
                {
                    **dict(zip(("sweep", "architecture", "language", "seed"), key, strict=True)),
                    "wrong": int(row["wrong"]),
                    "outcome": proof.outcome,
                    "regions": proof.regions,
                    "string": trained.tokenizer.display(proof.string or ""),
                    "took": round(time.process_time() - begun, 1),
                    "seconds": seconds,
                }
            )
            pd.DataFrame(lines).to_csv(RESULTS, index=False)
            print(lines[-1], flush=True)


def table(lines: pd.DataFrame) -> str:
    """Returns the table of outcomes by language, for the sweeps' own seeds and for fresh ones."""
    heads = ["network", "language", "proved", "refuted, without a test error", "refuted, with one"]
    rows = []
    fresh = lines["sweep"].str.endswith("_fresh")
    for (architecture, language), own in lines.groupby(["architecture", "language"], sort=False):
        row = [str(architecture).upper(), str(language)]
        found = own["outcome"]
        counted = (
            found == "proved",
            (found == "refuted") & (own["wrong"] == 0),
            (found == "refuted") & (own["wrong"] > 0),
            found == "not decided",
        )
        rows.append(
            [*row, *(f"{int((x & ~fresh).sum())} + {int((x & fresh).sum())}" for x in counted)]
        )
    return markdown([[*heads, "not decided"], *rows])


def page() -> str:
    """The page, with the table that the lines make."""
    text = (DOCS / "proofs.md").read_text(encoding="utf-8")
    return put(text, {"proofs: models": table(pd.read_csv(RESULTS, keep_default_na=False))})


Certificate = dict[str, Any]


def weights_of(certificate: Certificate) -> dict[str, np.ndarray]:
    return {
        name: np.array(x["values"], dtype=x["type"]).reshape(x["shape"])
        for name, x in certificate["weights"].items()
    }


def with_digest(certificate: Certificate) -> Certificate:
    """A certificate that calls its weights its own."""
    return with_claim({**certificate, "weights_sha256": checker.digest(weights_of(certificate))})


def with_claim(certificate: Certificate) -> Certificate:
    """A certificate that calls what it claims its own."""
    return {**certificate, "claim_sha256": checker.claim_digest(certificate)}


@cache
def draw_strings(count: int, length: int, letters: int, seed: int) -> np.ndarray:
    """Strings (string, place): a quarter of random letters, the others of words that repeat, each
    of up to 12 letters and up to a thousand times.
    """
    rng = np.random.default_rng(seed)
    strings = rng.integers(letters, size=(count, length), dtype=np.int8)
    for row in strings[count // 4 :]:
        filled = 0
        while filled < length:
            word = rng.integers(letters, size=rng.integers(1, 13), dtype=np.int8)
            block = np.tile(word, int(10 ** rng.uniform(0, 3)))[: length - filled]
            row[filled : filled + len(block)] = block
            filled += len(block)
    return strings


class Cell:
    """The network of a certificate by PyTorch's own cells, at the precision of its weights."""

    def __init__(self, certificate: Certificate) -> None:
        given = {name: torch.from_numpy(x) for name, x in weights_of(certificate).items()}
        self.embedding = given["embedding.weight"]
        self.head = given["classifier.weight"][0], given.get("classifier.bias", torch.zeros(1))
        self.hidden, self.end = self.embedding.shape[1], certificate["end_id"]
        self.parts = 2 if certificate["cell"] == "lstm" else 1
        made = {"rnn": torch.nn.RNNCell, "gru": torch.nn.GRUCell, "lstm": torch.nn.LSTMCell}
        names = {"weight_ih": "input_weight", "weight_hh": "state_weight"}
        names |= {"bias_ih": "input_bias", "bias_hh": "state_bias"}
        self.layers = list[torch.nn.Module]()
        while (start := f"layers.{len(self.layers)}.") + "input_weight" in given:
            own = {x: given[start + y] for x, y in names.items() if start + y in given}
            shape, kind = (self.hidden, self.hidden), made[certificate["cell"]]
            self.layers.append(kind(*shape, bias="bias_ih" in own, dtype=self.embedding.dtype))
            self.layers[-1].load_state_dict(own)

    @torch.no_grad()
    def step(self, states: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        """The states (string, unit) after a token of each."""
        read, after = self.embedding[tokens], list[torch.Tensor]()
        layers = states.split(self.parts * self.hidden, dim=1)
        for layer, state in zip(self.layers, layers, strict=True):
            state_parts = state.split(self.hidden, dim=1)
            made = layer(read, state_parts if self.parts == 2 else state)
            after += made if self.parts == 2 else [made]
            read = after[-self.parts]
        return torch.cat(after, dim=1)

    def logits(self, states: torch.Tensor) -> np.ndarray:
        """The answer to strings that end in these states."""
        if self.end is not None:
            states = self.step(states, torch.full((len(states),), self.end))
        last = states.split(self.hidden, dim=1)[-self.parts]
        return np.asarray(last @ self.head[0] + self.head[1])

    def starts(self, count: int) -> torch.Tensor:
        """The state before the first letter, so many times."""
        width = len(self.layers) * self.parts * self.hidden
        return torch.zeros(count, width, dtype=self.embedding.dtype)


def errors_on(certificate: Certificate, strings: np.ndarray) -> int:
    """Returns the number of prefixes on which a certificate's model and automaton disagree."""
    cell, ids = Cell(certificate), torch.tensor(certificate["letter_ids"])
    table = np.array(certificate["automaton"]["transitions"])
    accepting = np.isin(np.arange(len(table)), certificate["automaton"]["accepting"])
    states, errors = cell.starts(len(strings)), 0
    machine = np.full(len(strings), certificate["automaton"]["start"])
    for column in strings.T:
        states = cell.step(states, ids[torch.from_numpy(column.astype(np.int64))])
        machine = table[machine, column]
        logits = cell.logits(states)
        errors += int((((logits > 0) != accepting[machine]) | np.isnan(logits)).sum())
    return errors


def leads_on(certificate: Certificate, count: int = 32) -> bool:
    """Returns True if states drawn in every box, half of them its corners, answer rightly and move
    to the boxes that the certificate claims, by PyTorch's cells.
    """
    cell, regions, rng = Cell(certificate), certificate["regions"], np.random.default_rng(0)
    boxes = {n: (x["low"], x["high"]) for n, x in enumerate(regions) if "low" in x}
    accepting = np.isin([x["state"] for x in regions], certificate["automaton"]["accepting"])
    numbers = np.repeat(list(boxes), count)
    low, high = (np.array([boxes[n][end] for n in numbers.tolist()]) for end in (0, 1))
    shares = rng.random(low.shape)
    shares[::2] = shares[::2].round()
    states = torch.from_numpy(low + shares * (high - low)).to(cell.embedding.dtype)
    while len(numbers):
        right = (cell.logits(states) > 0) == accepting[numbers]
        if not (right | (numbers == 0) & (not certificate["empty"])).all():
            return False
        following = []
        for row, token in enumerate(certificate["letter_ids"]):
            after = np.array([regions[n]["next"][row] for n in numbers.tolist()])
            reached = cell.step(states, torch.full((len(states),), token))
            boxed = np.isin(after, list(boxes))
            values = reached[boxed].numpy()
            low, high = (np.array([boxes[n][end] for n in after[boxed].tolist()]) for end in (0, 1))
            if len(values) and not ((values >= low) & (values <= high)).all():
                return False
            following.append((after[~boxed], reached[~boxed]))
        numbers = np.concatenate([x for x, _ in following])
        states = torch.cat([x for _, x in following])
    return True


def read(folder: Path, seconds: float) -> None:
    """Has the certificates' models read strings for so long, each as many; prints how many."""
    torch.set_num_threads(1)
    paths = sorted(folder.glob("*.json"))
    begun, lines = time.monotonic(), list[tuple[int, int, int]]()
    # Short, long and very long strings, of some million tokens each.
    shapes = itertools.cycle([(50_000, 64), (2_048, 1_000), (16, 100_000)])
    for seed, (count, length) in enumerate(shapes):
        for path in paths:
            certificate = json.loads(path.read_text(encoding="utf-8"))
            drawn = draw_strings(count, length, len(certificate["letters"]), seed)
            lines.append((count, count * length, errors_on(certificate, drawn)))
            if time.monotonic() - begun > seconds:
                break
        strings, prefixes, errors = (sum(column) for column in zip(*lines, strict=True))
        models = min(len(lines), len(paths))
        print(
            f"{models} models, {strings:,} strings of up to {length:,} letters, {prefixes:,} "
            f"prefixes: {errors} errors",
            flush=True,
        )
        if time.monotonic() - begun > seconds:
            return


def is_proved_anew(certificate: Certificate) -> bool:
    """Returns True if the prover proves the claim of a certificate without its proof."""
    weights, machine = weights_of(certificate), certificate["automaton"]
    table = np.array(machine["transitions"])
    fields: dict[str, Any] = {
        # Another task of the same letters: what is proved is the automaton.
        "task": "parity",
        "architecture": certificate["cell"],
        "hidden_size": weights["embedding.weight"].shape[1],
        "num_blocks": sum(name.endswith("input_weight") for name in weights),
        "biases": "classifier.bias" in weights,
        "readout": "last_letter" if certificate["end_id"] is None else "last",
        "test_size": 50,
        "test_min_length": 0 if certificate["empty"] else 1,
        "test_max_length": 30,
    }
    trained = TrainedModel(resolve(configuration(fields)), weights)
    accepting = np.isin(np.arange(len(table)), machine["accepting"])
    proof = prove(trained, Automaton(table, accepting, machine["start"]))
    return proof.outcome == "proved"


def change_number(certificate: Certificate, rng: np.random.Generator) -> Certificate:
    """A certificate of which one number is another: of a box, a region, the automaton, a weight.
    Its claim has a new digest.
    """
    changed = deepcopy(certificate)
    regions, machine = changed["regions"], changed["automaton"]
    region = regions[rng.integers(len(regions))]
    kind = rng.choice(["low", "high", "next", "state", "transitions", "accepting", "weight"])
    if kind in ("low", "high"):
        boxed = [x for x in regions if "low" in x]
        side = boxed[rng.integers(len(boxed))][kind]
        side[rng.integers(len(side))] += float(rng.normal() * 10 ** rng.uniform(-4, 0))
    elif kind == "next":
        region["next"][rng.integers(len(region["next"]))] = int(rng.integers(len(regions)))
    elif kind == "state":
        region["state"] = int(rng.integers(len(machine["transitions"])))
    elif kind == "transitions":
        row = machine["transitions"][rng.integers(len(machine["transitions"]))]
        row[rng.integers(len(row))] = int(rng.integers(len(machine["transitions"])))
    elif kind == "accepting":
        machine["accepting"] = sorted(
            {*machine["accepting"]} ^ {int(rng.integers(len(machine["transitions"])))}
        )
    else:
        move_weight(changed, rng)
    return with_claim(changed)


def move_weight(changed: Certificate, rng: np.random.Generator) -> None:
    """Moves one of a certificate's weights by 0.01, up or down."""
    name = rng.choice(sorted(changed["weights"]))
    values = changed["weights"][name]["values"]
    place = rng.integers(len(values))
    values[place] = float(np.float32(values[place] + rng.choice([-0.01, 0.01])))


def claim(certificate: Certificate) -> Certificate:
    """Returns the network and the claim of a certificate, without its proof."""
    return {name: x for name, x in certificate.items() if name != "regions"}


def is_accepted(certificate: Certificate) -> bool:
    try:
        checker.check(certificate)
    except checker.RejectedError:
        return False
    return True


def change(folder: Path, count: int) -> None:
    """Changes a number of certificates, and a weight of models whose digest is made anew, so many
    times each; prints how many are accepted, of these claim what was proved before or are proved
    anew, and wrong on strings or on states drawn in their boxes.
    """
    torch.set_num_threads(1)
    found = (json.loads(x.read_text(encoding="utf-8")) for x in sorted(folder.glob("*.json")))
    # Small ones: each is checked many times.
    certificates = [x for x in found if len(x["regions"]) <= MOST_REGIONS]
    assert all(map(leads_on, certificates))
    strings = draw_strings(256, 400, 2, 0)
    for what in ("certificates with one number changed", "models with one weight moved by 0.01"):
        accepted = again = wrong = 0
        rng = np.random.default_rng(0)
        for _ in range(count):
            before = certificates[rng.integers(len(certificates))]
            if what.startswith("models"):
                changed = deepcopy(before)
                move_weight(changed, rng)
                assert not is_accepted(changed)
                changed = with_digest(changed)
            else:
                changed = before
                while changed == before:
                    changed = change_number(before, rng)
            if is_accepted(changed):
                accepted += 1
                again += claim(changed) == claim(before) or is_proved_anew(changed)
                wrong += errors_on(changed, strings) > 0 or not leads_on(changed)
        print(
            f"{count} {what}, of {len(certificates)} proofs: {accepted} accepted, {again} of them "
            f"claim what was proved or are proved anew, {wrong} wrong on {len(strings)} strings or "
            "on states of their boxes",
            flush=True,
        )


if __name__ == "__main__":
    if sys.argv[1] == "read":
        read(Path(sys.argv[2]), float(sys.argv[3]))
    elif sys.argv[1] == "change":
        change(Path(sys.argv[2]), int(sys.argv[3]))
    else:
        *names, last = sys.argv[3:]
        given = last.isdigit()
        prove_all(
            sys.argv[1],
            Path(sys.argv[2]),
            names if given else [*names, last],
            float(last) if given else SECONDS,
        )
        (DOCS / "proofs.md").write_text(page(), encoding="utf-8")
