"""Two stored configurations compared, and two models on the strings that both are tested on."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import pandas as pd

from seqcls.config import RunConfig
from seqcls.errors import ConfigError, UnknownRunError
from seqcls.imported import PREFIX
from seqcls.problem import differing_starts, obstacle_of, resolve
from seqcls.text import with_nulls
from sweeps.api.comparison_text import QUESTIONS, SHARES
from sweeps.api.naming import names_of, settings_of
from sweeps.api.selecting import checked_threshold, config_named
from sweeps.results import (
    BORDER_SHARES,
    GENERALIZING,
    JUDGED_BEYOND,
    LEARNED_AT,
    Outcome,
    describe_longer,
    of_learned,
    rows_of,
)
from sweeps.statistics.chance import (
    Difference,
    compare_shares,
    compare_values,
    number_of_pairs,
)
from sweeps.statistics.differences import (
    FEWEST_OF_A_MEAN,
    SIDES,
    Outcomes,
    by_length,
    string_differences,
)
from sweeps.statistics.intervals import (
    FEWEST,
)
from sweeps.store.database import Store
from sweeps.store.reads import misclassified, queries
from sweeps.store.reads.misclassified import border_accuracies
from sweeps.store.reads.overview import judge_on, longer_lengths
from sweeps.store.reads.selection import View
from sweeps.store.reads.shortcuts import (
    best_shortcut,
    deciding,
    shortcut_scores,
    shortcut_shares,
)
from sweeps.store.tables import RunState

FEWEST_LEARNED = 2
"""Seeds of each that learned, of fewer of which no accuracy on longer strings is compared."""


@dataclass(frozen=True, eq=False)
class Compared:
    """Two configurations side by side; differences are the first less the second."""

    names: tuple[str, str]
    """As they were asked for."""
    called: tuple[str, str]
    """What the configurations are called beside each other."""
    config_ids: tuple[int, int]
    fields: dict[str, tuple[object, object]]
    """The fields in which they differ, with both values."""
    runs: tuple[int, int]
    """Finished runs of each."""
    unpaired: str | None
    """Why the same seed makes no pair; None where it does."""
    questions: dict[str, Difference]
    """What the seeds say, by those of `QUESTIONS` that can be asked of both: of all finished seeds
    the share that learned and the accuracy on trained lengths; of those that learned the share that
    generalizes and the accuracy on longer strings. Where it is not known of both whether they
    learned, the whole test is asked about."""
    lengths: pd.DataFrame
    """The frame of `sweeps.statistics.differences.by_length`; beyond the trained lengths of a
    configuration, of its seeds that learned."""
    strings: pd.DataFrame | None
    """The frame of `sweeps.statistics.differences.string_differences`; None where their test
    strings are not the same."""
    shortcuts: pd.DataFrame
    """What the best shortcut reader of each test reaches, as `shortcut_shares` gives it, and
    decided_by: what decides its language, so that readers take no shortcut, or None."""
    border: dict[str, tuple[float, float]]
    """Medians over seeds of the accuracies of `BORDER_SHARES`, on longer strings over those that
    learned; none where no test has pairs."""
    longer: range | None = None
    """The lengths of the longer strings that both are asked about, where their own are others:
    `sweeps.store.reads.overview.longer_lengths`."""
    absent: dict[str, str] = field(default_factory=dict)
    """Why others of `QUESTIONS` are not asked, as clauses."""

    def __repr__(self) -> str:
        return f"<Compared {self.names[0]} and {self.names[1]}: {self.verdict()}>"

    @property
    def pairing(self) -> str:
        """Whether seeds are paired, and why, as a sentence."""
        if self.unpaired is None:
            return (
                "Seeds are paired: the same seed starts both from the same weights, and training "
                "strings are drawn by the same seed."
            )
        return f"Seeds are not paired: {self.unpaired}."

    @property
    def longer_strings(self) -> str:
        """Which strings are longer ones, in a sentence; empty where they are those of each."""
        return describe_longer([self.longer])

    def verdict(self, sides: tuple[str, str] = SIDES) -> str:
        """Whether the two differ by more than chance, in one sentence that says in what.

        Args:
            sides: what the two are called.
        """
        asked = {x: y for x, y in self.questions.items() if y.p_value is not None}
        more = [
            f"{QUESTIONS[name]} ({sides[found.interval.value < 0]} has more)"
            for name, found in asked.items()
            if found.is_decided
        ]
        if more:
            return f"More than chance explains: {'; '.join(more)}."
        if asked and all(found.is_nothing for found in asked.values()):
            return "No difference: all that is compared is the same."
        if not any(found.can_decide for found in asked.values()):
            enough = max((found.enough for found in self.questions.values()), default=0)
            few = " and ".join(f"{n}" for n in self.runs)
            return f"Too few seeds to tell: {few}. At least {enough} of each can show a difference."
        wanted = [(x.to_decide, name) for name, x in asked.items() if x.to_decide is not None]
        if not wanted:
            return "Chance alone may explain what differs."
        told = "; ".join(f"{seeds:,} for {QUESTIONS[name]}" for seeds, name in sorted(wanted))
        return (
            "Chance alone may explain what differs. Seeds of each that would decide, if more come "
            f"out as these: about {told}."
        )

    def shortcut_of(self, config_id: int) -> pd.DataFrame:
        """What the best reader of a configuration's test reaches; no row where none was asked."""
        return self.shortcuts[self.shortcuts["config_id"] == config_id].drop(columns="config_id")

    def record(self) -> dict[str, Any]:
        """What programs read of it."""
        return {
            "a": self.names[0],
            "b": self.names[1],
            "configurations": list(self.called),
            "fields": {name: list(values) for name, values in self.fields.items()},
            "runs": list(self.runs),
            "verdict": self.verdict(),
            "pairing": self.pairing,
            "longer_lengths": [self.longer[0], self.longer[-1]] if self.longer else None,
            "longer_strings": self.longer_strings,
            "questions": {name: _record(found) for name, found in self.questions.items()},
            "absent": self.absent,
            "lengths_seeds": "beyond the trained lengths of a configuration, those that learned",
            "lengths_interval": (
                "95% interval of the mean difference over seeds (Student's t of pairs, else "
                f"Welch's, within -1 and 1); null where fewer than {FEWEST_OF_A_MEAN} seeds are "
                "compared"
            ),
            "lengths": rows_of(self.lengths),
            "strings": None if self.strings is None else rows_of(self.strings),
            "border": with_nulls(self.border),
            "shortcuts": [
                next(iter(rows_of(self.shortcut_of(config_id))), None)
                for config_id in self.config_ids
            ],
        }


def _record(found: Difference) -> dict[str, Any]:
    values = asdict(found)
    return {
        **with_nulls({name: x for name, x in values.items() if name not in ("interval", "values")}),
        "values": [None if x != x else x for x in found.values],
        "interval": with_nulls(values["interval"]),
        "is_decided": found.is_decided,
    }


def compare(
    store: Store,
    a: int | str,
    b: int | str,
    *,
    learned_at: float = LEARNED_AT,
    below: float = 1.0,
) -> Compared:
    """Two configurations, seed by seed where seeds agree; differences are the first less the other.

    Args:
        a: a sweep of one configuration, `heads:hidden_size=16`, or a run, as `seqcls compare` does;
            a whole number is a run's id, whatever sweeps are called.
        learned_at: the accuracy on strings of trained lengths from which on a run has learned.
        below: the accuracy below which a run fails, on longer strings or on the whole test.

    Raises:
        UnknownRunError: there is no such configuration, or no run of it is finished.
        ConfigError: a field or a value that there is not.
    """
    view = View(
        below=checked_threshold("below", below),
        learned_at=checked_threshold("learned_at", learned_at),
    )
    names = (str(a), str(b))
    first, second = (
        config_named(store, each)
        if isinstance(each, str)
        else queries.config_id_of(store, queries.find_run(store, str(each)))
        for each in (a, b)
    )
    return compare_configs(store, (first, second), names, view)


def compare_configs(
    store: Store, ids: tuple[int, int], names: tuple[str, str], thresholds: View | None = None
) -> Compared:
    """Compares configurations by their ids, like `compare`.

    Args:
        thresholds: from which accuracies on runs have learned, and fail; else the usual ones.

    Raises:
        UnknownRunError: no run of one is finished.
    """
    view = replace(thresholds or View(), config_ids=ids)
    frame = queries.runs(store, view)
    longer = longer_lengths(store, ids)
    frame = judge_on(store, frame[frame["state"] == RunState.DONE], longer, view.below, "id")
    sides = [frame[frame["config_id"] == config_id] for config_id in ids]
    for name, runs in zip(names, sides, strict=True):
        if runs.empty:
            raise UnknownRunError(f"{name!r}: none of its runs is finished; nothing to compare yet")
    known = queries.configs(store, ids)
    unpaired = why_unpaired(known[ids[0]], known[ids[1]])
    seeds = frame.set_index("id")["model_seed"]
    scores = [_length_scores(store, known[i], runs) for i, runs in zip(ids, sides, strict=True)]
    lengths = [each.assign(model_seed=each["run_id"].map(seeds)) for each in scores]
    same_strings = len(queries.test_set_digests(store, ids)) == 1
    strings = None
    if same_strings:
        # What only one of them has places for, the other was never asked.
        both = set.intersection(*(misclassified.tested_strings(store, each) for each in ids))
        errors = [misclassified.errors_of(store, _ids(runs)) for runs in sides]
        strings = string_differences(*(each[each["string"].isin(both)] for each in errors))
    common = number_of_pairs(*(set(runs["model_seed"]) for runs in sides))
    if unpaired is None and not common:
        unpaired = f"fewer than {FEWEST} seeds are in both, and others in one alone"
    called = names_of(store, ids)
    return Compared(
        names=names,
        called=(called[ids[0]], called[ids[1]]),
        config_ids=ids,
        fields=fields_apart(store, ids),
        runs=(len(sides[0]), len(sides[1])),
        unpaired=unpaired,
        questions=ask(sides, view.below, paired=unpaired is None),
        lengths=by_length(*lengths, paired=unpaired is None),
        strings=strings,
        shortcuts=_shortcuts(store, ids, longer),
        border=border_medians(store, view, "config_id", ids, frame, longer),
        longer=longer,
        absent=why_absent(sides),
    )


def _length_scores(store: Store, config: RunConfig, runs: pd.DataFrame) -> pd.DataFrame:
    """The scores of a configuration's runs by length; of longer strings than it was trained on,
    those of runs that learned.
    """
    scores = queries.length_scores(store, _ids(runs))
    unlearned = runs.loc[runs["outcome"] == Outcome.NOT_LEARNED, "id"]
    if unlearned.empty or obstacle_of(config) is not None:
        return scores
    longer = scores["length"] >= resolve(config).trained_lengths.stop
    return scores[~(longer & scores["run_id"].isin(unlearned))]


def why_unpaired(a: RunConfig, b: RunConfig) -> str | None:
    """Why seeds of two configurations share only their number, as a clause; None where they are
    pairs.
    """
    if a.imported or b.imported:
        return "what a seed determines is not known of models that were trained elsewhere"
    try:
        apart = differing_starts(a, b)
    except ConfigError as error:
        return f"what a seed determines is not known here: {error}"
    if not apart:
        return None
    named = f"{', '.join(apart[:3])}{', …' * (len(apart) > 3)} differ{'s' * (len(apart) == 1)}"
    if apart == ["train_seed"]:
        return f"{named}, so the two are trained on strings of different seeds"
    return f"{named}, so the same seed starts the two from different weights"


def ask(sides: Sequence[pd.DataFrame], below: float, *, paired: bool) -> dict[str, Difference]:
    """Answers those of `QUESTIONS` that can be asked of both.

    Args:
        sides: the finished runs of each.
    """
    first, second = (_outcomes_of(runs, below) for runs in sides)
    asked = ["accuracy", "fails"]
    if first["learned"].seeds and second["learned"].seeds:
        asked = ["learned", "generalizes", "beyond", "within"]
        if not first["generalizes"].seeds and not second["generalizes"].seeds:
            # None has a test string that is longer than those of training, or none learned.
            asked.remove("generalizes")
        if min(len(each["beyond"].seeds) for each in (first, second)) < FEWEST_LEARNED:
            asked.remove("beyond")
    return {
        name: (compare_shares if name in SHARES else compare_values)(
            first[name], second[name], paired=paired
        )
        for name in asked
    }


def _outcomes_of(runs: pd.DataFrame, below: float) -> dict[str, Outcomes]:
    """What `QUESTIONS` ask of each seed, of those that are a measure of it: of longer strings those
    that learned.
    """
    once = runs.drop_duplicates("model_seed")
    outcome, beyond = once["outcome"], once["outcome"].isin(JUDGED_BEYOND)
    columns = {
        "learned": (outcome != Outcome.NOT_LEARNED).where(once["accuracy_within"].notna()),
        "generalizes": outcome.isin(GENERALIZING).where(beyond),
        "beyond": once["accuracy_beyond"].where(beyond),
        "within": once["accuracy_within"],
        "accuracy": once["accuracy"],
        "fails": once["accuracy"] < below,
    }
    frame = once[["model_seed"]].assign(**columns)
    return {name: Outcomes.of(frame[frame[name].notna()], name) for name in columns}


def why_absent(sides: Sequence[pd.DataFrame]) -> dict[str, str]:
    """Why no accuracy on longer strings is compared, though both are tested on some, as a clause.

    Args:
        sides: as `ask` takes them.
    """
    found = [_outcomes_of(runs, 1.0) for runs in sides]
    counts = [(len(each["beyond"].seeds), len(each["learned"].seeds)) for each in found]
    tested = all(runs["accuracy_beyond"].notna().any() for runs in sides)
    if not tested or not all(n for _, n in counts) or min(counts)[0] >= FEWEST_LEARNED:
        return {}
    first, second = (f"{count:,} of {n:,}" for count, n in counts)
    return {
        "beyond": f"not compared, since {first} and {second} seeds learned, and it takes "
        f"{FEWEST_LEARNED} of each"
    }


def _shortcuts(store: Store, ids: tuple[int, int], longer: range | None) -> pd.DataFrame:
    """What the best reader of each test reaches, beyond trained lengths on those of `longer`, and
    what decides its language.
    """
    best = best_shortcut(shortcut_scores(store, ids))
    shares = shortcut_shares(best)
    decided = [deciding(store, ids).get(x) for x in shares["config_id"]]
    shares = shares.assign(decided_by=pd.Series(decided, dtype=object))
    if longer is None:
        return shares
    alike = shortcut_shares(best[best["within"].astype(bool) | best["length"].isin(longer)])
    return shares.assign(beyond=shares["config_id"].map(alike.set_index("config_id")["beyond"]))


def border_medians(
    store: Store,
    view: View,
    by: str,
    ids: tuple[int, int],
    runs: pd.DataFrame,
    longer: range | None,
) -> dict[str, tuple[float, float]]:
    """Medians of accuracies of `BORDER_SHARES` of the first and the second.

    Args:
        runs: id and outcome; of those that have not learned nothing is said of longer strings.
    """
    found = border_accuracies(store, view, longer)
    found = of_learned(found, runs.set_index("id")["outcome"])
    medians = found.groupby(by)[list(BORDER_SHARES)].median().reindex(ids)
    return {
        name: (float(medians[name].iloc[0]), float(medians[name].iloc[1]))
        for name in BORDER_SHARES
        if medians[name].notna().any()
    }


def fields_apart(store: Store, ids: tuple[int, int]) -> dict[str, tuple[object, object]]:
    """The fields that two configurations both read and in which they differ, with both values; and
    all settings of models trained elsewhere, None where one has none.
    """
    known = settings_of(store, ids)
    a, b = (known[config_id] for config_id in ids)
    apart = (x for x in dict.fromkeys([*a, *b]) if a.get(x) != b.get(x))
    return {x: (a.get(x), b.get(x)) for x in apart if (x in a and x in b) or x.startswith(PREFIX)}


def _ids(runs: pd.DataFrame) -> list[int]:
    return [int(run_id) for run_id in runs["id"]]
