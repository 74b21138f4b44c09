"""Accuracy of shortcut readers, and of models beside them, for the docs.

python -m benchmarks.shortcuts FOLDER [DATABASE]

writes `shortcuts.csv` and its summary, between the marks of `shortcuts.md`, into a folder such
as docs; the table of models where a database with the sweep `equations` is named.
"""

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.tables import name_model, put
from seqcls.config import STRING_PARTS
from seqcls.deciding import decided_by
from seqcls.evaluation import distinct_test_strings
from seqcls.interpretability.mechanisms import FORM
from seqcls.interpretability.wording import percent
from seqcls.kinds import kind_name
from seqcls.problem import Problem, configuration, resolve
from seqcls.shortcuts import read_test
from seqcls.tasks import TASKS
from seqcls.tasks.base import texts
from sweeps.api import causes, config, errors_of_run, open_store, runs
from sweeps.api.strings import are_within
from sweeps.store.database import Store

LONGEST_TRAINED = 20
STRINGS: dict[str, Any] = {
    **{f"{part}_min_length": 1 for part in STRING_PARTS},
    "train_max_length": LONGEST_TRAINED,
    "validation_max_length": LONGEST_TRAINED,
    "test_max_length": 60,
    "train_size": 10_000,
    "test_size": 3_000,
}
SETTINGS: dict[str, dict[str, Any]] = {
    "contains_all": {f"{part}_sampler": "balanced_strings" for part in STRING_PARTS},
    "counting": {"alphabet": "ab", "formula": "a % 2 == 0"},
    "regular": {"alphabet": "ab", "pattern": "(ab)*"},
    "paragraph": {"architecture": "paragraph_reader"},
    "rewrite": {"alphabet": "abc", "pattern": "a(b+)", "replacement": r"\1a"},
}
"""Settings of tasks without defaults, as on their pages."""

_OF_KIND = {
    kind: {
        name: {"task": name, **SETTINGS.get(name, {})}
        for name in TASKS
        if "dataset" not in TASKS[name].reads and kind_name(TASKS[name]) == kind
    }
    for kind in ("membership", "transduction")
}
LANGUAGES, TRANSDUCTIONS = _OF_KIND["membership"], _OF_KIND["transduction"]

AIM = {"within": 0.65, "beyond": 0.60}
"""Greatest accuracy of a linear reader of bigrams on positive strings and near negatives alone,
for a language that it does not decide."""


def problem_of(fields: Mapping[str, Any], negatives: str = "mixed") -> Problem:
    """A task with strings of 1 to 20 tokens in training and of 1 to 60 in the test."""
    drawn = {} if negatives == "mixed" else {"negatives": negatives}
    return resolve(configuration({**STRINGS, **fields, **drawn}))


def outcomes() -> pd.DataFrame:
    """One row a task, way of drawing negatives and reader: accuracy within and beyond trained
    lengths, in [0, 1]; of languages also of positive strings and near negatives alone, which count
    alike.
    """
    rows = []
    for name, fields in {**LANGUAGES, **TRANSDUCTIONS}.items():
        for negatives in ("mixed", "near") if name in LANGUAGES else ("",):
            problem = problem_of(fields, negatives or "mixed")
            rows += _read(name, negatives, problem)
            print(name, negatives, file=sys.stderr, flush=True)
    return pd.DataFrame(rows)


def _read(name: str, negatives: str, problem: Problem) -> list[dict[str, Any]]:
    test = distinct_test_strings(problem.test).test_set
    within = are_within(problem, test.lengths)
    drawn = np.array(test.drawn if test.drawn is not None else [""] * len(test.lengths))
    rows = []
    for own in read_test(problem):
        row: dict[str, Any] = {"task": name, "negatives": negatives, "reader": own.reader}
        row |= {"decided_by": decided_by(problem.task) or ""}
        for part, chosen in (("within", within), ("beyond", ~within)):
            row[part] = row[f"near_{part}"] = None
            if own.right is None or not chosen.any():
                continue
            row[part] = _share(own.right, test.occurrences * chosen)
            alone = [test.occurrences * (chosen & (drawn == way)) for way in ("positive", "near")]
            if all(times.any() for times in alone):
                row[f"near_{part}"] = float(np.mean([_share(own.right, x) for x in alone]))
        rows.append({**row, "reason": own.obstacle or ""})
    return rows


def _share(right: np.ndarray, times: np.ndarray) -> float:
    return float((right * times).sum() / times.sum())


def read_readers(found: pd.DataFrame) -> str:
    """Summary of `outcomes`: a list in Markdown."""
    decided = found[found["decided_by"] != ""].drop_duplicates("task")
    groups = decided.groupby("decided_by", sort=False)["task"]
    by = "; ".join(f"{name}: {', '.join(f'`{x}`' for x in own)}" for name, own in groups)
    best = found.groupby(["task", "negatives", "decided_by"])[["within", "beyond"]].max()
    own = best.reset_index().query("negatives == 'mixed' and decided_by == ''")
    ends = [f"{percent(own[x].min())} to {percent(own[x].max())}" for x in ("within", "beyond")]
    written = best.xs("", level="negatives")["beyond"].sort_values()
    solved = written[written == 1].reset_index()["task"]
    name, most = str(written[written < 1].index[-1][0]), written[written < 1].iloc[-1]
    return (
        f"- **Decided by** {by}.\n"
        f"- **The {len(own)} languages that nothing decides**: with `mixed` negatives, the best "
        f"reader is right on {ends[0]} within and {ends[1]} beyond trained lengths.\n"
        f"- **Transductions**: beyond trained lengths, no reader is right on more than "
        f"{percent(most)} (`{name}`), but on all of {' and '.join(f'`{x}`' for x in solved)}."
    )


def above_aim(found: pd.DataFrame) -> list[str]:
    """Languages that nothing decides, and a reader of pairs knows too well."""
    own = found[(found["negatives"] == "near") & (found["reader"] == "bigrams")]
    own = own[own["decided_by"] == ""]
    high = (own["near_within"] > AIM["within"]) | (own["near_beyond"] > AIM["beyond"])
    return [*own["task"][high]]


EQUATION = re.compile(r"[0-4]([-+*][0-4])*=[0-4]")
WRONG_EQUATION = "of these, equations"


def models(db: str) -> pd.DataFrame:
    """One row a model of the sweep that is tested with near negatives: its accuracy within and
    beyond, the shares of near negatives that it is right on, and whether it answers by form.
    """
    store = open_store(db)
    found = runs(store, "equations")
    found = found[(found["state"] == "done") & (found["test_negatives"] == "near")]
    found = found.sort_values(["config_id", "model_seed"])
    why = causes(store, "equations")
    formal = set(why["run_id"][why["mechanism"] == FORM])
    rows = []
    for run in found.to_dict("records"):
        row = {name: run[name] for name in ("negatives", "model_seed")}
        row = {"model": name_model(run), **row, **_near_strings(store, int(run["id"]))}
        rows.append({**row, "by_form": run["id"] in formal})
    return pd.DataFrame(rows)


def _near_strings(store: Store, run: int) -> dict[str, float]:
    problem = resolve(config(store, run))
    strings = distinct_test_strings(problem.test)
    test = strings.test_set
    assert test.drawn is not None
    wrong = set(errors_of_run(store, run)["string"])
    right = np.array([text not in wrong for text in test.texts])
    near = np.array(test.drawn) == "near"
    looks = [
        EQUATION.fullmatch(x) is not None for x in texts(problem.task.alphabet, strings.strings)
    ]
    equations = near & np.array(looks)[np.argsort(strings.numbers)]
    within, row = are_within(problem, test.lengths), {}
    for part, chosen in (("within", within), ("beyond", ~within)):
        row[part] = _share(right, test.occurrences * chosen)
        for kind, those in (("near", near), (WRONG_EQUATION, equations)):
            times = test.occurrences * (chosen & those)
            row[f"{kind}_{part}"] = _share(right, times) if times.any() else np.nan
    return row


def models_table(found: pd.DataFrame) -> str:
    """A Markdown table: medians over seeds, within / beyond."""
    rows = []
    names = ["model", "negatives"]
    for key, own in found.groupby(names, sort=False):
        median = own.drop(columns=names).median()
        cells = [
            " / ".join("—" if np.isnan(x) else f"{x:.1%}" for x in (median[a], median[b]))
            for a, b in (
                ("within", "beyond"),
                *((f"{kind}_within", f"{kind}_beyond") for kind in ("near", WRONG_EQUATION)),
            )
        ]
        by_form = f"{int(own['by_form'].sum())} of {len(own)}"
        rows.append(f"| {' | '.join([*map(str, key), *cells, by_form])} |")
    head = f"| model | trained with | all | near | {WRONG_EQUATION} | answers by form |"
    return "\n".join([head, "|---" * 6 + "|", *rows])


def main(arguments: Sequence[str]) -> None:
    folder = Path(arguments[0])
    page = folder / "shortcuts.md"
    text = page.read_text(encoding="utf-8")
    if len(arguments) > 1:
        tables = {"models": models_table(models(arguments[1]))}
        page.write_text(put(text, tables), encoding="utf-8")
        return
    found = outcomes().round(4)
    found.to_csv(folder / "shortcuts.csv", index=False)
    page.write_text(put(text, {"readers": read_readers(found)}), encoding="utf-8")
    print("above the aim:", *above_aim(found))


if __name__ == "__main__":
    main(sys.argv[1:])
