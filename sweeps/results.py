"""The results of runs: plain values, their digests, and summaries."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Self, get_args

import numpy as np

from seqcls.config import default_fields
from seqcls.imported import PREFIX
from seqcls.results import Confusion, Evaluation, ProofOutcome, RangeCounts, Verdict
from seqcls.text import canonical_json

if TYPE_CHECKING:
    import pandas as pd


# A versioned hash over a run's results, which reveals a damaged file.
#
# The training process computes it, and every check of the database compares it with what is stored.
# It covers named columns, so a column added later changes no digest.

VERSION = "v2"
OTHER_KINDS = "v3"
"""The version of runs whose answers are no single bit, and so have no confusion."""
VALIDATED = {VERSION: "v4", OTHER_KINDS: "v5"}
"""The versions of runs that are judged by validation strings: their counts follow from nothing else
that is stored, and so are covered, too."""

RESULT_COLUMNS = (
    *("epochs", "best_epoch", "best_validation_loss"),
    *("tn", "fp", "fn", "tp", "solved_length"),
)
"""The columns of `run` that the digest covers; times it does not."""

COLUMNS = {
    "epoch": {"epoch": "<i8", "train_loss": "<f8", "validation_loss": "<f8"},
    "length_score": dict.fromkeys(("length", "tn", "fp", "fn", "tp"), "<i8"),
    "string_error": {"number": "<i8", "logit": "<f8"},
}
"""What it covers of the tables of results, rows sorted by their first column, packed as named."""

_CELLS = ("tn", "fp", "fn", "tp")
_COUNTED = ("tested", "wrong")
"""What takes the place of these, where there are none."""

RANGE_COLUMNS = ("tested_within", "wrong_within", "within_from", "tested_beyond", "wrong_beyond")
"""The columns of `run` that say how a run does on trained and on longer lengths."""

BORDER_SHARES = {
    "random_within": "random, trained lengths",
    "border_within": "border, trained lengths",
    "random_beyond": "random, longer",
    "border_beyond": "border, longer",
}
"""Accuracies on the random strings of a test and on those of its border pairs, in words."""

OF_LONGER = tuple(name for name in BORDER_SHARES if name.endswith("beyond"))
"""Those on longer strings: of several runs, of those that learned."""

BORDER_MEDIANS = {
    name: f"{words}, of those that learned" if name in OF_LONGER else words
    for name, words in BORDER_SHARES.items()
}
"""What medians of these over several runs are, in words."""

OUTPUT_COUNTS = ("right_length_given", "edits", "target_tokens")
"""What is counted at each length of transductions besides."""

Output = tuple[str, int, str]
"""A misclassified string of a transduction: the output as text, where it and the target part,
and the kind of the error.
"""

Columns = Mapping[str, np.ndarray]
"""The columns of one run's rows in a table, by name."""


def run_digest(
    config_key: str,
    model_seed: int,
    run: Mapping[str, Any],
    tables: Mapping[str, Columns],
    checkpoints: Mapping[int, bytes],
    test_set: str,
    outputs: Sequence[Output] | None = None,
) -> str:
    """The digest of one run's results: the version and 64 hexadecimal digits.

    Args:
        run: at least `RESULT_COLUMNS`, and `RANGE_COLUMNS` where it is judged by validation.
        tables: at least `COLUMNS`, rows in ascending order of each table's first column.
        outputs: of a transduction, one for each error; `tables` then have its `OUTPUT_COUNTS`.
    """
    has_cells = all(run[name] is not None for name in _CELLS)
    covered = _hashed_columns(RESULT_COLUMNS, has_cells)
    version = VERSION if has_cells else OTHER_KINDS
    if run.get("within_from") == "validation":
        covered += RANGE_COLUMNS
        version = VALIDATED[version]
    weights = sorted((epoch, _sha256(blob)) for epoch, blob in checkpoints.items())
    head = {
        "config": config_key,
        "model_seed": model_seed,
        "run": {name: run[name] for name in covered},
        "checkpoints": weights,
        "test_set": test_set,
    }
    hasher = hashlib.sha256(canonical_json(head).encode())
    for table, columns in COLUMNS.items():
        for name in _hashed_columns(columns, has_cells):
            hasher.update(_pack(table, name, tables[table][name], columns.get(name, "<i8")))
    if outputs is not None:
        for name in OUTPUT_COUNTS:
            hasher.update(_pack("length_score", name, tables["length_score"][name], "<i8"))
        hasher.update(f"output_pack {canonical_json(outputs)}\n".encode())
    return f"{version}:{hasher.hexdigest()}"


def _pack(table: str, name: str, values: np.ndarray, kind: str) -> bytes:
    """A column of a table, with its name and length."""
    # Adding zero makes -0.0 what it equals: databases do not keep its sign.
    return f"{table}.{name} {len(values)}\n".encode() + (values.astype(kind) + 0).tobytes()


def _hashed_columns(columns: Iterable[str], has_cells: bool) -> list[str]:
    """Columns, those of the confusion only where there is one."""
    if has_cells:
        return list(columns)
    kept = [name for name in columns if name not in _CELLS]
    return [*kept, *_COUNTED] if len(kept) < len(list(columns)) else kept


def verdict_digest(config_key: str, model_seed: int, verdict: Verdict) -> str:
    """The digest of an exhaustive check's result."""
    content = {"config": config_key, "model_seed": model_seed, "verdict": asdict(verdict)}
    return f"{VERSION}:{_sha256(canonical_json(content).encode())}"


class ProofResult(StrEnum):
    """What came of trying to prove a run right on every string."""

    PROVED, REFUTED, NOT_DECIDED = get_args(ProofOutcome)


@dataclass(frozen=True)
class ProofRecord:
    """Whether a run's model answers as an automaton on every string, as it is stored."""

    of_language: int
    """1 where the automaton is the language's own, 0 where it was learned of the model."""
    result: str
    """One of `ProofResult`."""
    states: int
    regions: int
    seconds: float
    string: str | None
    said: int | None
    details: str
    weights: str
    version: str
    certificate: bytes | None

    def digest(self, config_key: str, model_seed: int) -> str:
        """The digest of all this, as it is said of a run."""
        content: dict[str, Any] = {"config": config_key, "model_seed": model_seed}
        made = None if self.certificate is None else _sha256(self.certificate)
        content["proof"] = {**asdict(self), "certificate": made}
        return f"{VERSION}:{_sha256(canonical_json(content).encode())}"


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


# The results of one run, as a worker process returns them.


@dataclass(frozen=True)
class RunResult:
    """The results of one run, or the reason why there are none."""

    train_losses: list[float]
    validation_losses: list[float]
    train_seconds: float
    engine: str
    engine_reason: str = ""
    failure: str | None = None
    best_epoch: int | None = None
    evaluation: Evaluation | None = None
    verdict: Verdict | None = None
    checkpoints: dict[int, bytes] = field(default_factory=dict)
    """Weights by epoch, as safetensors bytes."""
    digest: str | None = None
    """The digest of the results; see `seal`."""

    def summary(self) -> dict[str, Any]:
        """The results in the run's own row."""
        assert self.evaluation is not None
        best = self.best_epoch
        return {
            # Of a model trained elsewhere there may be weights and no losses.
            "epochs": len(self.train_losses) or None,
            "best_epoch": best,
            "best_validation_loss": (
                self.validation_losses[best - 1] if best and self.validation_losses else None
            ),
            "solved_length": self.evaluation.solved_length,
            **self._confusion(),
            "tested": self.evaluation.tested,
            "wrong": self.evaluation.wrong,
            **range_values(self.evaluation.ranges),
        }

    def _confusion(self) -> dict[str, int | None]:
        assert self.evaluation is not None
        if not self.evaluation.has_confusion:
            return dict.fromkeys(Confusion._fields)
        return self.evaluation.confusion._asdict()

    def tables(self) -> Mapping[str, Columns]:
        """The rows of results, by table and column."""
        assert self.evaluation is not None
        evaluation = self.evaluation
        none = np.full(len(evaluation.lengths), None)
        cells = dict.fromkeys(Confusion._fields, none)
        if evaluation.cells is not None:
            cells = dict(zip(Confusion._fields, evaluation.cells.T, strict=True))
        counts = dict.fromkeys(OUTPUT_COUNTS, none)
        if evaluation.outputs is not None:
            counts = {name: getattr(evaluation.outputs, name) for name in OUTPUT_COUNTS}
        return {
            "epoch": {
                "epoch": np.arange(1, len(self.train_losses) + 1),
                "train_loss": np.array(self.train_losses, dtype=np.float64),
                "validation_loss": np.array(self.validation_losses, dtype=np.float64),
            },
            "length_score": {
                "length": evaluation.lengths,
                **cells,
                "tested": evaluation.tested_by_length,
                "wrong": evaluation.wrong_by_length,
                **counts,
            },
            "string_error": {
                "number": evaluation.errors.numbers,
                "logit": evaluation.errors.logits,
            },
        }

    def outputs(self) -> list[Output] | None:
        """What a transduction gave for each misclassified string; None of other kinds."""
        assert self.evaluation is not None
        if (outputs := self.evaluation.outputs) is None:
            return None
        places = outputs.first_wrong.tolist()
        return list(zip(outputs.texts, places, outputs.error_kinds, strict=True))

    def seal(self, config_key: str, model_seed: int) -> Self:
        """The same with the digest of its results, by which what is stored of them is checked."""
        if self.evaluation is None:
            return self
        digest = run_digest(
            config_key,
            model_seed,
            self.summary(),
            self.tables(),
            self.checkpoints,
            self.evaluation.test_set,
            self.outputs(),
        )
        return replace(self, digest=digest)


def range_values(ranges: RangeCounts | None) -> dict[str, Any]:
    """Counts on trained and longer lengths as `RANGE_COLUMNS` of a run; all None without them."""
    return dict.fromkeys(RANGE_COLUMNS) if ranges is None else asdict(ranges)


# Whether a run has learned, and whether it generalizes.


class Outcome(StrEnum):
    """What a tested run has come to, first on trained lengths and only then on longer ones.

    `sweeps.store.reads.selection.outcome` tells which, from counts and two thresholds.
    """

    AT_EVERY_LENGTH = "at every length"
    """Proved right on every string, whatever was tested: more than to generalize."""
    GENERALIZES = "generalizes"
    FAILS_BEYOND = "fails beyond"
    NOT_LEARNED = "not learned"
    NOT_KNOWN = "not known"


GENERALIZING = (Outcome.AT_EVERY_LENGTH, Outcome.GENERALIZES)
"""What it means that a run generalizes: by a proof, or by its test."""

JUDGED_BEYOND = (*GENERALIZING, Outcome.FAILS_BEYOND)
"""Outcomes that say whether a run generalizes."""

LEARNED_AT = 0.99
"""The accuracy on strings of trained lengths from which on a run has learned."""


def why_not_known(tested_within: int | None, *, knows_trained_lengths: bool) -> str:
    """Why it is not known what a tested run has come to, as a clause.

    Args:
        tested_within: strings of trained lengths that it is judged by; None where it is not judged.
    """
    if not knows_trained_lengths:
        return "it was trained elsewhere, so its trained lengths are not known here"
    if tested_within is None:
        return "its test holds too few strings of trained lengths, and validation was not asked"
    if not tested_within:
        return "neither test nor validation holds a string of trained lengths"
    return "its test holds no string longer than those of training"


def describe_longer(lengths: Iterable[range | None]) -> str:
    """On which lengths models that were trained on others are compared; empty where on their own.

    Args:
        lengths: of the longer strings, in one language or in several: as `longer_lengths` in
            `sweeps.store.reads.overview` gives them.
    """
    known = [each for each in lengths if each is not None]
    named = dict.fromkeys(
        f"lengths {x[0]} to {x[-1]}" if len(x) > 1 else f"length {x[0]}" for x in known if x
    )
    if named:
        where = " or ".join(named)
        return (
            f"Trained or tested on different lengths: longer strings are those of {where}, which "
            "none was trained on and all are tested on."
        )
    if known:
        return (
            "Trained or tested on different lengths: all are tested on none that is longer than "
            "those of every training, so nothing is compared on longer strings."
        )
    return ""


@dataclass(frozen=True)
class OutcomeCounts:
    """How many models learned, and how many of those generalize."""

    models: int
    """That are tested."""
    judged: int
    """Those of them of which it is known whether they learned."""
    learned: int
    judged_beyond: int
    """Those that learned and are tested on longer strings."""
    generalize: int

    @classmethod
    def of(cls, configurations: "pd.DataFrame") -> Self:
        """The sums over configurations.

        Args:
            configurations: seeds, judged, learned, judged_beyond and generalize of each.
        """
        names = ("seeds", "judged", "learned", "judged_beyond", "generalize")
        return cls(*(int(configurations[name].sum()) for name in names))

    def without(self, others: Self) -> Self:
        """The counts of the models that are not among these others."""
        pairs = zip(astuple(self), astuple(others), strict=True)
        return type(self)(*(count - left_out for count, left_out in pairs))


def describe_counts(counts: OutcomeCounts, which: str = " models") -> str:
    """How many learned and generalize, as a clause: `3 of 5 models learned; of these 2 generalize`.

    Args:
        which: what they are, after their number; nothing where that is clear.
    """
    if not counts.models:
        return "no model is tested"
    if counts.models == 1:
        return _describe_one(counts)
    if not counts.judged:
        return f"whether {counts.models:,}{which} learned is not known"
    which = which.removesuffix("s") if counts.judged == 1 else which
    said = f"{counts.learned:,} of {counts.judged:,}{which} learned"
    if not counts.learned:
        return said
    if not counts.judged_beyond:
        return f"{said}; whether they generalize is not known"
    return f"{said}; {of_these(counts, 'beyond')}"


def _describe_one(counts: OutcomeCounts) -> str:
    if not counts.judged:
        return "whether the only model learned is not known"
    if not counts.learned:
        return "the only model has not learned"
    if not counts.judged_beyond:
        return "the only model learned; whether it generalizes is not known"
    return f"the only model learned and {'generalizes' if counts.generalize else 'fails beyond'}"


def of_these(counts: OutcomeCounts, tested: str) -> str:
    """How many of those that learned generalize, as a clause.

    Args:
        tested: where those are that it is known of, such as `beyond`.
    """
    generalize = "generalizes" if counts.generalize == 1 else "generalize"
    if counts.learned == 1 == counts.judged_beyond:
        return "it generalizes" if counts.generalize else "it does not generalize"
    if counts.judged_beyond == counts.learned:
        return f"of these {counts.generalize:,} {generalize}"
    of = f"the {counts.judged_beyond:,} that are tested {tested}"
    return f"{counts.generalize:,} of {of} {generalize}"


# What frames of runs say beyond their columns. Pure functions; no database.


def of_learned(shares: "pd.DataFrame", outcomes: "pd.Series[Any]") -> "pd.DataFrame":
    """Accuracies of `BORDER_SHARES`, those on longer strings missing of runs that have not learned.

    Args:
        shares: run_id and the columns of `BORDER_SHARES`.
        outcomes: what runs have come to, by their ids.
    """
    unlearned = shares["run_id"].map(outcomes) == Outcome.NOT_LEARNED
    return shares.assign(**{name: shares[name].mask(unlearned) for name in OF_LONGER})


def accuracy(counts: "pd.DataFrame") -> "pd.Series[float]":
    """The share of strings classified rightly, in [0, 1]; missing where there are none."""
    return (counts["tested"] - counts["wrong"]).astype("Float64") / counts["tested"]


EXACT = 2**53
"""Up to here every whole number is a float."""


def exact_type(values: Iterable[Any]) -> str:
    """The type of a column that holds these values, each as it is; `object` where none does.

    Args:
        values: as JSON has them; None and NaN are missing.
    """
    known = [value for value in values if value is not None and value == value]
    match {type(value) for value in known}:
        case types if types == {bool}:
            return "boolean"
        case types if types == {str}:
            return "string"
        case types if types == {int} and all(-(2**63) <= value < 2**63 for value in known):
            return "Int64"
        case types if types == {float}:
            return "Float64"
        case types if types == {int, float}:
            whole = (value for value in known if isinstance(value, int))
            return "Float64" if all(abs(value) <= EXACT for value in whole) else "object"
    return "object"


def solved_or_none(solved: "pd.Series[Any]", shortest: "pd.Series[Any]") -> "pd.Series[Any]":
    """Solved lengths, missing where no string of so few tokens was tested.

    That is so of runs that get one of their shortest test strings wrong: nothing is solved.

    Args:
        solved: as stored, the greatest length up to which a run got no test string wrong.
        shortest: the length of the shortest string that each run was tested on.
    """
    return solved.where(solved >= shortest)


def setting_names(table: "pd.DataFrame") -> list[str]:
    """The columns that are fields of the configuration, or settings of models trained elsewhere."""
    foreign = [str(name) for name in table if str(name).startswith(PREFIX)]
    return [*(str(name) for name in default_fields() if name in table), *foreign]


def differing_fields(runs: "pd.DataFrame") -> list[str]:
    """The fields of the configuration that are not the same in all rows of a frame of runs."""
    foreign = [str(name) for name in runs if str(name).startswith(PREFIX)]
    ours = [name for name in default_fields() if name != "imported"]
    return [
        *(name for name in ours if runs[name].nunique() > 1),
        *(name for name in foreign if runs[name].nunique(dropna=False) > 1),
    ]


def rows_of(frame: "pd.DataFrame") -> list[dict[Any, Any]]:
    """A frame's rows as JSON has them: what is missing is null."""
    return frame.astype(object).where(frame.notna(), None).to_dict("records")
