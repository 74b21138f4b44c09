"""Does counting decide what Transformers learn and generalize? The languages of the study.

python -m benchmarks.counting

draws them, and writes the specifications `known/counting`, `counting_fresh` and
`counting_controls`, always the same.
"""

import csv
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tomli_w

from benchmarks.tables import DOCS
from seqcls.problem import configuration, obstacle_of
from seqcls.tasks.regular import Regular
from seqcls.theory.classes import class_of

ROOT = DOCS.parent
SPECS = ROOT / "sweeps" / "grid" / "specs" / "known"
PUBLISHED = ROOT / "tests" / "assets" / "counting" / "languages.csv"
"""Languages whose label is published; those of the first sweep are drawn from them."""

SEED = 2026
LANGUAGES = 12
"""Number of languages of each class, in the first sweep and among fresh ones."""
CLASSES = ("level 0", "level 1 and more", "outside")

Language = tuple[str, str]
"""Its letters and its expression."""

FIXED: dict[str, Any] = {
    "task": "regular",
    "answers": "states",
    "hidden_size": 32,
    "train_min_length": 1,
    "train_max_length": 50,
    "train_size": 4000,
    "train_batch_size": 64,
    "validation_min_length": 1,
    "validation_max_length": 50,
    "validation_size": 500,
    "test_min_length": 1,
    "test_max_length": 500,
    "test_size": 2000,
    "max_num_epochs": 80,
    "min_num_epochs": 0,
    "patience": 80,
    "min_validation_loss": 0.0,
    "stop_when_right": True,
    "train_more_steps": 2000,
    "learning_rate": 0.003,
    "final_learning_rate_factor": 0.1,
    "gradient_clip": 1.0,
}
CAUSAL: dict[str, Any] = {
    "num_blocks": 2,
    "attention_mask": "causal",
    "num_attention_heads": 4,
    "attention_head_size": 8,
    "feed_forward_size": 64,
}
NONE = {**CAUSAL, "positions": "none"}
SHIFTED = {**CAUSAL, "positions": "learned", "position_draw": "shifted"}
ROTARY = {**CAUSAL, "positions": "rotary"}
LSTM: dict[str, Any] = {"architecture": "lstm", "biases": True}
WIDER = {"hidden_size": 64, "attention_head_size": 16, "feed_forward_size": 128}

WAYS = (0.1, 0.6, 0.2, 0.1)
"""Probabilities that an expression is an alternative, a sequence, a repetition, or a letter."""
LETTERS = (0.4, 0.4, 0.2)
DEPTH = 3


def expression(rng: np.random.Generator, depth: int = DEPTH) -> str:
    """A random regular expression over a, b and c."""
    way = 3 if depth == 0 else rng.choice(4, p=WAYS)
    if way == 3:
        return "abc"[rng.choice(3, p=LETTERS)]
    inner = [expression(rng, depth - 1) for _ in range(1 if way == 2 else 2)]
    return (f"({'|'.join(inner)})", "".join(inner), f"({inner[0]})*")[way]


def class_name(language: Language) -> str | None:
    """Returns a language's class of `CLASSES`; None if it has one letter or one state."""
    if len(language[0]) < 2:
        return None
    task = Regular(*language)
    counting = class_of(task).counting
    if counting is None or len(task.automaton.table) < 3:
        return None
    level = counting.level
    return CLASSES[2 if level is None else min(level, 1)]


def identity(language: Language) -> bytes:
    """The same of two expressions of one language over the same letters."""
    automaton = Regular(*language).automaton
    return language[0].encode() + automaton.table.tobytes() + automaton.accepting.tobytes()


def spelled(pattern: str) -> Language:
    return "".join(sorted({x for x in pattern if x.isalpha()})), pattern


def published() -> list[Language]:
    with PUBLISHED.open() as file:
        return [spelled(row["regex"].replace(" ", "")) for row in csv.DictReader(file)]


def draw_fresh(rng: np.random.Generator) -> Iterator[Language]:
    """Random languages without end, none of them published or the same as one before."""
    known = {identity(language) for language in published()}
    while True:
        language = spelled(expression(rng))
        if "*" in language[1] and class_name(language) and (own := identity(language)) not in known:
            known.add(own)
            yield language


def draw(languages: Iterator[Language]) -> dict[str, list[Language]]:
    """The first `LANGUAGES` of each class that can be trained on."""
    found: dict[str, list[Language]] = {name: [] for name in CLASSES}
    for language in languages:
        name = class_name(language)
        fields = {**FIXED, **NONE, "alphabet": language[0], "pattern": language[1]}
        if name and len(found[name]) < LANGUAGES and obstacle_of(fields) is None:
            found[name].append(language)
        if all(len(own) == LANGUAGES for own in found.values()):
            break
    return found


def entries(
    chosen: Mapping[str, Sequence[Language]],
    networks: Sequence[tuple[Mapping[str, Any], int, str]],
) -> list[dict[str, Any]]:
    """Configurations: each network, of how many languages of each class, with which seeds."""
    return [
        {"alphabet": letters, "pattern": pattern, **network, "model_seeds": seeds}
        for network, number, seeds in networks
        for own in chosen.values()
        for letters, pattern in own[:number]
    ]


def specifications() -> dict[str, dict[str, Any]]:
    """The three specifications, by name."""
    rng = np.random.default_rng(SEED)
    every = published()
    named = draw(every[place] for place in rng.permutation(len(every)))
    fresh = draw(draw_fresh(rng))
    return {
        "counting": {
            "description": "Which regular languages causal Transformers learn and generalize: "
            "12 published ones of each class of counting.",
            "configurations": entries(
                named,
                [(NONE, 12, "0..7"), (SHIFTED, 12, "0..7"), (ROTARY, 6, "0..2"), (LSTM, 6, "0..2")],
            ),
        },
        "counting_fresh": {
            "description": "The same of 36 random languages that were drawn afterwards.",
            "configurations": entries(fresh, [(NONE, 12, "0..4"), (SHIFTED, 12, "0..4")]),
        },
        "counting_controls": {
            "description": "Whether the same holds if training stops once all is right, of a "
            "greater width, and of three blocks.",
            "configurations": entries(
                named,
                [
                    ({**NONE, "train_more_steps": 0}, 3, "0..4"),
                    ({**NONE, **WIDER}, 3, "0..4"),
                    ({**NONE, "num_blocks": 3}, 3, "0..4"),
                ],
            ),
        },
    }


def write_specifications() -> None:
    for name, spec in specifications().items():
        fixed = dict(FIXED)
        varied = {x for entry in spec["configurations"] for x in entry}
        for entry in spec["configurations"]:
            # A field that differs between entries is in every entry, and not among the fixed ones.
            for field in varied & fixed.keys():
                entry.setdefault(field, fixed[field])
            # Refused here rather than when the sweep is submitted.
            configuration({**fixed, **{x: y for x, y in entry.items() if x != "model_seeds"}})
        head = {"name": name, "description": spec["description"], "model_seeds": "0..7"}
        fixed = {x: y for x, y in fixed.items() if x not in varied}
        body = {**head, "fixed": fixed, "configurations": spec["configurations"]}
        (SPECS / f"{name}.toml").write_text(tomli_w.dumps(body))


if __name__ == "__main__":
    write_specifications()
