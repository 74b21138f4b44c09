"""How much of a test was trained on, in a sentence: for commands, pages and reports."""

from collections.abc import Iterable
from contextlib import suppress
from itertools import takewhile

import numpy as np

from seqcls.cancellation import check_each
from seqcls.config import PARTS, NetworkConfig, RunConfig
from seqcls.errors import SeqclsError
from seqcls.interpretability.wording import percent
from seqcls.overlap import UNLIMITED, Effort, Overlap, overlap
from seqcls.problem import Problem, resolve
from seqcls.sampling.balanced import BalancedStrings
from seqcls.sampling.streams import stream
from seqcls.strings.datasets import Dataset, dataset_of
from seqcls.tasks import TASKS
from seqcls.text import count

MOST_TESTS = 100
"""Pairs of a test and a training that are looked at."""

LEAST_NAMED, MOST_NAMED = 0.05, 4
"""Lengths that are named: of which such a share was trained on, but not all; the shortest ones."""

MOST_UNPAIRED = 8
"""Lengths without border pairs that are named; the shortest ones."""

_NOT_OF_STRINGS = set(NetworkConfig.model_fields) - {"num_letters"} | {
    *("learning_rate", "final_learning_rate_factor", "learning_rate_schedule"),
    *("learning_rate_interval", "warm_up_steps", "weight_decay", "decay", "gradient_clip"),
    "embeddings_init_strategy",
}

AT_ANY_COST = "`seqcls estimate SPEC --overlap`"


def trained_on(
    configs: Iterable[RunConfig], *, epochs: int | None = None, exact: bool = False
) -> str | None:
    """How many of the test strings of trained lengths are trained on, in one sentence.

    A second one says at which lengths a test lacks the border pairs that it asks for, a third what
    the majority answer by length is right on, a fourth which files have contradictory rows.

    Args:
        configs: configurations; those with one test and one training count once, those of models
            that were trained elsewhere not at all.
        epochs: of the training of a run; as many as a run of each may have, where none are named.
        exact: whether all training strings are drawn, however many; else it is said where that
            would take too long, and the cheapest part of them tells the least that it is.

    Returns:
        None where there is nothing to be said.
    """
    effort = Effort(UNLIMITED) if exact else Effort()
    distinct: dict[tuple[object, ...], RunConfig] = {}
    for config in configs:
        distinct.setdefault(_strings_of(config), config)
        if len(distinct) > MOST_TESTS:
            return None
    problems: dict[tuple[object, ...], Problem] = {}
    found = []
    # Of a package that is not here, or a test that cannot be drawn, others say what is wrong.
    with suppress(SeqclsError):
        for config in distinct.values():
            problem = resolve(config)
            if not problem.config.imported:
                problems.setdefault((problem.train, problem.test, config.max_num_epochs), problem)
        found = [
            (problem, overlap(problem, effort, epochs)) for problem in check_each(problems.values())
        ]
    if not found:
        return None
    one = len(found) == 1
    said = _of_one(*found[0], epochs) if one else _of_several([each for _, each in found])
    configs = list(distinct.values())
    sentences = (said, without_pairs(configs), majority(configs), contradictions(configs))
    return " ".join(filter(None, sentences)) or None


def _strings_of(config: RunConfig) -> tuple[object, ...]:
    """The fields that may say which strings a configuration trains and tests on."""
    return tuple(item for item in config.changed.items() if item[0] not in _NOT_OF_STRINGS)


def _of_one(problem: Problem, found: Overlap | None, epochs: int | None) -> str:
    strings = problem.kind.words.plural("test")
    if problem.config.disjoint:
        return f"No test {problem.kind.words.string} is trained on (disjoint)."
    if found is not None and not len(found.lengths):
        return f"No test {problem.kind.words.string} is of a length that is trained on."
    if found is None or found.share is None:
        repeated = 1 if problem.train.repeats else epochs or problem.config.max_num_epochs
        number = problem.train.epoch_size * repeated
        return (
            f"How many of the {strings} of trained lengths were trained on is not known: that "
            f"takes drawing {number:,} training strings anew; {AT_ANY_COST} does."
        )
    least = "" if found.is_exact else "At least "
    looked = "" if found.is_exact else f" (the first {_epochs(found.seen)} searched)"
    where = "the training set" if problem.train.repeats else _epochs(found.epochs) + " of training"
    # The last epoch may have ended early.
    most = epochs is None or problem.config.check_every > 0
    up_to = "up to " if most and not problem.train.repeats else ""
    if len(found.lengths) == 1:
        only = f"The only test {problem.kind.words.string} of a trained length"
        occurs = "also occurs" if found.share else "does not occur"
        return f"{only} {occurs} in {up_to}{where}{looked}."
    return (
        f"{least}{_percent(found)} of the {len(found.lengths):,} {strings} of trained lengths "
        f"also occur in {up_to}{where}{looked}{_by_length(found)}."
    )


LEAST_SAID = 0.6
"""The share of longer test strings from which on the majority answer by length is said."""

MOST_TOKENS = 2**22
"""Tokens of the tests that are drawn for it."""


def majority(configs: Iterable[RunConfig]) -> str:
    """What the majority answer by length is right on beyond the trained lengths, and where that
    comes from, in a sentence; or nothing.
    """
    problems: dict[tuple[object, object], Problem] = {}
    shares: list[tuple[float, float, float]] = []
    left, unseen = MOST_TOKENS, set[tuple[object, object]]()
    for config in {_strings_of(config): config for config in configs}.values():
        with suppress(SeqclsError):
            problem = resolve(config)
            asked = problem.train, problem.test
            if asked in problems or problem.is_imported:
                continue
            tokens = problem.test.epoch_size * max(1, problem.test.lengths[-1])
            if tokens > left:
                unseen.add(asked)
                continue
            left -= tokens
            problems[asked] = problem
            shares += [] if problem.lacks("labels") else _majority_of(problem)
    if not shares or max(shares)[0] < LEAST_SAID:
        return ""
    (share, constant, short), (problem, *others) = shares[0], problems.values()
    by_length = "The more frequent answer of each length"
    if others or unseen:
        ends = " to ".join(dict.fromkeys(f"{x[0]:.0%}" for x in (min(shares), max(shares))))
        every = len(problems) + len(unseen)
        where = f", in {len(problems):,} of {_tests(every)}" if unseen else ""
        return f"{by_length} is right on {ends} of longer test strings{where}."
    is_constant = abs(constant) > share - 0.01
    said = f"Always answering {'yes' if constant > 0 else 'no'}" if is_constant else by_length
    said += f" is right on {share:.0%} of longer test strings"
    if constant < LEAST_SAID or getattr(problem.test, "negative_lengths", None) != "redrawn":
        return f"{said}."
    return (
        f"{said}: {short:.0%} of negatives have {problem.trained_lengths[-1]} tokens or fewer. "
        'negative_lengths = "uniform" spreads them over all lengths.'
    )


def _majority_of(problem: Problem) -> list[tuple[float, float, float]]:
    """Shares of longer test strings: those right by the majority answer of their length; by one
    answer to all, below 0 where it is no; and the share of all negatives that are not longer.
    """
    drawn = stream(problem.test).epoch(0)
    lengths, yes = drawn.strings.lengths, drawn.labels
    longer = lengths > problem.trained_lengths[-1]
    if not longer.any():
        return []
    counts = np.zeros((2, int(lengths.max()) + 1))
    np.add.at(counts, (yes[longer] * 1, lengths[longer]), 1)
    (no, of_yes), total = counts.sum(axis=1), counts.sum()
    short = (~longer & ~yes).sum() / max(1, (~yes).sum())
    return [(counts.max(axis=0).sum() / total, max(of_yes, -no, key=abs) / total, short)]


def contradictions(configs: Iterable[RunConfig]) -> str:
    """Which files have rows that contradict others, in sentences; none where none has."""
    sentences = dict[str, None]()
    for digest in {config.dataset: None for config in configs if config.dataset}:
        with suppress(SeqclsError):
            content = dataset_of(digest)
            if isinstance(content, Dataset) and (wrong := content.contradictions[1]):
                rows = int(content.contradicted.sum())
                said = "1 row contradicts" if rows == 1 else f"{rows:,} rows contradict"
                are = "is" if rows == 1 else "are"
                reached = percent(1 - wrong / len(content), 1)
                sentences[
                    f"In {content.name} {said} others of the same string (seqcls data lists them), "
                    f"and {are} trained on but not tested; a perfect model could be "
                    f"right on {reached} of all {len(content):,}."
                ] = None
    return " ".join(sentences)


def without_pairs(configs: Iterable[RunConfig]) -> str:
    """At which lengths tests that ask for border pairs have none, in a sentence or none."""
    tests: dict[BalancedStrings, None] = {}
    for config in {_strings_of(config): config for config in configs}.values():
        with suppress(SeqclsError):
            problem = resolve(config)
            if isinstance(problem.test, BalancedStrings) and not problem.is_imported:
                tests[problem.test] = None
    lacking = [lengths for x in tests if len(lengths := x.unpaired_lengths)]
    if not lacking:
        return ""
    if len(tests) > 1:
        has = "has" if len(lacking) == 1 else "have"
        return f"At some lengths {_tests(len(lacking))} {has} no border pairs."
    named, more = lacking[0][:MOST_UNPAIRED].tolist(), len(lacking[0]) - MOST_UNPAIRED
    others = f" and {more:,} other lengths" if more > 0 else ""
    return f"No positive string of a border pair has {', '.join(map(str, named))} tokens{others}."


def near_obstacle(problem: Problem) -> str | None:
    """Why strings are drawn without near negatives though these are asked for; None else.

    Raises:
        SeqclsError: a task from outside fails.
    """
    parts = ("test",) if problem.is_imported else PARTS
    samplers = (problem.sampler(part) for part in parts)
    asked = [x for x in samplers if isinstance(x, BalancedStrings) and x.negatives == "near"]
    with TASKS.wrap_errors(problem.config.task):
        return next((said for x in asked if (said := x.near_obstacle) is not None), None)


def without_near(configs: Iterable[RunConfig]) -> str:
    """Which languages have no near negatives though they are asked for, and why; or nothing."""
    reasons = dict[str, None]()
    for config in {_strings_of(config): config for config in configs}.values():
        with suppress(SeqclsError):
            if (said := near_obstacle(resolve(config))) is not None:
                reasons[f"{config.task}: {said}"] = None
    if not reasons:
        return ""
    first, more = next(iter(reasons)), len(reasons) - 1
    return f"{first}{f' (and {more:,} more)' if more else ''}."


def _by_length(found: Overlap) -> str:
    if found.share in (0, 1):
        return ""
    shares = {length: known / tested for length, (tested, known) in found.by_length.items()}
    whole = list(takewhile(lambda length: shares[length] == 1, shares))
    listed = [f"all of up to length {whole[-1]}"] if whole else []
    named = [x for x, share in shares.items() if share >= LEAST_NAMED and x not in whole]
    listed += [f"{shares[x]:.0%} of length {x}" for x in named[:MOST_NAMED]]
    return f": {', '.join(listed)}" if listed else ""


def _of_several(found: list[Overlap | None]) -> str:
    some = [x for x in found if x is not None and x.share is not None]
    unknown = sum(x is None or (x.share is None and len(x.lengths) > 0) for x in found)
    if not some:
        if not unknown:
            return "No test string is of a length that is trained on."
        return (
            f"How many of the test strings of trained lengths were trained on is not known of "
            f"these {_tests(unknown)}: that takes drawing the training strings anew; "
            f"{AT_ANY_COST} does."
        )
    lowest, highest = (pick(some, key=lambda x: x.share or 0) for pick in (min, max))
    least = "" if all(x.is_exact for x in some) else "at least "
    shares = _percent(lowest)
    if shares != _percent(highest):
        shares = f"{shares} to {_percent(highest)}"
    missing = f"; of {_tests(unknown)} more it is not known" if unknown else ""
    return (
        f"In {_tests(len(some))}, {least}{shares} of the strings of trained lengths also occur in "
        f"training{missing}."
    )


def _percent(found: Overlap) -> str:
    """A share that is 0% or 100% only where it is none or all."""
    share = found.share or 0.0
    text = f"{share:.1%}"
    if text == "0.0%":
        return "under 0.1%" if share else "0%"
    return "over 99.9%" if text == "100.0%" and share < 1 else text.replace(".0%", "%")


def _tests(number: int) -> str:
    return "1 test set" if number == 1 else f"{number:,} test sets"


def _epochs(number: int) -> str:
    return count(number, "epoch")
