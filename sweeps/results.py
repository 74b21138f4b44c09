"""The results of runs: plain values, their digests, and summaries."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Self, get_args, get_type_hints

from seqcls.config import default_fields
from seqcls.imported import PREFIX
from seqcls.results import Cause, Confusion, Evaluation, ProofOutcome, Verdict
from seqcls.text import canonical_json
from sweeps.records import errors_text, lengths_text, rows_text

if TYPE_CHECKING:
    import pandas as pd


# A hash over a run's results, which reveals a damaged file.
#
# The training process computes it, and every check of the database compares it with stored values.
# It covers named columns, so a column added later changes no digest.

RANGE_COLUMNS = ("tested_within", "wrong_within", "within_from", "tested_beyond", "wrong_beyond")
"""The columns of `run` with its counts on trained and on longer lengths."""

SUMMARY = (
    *("epochs", "best_epoch", "best_validation_loss", "tn", "fp", "fn", "tp"),
    *("tested", "wrong", "solved_length", *RANGE_COLUMNS),
)
"""The columns of `run` with numbers from training and testing."""

RECORDS = ("lengths", "losses", "errors")
"""The columns of `run` with its full results as JSON."""

BORDER_SHARES = {
    "random_within": "random, trained lengths",
    "border_within": "border, trained lengths",
    "random_beyond": "random, longer",
    "border_beyond": "border, longer",
}
"""Accuracies on the random strings of a test and on those of its border pairs, in words."""

OF_LONGER = tuple(name for name in BORDER_SHARES if name.endswith("beyond"))
"""Those on longer strings, which are summarized over runs that learned alone."""

BORDER_MEDIANS = {
    name: f"{words}, of those that learned" if name in OF_LONGER else words
    for name, words in BORDER_SHARES.items()
}
"""Medians of these over several runs, in words."""


def run_digest(
    config_key: str,
    model_seed: int,
    values: Mapping[str, Any],
    checkpoints: Mapping[int, bytes],
    test_set: str,
) -> str:
    """The SHA-256 of one run's results, as 64 hexadecimal digits.

    Args:
        values: at least `SUMMARY`, and `RECORDS` as stored texts.
        checkpoints: its weights by epoch.
        test_set: the digest of the strings that it was tested on.
    """
    content = {"config": config_key, "model_seed": model_seed, "test_set": test_set}
    run = {name: values[name] for name in (*SUMMARY, *RECORDS)}
    # Weights enter by their own hashes: JSON holds no bytes.
    weights = sorted((epoch, _sha256(blob)) for epoch, blob in checkpoints.items())
    return _sha256(canonical_json({**content, "run": run, "checkpoints": weights}).encode())


class ProofResult(StrEnum):
    """The result of an attempt to prove a run right on every string."""

    PROVED, REFUTED, NOT_DECIDED = get_args(ProofOutcome)


@dataclass(frozen=True)
class ProofRecord:
    """A proof that a run's model agrees with an automaton on every string, or an attempt at it."""

    of_language: int
    """1 if the automaton is the language's own, 0 if it was learned from the model."""
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


FINDINGS: dict[str, dict[str, Any]] = {
    "verdict": get_type_hints(Verdict),
    # Its automaton is stored as its number, and its certificate beside its fields.
    "proof": {
        name: hint
        for name, hint in get_type_hints(ProofRecord).items()
        if name not in ("of_language", "certificate")
    },
    "cause": get_type_hints(Cause),
    "perturbation": get_type_hints(Confusion),
    "failure": {"at": str, "reason": str},
}
"""The fields of findings about runs, with their types, by kind."""


def finding_digest(
    config_key: str,
    model_seed: int,
    kind: str,
    number: int,
    text: str,
    certificate: bytes | None = None,
) -> str:
    """The digest of a finding about a run.

    Args:
        text: its fields, as stored JSON.
    """
    content = {"config": config_key, "model_seed": model_seed, "number": number, kind: text}
    content["certificate"] = None if certificate is None else _sha256(certificate)
    return _sha256(canonical_json(content).encode())


def shortcut_digest(test_set: str, row: Mapping[str, Any]) -> str:
    """The digest of a shortcut reader's answers to a test set.

    Args:
        test_set: the digest of its strings.
        row: the columns of `shortcut`.
    """
    content = {name: row[name] for name in ("training", "reader", "lengths", "reason")}
    content["correct"] = None if row["correct"] is None else _sha256(row["correct"])
    return _sha256(canonical_json({**content, "test_set": test_set}).encode())


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


# The results of one run, as a worker process returns them.


@dataclass(frozen=True)
class RunResult:
    """The results of one run, or the reason of its failure."""

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
        """The values of `SUMMARY`."""
        assert self.evaluation is not None
        best = self.best_epoch
        return {
            # A model trained elsewhere may have weights without losses.
            "epochs": len(self.train_losses) or None,
            "best_epoch": best,
            "best_validation_loss": (
                self.validation_losses[best - 1] if best and self.validation_losses else None
            ),
            "solved_length": self.evaluation.solved_length,
            # None for tasks that are no languages.
            **dict.fromkeys(Confusion._fields),
            **(self.evaluation.confusion._asdict() if self.evaluation.cells is not None else {}),
            "tested": self.evaluation.tested,
            "wrong": self.evaluation.wrong,
            **dict.fromkeys(RANGE_COLUMNS),
            **(asdict(ranges) if (ranges := self.evaluation.ranges) else {}),
        }

    def records(self) -> dict[str, str]:
        """The full results as JSON, by column of `RECORDS`."""
        assert self.evaluation is not None
        losses = zip(self.train_losses, self.validation_losses, strict=True)
        return {
            "lengths": lengths_text(self.evaluation),
            "losses": rows_text((epoch, *both) for epoch, both in enumerate(losses, 1)),
            "errors": errors_text(self.evaluation),
        }

    def seal(self, config_key: str, model_seed: int) -> Self:
        """The same with the digest of its results, by which stored ones are checked."""
        if self.evaluation is None:
            return self
        values = {**self.summary(), **self.records()}
        digest = run_digest(
            config_key, model_seed, values, self.checkpoints, self.evaluation.test_set
        )
        return replace(self, digest=digest)


# Outcomes: learning first, then generalization.


class Outcome(StrEnum):
    """The outcome of a tested run, decided on trained lengths first and only then on longer ones.

    `sweeps.store.reads.frames` computes it from accuracies and two thresholds.
    """

    AT_EVERY_LENGTH = "at every length"
    """Proved right on every string, whatever was tested: more than to generalize."""
    GENERALIZES = "generalizes"
    FAILS_BEYOND = "fails beyond"
    NOT_LEARNED = "not learned"
    NOT_KNOWN = "not known"


GENERALIZING = (Outcome.AT_EVERY_LENGTH, Outcome.GENERALIZES)
"""Outcomes of runs that generalize, by a proof or by their test."""

JUDGED_BEYOND = (*GENERALIZING, Outcome.FAILS_BEYOND)
"""Outcomes with a decision on generalization."""

LEARNED_AT = 0.99
"""The accuracy on strings of trained lengths from which on a run has learned."""


NONE_LONGER = "no test string is longer than those of training"


def why_not_known(tested_within: int | None, *, knows_trained_lengths: bool) -> str:
    """A clause on why the outcome of a tested run is not known.

    Args:
        tested_within: the number of strings of trained lengths by which it is judged; None if it is
            not judged.
    """
    if not knows_trained_lengths:
        return "it was trained elsewhere, so its trained lengths are not known here"
    if tested_within is None:
        return "its test holds too few strings of trained lengths, and validation was not asked"
    if not tested_within:
        return "neither test nor validation holds a string of trained lengths"
    return NONE_LONGER


def describe_longer(lengths: Iterable[range | None]) -> str:
    """A sentence on the lengths on which models of different trained lengths are compared.

    Args:
        lengths: results of `sweeps.store.reads.overview.longer_lengths`, one for each language.

    Returns:
        An empty text if all are compared on their own lengths.
    """
    known = [longer for longer in lengths if longer is not None]
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
    """Numbers of models that learned, and of those that generalize."""

    models: int
    """Number of tested models; in a sweep with `until`, of all its models."""
    judged: int = 0
    """Number of models of which it is known whether they learned."""
    learned: int = 0
    judged_beyond: int = 0
    """Number of models that learned and are tested on longer strings."""
    generalize: int = 0

    @classmethod
    def from_configurations(cls, configurations: "pd.DataFrame") -> Self:
        """The sums over configurations.

        Args:
            configurations: seeds, judged, learned, judged_beyond and generalize of each.
        """
        names = ("seeds", "judged", "learned", "judged_beyond", "generalize")
        return cls(*(int(configurations[name].sum()) for name in names))


def describe_counts(counts: OutcomeCounts, which: str = " models") -> str:
    """A clause such as `3 of 5 models learned; of these 2 generalize`.

    Args:
        which: the noun after the number, with a blank before it; empty if it is clear.
    """
    if not counts.models:
        return "no model is tested"
    if counts.models == 1:
        return _describe_one(counts)
    if not counts.judged:
        return f"whether {counts.models:,}{which} learned is not known"
    which = which.removesuffix("s") if counts.judged == 1 else which
    clause = f"{counts.learned:,} of {counts.judged:,}{which} learned"
    if not counts.learned:
        return clause
    if not counts.judged_beyond:
        return f"{clause}; whether they generalize is not known: {NONE_LONGER}"
    return f"{clause}; {of_these(counts, 'beyond')}"


def _describe_one(counts: OutcomeCounts) -> str:
    if not counts.judged:
        return "whether the only model learned is not known"
    if not counts.learned:
        return "the only model has not learned"
    if not counts.judged_beyond:
        return f"the only model learned; whether it generalizes is not known: {NONE_LONGER}"
    return f"the only model learned and {'generalizes' if counts.generalize else 'fails beyond'}"


def of_these(counts: OutcomeCounts, tested: str) -> str:
    """A clause on the number of models that generalize of those that learned.

    Args:
        tested: the range of lengths on which they are tested, such as `beyond`.
    """
    generalize = "generalizes" if counts.generalize == 1 else "generalize"
    if counts.learned == 1 == counts.judged_beyond:
        return "it generalizes" if counts.generalize else "it does not generalize"
    if counts.judged_beyond == counts.learned:
        return f"of these {counts.generalize:,} {generalize}"
    whole = f"the {counts.judged_beyond:,} that are tested {tested}"
    return f"{counts.generalize:,} of {whole} {generalize}"


# Functions of frames of runs, without a database.


def of_learned(shares: "pd.DataFrame", outcomes: "pd.Series[Any]") -> "pd.DataFrame":
    """Accuracies of `BORDER_SHARES`, with missing ones on longer strings for runs not learned.

    Args:
        shares: run_id and the columns of `BORDER_SHARES`.
        outcomes: outcomes of runs, by id.
    """
    unlearned = shares["run_id"].map(outcomes) == Outcome.NOT_LEARNED
    return shares.assign(**{name: shares[name].mask(unlearned) for name in OF_LONGER})


def accuracy(counts: "pd.DataFrame") -> "pd.Series[float]":
    """The share of correctly classified strings, in [0, 1]; missing without strings."""
    return (counts["tested"] - counts["wrong"]).astype("Float64") / counts["tested"]


EXACT = 2**53
"""The bound up to which every whole number is representable as a float."""


NULLABLE = {bool: "boolean", int: "Int64", float: "Float64", str: "string"}
"""Pandas' types of columns in which values may be missing."""


def exact_type(values: Iterable[Any]) -> str:
    """The pandas type of a column that holds these values exactly; `object` if none does.

    Args:
        values: JSON scalars; None and NaN are missing.
    """
    # NaN does not equal itself.
    known = [value for value in values if value is not None and value == value]
    types = {type(value) for value in known}
    whole = [value for value in known if type(value) is int]
    if types == {int, float}:
        return "Float64" if all(abs(value) <= EXACT for value in whole) else "object"
    # Larger whole numbers fit no column of 64 bits.
    if len(types) != 1 or not all(-(2**63) <= value < 2**63 for value in whole):
        return "object"
    return NULLABLE.get(types.pop(), "object")


def solved_or_none(solved: "pd.Series[Any]", shortest: "pd.Series[Any]") -> "pd.Series[Any]":
    """Solved lengths, missing where a run gets one of its shortest test strings wrong.

    Args:
        solved: the stored greatest length up to which a run got no test string wrong.
        shortest: the length of the shortest string that each run was tested on.
    """
    return solved.where(solved >= shortest)


def differing_fields(runs: "pd.DataFrame") -> list[str]:
    """The fields of the configuration that are not the same in all rows of a frame of runs."""
    foreign = [str(name) for name in runs if str(name).startswith(PREFIX)]
    ours = [name for name in default_fields() if name != "imported"]
    return [
        *(name for name in ours if runs[name].nunique() > 1),
        # A setting that only some models have differs, too.
        *(name for name in foreign if runs[name].nunique(dropna=False) > 1),
    ]


def rows_of(frame: "pd.DataFrame") -> list[dict[Any, Any]]:
    """A frame's rows as JSON objects, with null for missing values."""
    return frame.astype(object).where(frame.notna(), None).to_dict("records")
