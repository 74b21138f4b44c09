"""Protocols: training and test of a model in sentences, sufficient to repeat them."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from seqcls.config import ANY_SAMPLER, AS_TRAINED, REPORT_SAMPLER, STRING_PARTS, RunConfig
from seqcls.curricula import stages_of
from seqcls.engines.member import steps_of_epoch
from seqcls.fields import phrases_of
from seqcls.imported import MODEL, PREFIX, unfold
from seqcls.problem import Problem, resolve
from seqcls.sampling.balanced import BalancedStrings
from seqcls.tasks.files import RowsTask
from seqcls.text import count
from sweeps.results import rows_of
from sweeps.store.database import Store
from sweeps.store.reads import queries
from sweeps.store.reads.overview import dataset_names
from sweeps.store.reads.selection import Selection

DIGEST_DIGITS = 16
"""Number of digits of a digest in a sentence."""


def protocol(store: Store, run: int | str) -> list[str]:
    """Describes a model's training strings, optimizer, budget, best epoch and test.

    Args:
        run: its id, or its sweep and model seed, as `heads/2`.

    Returns:
        A paragraph on each, as far as they are known.

    Raises:
        UnknownRunError: there is no such run.
        ConfigError: its task or its strings are not known here.
    """
    run_id = queries.find_run(store, run)
    return protocols(store, queries.config_id_of(store, run_id), (run_id,))


def protocols(store: Store, config_id: int, run_ids: Sequence[int]) -> list[str]:
    """Describes runs of one configuration as `protocol` does one, with an item for each."""
    (config,) = queries.configs(store, [config_id]).values()
    problem = resolve(config)
    (digest,) = queries.test_set_digests(store, [config_id]) or {None}
    rows: list[dict[str, Any]] = rows_of(queries.runs(store, Selection(run_ids=tuple(run_ids))))
    of_runs = [" ".join(of_run(problem, row, digest)) for row in rows]
    file = dataset_names(store).get(config.dataset, config.dataset[:DIGEST_DIGITS])
    return [*_of_configuration(problem, file), *filter(None, of_runs)]


def _join(*parts: tuple[object, str], by: str = ", ") -> str:
    """Joins those phrases whose condition holds."""
    return by.join(phrase for applies, phrase in parts if applies)


def _of_configuration(problem: Problem, file: str) -> list[str]:
    """Describes what all seeds of a configuration share."""
    config = problem.config
    task = f"Task: {problem.task.describe()}"
    if file:
        task += f" File: {file} (digest {config.dataset[:DIGEST_DIGITS]})."
    tested = f"Tested on {_strings(problem, 'test', file)}."
    # A model trained elsewhere has no optimizer or budget that is known here.
    if foreign := unfold(dict(config)):
        model = foreign.pop(MODEL)
        known = ", ".join(f"{x.removeprefix(PREFIX)}={y}" for x, y in foreign.items())
        strings = "; on which strings is not known here"
        if config.knows_trained_lengths:
            strings = f", on strings of up to {problem.trained_lengths[-1]} tokens"
        elsewhere = f"Trained elsewhere as {model}{f' ({known})' * bool(known)}{strings}."
        return [task, elsewhere, tested]
    last, last_validated = problem.train.lengths[-1], problem.validation.lengths[-1]
    longer = (
        f" They are longer than those trained on ({last_validated} tokens against {last}): the "
        "loss by which an epoch is kept is also of strings beyond trained lengths."
    )
    batches = f"in batches of {problem.train.batch_size:,}"
    beam = f"beam search of width {config.beam_width}"
    decoding = beam if config.decoding == "beam" else "greedy decoding"
    return [
        task,
        f"Trained on {_strings(problem, 'train', file)}, {batches}.",
        _optimizer(config),
        _budget(problem),
        f"Validated on {_strings(problem, 'validation', file)}.{longer * (last_validated > last)}",
        tested,
        # Only outputs are decoded.
        *([f"Outputs are written by {decoding}."] if problem.writes else []),
    ]


def _strings(problem: Problem, part: str, file: str) -> str:
    """Describes the number, lengths and drawing of the strings of a part."""
    sampler, config, trains = problem.sampler(part), problem.config, part == "train"
    fresh = "the same" if sampler.repeats else "new ones"
    seed = getattr(sampler, "seed", None)
    stages = stages_of(config.train_lengths)[:-1] if trains and config.train_lengths else []
    how = _join(
        (True, _describe_drawing(problem, part, file)),
        (seed is not None, f"seed {seed}"),
        *((True, f"up to {count(x, 'token')} until {y:.0%} of training") for x, y in stages),
        (part == "test" and config.disjoint, "none of them trained on"),
        by="; ",
    )
    first, last = sampler.lengths[0], sampler.lengths[-1]
    return (
        f"{sampler.epoch_size:,} {problem.kind.words.plural('')} of {first}"
        f"{f' to {last}' * (first != last)} tokens{f', {fresh} in every epoch' * trains} ({how})"
    )


def _describe_drawing(problem: Problem, part: str, file: str) -> str:
    """Describes how a part's sampler draws strings."""
    config, name = problem.config, getattr(problem.config, f"{part}_sampler")
    if name == ANY_SAMPLER:
        return _describe_balance(problem, part)
    if name == "dataset_rows":
        return _describe_file(problem, part, file)
    alpha = getattr(config, f"{part}_alpha")
    shares = f"shares of letters by a symmetric Dirichlet distribution of alpha {alpha:g}"
    return {
        REPORT_SAMPLER: f"each set of required letters has its budget in each batch; {shares}",
        "fixed_length": "all there are",
        "uniform_inputs": "of uniform lengths, as the task draws them",
    }.get(name, f"drawn by {name}")


def _describe_balance(problem: Problem, part: str) -> str:
    config, sampler = problem.config, problem.sampler(part)
    if part == "test" and config.test_strings != "random":
        return (
            "a quarter positive and a quarter negative, uniform, and half in pairs at edit "
            "distance 1, one in the language and one outside"
        )
    choice = config.test_negatives if part == "test" else AS_TRAINED
    negatives = config.negatives if choice == AS_TRAINED else choice
    if negatives == "near" and isinstance(sampler, BalancedStrings) and sampler.near_obstacle:
        negatives = "mixed, as the language has no near ones"
    lengths = "drawn again length and all while positive"
    if config.negative_lengths != "redrawn":
        lengths = "of uniform lengths"
    if config.negative_lengths == "nearest" and negatives == "near":
        lengths += ", near ones of the nearest that have positive strings"
    return f"half of them positive; negatives {negatives}, {lengths}"


def _describe_file(problem: Problem, part: str, file: str) -> str:
    config, task = problem.config, problem.task
    content, left_out = task.content if isinstance(task, RowsTask) else None, ""
    if part != "train" and content is not None and content.contradicted.any():
        left_out = "; without rows that contradict others"
    splits = None if content is None else content.splits
    if splits is not None and (splits == STRING_PARTS.index(part)).any():
        return f"the split {part} of {file}{left_out}"
    if part == "train":
        return f"the other strings of {file}"
    share = getattr(config, f"{part}_share")
    return f"{share:.0%} of the strings of {file}, drawn with seed {config.train_seed}{left_out}"


def _optimizer(config: RunConfig) -> str:
    rate, factor = config.learning_rate, config.final_learning_rate_factor
    curve = "linearly" if config.learning_rate_schedule == "linear" else "by a cosine"
    falls = (
        f" that falls {curve}, after every {config.learning_rate_interval}, to "
        f"{rate * factor:g} at epoch {config.max_num_epochs:,}"
    )
    parts = _join(
        (True, f"AdamW with learning rate {rate:g}{falls * (factor != 1)}"),
        *((True, phrase) for phrase in phrases_of(config)),
    )
    loss = "cross-entropy" if config.train_loss == "default" else config.train_loss
    return f"{parts}; loss: {loss}; {config.precision}."


def _budget(problem: Problem) -> str:
    """Describes when training ends."""
    config, strings = problem.config, problem.kind.words.plural("validation")
    epochs, also = config.max_num_epochs, ""
    if config.check_every:
        also = f" and every {count(config.check_every, 'step')}"
    more = ""
    if config.train_more_steps:
        more = f" again, {count(config.train_more_steps, 'step')} or more after they first were"
    since = f" from epoch {config.min_num_epochs} on" if config.min_num_epochs > 1 else ""
    earlier = _join(
        (
            config.stop_when_right,
            f"once all {strings} of trained lengths are right{more} (asked after every "
            f"epoch{also})",
        ),
        (
            config.min_validation_loss,
            f"once the validation loss is below {config.min_validation_loss:g} nats{since}",
        ),
        (
            config.patience < epochs,
            f"after {count(config.patience, 'epoch')} without a lower validation loss{since}",
        ),
        by=", or ",
    )
    steps = count(epochs * steps_of_epoch(problem), "step")
    sentence = f"Training ends after {count(epochs, 'epoch')} ({steps}) at the latest"
    return f"{sentence}{f', or earlier: {earlier}' * bool(earlier)}."


def of_run(problem: Problem, row: Mapping[str, Any], test_digest: str | None) -> list[str]:
    """Describes the results of one seed: its best epoch, test and digests."""
    config, words, sentences = problem.config, problem.kind.words, []
    if epochs := row["epochs"]:
        kept_epoch = (
            "" if config.imported or not row["best_epoch"] else _describe_kept(problem, row)
        )
        size = row["num_parameters"]
        of_size = "" if pd.isna(size) else f", {count(int(size), 'parameter')},"
        trained = f"was trained for {count(epochs, 'epoch')}{kept_epoch}"
        sentences.append(f"Seed {row['model_seed']}{of_size} {trained}.")
    if row["tested"] is None:
        return sentences
    judged, digest = "", f" (digest {_digits(test_digest)})" if test_digest else ""
    if row["tested_within"]:
        strings = f"{row['tested_within']:,} {words.plural(row['within_from'])}"
        judged = f"; on trained lengths it is judged by {strings}"
    sentences.append(f"It answered {row['tested']:,} {words.plural('test')}{digest}{judged}.")
    if row["finished_at"]:
        how = f"Trained by the engine {row['engine']}"
        if config.imported:
            # The reason names the file, or the epoch in which training diverged.
            how = "Imported" + f" ({row['engine_reason']})" * bool(row["engine_reason"])
        when = f"{how}, {pd.Timestamp(row['finished_at']):%Y-%m-%d %H:%M} UTC"
        results = f"digest of its results {_digits(row['digest'] or '')}"
        packages = f"packages {config.plugins}"
        parts = (True, when), (row["digest"], results), (config.plugins, packages)
        sentences.append(f"{_join(*parts, by='; ')}.")
    return sentences


def _describe_kept(problem: Problem, row: Mapping[str, Any]) -> str:
    """Describes which epoch was selected, and why."""
    config, strings = problem.config, problem.kind.words.plural("validation")
    best, loss = row["best_epoch"], row["best_validation_loss"]
    why = f"of the lowest loss on the {strings}, {loss:.4g} nats in all"
    if config.stop_when_right and best == row["epochs"]:
        why = f"the last, with a loss of {loss:.4g} nats on the {strings}"
        # At the latest epoch either may hold, and a low loss ends training as well.
        if best < config.max_num_epochs and loss >= config.min_validation_loss:
            first = "one" if config.train_more_steps else "the first"
            why = f"{first} at which all {strings} of trained lengths were right"
    return f", and epoch {best:,} was kept, {why}"


def _digits(digest: str) -> str:
    return digest.rpartition(":")[2][:DIGEST_DIGITS]
