"""Strings of a specification before training: samples of them, and shortcuts on its tests."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, NamedTuple, get_args

import numpy as np
import pandas as pd

from seqcls.cancellation import check_each
from seqcls.config import AS_TRAINED, STRING_PARTS, RunConfig
from seqcls.deciding import decided_by
from seqcls.errors import ConfigError, Parameter
from seqcls.evaluation import distinct_test_strings, texts_of
from seqcls.fields import strings_read
from seqcls.interpretability.wording import percent
from seqcls.kinds import kind_name
from seqcls.kinds.base import Examples
from seqcls.problem import Problem, resolve
from seqcls.results import DRAWN
from seqcls.sampling import Sampler
from seqcls.sampling.balanced import BalancedStrings
from seqcls.sampling.streams import AnsweredAgain, stream
from seqcls.shortcuts import READERS, read_test
from seqcls.strings.token_strings import NO_LETTER
from seqcls.tasks.base import LanguageTask
from sweeps.api.selecting import condition
from sweeps.api.sweeping import Spec, read_specs

Part = Literal["train", "validation", "test"]
Label = Literal["positive", "negative"]

TEMPTING = 0.9
"""The accuracy of a shortcut reader from which on there is advice about the test."""

MOST_TOKENS = 2**21
"""Maximum number of tokens of an epoch that is drawn completely; a larger one takes long."""


@dataclass(frozen=True)
class Reached:
    """Accuracies of a shortcut reader on a test."""

    reader: str
    """One of `seqcls.shortcuts.READERS`."""
    within: float | None
    """Accuracy on test strings of trained lengths, in [0, 1]; None where there are none, or the
    reader cannot be fitted."""
    beyond: float | None
    """The same of all other lengths."""
    reason: str | None
    """The reason why it cannot be fitted."""


@dataclass(frozen=True)
class TestReached:
    """Accuracies of all shortcut readers on a test."""

    __test__: ClassVar[bool] = False

    task: str
    fields: Mapping[str, Any]
    """The values of the fields that differ between the tests."""
    readers: Sequence[Reached]
    advice: str | None
    """A sentence about the best reader, with a remedy; None where its accuracy is low."""
    remedy: Mapping[str, Any]
    """Values of fields that make the test harder for readers; empty where none are known."""


def shortcuts(spec: Spec, conditions: Sequence[str] = ()) -> list[TestReached]:
    """Fits shortcut readers, which use simple features, to each test of a specification.

    Args:
        spec: as `submit` takes it.
        conditions: only configurations with these values, such as `task=dyck`.

    Raises:
        SpecError, ConfigError: the specification is refused, or no configuration has these values.
    """
    tests = distinct_tests(choose(spec, conditions))
    return [measure_readers(resolve(config), fields) for config, fields in check_each(tests)]


def distinct_tests(configs: Iterable[RunConfig]) -> list[tuple[RunConfig, dict[str, Any]]]:
    """Returns the first configuration of each way to draw training and test strings.

    Each with those of its fields about strings, except the task, that differ between them.
    """
    distinct: dict[tuple[Any, ...], RunConfig] = {}
    for config in configs:
        problem = resolve(config)
        # Samplers are equal where they draw the same strings.
        distinct.setdefault((problem.train, problem.test), config)
    tests = list(distinct.values())
    read = {x for config in tests for part in STRING_PARTS for x in strings_read(config, part)}
    varied = [name for name in _find_varied(tests) if name in read - {"task"}]
    return [(config, {name: getattr(config, name) for name in varied}) for config in tests]


def measure_readers(problem: Problem, fields: Mapping[str, Any]) -> TestReached:
    """Computes the accuracy of each reader on the test of a problem."""
    test, found = distinct_test_strings(problem.test).test_set, []
    within = are_within(problem, test.lengths)
    for reading in read_test(problem):
        shares: dict[str, float | None] = {"within": None, "beyond": None}
        for name, chosen in (("within", within), ("beyond", ~within)):
            # A string counts as often as it occurs in the test, as for models.
            times = test.occurrences * chosen
            if reading.right is not None and times.any():
                shares[name] = float((times * reading.right).sum() / times.sum())
        found.append(Reached(reading.reader, **shares, reason=reading.obstacle))
    return TestReached(problem.config.task, fields, found, *_advise(problem, found))


def are_within(problem: Problem, lengths: np.ndarray) -> np.ndarray:
    """Returns the mask of trained lengths."""
    trained = problem.train.lengths
    return np.asarray((lengths >= trained[0]) & (lengths <= trained[-1]))


def _advise(problem: Problem, found: Sequence[Reached]) -> tuple[str | None, dict[str, Any]]:
    """Returns a sentence about the best reader, and the fields that it recommends."""
    is_language, decided = isinstance(problem.task, LanguageTask), decided_by(problem.task)
    decision = f"this {'language' if is_language else 'task'} is decided by {decided}"
    # The accuracy beyond trained lengths counts, where there are longer strings.
    shares = [(x.within if x.beyond is None else x.beyond, x) for x in found]
    share, best = max(shares, key=lambda x: x[0] or 0.0, default=(None, None))
    where = "within" if best is None or best.beyond is None else "beyond"
    if (share or 0.0) < TEMPTING:
        # Within trained lengths letter counts are more informative than beyond; near negatives are
        # made against bigrams.
        best = next((x for x in found if x.reader == "bigrams"), None)
        share, where = None if best is None else best.within, "within"
    if best is None or (share or 0.0) < TEMPTING:
        return decided and f"{decision[:1].upper()}{decision[1:]}", {}
    advice = f"{percent(share or 0.0, 1)} {where} trained lengths can be reached by "
    advice += READERS[best.reader]
    if decided is not None:
        return f"{advice}: {decision}", {}
    if is_language and problem.unknown_labels is None:
        advice += ", without knowing the language"
    test = problem.test
    if not isinstance(test, BalancedStrings) or test.test_strings != "random":
        return advice, {}
    if test.negatives in ("near", "border") or test.near_obstacle:
        return advice, {}
    # A test with its own kind of negatives does not follow that of the training.
    own = problem.config.test_negatives != AS_TRAINED
    remedy = {"negatives": "near"} | ({"test_negatives": AS_TRAINED} if own else {})
    values = " and ".join(f'{name} = "{value}"' for name, value in remedy.items())
    return f"{advice}: take {values}", remedy


def draw(
    spec: Spec,
    part: Part = "train",
    number: int | None = 20,
    label: Label | None = None,
    conditions: Sequence[str] = (),
    *,
    in_notation: bool = False,
) -> pd.DataFrame:
    """Draws the first strings that a specification's models are trained, validated or tested on.

    Args:
        spec: as `submit` takes it.
        part: `train`, `validation` or `test`.
        number: maximum number of strings of the first epoch; None for all of it.
        label: only strings of this label, of languages.
        conditions: values of one configuration, such as `task=dyck`, where there are several.
        in_notation: write repetitions as counts, as in `a{3}`; else strings are spelled out, tokens
            that have names separated by spaces.

    Returns:
        Of languages the columns string, label (0 or 1), length and kind: positive, or how a
        negative string was drawn (uniform, edited or near; empty where that is unknown); border, of
        both strings of a border pair. Else string, target and length.

    Raises:
        SpecError, ConfigError: the specification is refused; its configurations draw strings in
            several ways; the task has no labels.
    """
    known: dict[str, tuple[object, Sequence[object]]]
    known = {"part": (part, STRING_PARTS), "label": (label, (None, *get_args(Label)))}
    for name, (value, values) in known.items():
        if value not in values:
            expected = ", ".join(map(str, filter(None, values)))
            raise ConfigError(Parameter(name, value), f": expected one of {expected}")
    if number is not None and number < 1:
        raise ConfigError(Parameter("number", number), ": expected at least 1")
    problem = _one_way(choose(spec, conditions), part)
    if label is not None:
        problem.require_language(f"label={label}: only strings of languages have labels")
    return drawn_strings(problem, part, number, label, in_notation=in_notation)


def drawn_strings(
    problem: Problem,
    part: str,
    number: int | None = None,
    label: Label | None = None,
    *,
    in_notation: bool = False,
) -> pd.DataFrame:
    """Draws the first strings of a part, in the columns of `draw`."""
    examples = stream(problem.sampler(part)).epoch(0)
    if label is not None:
        examples = examples.take(np.flatnonzero(examples.labels == (label == "positive")))
    return write_rows(problem, examples.take(slice(0, number)), in_notation)


class FirstStrings(NamedTuple):
    """The first strings of a part, by kind: how they were drawn."""

    first: pd.DataFrame
    """Some of each kind, in the columns of `draw`, in the notation; the kind of negative ones that
    were drawn in an unknown way is negative."""
    numbers: Mapping[str, int]
    """The number of strings of each kind; the kind of strings with targets is empty."""
    lengths: range
    """From the shortest to the longest of all of them."""
    drawn_apart: bool
    """True if an epoch is too large: fewer strings are then drawn in the same way, and trained ones
    are not excluded."""


def first_strings(problem: Problem, part: str, number: int = 10) -> FirstStrings:
    """Draws the strings of a part; `number` of each kind are returned, the shortest first."""
    sampler = problem.sampler(part)
    small = make_smaller(sampler)
    examples = stream(small).epoch(0)
    lengths = examples.strings.lengths
    # One target determines the kind of answers; spelling out all would take long.
    texts = problem.kind.texts(problem.task, examples.targets[:1])
    unknown = "negative" if texts is None else ""
    kinds = np.array([kind or unknown for kind in kinds_of(problem, examples)])
    # Strings with targets have the empty kind.
    rows = {kind: np.flatnonzero(kinds == kind) for kind in ("", *DRAWN, "negative")}
    numbers = {kind: len(own) for kind, own in rows.items() if len(own)}
    some = [x for kind in numbers for x in sorted(rows[kind][:number], key=lengths.__getitem__)]
    first = write_rows(problem, examples.take(np.array(some)), in_notation=True)
    span = range(int(lengths.min()), int(lengths.max()) + 1)
    return FirstStrings(first.assign(kind=kinds[some]), numbers, span, small != sampler)


def make_smaller(sampler: Sampler) -> Sampler:
    """Returns a sampler of fewer strings, where an epoch is large and not drawn before."""
    if isinstance(sampler, AnsweredAgain):
        return replace(sampler, sampler=make_smaller(sampler.sampler))
    longest = max(1, sampler.lengths[-1])
    is_small = sampler.epoch_size * longest <= MOST_TOKENS
    of_lengths: Any = sampler
    knows_trained = getattr(of_lengths, "trained", None) is not None
    if (is_small and not knows_trained) or stream(sampler).is_cached(0):
        return sampler
    # Excluding trained strings would require to draw all of the training first.
    changes = {"trained": None} if knows_trained else {}
    if not is_small and hasattr(of_lengths, "size"):
        changes["size"] = max(MOST_TOKENS // longest, of_lengths.batch_size)
    smaller: Sampler = replace(of_lengths, **changes)
    return smaller


def negatives_sentence(numbers: Mapping[str, int]) -> str:
    """Describes the shares of negative strings drawn in each way; empty where that is not known.

    Args:
        numbers: the number of strings drawn in each way; border and positive ones are ignored.
    """
    drawn = {kind: numbers[kind] for kind in DRAWN[1:-1] if numbers.get(kind)}
    total = sum(drawn.values())
    shares = ", ".join(f"{percent(number / total, 1)} {kind}" for kind, number in drawn.items())
    return f"{total:,} negative strings were drawn: {shares}" if shares else ""


def write_rows(problem: Problem, examples: Examples, in_notation: bool) -> pd.DataFrame:
    """Returns a row for each string, in the columns of `draw`."""
    strings, tokenizer = examples.strings, problem.tokenizer
    targets = problem.kind.texts(problem.task, examples.targets)

    def show(texts: Sequence[str]) -> list[str]:
        return [tokenizer.display(text) for text in texts]

    def spell_out(letters: np.ndarray) -> list[str]:
        """Joins rows of tokens for other programs: nothing is counted or escaped."""
        rows = [[tokenizer.alphabet[x] for x in row if x != NO_LETTER] for row in letters.tolist()]
        return [tokenizer.separator.join(row) for row in rows]

    texts = show(texts_of(tokenizer, strings)) if in_notation else spell_out(strings.letters)
    answers: dict[str, Any]
    if targets is None:
        answers = {"label": examples.labels.astype(int)}
    elif in_notation or kind_name(problem.task) != "transduction":
        # The parts of answers of a plug-in's kind are unknown.
        answers = {"target": show(targets)}
    else:
        answers = {"target": spell_out(examples.targets)}
    drawn = {"kind": kinds_of(problem, examples)} if targets is None else {}
    return pd.DataFrame({"string": texts, **answers, "length": strings.lengths, **drawn})


def kinds_of(problem: Problem, examples: Examples) -> list[str]:
    """Returns how each string was drawn; empty where it is unknown, or strings have targets."""
    if problem.kind.texts(problem.task, examples.targets[:1]) is not None:
        return [""] * len(examples)
    if examples.drawn is None:
        return ["positive" if label else "" for label in examples.labels.tolist()]
    return [DRAWN[x] for x in examples.drawn.tolist()]


def choose(spec: Spec, conditions: Sequence[str]) -> list[RunConfig]:
    """Returns the configurations of a specification with these values."""
    required = [condition(text, Parameter("conditions", text)) for text in conditions]
    every = [config for one in read_specs(spec) for config in one.configs()]
    chosen = [x for x in every if all(getattr(x, name) == value for name, value in required)]
    if not chosen:
        raise ConfigError(
            Parameter("conditions", " ".join(conditions)),
            f": none of the {len(every):,} configurations has these values",
        )
    return chosen


def _find_varied(configs: Sequence[RunConfig]) -> list[str]:
    """Returns the fields in which configurations differ."""
    names = {name for config in configs for name in config.changed}
    return sorted(x for x in names if len({getattr(config, x) for config in configs}) > 1)


def _one_way(configs: Sequence[RunConfig], part: str) -> Problem:
    """Returns the problem of configurations that draw the same strings of a part."""
    if (ways := len({resolve(config).sampler(part) for config in configs})) == 1:
        return resolve(configs[0])
    read = {name for config in configs for name in strings_read(config, part)}
    varied = [name for name in _find_varied(configs) if name in read]
    value = min(str(getattr(config, varied[0])) for config in configs)
    raise ConfigError(
        Parameter("conditions", None),
        f": strings are drawn in {ways:,} ways, which differ in {', '.join(varied)}; name one, as "
        f"in {varied[0]}={value}",
    )
