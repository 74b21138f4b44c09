"""Eight published GPT-2s, loaded and compared with their published results, for the docs.

python -m benchmarks.gpt2s FOLDER

writes `docs/results/gpt2s.csv`. The folder holds a folder a model with `config.json`,
`model.safetensors` and `published.json`, as github.com/lacoco-lab/decompiling_transformers has them
("Discovering Interpretable Algorithms by Decompiling Transformers to RASP", arXiv 2602.08857); they
have no license, and so are not here. Strings are drawn as there: the length uniform among those
that have any, then by each language's own recipe.
"""

import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from benchmarks.tables import results_file
from seqcls.interpretability.trained_model import TrainedModel
from seqcls.interpretability.verdicts import output_verdict
from seqcls.strings.token_strings import TokenStrings
from sweeps.api import load_weights, model, open_store

BINS = ((1, 50), (51, 100), (101, 150))
A_BIN = 2_000
CONFIDENCE = 0.99

Draw = Callable[[np.random.Generator, int], list[int]]
"""Draws a string of a length: the numbers of its letters."""


def draw_bracketed(rng: np.random.Generator, length: int) -> list[int]:
    """Runs of one bracket, at most two open at once."""
    string, opened = list[int](), 0
    while len(string) < length:
        left = length - len(string)
        up = int(rng.integers(1, min(2 - opened, (left - opened) // 2) + 1)) if opened < 2 else 0
        down = int(rng.integers(1, opened + up + 1))
        opened += up - down
        # Where no more can be opened, all is closed.
        if left - up - down == opened:
            down, opened = down + opened, 0
        string += [0] * up + [1] * down
    return string


def draw_a_d_c(rng: np.random.Generator, length: int) -> list[int]:
    """Some of a and b, a d, some of b and c: letters of the alphabet abcd."""
    before = int(rng.integers(length))
    first = _shuffle(rng, 0, 1, before)
    return [*first, 3, *_shuffle(rng, 2, 1, length - 1 - before)]


def _shuffle(rng: np.random.Generator, one: int, other: int, length: int) -> list[int]:
    """Two letters in any order, the number of the first uniform."""
    number = int(rng.integers(length + 1))
    letters = np.array([one] * number + [other] * (length - number), dtype=np.int64)
    mixed: list[int] = rng.permutation(letters).tolist()
    return mixed


def draw_without_000(rng: np.random.Generator, length: int) -> list[int]:
    """Fair bits, and 1 after two 0s."""
    string: list[int] = []
    for _ in range(length):
        string.append(1 if string[-2:] == [0, 0] else int(rng.integers(2)))
    return string


def draw_even(rng: np.random.Generator, length: int) -> list[int]:
    """Even numbers of 0s and of 1s."""
    zeros = 2 * int(rng.integers(length // 2 + 1))
    mixed: list[int] = rng.permutation(np.repeat([0, 1], [zeros, length - zeros])).tolist()
    return mixed


def draw_bits(rng: np.random.Generator, length: int) -> list[int]:
    """Bits, not as many 0s as 1s, the number of 0s uniform."""
    while 2 * sum(bits := _shuffle(rng, 0, 1, length)) == length:
        pass
    return bits


def draw_interleaved(rng: np.random.Generator, length: int) -> list[int]:
    """Three strings of such bits, taken in turn."""
    three = zip(*(draw_bits(rng, length // 3) for _ in range(3)), strict=True)
    return [bit for bits in three for bit in bits]


@dataclass(frozen=True)
class Published:
    """A published model, with the settings that load it and the strings that test it."""

    folder: str
    task: Mapping[str, Any]
    tokens: str
    """The vocabulary's first tokens, in the order of their ids."""
    draw: Draw
    step: int = 1
    """Lengths of strings are multiples of it."""
    ends: bool = True
    """True if the model was trained to end its outputs."""

    def lengths(self, least: int, most: int) -> list[int]:
        return [x for x in range(least, most + 1) if x % self.step == 0]


def _language(pattern: str, alphabet: str) -> dict[str, Any]:
    return {
        "task": "regular",
        "pattern": pattern,
        "alphabet": alphabet,
        "answers": "next_symbols",
    }


_DYCK = {"task": "dyck", "max_depth": 2, "answers": "next_symbols"}
_EVEN = _language("(00|11|(01|10)(00|11)*(01|10))*", "01")
_MAJORITY, _INTERLEAVED = {"task": "binary_majority"}, {"task": "interleaved_majority"}

MODELS = (
    Published("bce_D2-@1l1h16d3lr00drop", _DYCK, "()", draw_bracketed, 2),
    Published(
        "bce_aastar-@1l2h16d3lr01drop", _language("(aa)*", "a"), "a", lambda _, n: [0] * n, 2
    ),
    Published(
        "bce_ab_d_bc-@1l1h16d3lr01drop", _language("(a|b)*d(b|c)*", "abcd"), "abcd", draw_a_d_c
    ),
    Published(
        "bce_tomita4-@2l2h16d3lr01drop",
        _language("(1|01|001)*(()|0|00)", "01"),
        "01",
        draw_without_000,
    ),
    Published("bce_tomita5-@2l1h64d3lr00drop", _EVEN, "01", draw_even, 2),
    Published("bin_majority-@1l1h16d3lr01drop", _MAJORITY, "01", draw_bits, ends=False),
    Published("bin_majority_interleave-#2l2h64d4lr00drop", _INTERLEAVED, "01", draw_interleaved, 3),
    Published("bin_majority_interleave-@2l2h16d3lr00drop", _INTERLEAVED, "01", draw_interleaved, 3),
)


def load(published: Published, folder: Path, db: Path) -> TrainedModel:
    """The model as a run of a database."""
    tokens = db.with_name("vocabulary.json")
    tokens.write_text(json.dumps([*published.tokens, "<bos>", "<sep>", "<eos>", "<pad>"]))
    lengths = {"train_max_length": 50, "test_min_length": 1, "test_max_length": BINS[-1][1]}
    task = {**published.task, **lengths, "test_size": 600, "validation_min_length": 1}
    run = load_weights(
        db, folder / published.folder, task=task, sweep="gpt2s", tokens=tokens, adapter="gpt2"
    )
    return model(open_store(str(db)), run)


def ask(published: Published, loaded: TrainedModel, rows: list[list[int]]) -> tuple[Any, Any]:
    """Returns which strings a model gets right, and the margins of the right answers."""
    answers = loaded.ask(TokenStrings.of_lists(loaded.num_letters, rows))
    # If outputs were not trained to end, only the target's tokens are scored.
    right = answers.right if published.ends else answers.right_length_given  # type: ignore[attr-defined]
    return right, answers.score


def measure(published: Published, loaded: TrainedModel) -> list[int]:
    """Returns the number of right strings in each bin."""
    rng = np.random.default_rng(2026)
    counts = []
    for least, most in BINS:
        lengths = rng.choice(published.lengths(least, most), A_BIN)
        right, _ = ask(published, loaded, [published.draw(rng, int(x)) for x in lengths])
        counts.append(int(right.sum()))
    return counts


AT_ONCE, ROUNDS = 100, 4
"""Strings of a length that are searched at once, and how often the least sure are changed."""


def search(published: Published, loaded: TrainedModel, least: int) -> tuple[int, list[int] | None]:
    """The first wrong string that is found, from a length on, by its margins.

    Returns:
        The number of strings tried, and the string.
    """
    rng, num_tried = np.random.default_rng(0), 0
    for length in published.lengths(least, BINS[-1][1]):
        tried = [published.draw(rng, length) for _ in range(AT_ONCE)]
        for _ in range(ROUNDS):
            right, margins = ask(published, loaded, tried)
            num_tried += len(tried)
            if not right.all():
                return num_tried, tried[int(np.argmin(right))]
            # The fifth of which it is least sure is what the next strings are made of.
            unsure = [tried[x] for x in np.argsort(margins)[: AT_ONCE // 5]]
            tried = [x for own in unsure for x in _change(loaded, own, rng)]
            if not tried:
                break
    return num_tried, None


def _change(loaded: TrainedModel, string: list[int], rng: np.random.Generator) -> Iterator[Any]:
    """Returns changed strings, with letters swapped or replaced, that have targets."""
    made = []
    for _ in range(12):
        other, places = list(string), rng.integers(len(string), size=2)
        if rng.random() < 0.5:
            other[places[0]], other[places[1]] = other[places[1]], other[places[0]]
        else:
            for place in places:
                other[place] = int(rng.integers(loaded.num_letters))
        made.append(other)
    strings = TokenStrings.of_lists(loaded.num_letters, made)
    known = loaded.problem.questions(strings).has_target
    return (x for x, is_known in zip(made, known, strict=True) if is_known and x != string)


def decide(published: Published, loaded: TrainedModel) -> str:
    """Describes the result on all strings up to the longest."""
    longest = BINS[-1][1]
    if published.ends:
        found = output_verdict(loaded)
        reached = found.max_length
        if found.shortest:
            return f"wrong on `{found.shortest[0].string}`"
        if reached >= longest:
            return f"right on every string up to {longest}"
    else:
        # Up to this length there are 32,766 strings, ties among them: few enough to try all.
        reached = 14
        bits = (np.arange(2**n)[:, None] >> np.arange(n) & 1 for n in range(1, reached + 1))
        # A tie has no majority, and so no answer.
        rows = [row for own in bits for row in own.tolist() if 2 * sum(row) != len(row)]
        right, _ = ask(published, loaded, rows)
        if not right.all():
            return f"wrong on `{loaded.display(rows[int(np.argmin(right))])}`"
    num_tried, string = search(published, loaded, reached + 1)
    known = f"right on every string up to {reached}"
    if string is None:
        return f"{known}; none wrong of {num_tried:,} longer ones that were searched for"
    return f"{known}; wrong on `{loaded.display(string)}` (length {len(string)}, by search)"


def rows_of(folder: Path) -> list[list[str]]:
    """A row a model: its name, and by bin what is published, what is found, and the interval."""
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        for published in MODELS:
            loaded = load(published, folder, Path(temporary) / "runs.db")
            record = json.loads((folder / published.folder / "published.json").read_text())
            shares = list(record["accuracy"].values())
            ends = [
                stats.binomtest(round(x * A_BIN), A_BIN).proportion_ci(CONFIDENCE, "wilson")
                for x in shares
            ]
            ours = [x / A_BIN for x in measure(published, loaded)]
            inside = [x.low <= own <= x.high for x, own in zip(ends, ours, strict=True)]
            rows.append(
                [
                    published.folder,
                    " / ".join(f"{x:.2%}" for x in shares),
                    " / ".join(
                        f"{x:.2%}" + " (outside)" * (not is_in)
                        for x, is_in in zip(ours, inside, strict=True)
                    ),
                    " / ".join(f"{x.low:.1%} to {x.high:.1%}" for x in ends),
                    decide(published, loaded),
                ]
            )
            print(*rows[-1], sep="\n  ", flush=True)
    return rows


def main(folder: str) -> None:
    heads = ["model", "published", "here", f"{CONFIDENCE:.0%} interval of the published", "verdict"]
    pd.DataFrame(rows_of(Path(folder)), columns=heads).to_csv(results_file("gpt2s"), index=False)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main(sys.argv[1])
