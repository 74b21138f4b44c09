"""What a specification's models are trained and tested on, looked at before any is trained."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, get_args

import numpy as np
import pandas as pd

from seqcls.cancellation import check, check_each
from seqcls.config import AS_TRAINED, PARTS, RunConfig
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
from seqcls.shortcuts import READERS, Shortcut, decided_by, read_test
from seqcls.strings.token_strings import NO_LETTER
from seqcls.strings.tokenizer import Tokenizer
from seqcls.tasks.base import LanguageTask
from sweeps.api.selecting import condition
from sweeps.api.sweeping import Spec, read_specs

Part = Literal["train", "validation", "test"]
Label = Literal["positive", "negative"]

TEMPTING = 0.9
"""A test of which a shortcut reader gets more right than this is worth a word of warning."""


MOST_TOKENS = 2**21
"""Tokens of an epoch that is drawn as it is to be looked at; a larger one takes long to draw."""


@dataclass(frozen=True)
class Reached:
    """What one shortcut reader reaches on one test."""

    reader: str
    """One of `seqcls.shortcuts.READERS`."""
    within: float | None
    """The share of test strings of trained lengths that it is right on; None where there is none,
    or the reader cannot be fitted."""
    beyond: float | None
    """The same of all other lengths."""
    reason: str | None
    """Why it cannot be fitted."""


@dataclass(frozen=True)
class TestReached:
    """What readers of little reach on one test."""

    __test__: ClassVar[bool] = False

    task: str
    fields: Mapping[str, Any]
    """Those in which the configurations that are asked about differ, of this test's."""
    readers: Sequence[Reached]
    advice: str | None
    """What the best reader says of the test, and what to do about it; None where it says little."""
    remedy: Mapping[str, Any]
    """Values of fields with which less can be reached; none where none are known."""


def shortcuts(spec: Spec, conditions: Sequence[str] = ()) -> list[TestReached]:
    """How far readers get that look at little of a string, on each test of a specification.

    Args:
        spec: as `submit` takes it.
        conditions: only configurations with these values, such as `task=dyck`.

    Raises:
        SpecError, ConfigError: the specification is refused, or no configuration has these values.
    """
    tests = distinct_tests(choose(spec, conditions))
    return [measure_readers(resolve(config), fields) for config, fields in check_each(tests)]


def distinct_tests(configs: Iterable[RunConfig]) -> list[tuple[RunConfig, dict[str, Any]]]:
    """The first configuration of each way to draw strings to train and to test on.

    Beside it the fields of strings in which it differs from others of them, but its task.
    """
    distinct: dict[tuple[Any, ...], RunConfig] = {}
    for config in configs:
        problem = resolve(config)
        distinct.setdefault((problem.train, problem.test), config)
    tests = list(distinct.values())
    read = {x for config in tests for part in PARTS for x in strings_read(config, part)}
    varied = [name for name in _find_varied(tests) if name in read - {"task"}]
    return [(config, {name: getattr(config, name) for name in varied}) for config in tests]


def measure_readers(problem: Problem, fields: Mapping[str, Any]) -> TestReached:
    """What each reader reaches on the test of a problem, of these fields."""
    test = distinct_test_strings(problem.test).test_set
    within = are_within(problem, test.lengths)

    def share(shortcut: Shortcut, chosen: np.ndarray) -> float | None:
        times = test.occurrences * chosen
        if shortcut.right is None or not times.any():
            return None
        return float((times * shortcut.right).sum() / times.sum())

    readers = [
        Reached(x.reader, share(x, within), share(x, ~within), x.obstacle)
        for x in read_test(problem)
    ]
    return TestReached(problem.config.task, fields, readers, *_advice(problem, readers))


def are_within(problem: Problem, lengths: np.ndarray) -> np.ndarray:
    """Which lengths are those of training strings."""
    trained = problem.train.lengths
    return np.asarray((lengths >= trained[0]) & (lengths <= trained[-1]))


def _share(each: Reached) -> float | None:
    """What counts of what a reader reaches: beyond trained lengths, where there are others."""
    return each.within if each.beyond is None else each.beyond


def _advice(problem: Problem, found: Sequence[Reached]) -> tuple[str | None, dict[str, Any]]:
    """A sentence about the best reader, and the fields that it says to set."""
    decided = decided_sentence(problem)
    best = max(found, key=lambda x: _share(x) or 0.0, default=None)
    if best is None or (_share(best) or 0.0) < TEMPTING:
        # Within trained lengths letter counts tell much that they do not tell beyond; which tokens
        # stand next to each other is what near negatives are made for.
        best = next((x for x in found if x.reader == "bigrams"), None)
        if best is None or (best.within or 0.0) < TEMPTING:
            return decided and f"{decided[:1].upper()}{decided[1:]}", {}
        best = replace(best, beyond=None)
    where = "within trained lengths" if best.beyond is None else "beyond trained lengths"
    said = f"{percent(_share(best) or 0.0, 1)} {where} can be reached by {READERS[best.reader]}"
    if decided is not None:
        return f"{said}: {decided}", {}
    test = problem.test
    if isinstance(problem.task, LanguageTask) and problem.unknown_labels is None:
        said += ", without knowing the language"
    if not isinstance(test, BalancedStrings) or test.test_strings != "random":
        return said, {}
    if test.negatives in ("near", "border") or test.near_obstacle:
        return said, {}
    own = problem.config.test_negatives != AS_TRAINED
    remedy = {"negatives": "near"} | ({"test_negatives": AS_TRAINED} if own else {})
    values = [f'{name} = "{value}"' for name, value in remedy.items()]
    return f"{said}: take {' and '.join(values)}", remedy


def decided_sentence(problem: Problem) -> str | None:
    """That readers know all that decides the labels, or the outputs; None where none does."""
    by = decided_by(problem)
    what = "language" if isinstance(problem.task, LanguageTask) else "task"
    return None if by is None else f"this {what} is decided by {by}"


def draw(
    spec: Spec,
    part: Part = "train",
    number: int | None = 20,
    label: Label | None = None,
    conditions: Sequence[str] = (),
    *,
    in_notation: bool = False,
) -> pd.DataFrame:
    """The first strings that a specification's models are trained, validated or tested on.

    Args:
        spec: as `submit` takes it.
        part: `train`, `validation` or `test`.
        number: of strings, of the first epoch at most; None for all of it.
        label: only strings of this label, of languages.
        conditions: values of one configuration, such as `task=dyck`, where there are several.
        in_notation: whether repetitions are written as counts, as in `a{3}`; else strings are
            spelled out, tokens that have names with spaces between.

    Returns:
        Of languages the columns string, label (0 or 1), length and kind: positive, or how a
        negative string was drawn (uniform, edited or near; empty where the sampler does not say);
        border, of both strings of a border pair.
        Else string, target and length.

    Raises:
        SpecError, ConfigError: the specification is refused; the configurations are drawn from in
            several ways; the task has no labels.
    """
    if part not in PARTS:
        raise ConfigError(Parameter("part", part), f": expected one of {', '.join(PARTS)}")
    if label is not None and label not in get_args(Label):
        raise ConfigError(Parameter("label", label), ": expected positive or negative")
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
    """The first strings of one part, as `draw` gives them."""
    examples = stream(problem.sampler(part)).epoch(0)
    if label is not None:
        examples = examples.take(np.flatnonzero(examples.labels == (label == "positive")))
    return _write_rows(problem, examples.take(slice(0, number)), in_notation)


@dataclass(frozen=True)
class StringsOfKind:
    """Strings that were drawn in one way."""

    kind: str
    """Positive, or how the negative ones were drawn; negative where that is not known. Empty where
    the strings have targets."""
    by_length: Sequence[int]
    """How many of each length there are, the shortest of all kinds first."""
    first: pd.DataFrame
    """The first of them, as `draw` gives them, in the notation."""


@dataclass(frozen=True)
class FirstStrings:
    """The first strings of one part, by how they were drawn."""

    kinds: Sequence[StringsOfKind]
    lengths: range
    """From the shortest to the longest of all of them."""
    number: int
    """How many were looked at."""
    drawn_apart: bool
    """Whether an epoch is too large to be looked at: these are then drawn as it is, but fewer, and
    none is kept out because it was trained on."""


def first_strings(problem: Problem, part: str, number: int = 10) -> FirstStrings:
    """Some strings of each kind, and how many there are of each length."""
    sampler = problem.sampler(part)
    small = _make_smaller(sampler)
    examples = stream(small).epoch(0)
    lengths = examples.strings.lengths
    span = range(int(lengths.min()), int(lengths.max()) + 1)
    if problem.kind.texts(problem.task, examples.targets[:1]) is not None:
        kinds = np.array([""] * len(examples))
    else:
        kinds = np.array([kind or "negative" for kind in _kinds(examples)])
    of_each = []
    for kind in ("", *DRAWN, "negative"):
        check()
        rows = np.flatnonzero(kinds == kind)
        if len(rows):
            by_length = np.bincount(lengths[rows] - span.start, minlength=len(span)).tolist()
            first = _write_rows(problem, examples.take(rows[:number]), in_notation=True)
            of_each.append(StringsOfKind(kind, by_length, first))
    return FirstStrings(of_each, span, len(examples), small != sampler)


def negatives_sentence(looked: FirstStrings) -> str:
    """Which share of the negative strings, border pairs aside, was drawn in each way; empty where
    that is not known.
    """
    numbers = {x.kind: sum(x.by_length) for x in looked.kinds if x.kind in DRAWN[1:-1]}
    total = sum(numbers.values())
    said = ", ".join(f"{percent(number / total, 1)} {kind}" for kind, number in numbers.items())
    return f"{total:,} negative strings were drawn: {said}" if said else ""


def _make_smaller(sampler: Sampler) -> Sampler:
    """A sampler of fewer strings, where drawing an epoch takes long and none was drawn before."""
    if isinstance(sampler, AnsweredAgain):
        return replace(sampler, sampler=_make_smaller(sampler.sampler))
    longest = max(1, sampler.lengths[-1])
    is_small = sampler.epoch_size * longest <= MOST_TOKENS
    of_lengths: Any = sampler
    knows_trained = getattr(of_lengths, "trained", None) is not None
    if (is_small and not knows_trained) or stream(sampler).is_kept(0):
        return sampler
    changes = {"trained": None} if knows_trained else {}
    if not is_small and hasattr(of_lengths, "size"):
        changes["size"] = max(MOST_TOKENS // longest, of_lengths.batch_size)
    smaller: Sampler = replace(of_lengths, **changes)
    return smaller


def _write_rows(problem: Problem, examples: Examples, in_notation: bool) -> pd.DataFrame:
    strings, tokenizer = examples.strings, problem.tokenizer
    columns: dict[str, Any] = {
        "string": [tokenizer.display(text) for text in texts_of(tokenizer, strings)]
        if in_notation
        else _spell_out(tokenizer, strings.letters)
    }
    targets = problem.kind.texts(problem.task, examples.targets)
    if targets is None:
        columns["label"] = examples.labels.astype(int)
    elif in_notation or kind_name(problem.task) != "transduction":
        # What answers of a package's own kind are made of is not known.
        columns["target"] = [tokenizer.display(text) for text in targets]
    else:
        columns["target"] = _spell_out(tokenizer, examples.targets)
    columns["length"] = strings.lengths
    if targets is None:
        columns["kind"] = _kinds(examples)
    return pd.DataFrame(columns)


def _spell_out(tokenizer: Tokenizer, letters: np.ndarray) -> list[str]:
    """Rows of tokens as other programs read them: nothing in them is counted or escaped."""
    tokens, lengths = tokenizer.alphabet, (letters != NO_LETTER).sum(axis=1).tolist()
    return [
        tokenizer.separator.join([tokens[letter] for letter in row[:length]])
        for row, length in zip(letters.tolist(), lengths, strict=True)
    ]


def _kinds(examples: Examples) -> list[str]:
    if examples.drawn is None:
        return ["positive" if label else "" for label in examples.labels.tolist()]
    return [DRAWN[x] for x in examples.drawn.tolist()]


def choose(spec: Spec, conditions: Sequence[str]) -> list[RunConfig]:
    """The configurations of a specification that have these values."""
    wanted = [condition(text, Parameter("conditions", text)) for text in conditions]
    every = [config for one in read_specs(spec) for config in one.configs()]
    chosen = [x for x in every if all(getattr(x, name) == value for name, value in wanted)]
    if not chosen:
        raise ConfigError(
            Parameter("conditions", " ".join(conditions)),
            f": none of the {len(every):,} configurations has these values",
        )
    return chosen


def _find_varied(configs: Sequence[RunConfig]) -> list[str]:
    """The fields in which configurations differ."""
    first = configs[0]
    names = {name for config in configs for name in config.changed} | set(first.changed)
    return sorted(
        name for name in names if any(getattr(x, name) != getattr(first, name) for x in configs)
    )


def _one_way(configs: Sequence[RunConfig], part: str) -> Problem:
    """The problem of configurations whose strings are drawn in one way."""
    problems = {resolve(config).sampler(part): config for config in configs}
    if len(problems) == 1:
        return resolve(configs[0])
    read = {name for config in configs for name in strings_read(config, part)}
    varied = [name for name in _find_varied(configs) if name in read]
    name = varied[0]
    values = sorted({str(getattr(config, name)) for config in configs})
    raise ConfigError(
        Parameter("conditions", None),
        f": strings are drawn in {len(problems):,} ways, which differ in {', '.join(varied)}; name "
        f"one, as in {name}={values[0]}",
    )
