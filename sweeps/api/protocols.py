"""How a model was trained and tested, in sentences by which it could be done again."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from seqcls.config import ANY_SAMPLER, AS_TRAINED, PARTS, REPORT_SAMPLER, RunConfig
from seqcls.curricula import frozen_parts, stages_of
from seqcls.engines.member import steps_of_epoch
from seqcls.imported import MODEL, PREFIX, unfold
from seqcls.problem import Problem, resolve
from seqcls.sampling.balanced import BalancedStrings
from seqcls.tasks.files import OfRows
from seqcls.text import count
from sweeps.results import rows_of
from sweeps.store.database import Store
from sweeps.store.reads import queries
from sweeps.store.reads.overview import dataset_names
from sweeps.store.reads.selection import View

DIGITS = 16
"""How many of a digest's are said."""


def protocol(store: Store, run: int | str) -> list[str]:
    """On what a model was trained, to which budget, which epoch was kept, and how it was tested.

    Args:
        run: by its id or as `heads/2`.

    Returns:
        A sentence or a few on each, as far as they are known.

    Raises:
        UnknownRunError: there is no such run.
        ConfigError: its task or its strings are not known here.
    """
    run_id = queries.find_run(store, str(run))
    return protocols(store, queries.config_id_of(store, run_id), (run_id,))


def protocols(store: Store, config_id: int, run_ids: Sequence[int]) -> list[str]:
    """Says of several runs of one configuration what `protocol` says of one, an item for each."""
    (config,) = queries.configs(store, [config_id]).values()
    frame = queries.runs(store, View(run_ids=tuple(run_ids)))
    rows: list[dict[str, Any]] = rows_of(frame)
    digest = queries.test_digest(store, config_id)
    of_runs = [" ".join(of_run(resolve(config), row, digest)) for row in rows]
    return [*_of_configuration(config, dataset_names(store)), *filter(None, of_runs)]


def _of_configuration(config: RunConfig, datasets: Mapping[str, str]) -> list[str]:
    """What holds for all seeds of a configuration."""
    problem = resolve(config)
    file = datasets.get(config.dataset, config.dataset[:DIGITS])
    task = f"Task: {problem.task.describe()}"
    if file:
        task += f" File: {file} (digest {config.dataset[:DIGITS]})."
    beam = f"beam search of width {config.beam_width}"
    decoding = beam if config.decoding == "beam" else "greedy decoding"
    tested = f"Tested on {_strings(problem, 'test', file)}."
    if foreign := unfold(dict(config)):
        model = foreign.pop(MODEL)
        known = ", ".join(f"{x.removeprefix(PREFIX)}={y}" for x, y in foreign.items())
        strings = "; on which strings is not known here"
        if config.knows_trained_lengths:
            strings = f", on strings of up to {problem.trained_lengths[-1]} tokens"
        return [
            task,
            f"Trained elsewhere as {model}{f' ({known})' * bool(known)}{strings}.",
            tested,
        ]
    return [
        task,
        f"Trained on {_strings(problem, 'train', file)}, in batches of "
        f"{problem.train.batch_size:,}.",
        _optimizer(config),
        _budget(problem),
        f"Validated on {_strings(problem, 'validation', file)}.{_longer(problem)}",
        tested,
        # Other answers are given at once.
        *([f"Outputs are written by {decoding}."] if problem.writes else []),
    ]


def _strings(problem: Problem, part: str, file: str) -> str:
    """So many strings of which lengths, and how they are drawn."""
    sampler, config = problem.sampler(part), problem.config
    number, noun = sampler.epoch_size, problem.kind.words.plural("")
    name = getattr(config, f"{part}_sampler")
    fresh = ""
    if part == "train":
        fresh = ", the same in every epoch" if sampler.repeats else ", new ones in every epoch"
    drawn = _DRAWN[name](problem, part, file) if name in _DRAWN else f"drawn by {name}"
    seed = getattr(sampler, "seed", None)
    drawn += "" if seed is None else f"; seed {seed}"
    if part == "train" and config.train_lengths:
        *earlier, _ = stages_of(config.train_lengths)
        drawn += "".join(
            f"; up to {count(x, 'token')} until {y:.0%} of training" for x, y in earlier
        )
    if part == "test" and config.disjoint:
        drawn += "; none of them trained on"
    first, last = sampler.lengths[0], sampler.lengths[-1]
    lengths = f"{first}" if first == last else f"{first} to {last}"
    return f"{number:,} {noun} of {lengths} tokens{fresh} ({drawn})"


def _describe_balanced(problem: Problem, part: str, _: str) -> str:
    config = problem.config
    if part == "test" and config.test_strings != "random":
        how = (
            "a quarter positive and a quarter negative, uniform, and half in pairs at edit "
            "distance 1, one in the language and one outside"
        )
    else:
        asked = config.test_negatives if part == "test" else AS_TRAINED
        negatives = config.negatives if asked == AS_TRAINED else asked
        sampler = problem.sampler(part)
        if negatives == "near" and isinstance(sampler, BalancedStrings) and sampler.near_obstacle:
            negatives = "mixed, as the language has no near ones"
        lengths = (
            "of uniform lengths"
            if config.negative_lengths == "uniform"
            else "drawn again length and all while positive"
        )
        how = f"half of them positive; negatives {negatives}, {lengths}"
    return how


def _of_file(problem: Problem, part: str, file: str) -> str:
    config, task = problem.config, problem.task
    content = task.content if isinstance(task, OfRows) else None
    left_out = ""
    if part != "train" and content is not None and content.contradicted.any():
        left_out = "; without rows that contradict others"
    splits = None if content is None else content.splits
    if splits is not None and (splits == PARTS.index(part)).any():
        return f"the split {part} of {file}{left_out}"
    share = {"validation": config.validation_share, "test": config.test_share}.get(part)
    if share is None:
        return f"the other strings of {file}"
    return f"{share:.0%} of the strings of {file}, drawn with seed {config.train_seed}{left_out}"


_DRAWN = {
    REPORT_SAMPLER: lambda problem, part, _: (
        "each set of required letters has its budget in each batch; shares of letters by a "
        f"symmetric Dirichlet distribution of alpha {getattr(problem.config, f'{part}_alpha'):g}"
    ),
    "fixed_length": lambda *_: "all there are",
    ANY_SAMPLER: _describe_balanced,
    "uniform_inputs": lambda *_: "of uniform lengths, as the task draws them",
    "dataset_rows": _of_file,
}
"""How each sampler draws strings."""


def _optimizer(config: RunConfig) -> str:
    rate, factor = config.learning_rate, config.final_learning_rate_factor
    falls = ""
    if factor != 1:
        curve = "linearly" if config.learning_rate_schedule == "linear" else "by a cosine"
        falls = (
            f" that falls {curve}, after every {config.learning_rate_interval}, to "
            f"{rate * factor:g} at epoch {config.max_num_epochs:,}"
        )
    decayed = "" if config.decay == "all" else " of matrices alone"
    parts = [f"AdamW with learning rate {rate:g}{falls}"]
    if config.warm_up_steps:
        parts.append(f"a warm-up of {count(config.warm_up_steps, 'step')}")
    parts += [
        f"{part} fixed until {y:.0%} of training" for part, y in frozen_parts(config.freeze).items()
    ]
    parts.append(f"weight decay {config.weight_decay:g}{decayed * (config.weight_decay > 0)}")
    if config.gradient_clip:
        parts.append(f"gradients clipped to norm {config.gradient_clip:g}")
    if config.dropout_rate:
        parts.append(f"dropout {config.dropout_rate:g}")
    loss = "cross-entropy" if config.train_loss == "default" else config.train_loss
    return f"{', '.join(parts)}; loss: {loss}; {config.precision}."


def _budget(problem: Problem) -> str:
    """When training ends."""
    config, strings = problem.config, problem.kind.words.plural("validation")
    epochs = config.max_num_epochs
    steps = epochs * steps_of_epoch(problem)
    said = f"Training ends after {count(epochs, 'epoch')} ({count(steps, 'step')}) at the latest"
    earlier = []
    if config.stop_when_right:
        also = f" and every {count(config.check_every, 'step')}" if config.check_every else ""
        earlier.append(
            f"once all {strings} of trained lengths are right (asked after every epoch{also})"
        )
    since = f" from epoch {config.min_num_epochs} on" if config.min_num_epochs > 1 else ""
    if config.min_validation_loss:
        earlier.append(
            f"once the validation loss is below {config.min_validation_loss:g} nats{since}"
        )
    if config.patience < epochs:
        earlier.append(
            f"after {count(config.patience, 'epoch')} without a lower validation loss{since}"
        )
    return f"{said}, or earlier: {', or '.join(earlier)}." if earlier else f"{said}."


def _longer(problem: Problem) -> str:
    """That the epoch was chosen by longer strings than it was trained on, where it was."""
    trained, asked = problem.train.lengths[-1], problem.validation.lengths[-1]
    if asked <= trained:
        return ""
    return (
        f" They are longer than those trained on ({asked} tokens against {trained}): the loss by "
        "which an epoch is kept is also of strings beyond trained lengths."
    )


def of_run(problem: Problem, row: Mapping[str, Any], test_digest: str | None) -> list[str]:
    """What came of one seed: the epoch kept, its test, its digests."""
    config, words, said = problem.config, problem.kind.words, []
    if epochs := row["epochs"]:
        kept = "" if config.imported or not row["best_epoch"] else _describe_kept(problem, row)
        said.append(f"Seed {row['model_seed']} was trained for {count(epochs, 'epoch')}{kept}.")
    if row["tested"] is not None:
        judged, within = "", row["tested_within"]
        if within:
            strings = words.plural(f"{row['within_from']}")
            judged = f"; on trained lengths it is judged by {within:,} {strings}"
        digest = f" (digest {_digits(test_digest)})" if test_digest else ""
        said.append(f"It answered {row['tested']:,} {words.plural('test')}{digest}{judged}.")
    if row["finished_at"] and row["tested"] is not None:
        when = f"{pd.Timestamp(row['finished_at']):%Y-%m-%d %H:%M} UTC"
        how = f"Trained by the engine {row['engine']}"
        if config.imported:
            # Of which file, or in which epoch training diverged.
            how = f"Imported ({row['engine_reason']})" if row["engine_reason"] else "Imported"
        digest = f"; digest of its results {_digits(row['digest'])}" if row["digest"] else ""
        packages = f"; packages {config.plugins}" if config.plugins else ""
        said.append(f"{how}, {when}{digest}{packages}.")
    return said


def _describe_kept(problem: Problem, row: Mapping[str, Any]) -> str:
    """Which epoch was kept, and why."""
    config, strings = problem.config, problem.kind.words.plural("validation")
    best, loss = row["best_epoch"], row["best_validation_loss"]
    why = f"of the lowest loss on the {strings}, {loss:.4g} nats in all"
    if config.stop_when_right and best == row["epochs"]:
        # At the latest epoch either may be so, and a low loss ends training as well.
        early = best < config.max_num_epochs and loss >= config.min_validation_loss
        first = f"the first at which all {strings} of trained lengths were right"
        why = first if early else f"the last, with a loss of {loss:.4g} nats on the {strings}"
    return f", and epoch {best:,} was kept, {why}"


def _digits(digest: str) -> str:
    return digest.rpartition(":")[2][:DIGITS]
