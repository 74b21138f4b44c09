"""Does counting decide what Transformers learn and generalize? Languages of a study, and its table.

python -m benchmarks.counting draw
python -m benchmarks.counting [DATABASE ...]

The first draws the languages and writes the specifications `known/counting`, `counting_fresh` and
`counting_controls`, always the same. The second writes every model of these sweeps that databases
hold to `docs/results/counting.csv`, and from it the tables of `docs/counting.md`.
"""

import csv
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import tomli_w

from benchmarks.known import (
    DOCS,
    LENGTH_PARTS,
    finished_runs,
    markdown,
    name_model,
    put,
    with_outcomes,
)
from seqcls.interpretability.wording import percent, percents
from seqcls.problem import configuration, obstacle_of
from seqcls.tasks.regular import Regular
from seqcls.theory.classes import class_of
from sweeps.api import open_store, runs
from sweeps.statistics.populations import language_shares
from sweeps.store.database import Store

ROOT = DOCS.parent
SPECS = ROOT / "sweeps" / "grid" / "specs" / "known"
PUBLISHED = ROOT / "tests" / "assets" / "counting" / "languages.csv"
"""Languages whose label is published; those of the first sweep are drawn from them."""
RESULTS = DOCS / "results" / "counting.csv"

SEED = 2026
LANGUAGES = 12
"""How many of each class, in the first sweep and among fresh ones."""
CLASSES = ("level 0", "level 1 and more", "outside")

SWEEPS = ("counting", "counting_fresh", "counting_controls")

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
"""How often an expression is an alternative, a sequence, a repetition, or a letter."""
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
    """Which of `CLASSES` a language is of; None where it is of one letter or one state."""
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
            # A field that differs anywhere stands in every entry, and not among the fixed ones.
            for field in varied & fixed.keys():
                entry.setdefault(field, fixed[field])
            # Refused here rather than when the sweep is submitted.
            configuration({**fixed, **{x: y for x, y in entry.items() if x != "model_seeds"}})
        head = {"name": name, "description": spec["description"], "model_seeds": "0..7"}
        fixed = {x: y for x, y in fixed.items() if x not in varied}
        body = {**head, "fixed": fixed, "configurations": spec["configurations"]}
        (SPECS / f"{name}.toml").write_text(tomli_w.dumps(body))


# The table.


def study_models(store: Store, sweeps: Sequence[str]) -> pd.DataFrame:
    """One row a finished run of these sweeps, in their order.

    Returns:
        sweep, alphabet, pattern, counting, model (its name), model_seed, epochs, num_parameters;
        tested and wrong strings, within and beyond trained lengths; solved_length.
    """
    every = [finished_runs(store, name).assign(sweep=name) for name in sweeps]
    found = pd.concat(every, ignore_index=True)
    found["model"] = [
        name_model(row)
        + (", shifted" if row["position_draw"] == "shifted" else "")
        + (", stops when right" if not row["train_more_steps"] else "")
        + (f", width {row['hidden_size']}" if row["hidden_size"] != FIXED["hidden_size"] else "")
        for row in found.to_dict("records")
    ]
    counts = [f"{name}_{part}" for part in LENGTH_PARTS for name in ("tested", "wrong")]
    named = ["sweep", "alphabet", "pattern", "counting", "model", "model_seed", "epochs"]
    return found[[*named, "num_parameters", *counts, "solved_length"]]


def study_tables(found: pd.DataFrame) -> dict[str, str]:
    """By mark, a Markdown table of each sweep: of the languages of each class the share of seeds
    that learned, and of these the share that generalizes, with 95% intervals over languages.
    """
    models = with_outcomes(found)
    outcomes = models["generalizes"].map({True: "generalizes", False: "fails beyond"})
    models["outcome"] = outcomes.where(models["learned"], "not learned")
    models["language"] = models["alphabet"] + " " + models["pattern"]
    inside = models["counting"].where(models["counting"].isin(("level 0", "outside")), CLASSES[1])
    models["class"] = inside
    return {f"counting: {name}": _table(own) for name, own in models.groupby("sweep", sort=False)}


def _table(models: pd.DataFrame) -> str:
    shares = language_shares(models, ["model", "class"], least=1).set_index(["model", "class"])
    rows = []
    for model in models["model"].unique():
        cells = [
            _cell(shares.loc[(model, name)]) if (model, name) in shares.index else "—"
            for name in CLASSES
        ]
        rows.append([str(model), *cells])
    return markdown([["learned · of these generalize", *CLASSES], *rows])


def _cell(row: "pd.Series[Any]") -> str:
    parts = []
    for part in ("learned", "generalize"):
        if row[f"{part}_languages"]:
            ends = percents(row[f"{part}_low"], row[f"{part}_high"], 0)
            parts.append(f"{percent(row[part], 0)} ({ends}; {row[f'{part}_languages']:.0f})")
        else:
            parts.append("—")
    return " · ".join(parts)


def main(arguments: Sequence[str]) -> None:
    if list(arguments) == ["draw"]:
        write_specifications()
        return
    found = []
    for db in arguments:
        store = open_store(db)
        names = {name for own in runs(store)["sweeps"] for name in own}
        found.append(study_models(store, [x for x in SWEEPS if x in names]))
    if found:
        pd.concat(found, ignore_index=True).to_csv(RESULTS, index=False)
    if RESULTS.exists():
        page = DOCS / "counting.md"
        text = page.read_text(encoding="utf-8")
        tables = study_tables(pd.read_csv(RESULTS, keep_default_na=False))
        page.write_text(put(text, tables), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
