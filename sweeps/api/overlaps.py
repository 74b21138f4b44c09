"""Sentences about tests: overlap with the training, border pairs, majority answers."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import takewhile

import numpy as np

from seqcls.cancellation import check_each
from seqcls.config import STRING_PARTS, NetworkConfig, RunConfig
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
"""Maximum number of pairs of a test and a training."""

LEAST_NAMED, MOST_NAMED = 0.05, 4
"""The minimum share trained on of a length that is listed, and the maximum number of lengths."""

MOST_UNPAIRED = 8
"""Maximum number of lengths without border pairs that are listed, the shortest ones."""

LEAST_MAJORITY_SHARE = 0.6
"""The accuracy on longer test strings from which on the majority answer by length is reported."""

MOST_TOKENS = 2**22
"""Maximum number of tokens of the tests that are drawn for the majority answer."""

# Fields that affect no string: configurations that differ only in these share a test.
_NOT_OF_STRINGS = set(NetworkConfig.model_fields) - {"num_letters"} | {
    *("learning_rate", "final_learning_rate_factor", "learning_rate_schedule"),
    *("learning_rate_interval", "warm_up_steps", "weight_decay", "decay", "gradient_clip"),
    "embeddings_init_strategy",
}


def trained_on(
    configs: Iterable[RunConfig], *, epochs: int | None = None, exact: bool = False
) -> str | None:
    """Describes how many of the test strings of trained lengths are trained on.

    Further sentences are those of `without_pairs`, `majority` and `contradictions`.

    Args:
        configs: configurations; those with the same test and training count once, those of models
            trained elsewhere not at all.
        epochs: the epochs of training; by default, the maximum of each configuration.
        exact: draw all training strings, however many; else a part of them gives a lower bound, or
            the sentence states that the number is not known.

    Returns:
        The sentences; None where there are none.
    """
    effort, distinct = Effort(UNLIMITED) if exact else Effort(), _distinct(configs)
    if len(distinct) > MOST_TESTS:
        return None
    problems = [x for x in _problems(distinct) if not x.config.imported]
    # With the epochs, since a longer training draws more strings.
    pairs = {(x.train, x.test, x.config.max_num_epochs): x for x in problems}
    found = []
    # A test that cannot be drawn is refused elsewhere, with the reason.
    with suppress(SeqclsError):
        found = [(x, overlap(x, effort, epochs)) for x in check_each(pairs.values())]
    if not found:
        return None
    sentence = _of_one(*found[0], epochs) if len(found) == 1 else _of_several([x for _, x in found])
    return " ".join(
        filter(
            None, (sentence, without_pairs(distinct), majority(distinct), contradictions(distinct))
        )
    )


def _distinct(configs: Iterable[RunConfig]) -> list[RunConfig]:
    """Returns configurations that may differ in the strings of training or test."""
    by_strings: dict[object, RunConfig] = {}
    for config in configs:
        fields = tuple(x for x in config.changed.items() if x[0] not in _NOT_OF_STRINGS)
        by_strings.setdefault(fields, config)
    return [*by_strings.values()]


def _problems(configs: Iterable[RunConfig]) -> Iterator[Problem]:
    """Yields the problems of distinct configurations whose packages are installed."""
    for config in _distinct(configs):
        with suppress(SeqclsError):
            yield resolve(config)


def _of_one(problem: Problem, found: Overlap | None, epochs: int | None) -> str:
    config, train, words = problem.config, problem.train, problem.kind.words
    if config.disjoint:
        return f"No test {words.string} is trained on (disjoint)."
    if found is not None and not len(found.lengths):
        return f"No test {words.string} is of a length that is trained on."
    if found is None or found.share is None:
        number = train.epoch_size * (1 if train.repeats else epochs or config.max_num_epochs)
        return _not_known(words.plural("test"), "", f"{number:,} training strings")
    where = "the training set"
    if not train.repeats:
        # The last epoch may have ended early.
        may_be_fewer = epochs is None or config.check_every > 0
        where = f"{'up to ' * may_be_fewer}{count(found.epochs, 'epoch')} of training"
    if not found.is_exact:
        where += f" (the first {count(found.seen, 'epoch')} searched)"
    shares = {length: known / tested for length, (tested, known) in found.by_length.items()}
    # Short lengths that are trained on completely are one item: all of up to length 4.
    whole = list(takewhile(lambda length: shares[length] == 1, shares))
    named = [x for x, share in shares.items() if share >= LEAST_NAMED and x not in whole]
    lengths = [f"all of up to length {whole[-1]}"] if whole else []
    lengths += [f"{shares[x]:.0%} of length {x}" for x in named[:MOST_NAMED]]
    by_length = f": {', '.join(lengths)}" if lengths and found.share not in (0, 1) else ""
    return (
        f"{'' if found.is_exact else 'At least '}{_percent(found)} of the {len(found.lengths):,} "
        f"{words.plural('test')} of trained lengths also occur in {where}{by_length}."
    )


def _of_several(found: list[Overlap | None]) -> str:
    known = [x for x in found if x is not None and x.share is not None]
    unknown = sum(x is None or (x.share is None and len(x.lengths) > 0) for x in found)
    tests = count(unknown, "test set")
    if not known:
        if unknown:
            return _not_known("test strings", f" of these {tests}", "the training strings")
        return "No test string is of a length that is trained on."
    least = "" if all(x.is_exact for x in known) else "at least "
    ends = (min(known, key=lambda x: x.share or 0), max(known, key=lambda x: x.share or 0))
    shares = " to ".join(dict.fromkeys(map(_percent, ends)))
    missing = f"; of {tests} more it is not known" if unknown else ""
    return (
        f"In {count(len(known), 'test set')}, {least}{shares} of the strings of trained lengths "
        f"also occur in training{missing}."
    )


def _not_known(strings: str, where: str, drawn: str) -> str:
    return (
        f"How many of the {strings} of trained lengths were trained on is not known{where}: that "
        f"takes drawing {drawn} anew; `seqcls estimate SPEC --overlap` does."
    )


def _percent(found: Overlap) -> str:
    """Formats a share; 0% and 100% are exact."""
    text = f"{(share := found.share or 0.0):.1%}"
    if share not in (0, 1) and text in ("0.0%", "100.0%"):
        return "under 0.1%" if share < 0.5 else "over 99.9%"
    return text.replace(".0%", "%")


def majority(configs: Iterable[RunConfig]) -> str:
    """Describes the accuracy of the majority answer by length beyond the trained lengths, and its
    cause; empty where it is low.
    """
    pairs = {(x.train, x.test): x for x in _problems(configs) if not x.config.is_imported}
    shares: list[tuple[float, float, float]] = []
    # One budget for all tests, so that many take no longer than one.
    left, looked_at = MOST_TOKENS, list[Problem]()
    for problem in pairs.values():
        tokens = problem.test.epoch_size * max(1, problem.test.lengths[-1])
        if tokens <= left:
            left -= tokens
            looked_at.append(problem)
            with suppress(SeqclsError):
                shares += _majority_of(problem)
    if not shares or max(shares)[0] < LEAST_MAJORITY_SHARE:
        return ""
    sentence = "The more frequent answer of each length"
    if len(pairs) > 1:
        ends = " to ".join(dict.fromkeys(f"{x[0]:.0%}" for x in (min(shares), max(shares))))
        tests = f", in {len(looked_at):,} of {count(len(pairs), 'test set')}"
        where = "" if len(looked_at) == len(pairs) else tests
        return f"{sentence} is right on {ends} of longer test strings{where}."
    (share, constant, short), problem = shares[0], looked_at[0]
    # One answer to all strings that is about as accurate is the simpler description.
    if abs(constant) > share - 0.01:
        sentence = f"Always answering {'yes' if constant > 0 else 'no'}"
    sentence += f" is right on {share:.0%} of longer test strings"
    if (
        constant < LEAST_MAJORITY_SHARE
        or getattr(problem.test, "negative_lengths", None) != "redrawn"
    ):
        return f"{sentence}."
    return (
        f"{sentence}: {short:.0%} of negatives have {problem.trained_lengths[-1]} tokens or fewer. "
        'negative_lengths = "uniform" spreads them over all lengths.'
    )


def _majority_of(problem: Problem) -> list[tuple[float, float, float]]:
    """Returns the accuracies on longer test strings of the majority answer by length and of one
    answer to all (negative where it is no), and the share of negatives that are not longer. Nothing
    without longer strings or labels.
    """
    if problem.lacks("labels"):
        return []
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
    """Describes the files that have rows that contradict others; empty where none has."""
    sentences = []
    # A dict preserves the order of configurations.
    for digest in {config.dataset: None for config in configs if config.dataset}:
        with suppress(SeqclsError):
            content = dataset_of(digest)
            if isinstance(content, Dataset) and (wrong := content.contradictions[1]):
                sentences.append(
                    f"In {content.name} {count(int(content.contradicted.sum()), 'row')} contradict "
                    "others of the same string (seqcls data lists them), and are trained on but "
                    f"not tested; a perfect model could be right on "
                    f"{percent(1 - wrong / len(content), 1)} of all {len(content):,}."
                )
    return " ".join(dict.fromkeys(sentences))


def without_pairs(configs: Iterable[RunConfig]) -> str:
    """Lists the lengths at which tests with border pairs have none, in a sentence; or nothing."""
    tests = {problem.test: None for problem in _problems(configs) if not problem.config.is_imported}
    lacking = [x.unpaired_lengths.tolist() for x in tests if isinstance(x, BalancedStrings)]
    lacking = [lengths for lengths in lacking if lengths]
    if not lacking:
        return ""
    if len(tests) > 1:
        return f"At some lengths there are no border pairs in {count(len(lacking), 'test set')}."
    named, more = lacking[0][:MOST_UNPAIRED], len(lacking[0]) - MOST_UNPAIRED
    others = f" and {more:,} other lengths" if more > 0 else ""
    return f"No positive string of a border pair has {', '.join(map(str, named))} tokens{others}."


def near_obstacle(problem: Problem) -> str | None:
    """Returns why strings are drawn without the near negatives of the configuration, or None.

    Raises:
        SeqclsError: the task of a plug-in fails.
    """
    samplers = map(problem.sampler, ("test",) if problem.config.is_imported else STRING_PARTS)
    near_samplers = [
        x for x in samplers if isinstance(x, BalancedStrings) and x.negatives == "near"
    ]
    with TASKS.wrap_errors(problem.config.task):
        return next(
            (obstacle for x in near_samplers if (obstacle := x.near_obstacle) is not None), None
        )


def without_near(configs: Iterable[RunConfig]) -> str:
    """Describes why a language has no near negatives though a configuration requests them."""
    reasons = dict[str, None]()
    for problem in _problems(configs):
        with suppress(SeqclsError):
            if (obstacle := near_obstacle(problem)) is not None:
                reasons[f"{problem.config.task}: {obstacle}"] = None
    more = f" (and {len(reasons) - 1:,} more)" if len(reasons) > 1 else ""
    return f"{next(iter(reasons))}{more}." if reasons else ""
