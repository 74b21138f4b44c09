"""Comparisons of two stored configurations or models: by seed, by length and by test string."""

from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple

import pandas as pd

from seqcls.config import RunConfig
from seqcls.errors import UnknownRunError
from seqcls.imported import PREFIX
from seqcls.interpretability.wording import percent
from seqcls.problem import obstacle_of, resolve
from seqcls.shortcuts import READERS
from seqcls.text import with_nulls
from sweeps.api.presentation import display_strings, words_of
from sweeps.api.questions import (
    FEWEST_LEARNED,
    QUESTIONS,
    ask,
    outcomes_of,
    selection_text,
    sentence_of,
    why_unpaired,
)
from sweeps.api.selecting import config_named, selection_of
from sweeps.results import (
    BORDER_MEDIANS,
    BORDER_SHARES,
    LEARNED_AT,
    Outcome,
    describe_longer,
    of_learned,
    rows_of,
)
from sweeps.statistics.chance import Difference, compare_shares, number_of_pairs
from sweeps.statistics.differences import (
    FEWEST_OF_A_MEAN,
    SIDES,
    by_length,
    string_differences,
    values_of,
)
from sweeps.statistics.intervals import FEWEST, ConfidenceInterval, selection_effect
from sweeps.store.database import Store
from sweeps.store.reads import frames, misclassified, queries
from sweeps.store.reads.misclassified import border_accuracies
from sweeps.store.reads.overview import judge_on, longer_lengths, settings_of
from sweeps.store.reads.queries import configs as configs
from sweeps.store.reads.selection import Selection
from sweeps.store.shortcuts import best_shortcut, deciding, shortcut_scores, shortcut_shares

NAMED_STRINGS = 10
"""Number of strings in a description; the record has all of them."""


@dataclass(frozen=True, eq=False)
class Compared:
    """Two configurations side by side; differences are the first less the second."""

    names: tuple[str, str]
    """References to the configurations, as the caller wrote them."""
    called: tuple[str, str]
    """Names of the configurations."""
    config_ids: tuple[int, int]
    fields: dict[str, tuple[object, object]]
    """The fields in which they differ, with both values."""
    runs: tuple[int, int]
    """Finished runs of each."""
    unpaired: str | None
    """The reason why the same seed makes no pair; None where it does."""
    questions: dict[str, Difference]
    """Differences, by those of `QUESTIONS` with an answer for both: of all finished seeds the share
    that learned and the accuracy on trained lengths; of those that learned the share that
    generalizes and the accuracy on longer strings. On the whole test where it is not known of both
    whether they learned."""
    lengths: pd.DataFrame
    """The frame of `sweeps.statistics.differences.by_length`; beyond the trained lengths of a
    configuration, of its seeds that learned."""
    strings: pd.DataFrame | None
    """The frame of `sweeps.statistics.differences.string_differences`; None where their test
    strings are not the same."""
    shortcuts: pd.DataFrame
    """Accuracies of the best shortcut reader of each test, as in `shortcut_shares`, and decided_by:
    the property that decides its language, so that readers take no shortcut, or None."""
    border: dict[str, tuple[float, float]]
    """Medians over seeds of the accuracies of `BORDER_SHARES`, on longer strings over those that
    learned; none where no test has pairs."""
    longer: range | None = None
    """The common lengths of the longer strings, where those of the two differ:
    `sweeps.store.reads.overview.longer_lengths`."""
    selection: tuple[tuple[int, ConfidenceInterval] | None, ...] = ()
    """The number of seeds of each that learned, and the excess of the best over their mean accuracy
    on longer strings; None where fewer than two learned."""
    absent: dict[str, str] = field(default_factory=dict)
    """The reasons why others of `QUESTIONS` have no answer, as clauses."""

    def __repr__(self) -> str:
        return f"<Compared {self.names[0]} and {self.names[1]}: {self.verdict()}>"

    @property
    def pairing(self) -> str:
        """A sentence about whether seeds are paired, and why."""
        if self.unpaired is not None:
            return f"Seeds are not paired: {self.unpaired}."
        return (
            "Seeds are paired: the same seed starts both from the same weights, and training "
            "strings are drawn by the same seed."
        )

    @property
    def longer_strings(self) -> str:
        """A sentence about the common longer strings; empty where each has its usual ones."""
        return describe_longer([self.longer])

    def verdict(self, sides: tuple[str, str] = SIDES) -> str:
        """Returns a sentence about whether, and in what, the two differ by more than chance.

        Args:
            sides: the names of the two in the sentence.
        """
        tested = {x: y for x, y in self.questions.items() if y.p_value is not None}
        more = [
            f"{QUESTIONS[name]} ({sides[found.interval.value < 0]} has more)"
            for name, found in tested.items()
            if found.is_decided
        ]
        if more:
            return f"Significant differences: {'; '.join(more)}."
        if tested and all(found.is_nothing for found in tested.values()):
            return "No difference: all that is compared is the same."
        if any(found.can_decide for found in tested.values()):
            return "Chance alone may explain what differs."
        enough = max(found.enough for found in self.questions.values())
        few = " and ".join(map(str, self.runs))
        return f"Too few seeds to tell: {few}. At least {enough} of each can show a difference."

    def record(self) -> dict[str, Any]:
        """Returns the comparison as JSON data."""
        bests = [self.shortcuts[self.shortcuts["config_id"] == x] for x in self.config_ids]
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
            "questions": {
                name: with_nulls(asdict(found)) | {"is_decided": found.is_decided}
                for name, found in self.questions.items()
            },
            "absent": self.absent,
            "selection_effect": [
                found and with_nulls({"seeds": found[0], **asdict(found[1])})
                for found in self.selection
            ],
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
                next(iter(rows_of(best.drop(columns="config_id"))), None) for best in bests
            ],
        }

    def describe(self, *configs: RunConfig) -> list[str]:
        """Describes the differences in a few lines.

        Args:
            configs: both configurations, which determine the notation and the words for errors.
        """
        words, sides = words_of(*configs), zip(SIDES, self.called, self.names, strict=True)
        lines = [f"{side}: {called} ({reference})" for side, called, reference in sides]
        for name, values in self.fields.items():
            a, b = ("not set" if value is None else value for value in values)
            lines.append(f"{name}: {a} in a, {b} in b")
        lines += [self.verdict(), self.pairing, *filter(None, [self.longer_strings])]
        lines += [sentence_of(name, found) for name, found in self.questions.items()]
        lines += [f"{QUESTIONS[name]}: {why}" for name, why in self.absent.items()]
        if "learned" not in self.questions:
            lines.append("whether they learned is not known of both, so the whole test is compared")
        for side, found in zip(SIDES, self.selection, strict=False):
            if found is not None and found[1].value > 0:
                lines.append(f"{side}: {selection_text(*found)}")
        for name, shares in self.border.items():
            medians = " and ".join("none" if x != x else percent(x) for x in shares)
            lines.append(f"median accuracy, {BORDER_MEDIANS[name]}: {medians}")
        lines += self._describe_shortcuts()
        if self.strings is None:
            return [*lines, "tested on different strings, so no string is compared"]
        strings = f"{len(self.strings):,} {words.plural('test')}"
        lines.append(f"{strings} are {words.missed} by more runs of one than of the other")
        for row in display_strings(self.strings.head(NAMED_STRINGS), *configs).to_dict("records"):
            string, wrong = row["string"] or "the empty string", f"{row['wrong_a']} of a"
            lines.append(f"  {string}: by {wrong}, {row['wrong_b']} of b")
        return lines

    def _describe_shortcuts(self) -> list[str]:
        """Describes the accuracy of the best shortcut reader on the test of each side."""
        by_side = {}
        for best in self.shortcuts.to_dict("records"):
            shares = [f"{percent(best[x])} {x}" for x in ("within", "beyond") if pd.notna(best[x])]
            reader = READERS.get(best["reader"], best["reader"])
            text = f"{reader}; accuracy {' and '.join(shares)} trained lengths"
            if best["decided_by"] is not None:
                text += f"; no shortcut, as the task is decided by {best['decided_by']}"
            by_side[SIDES[best["config_id"] != self.config_ids[0]]] = text
        if len(by_side) == 2 and by_side["a"] == by_side["b"]:
            return [f"best shortcut on their tests: {by_side['a']}"]
        return [f"best shortcut on the test of {x}: {by_side[x]}" for x in sorted(by_side)]


def compare(
    store: Store,
    a: int | str,
    b: int | str,
    *,
    learned_at: float = LEARNED_AT,
    below: float = 1.0,
) -> Compared:
    """Compares two configurations, by pairs where the same seed starts both alike.

    Args:
        a: a sweep of one configuration, `heads:hidden_size=16`, or a run, as `seqcls compare` takes
            it; an integer is a run's id, even where a sweep has that name.
        b: the other one, which is subtracted.
        learned_at: the accuracy on strings of trained lengths from which on a run has learned.
        below: the accuracy below which a run fails, on longer strings or on the whole test.

    Raises:
        UnknownRunError: there is no such configuration, or no run of it is finished.
        ConfigError: there is no such field or value.
    """
    selection = selection_of(store, learned_at=learned_at, below=below)
    first, second = (
        config_named(store, reference)
        if isinstance(reference, str)
        else queries.config_id_of(store, queries.find_run(store, reference))
        for reference in (a, b)
    )
    return compare_configs(store, (first, second), (str(a), str(b)), selection)


def compare_configs(
    store: Store, ids: tuple[int, int], names: tuple[str, str], thresholds: Selection | None = None
) -> Compared:
    """Compares configurations by their ids, like `compare`.

    Args:
        thresholds: a selection with other thresholds of learning and failing than the defaults.

    Raises:
        UnknownRunError: no run of one is finished.
    """
    selection = replace(thresholds or Selection(), config_ids=ids)
    frame, longer = frames.finished_runs(store, selection), longer_lengths(store, ids)
    frame = judge_on(store, frame, longer, selection.below)
    sides = [frame[frame["config_id"] == config_id] for config_id in ids]
    for name, runs in zip(names, sides, strict=True):
        if runs.empty:
            raise UnknownRunError(f"{name!r}: none of its runs is finished; nothing to compare yet")
    known, called = queries.configs(store, ids), queries.names_of(store, ids)
    unpaired = why_unpaired(known[ids[0]], known[ids[1]])
    if unpaired is None and not number_of_pairs(*(set(runs["model_seed"]) for runs in sides)):
        unpaired = f"fewer than {FEWEST} seeds are in both, and others in one alone"
    paired, strings = unpaired is None, None
    # Only strings of the same test set can be compared one by one.
    if len(queries.test_set_digests(store, ids)) == 1:
        # One whose position table is too short was not evaluated on the longest strings.
        both = set.intersection(
            *(misclassified.tested_strings(store, config_id) for config_id in ids)
        )
        errors = [misclassified.errors_of_runs(store, runs["run_id"].tolist()) for runs in sides]
        strings = string_differences(*(wrong[wrong["string"].isin(both)] for wrong in errors))
    measured = outcomes_of(frame, selection.below)
    questions = ask(measured[ids[0]], measured[ids[1]], paired=paired)
    chosen = [values_of(measured[x]["beyond"]) for x in ids]
    absent = dict[str, str]()
    # The reason is given only where longer strings exist and too few seeds learned.
    are_longer = all(runs["accuracy_beyond"].notna().any() for runs in sides)
    if are_longer and "learned" in questions and "beyond" not in questions:
        first, second = (f"{some:,} of {n:,}" for some, n in questions["learned"].counts or ())
        absent["beyond"] = (
            f"not compared, since {first} and {second} seeds learned, and it takes "
            f"{FEWEST_LEARNED} of each"
        )
    lengths = [_length_scores(store, known[x], runs) for x, runs in zip(ids, sides, strict=True)]
    return Compared(
        names=names,
        called=(called[ids[0]], called[ids[1]]),
        config_ids=ids,
        fields=fields_apart(store, ids),
        runs=(len(sides[0]), len(sides[1])),
        unpaired=unpaired,
        questions=questions,
        lengths=by_length(*lengths, paired=paired),
        strings=strings,
        shortcuts=_shortcuts(store, ids, longer),
        border=border_medians(store, selection, ids, frame, longer),
        longer=longer,
        selection=tuple((len(x), selection_effect(x)) if len(x) > 1 else None for x in chosen),
        absent=absent,
    )


def _length_scores(store: Store, config: RunConfig, runs: pd.DataFrame) -> pd.DataFrame:
    """Returns the scores of a configuration's runs by length, with their model seeds; beyond the
    trained lengths only those of runs that learned.
    """
    scores = queries.length_scores(store, runs["run_id"].tolist())
    scores["model_seed"] = scores["run_id"].map(runs.set_index("run_id")["model_seed"])
    # Without the package that it needs, its trained lengths are unknown.
    if obstacle_of(config) is not None:
        return scores
    unlearned = runs.loc[runs["outcome"] == Outcome.NOT_LEARNED, "run_id"]
    longer = scores["length"] >= resolve(config).trained_lengths.stop
    return scores[~(longer & scores["run_id"].isin(unlearned))]


def _shortcuts(store: Store, ids: tuple[int, int], longer: range | None) -> pd.DataFrame:
    """Returns the accuracies of the best reader of each test, beyond trained lengths on those of
    `longer`, and the property that decides its language.
    """
    best, by = best_shortcut(shortcut_scores(store, ids)), deciding(store, ids)
    shares = shortcut_shares(best)
    shares["decided_by"] = pd.Series([by[x] for x in shares["config_id"]], dtype=object)
    if longer is not None:
        # Within trained lengths all strings count; beyond them only those of common lengths.
        alike = shortcut_shares(best[best["within"].astype(bool) | best["length"].isin(longer)])
        shares["beyond"] = shares["config_id"].map(alike.set_index("config_id")["beyond"])
    return shares


def border_medians(
    store: Store,
    selection: Selection,
    ids: tuple[int, int],
    runs: pd.DataFrame,
    longer: range | None,
) -> dict[str, tuple[float, float]]:
    """Computes the median accuracies of `BORDER_SHARES` of the first and the second.

    Args:
        runs: run_id and outcome; those that have not learned are not judged on longer strings.
    """
    found = border_accuracies(store, selection, longer)
    found = of_learned(found, runs.set_index("run_id")["outcome"])
    medians = found.groupby("config_id")[list(BORDER_SHARES)].median().reindex(ids)
    # A kind of string that neither test has is left out, not shown as unknown.
    medians = medians.dropna(axis=1, how="all")
    return {str(name): (float(x.iloc[0]), float(x.iloc[1])) for name, x in medians.items()}


def fields_apart(store: Store, ids: tuple[int, int]) -> dict[str, tuple[object, object]]:
    """Returns the fields that two configurations both read and in which they differ, with both
    values; and all settings of models trained elsewhere, None where one has none.
    """
    known = settings_of(store, ids)
    a, b = (known[config_id] for config_id in ids)
    apart = (x for x in dict.fromkeys([*a, *b]) if a.get(x) != b.get(x))
    return {x: (a.get(x), b.get(x)) for x in apart if (x in a and x in b) or x.startswith(PREFIX)}


class TwoModels(NamedTuple):
    """A comparison of two runs; differences are the first minus the second.

    Each distinct string counts once.
    """

    fields: dict[str, tuple[object, object]]
    """The fields in which their configurations differ, with both values."""
    wrong: Difference
    """The shares of wrong strings; of pairs where their test strings are the same."""
    strings: pd.DataFrame | None
    """Strings that only one gets wrong: string, length, label, wrong_a and wrong_b."""


def compare_models(store: Store, first: int, second: int) -> TwoModels:
    """Compares two finished runs, by string where they are tested on the same strings.

    Raises:
        UnknownRunError: there is no such run, or it is not finished.
    """
    for run_id in (first, second):
        queries.check_done(store, run_id, "was not tested")
    ids = queries.config_id_of(store, first), queries.config_id_of(store, second)
    errors = [misclassified.errors_of_runs(store, [run_id]) for run_id in (first, second)]
    tested = [misclassified.tested_strings(store, config_id) for config_id in ids]
    paired = len(queries.test_set_digests(store, ids)) == 1
    if paired:
        # A string too long for the position table of one of them does not count.
        tested = [tested[0] & tested[1]] * 2
        errors = [frame[frame["string"].isin(tested[0])] for frame in errors]
    wrong = [
        dict.fromkeys(strings, 0.0) | dict.fromkeys(frame["string"], 1.0)
        for strings, frame in zip(tested, errors, strict=True)
    ]
    found = compare_shares(*wrong, paired=paired, plan=False)
    if found.p_value is None:
        raise UnknownRunError(f"the test strings of runs {first} and {second} are not stored")
    strings = string_differences(*errors) if paired else None
    return TwoModels(fields_apart(store, ids), found, strings)
