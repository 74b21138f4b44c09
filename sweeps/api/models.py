"""Access to one stored model: `model` opens it, and its methods are the questions about it.

Each question is also a function of `sweeps.api`, which opens the model of a run and calls the
method of that name. Verdicts and proofs are stored, where the database may be written.
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
from sweeps.store.reads.misclassified import answers_of
from sweeps.store.reads.selection import as_list


def trained_model(store: Store, run_id: int, epoch: int | None = None) -> RunModel:
    """Opens a run's model after an epoch; by default, the best one.

    Raises:
        UnknownRunError: the run has no such weights.
        StoreError: they are damaged, or do not fit the run's configuration.
    """
    problem = resolve(queries.run_config(store, run_id))
    data = checkpoints.weights(store, run_id, epoch)
    with checkpoints.of_run(run_id):
        return RunModel(problem, weights_of(problem, data), run=run_id)


def ask_on_one_thread() -> None:
    """Limits PyTorch to one thread in this process from now on.

    The operations of a tiny model are too small to be parallel: threads only wait for each other,
    which takes several times as long where other processes use the cores too.
    """
    import torch

    torch.set_num_threads(1)


def untrained_model(store: Store, run_id: int) -> RunModel:
    """Returns a run's model before its training."""
    from seqcls.engines.member import draw_initial

    seed = queries.check_done(store, run_id, "has no model to look into").model_seed
    # Of a model whose trained weights are not here, the first are not known either.
    checkpoints.stored_epochs(store, run_id)
    problem = resolve(queries.run_config(store, run_id))
    (weights,) = draw_initial([(problem, seed)])
    return RunModel(problem, weights, run=run_id)


def config(store: Store, run: int | str) -> RunConfig:
    """Returns a run's configuration.

    Raises:
        UnknownRunError: there is no such run.
    """
    return queries.run_config(store, queries.find_run(store, run))


def model(store: Store, run: int | str, epoch: int | None = None) -> RunModel:
    """Opens a run's model, whose methods are the questions about it.

    Args:
        run: its id, or its sweep and model seed, as `heads/2`.
        epoch: the epoch of the weights; the best one by default.

    Raises:
        UnknownRunError: there is no such run, or it has no such weights.
    """
    run_id = queries.find_run(store, run)
    model = trained_model(store, run_id, epoch)
    if epoch is not None:
        # Test results are those of the best epoch.
        return model
    scores = queries.length_scores(store, [run_id])
    shares = 1 - scores["wrong"] / scores["tested"]
    by_length = tuple(zip(scores["length"].tolist(), shares.tolist(), strict=True))
    return replace(model, by_length=by_length)


def _question(name: str) -> Callable[..., Any]:
    """Returns a method of models as a function of a database, a run and its arguments.

    The epoch follows the positional ones.
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
    """Predicts strings, from letter counts where they suffice; an imported model's are stored.

    Args:
        strings: one or several, as `ab{100}c{55}` or as a list of tokens.
        partial: leave the answers to strings too long for the model missing; else refuse them.
        beam: of a transduction, the width of a beam, the maximum number of outputs it finds.

    Returns:
        string, label (missing where the string is too long to be read token by token), predicted
        and logit (missing where the string is too long for the model), probability. Of a task that
        is no language: string, target, predicted, margin (of the prediction over all else); of a
        transduction string, target, output, log_probability (of the output, in nats). With a beam,
        a row an output, the likeliest of each string first, and ended: True if the model ended it
        with END, False if it was cut off.

    Raises:
        UnknownRunError: there is no such run, or it has no weights.
        ConfigError: a beam of a task that is no transduction, or one too narrow or too wide.
        InvalidStringError: a string is not over this alphabet, or not among the test strings, whose
            answers alone are known of an imported model.
    """
    run_id = queries.find_run(store, run)
    problem = resolve(queries.run_config(store, run_id))
    # Both a single string and a list of tokens within a list are allowed.
    texts = [problem.tokenizer.notation(string) for string in as_list(strings)]
    if problem.config.is_imported and epoch is None and beam is None:
        with checkpoints.of_run(run_id):
            return _stored_answers(store, run_id, problem, texts)
    opened = trained_model(store, run_id, epoch)
    return pd.DataFrame(opened.predict(texts, partial=partial, beam=beam))


def _stored_answers(
    store: Store, run_id: int, problem: Problem, texts: Sequence[str]
) -> pd.DataFrame:
    """Returns the stored answers of a model trained elsewhere to strings of its test."""
    stored = {row["input"]: row for row in answers_of(store, run_id)}
    encode, decode = problem.tokenizer.encode, problem.tokenizer.decode
    # Encoding and decoding maps a{3} and aaa to one string.
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
    """Checks a model on all strings up to a length: as stored, or else evaluated and stored.

    By letter counts where these decide and there are few enough; else string by string. The inputs
    of a transduction are evaluated anew each time.

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
