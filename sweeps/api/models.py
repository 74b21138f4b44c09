"""One stored model: `model` opens it, and its methods are the questions that may be asked of it.

A question of `sweeps.api` is the method of that name, asked of a run: it opens the model and asks.
What a verdict or a proof finds is stored, where the file may be written.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any

import numpy as np
import pandas as pd

from seqcls.config import RunConfig
from seqcls.errors import InvalidStringError
from seqcls.interpretability.verdicts import OutputVerdict
from seqcls.problem import Problem, resolve
from seqcls.questions import RunModel
from seqcls.results import Verdict
from seqcls.weights import weights_of
from sweeps.access import is_read_only
from sweeps.store import writer
from sweeps.store.database import Store
from sweeps.store.opening import open_writer, try_to_store
from sweeps.store.reads import checkpoints, queries
from sweeps.store.reads.export import answers_of
from sweeps.store.reads.selection import as_list


def trained_model(store: Store, run_id: int, epoch: int | None = None) -> RunModel:
    """A run's model after an epoch; of the best epoch if none is named.

    Raises:
        UnknownRunError: the run has no such weights.
        StoreError: they are damaged, or no weights of the run's configuration.
    """
    problem = resolve(queries.run_config(store, run_id))
    data = checkpoints.weights(store, run_id, epoch)
    with checkpoints.of_run(run_id):
        return RunModel(problem, weights_of(problem, data), run=run_id)


def ask_on_one_thread() -> None:
    """From now on PyTorch keeps to one thread in this process.

    A tiny model's operations are too small to share out: threads only wait for each other, which
    takes several times as long where other processes want the cores too.
    """
    import torch

    torch.set_num_threads(1)


def untrained_model(store: Store, run_id: int) -> RunModel:
    """A run's model before its training."""
    from seqcls.engines.member import draw_initial

    stored = checkpoints.stored_model(store, run_id)
    problem = resolve(stored.config)
    (weights,) = draw_initial([(problem, stored.model_seed)])
    return RunModel(problem, weights, run=run_id)


def config(store: Store, run: int | str) -> RunConfig:
    """A run's configuration.

    Raises:
        UnknownRunError: there is no such run.
    """
    return queries.run_config(store, queries.find_run(store, run))


def model(store: Store, run: int | str, epoch: int | None = None) -> RunModel:
    """A run's model, whose methods are the questions that may be asked of it.

    Args:
        run: its id, or its sweep and model seed, as `heads/2`.
        epoch: whose weights to use; the best one's if none is named.

    Raises:
        UnknownRunError: there is no such run, or it has no such weights.
    """
    run_id = queries.find_run(store, run)
    model = trained_model(store, run_id, epoch)
    if epoch is not None:
        # Test results are of the best one.
        return model
    scores = queries.length_scores(store, [run_id])
    shares = 1 - scores["wrong"] / scores["tested"]
    by_length = tuple(zip(scores["length"].tolist(), shares.tolist(), strict=True))
    return replace(model, by_length=by_length)


def _question(name: str) -> Callable[..., Any]:
    """The method of a model as a function of a database and a run, with its arguments.

    The epoch comes behind those that may be given by position.
    """
    method = getattr(RunModel, name)
    _, *own = signature(method).parameters.values()
    by_name = [x for x in own if x.kind is Parameter.KEYWORD_ONLY]
    of_run = [Parameter(x, Parameter.POSITIONAL_OR_KEYWORD) for x in ("store", "run")]
    epoch = Parameter("epoch", Parameter.POSITIONAL_OR_KEYWORD, default=None)
    form = Signature([*of_run, *(x for x in own if x not in by_name), epoch, *by_name])

    @wraps(method)
    def ask(*given: Any, **named: Any) -> Any:
        values = form.bind(*given, **named).arguments
        opened = model(values.pop("store"), values.pop("run"), values.pop("epoch", None))
        return method(opened, **values)

    # Help and notebooks show the arguments of this function, not those of the method.
    ask.__signature__ = form  # type: ignore[attr-defined]
    return ask


ablate, automaton, automaton_inside = map(_question, ("ablate", "automaton", "automaton_inside"))
explain, family, minimal, patch = map(_question, ("explain", "family", "minimal", "patch"))
proofs, rules, shortest, states = map(_question, ("proofs", "rules", "shortest", "states"))


def predict(
    store: Store,
    run: int | str,
    strings: str | Sequence[str | Sequence[str]],
    epoch: int | None = None,
    *,
    partial: bool = True,
    beam: int | None = None,
) -> pd.DataFrame:
    """A model's answers, from letter counts where they suffice; an imported one's as stored.

    Args:
        strings: as `ab{100}c{55}`, or as a list of tokens; one, or several.
        partial: answer the others where the model has no places for so long a string; else refuse.
        beam: of a transduction, the width of a beam, which finds that many outputs at most.

    Returns:
        string, label (missing where the string is too long to be read token by token), predicted
        and logit (missing where the model has no places for it), probability. Of a task that is no
        language: string, target, predicted, margin (of the prediction over all else); of a
        transduction string, target, output, log_probability (of the output, in nats). With a beam,
        a row an output, the likeliest of each string first, and ended: whether the model ended it
        with END, or it was cut off.

    Raises:
        UnknownRunError: there is no such run, or it has no weights.
        ConfigError: a beam of a task that is no transduction, or one too narrow or too wide.
        InvalidStringError: a string that is not of this alphabet, or that cannot be asked: an
            imported model answers its test strings alone.
    """
    run_id = queries.find_run(store, run)
    problem = resolve(queries.run_config(store, run_id))
    # A single string is one, too, and a list of tokens in a list of strings.
    texts = [problem.tokenizer.notation(string) for string in as_list(strings)]
    if problem.is_imported and epoch is None and beam is None:
        with checkpoints.of_run(run_id):
            return _stored_answers(store, run_id, problem, texts)
    opened = trained_model(store, run_id, epoch)
    return pd.DataFrame(opened.predict(texts, partial=partial, beam=beam))


def _stored_answers(
    store: Store, run_id: int, problem: Problem, texts: Sequence[str]
) -> pd.DataFrame:
    """What a model that was trained elsewhere answered to strings of its test."""
    stored = {row["input"]: row for row in answers_of(store, run_id)}
    encode, decode = problem.tokenizer.encode, problem.tokenizer.decode
    # Decoding what was encoded makes one string of a{3} and aaa.
    rows = [stored.get(decode(encode(text))) for text in texts]
    if None in rows:
        raise InvalidStringError(
            f"{texts[rows.index(None)][:60]!r} is not in this model's test; its weights are not in "
            "this database, so its answers to test strings alone are known: `seqcls export "
            "answers` lists them"
        )
    names: Sequence[str] = ("label", "predicted", "logit", "probability")
    if problem.lacks("labels"):
        names = ("target", *problem.kind.answer_columns)
    kind = bool if names[0] == "label" else str
    known = {
        name: [None if row is None or row[key] is None else kind(row[key]) for row in rows]
        for name, key in zip(names, ("target", "prediction"), strict=False)
    }
    return pd.DataFrame({"string": texts, **known, **dict.fromkeys(names[2:], np.nan)})


def verdict(store: Store, run: int | str) -> Verdict | OutputVerdict:
    """What a model makes of all strings up to a length: as stored, or else tried and stored.

    By letter counts where these decide and there are few enough; else string by string. Of a
    transduction every input up to a length is tried, anew each time.

    Raises:
        UnknownRunError: there is no such run, or it is not finished.
    """
    run_id = queries.find_run(store, run)
    if (stored := queries.verdict(store, run_id)) is not None:
        return stored
    tried = trained_model(store, run_id).verdict()
    # Verdicts are stored of languages alone.
    if isinstance(tried, Verdict) and not is_read_only():
        with try_to_store("the verdict"):
            writer.record_findings(open_writer(store), run_id, "verdict", [tried])
    return tried
