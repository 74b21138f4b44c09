"""What a specification's models are trained and tested on, looked at before any is trained."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

import numpy as np
import pandas as pd

from seqcls.cancellation import check_each
from seqcls.config import PARTS, RunConfig
from seqcls.errors import ConfigError, Parameter
from seqcls.evaluation import distinct_test_strings, texts_of
from seqcls.fields import strings_read
from seqcls.kinds import kind_name
from seqcls.kinds.base import Examples
from seqcls.problem import Problem, resolve
from seqcls.results import DRAWN
from seqcls.sampling.balanced import BalancedStrings
from seqcls.sampling.streams import stream
from seqcls.shortcuts import READERS, Shortcut, decided_by, read_test
from seqcls.strings.token_strings import NO_LETTER
from seqcls.strings.tokenizer import Tokenizer
from sweeps.api.configurations import condition
from sweeps.api.sweeping import Spec, read_specs

Part = Literal["train", "validation", "test"]
Label = Literal["positive", "negative"]

TEMPTING = 0.9
"""A test of which a shortcut reader gets more right than this is worth a word of warning."""


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
    """What can be reached on one test without knowing the language."""

    __test__: ClassVar[bool] = False

    task: str
    fields: Mapping[str, Any]
    """Those in which the configurations that are asked about differ, of this test's."""
    readers: Sequence[Reached]
    advice: str | None
    """What the best reader says of the test, and what to do about it; None where it says little."""


def shortcuts(spec: Spec, conditions: Sequence[str] = ()) -> list[TestReached]:
    """How far readers get that know no language, on each test of a specification.

    Args:
        spec: as `submit` takes it.
        conditions: only configurations with these values, such as `task=dyck`.

    Raises:
        SpecError, ConfigError: the specification is refused, or no configuration has these values.
    """
    configs = _choose(spec, conditions)
    distinct: dict[tuple[Any, ...], RunConfig] = {}
    for config in configs:
        problem = resolve(config)
        distinct.setdefault((problem.train, problem.test), config)
    tests = list(distinct.values())
    varied = [name for name in _find_varied(tests) if name != "task"]
    return [
        reached(resolve(config), {name: getattr(config, name) for name in varied})
        for config in check_each(tests)
    ]


def reached(problem: Problem, fields: Mapping[str, Any]) -> TestReached:
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
    return TestReached(problem.config.task, fields, readers, _advice(problem, readers))


def are_within(problem: Problem, lengths: np.ndarray) -> np.ndarray:
    """Which lengths are those of training strings."""
    trained = problem.train.lengths
    return np.asarray((lengths >= trained[0]) & (lengths <= trained[-1]))


def _advice(problem: Problem, found: Sequence[Reached]) -> str | None:
    shares = [(x.within if x.beyond is None else x.beyond) or 0.0 for x in found]
    if max(shares, default=0.0) < TEMPTING:
        return None
    best = found[int(np.argmax(shares))]
    where = "within trained lengths" if best.beyond is None else "beyond trained lengths"
    said = f"{max(shares):.1%} {where} can be reached by {READERS[best.reader]}"
    if (by := decided_by(problem)) is not None:
        return f"{said}: {by} decide this language"
    said += ", without the language"
    test = problem.test
    if isinstance(test, BalancedStrings) and test.negatives != "near" and not test.near_obstacle:
        return f'{said}: take negatives = "near"'
    return said


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
        negative string was drawn (uniform, edited or near; empty where the sampler does not say).
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
    problem = _one_way(_choose(spec, conditions), part)
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
    examples = first_examples(problem, part)
    if label is not None:
        examples = examples.take(np.flatnonzero(examples.labels == (label == "positive")))
    return _written(problem, examples.take(slice(0, number)), in_notation)


def first_examples(problem: Problem, part: str) -> Examples:
    """The first epoch of one part."""
    return stream(problem.sampler(part)).epoch(0)


def _written(problem: Problem, examples: Examples, in_notation: bool) -> pd.DataFrame:
    strings, tokenizer = examples.strings, problem.tokenizer
    columns: dict[str, Any] = {
        "string": texts_of(tokenizer, strings)
        if in_notation
        else _spelled(tokenizer, strings.letters)
    }
    targets = problem.kind.texts(problem.task, examples.targets)
    if targets is None:
        columns["label"] = examples.labels.astype(int)
    elif in_notation or kind_name(problem.task) != "transduction":
        # What answers of a package's own kind are made of is not known.
        columns["target"] = list(targets)
    else:
        columns["target"] = _spelled(tokenizer, examples.targets)
    columns["length"] = strings.lengths
    if targets is None:
        columns["kind"] = _kinds(examples)
    return pd.DataFrame(columns)


def _spelled(tokenizer: Tokenizer, letters: np.ndarray) -> list[str]:
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


def _choose(spec: Spec, conditions: Sequence[str]) -> list[RunConfig]:
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
