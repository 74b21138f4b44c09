"""One stored model: its answers, why it gives them, and what holds of all strings.

Where letter counts decide they are asked, exactly; else strings are, one by one: the questions of
`seqcls.interpretability` choose.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from seqcls import prediction
from seqcls.config import RunConfig
from seqcls.errors import ConfigError, InvalidStringError, UnknownRunError
from seqcls.interpretability.trained_model import TrainedModel
from seqcls.problem import Problem, resolve
from seqcls.results import Verdict, Weights
from seqcls.weights import weights_of
from sweeps.access import is_read_only
from sweeps.store import writer
from sweeps.store.databases.engine import Store
from sweeps.store.opening import to_write, try_to_store
from sweeps.store.reads import queries
from sweeps.store.reads.export import answers_of
from sweeps.store.reads.queries import of_run, stored_model
from sweeps.store.reads.selection import as_list

if TYPE_CHECKING:
    from seqcls.interpretability.certification import Certification
    from seqcls.interpretability.explanations import Explanation
    from seqcls.interpretability.family import Curve, FamilyMap, OutputFamily
    from seqcls.interpretability.network import Network
    from seqcls.interpretability.verdicts import OutputVerdict


def trained_model(store: Store, run_id: int, epoch: int | None = None) -> TrainedModel:
    """A run's model after an epoch; of the best epoch if none is named.

    Raises:
        UnknownRunError: the run has no such weights.
    """
    problem = resolve(queries.run_config(store, run_id))
    return TrainedModel(problem, stored_weights(store, run_id, problem, epoch))


def untrained_model(store: Store, run_id: int) -> TrainedModel:
    """A run's model before its training."""
    from seqcls.engines.member import draw_initial

    stored = stored_model(store, run_id)
    problem = resolve(stored.config)
    (weights,) = draw_initial([(problem, stored.model_seed)])
    return TrainedModel(problem, weights)


def ask_on_one_thread() -> None:
    """From now on PyTorch keeps to one thread in this process.

    A tiny model's operations are too small to share out: threads only wait for each other, which
    takes several times as long where other processes want the cores too.
    """
    import torch

    torch.set_num_threads(1)


def stored_weights(
    store: Store, run_id: int, problem: Problem, epoch: int | None = None
) -> Weights:
    """A run's parameters after an epoch; of the best epoch if none is named.

    Raises:
        UnknownRunError: the run has no such weights.
        StoreError: they are damaged, or no weights of the run's configuration.
    """
    data = queries.weights(store, run_id, epoch)
    with of_run(run_id):
        return weights_of(problem, data)


def config(store: Store, run: int | str) -> RunConfig:
    """A run's configuration.

    Raises:
        UnknownRunError: there is no such run.
    """
    return queries.run_config(*queries.open_run(store, run))


def model(store: Store, run: int | str, epoch: int | None = None) -> TrainedModel:
    """A run's model, to be asked about strings; `seqcls.interpretability` looks inside.

    Args:
        run: its id, or its sweep and model seed, as `heads/2`.
        epoch: whose weights to use; the best one's if none is named.

    Raises:
        UnknownRunError: there is no such run, or it has no such weights.
    """
    return trained_model(*queries.open_run(store, run), epoch)


def _stored_answers(
    store: Store, run_id: int, problem: Problem, texts: Sequence[str]
) -> pd.DataFrame:
    """What a model that was trained elsewhere answered to strings of its test."""
    stored = {row["input"]: row for row in answers_of(store, run_id)}
    encode, decode = problem.tokenizer.encode, problem.tokenizer.decode
    rows = [stored.get(decode(encode(text))) for text in texts]
    if None in rows:
        raise InvalidStringError(
            f"{texts[rows.index(None)][:60]!r} is not in this model's test; its weights are not in "
            "this database, so its answers to test strings alone are known: `seqcls export "
            "answers` lists them"
        )
    names: Sequence[str] = ("label", "predicted", "logit", "probability")
    if problem.lacks("labels"):
        names = ("target", *(column.name for column in problem.kind.answer_columns))
    kind = bool if names[0] == "label" else str
    known = {
        name: [None if row is None or row[key] is None else kind(row[key]) for row in rows]
        for name, key in zip(names, ("target", "prediction"), strict=False)
    }
    return pd.DataFrame({"string": texts, **known, **dict.fromkeys(names[2:], np.nan)})


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
    reader, run_id = queries.open_run(store, run)
    problem = resolve(queries.run_config(reader, run_id))
    # A single string is one, too, and a list of tokens in a list of strings.
    texts = [problem.tokenizer.notation(string) for string in as_list(strings)]
    if problem.is_imported and epoch is None and beam is None:
        with of_run(run_id):
            return _stored_answers(reader, run_id, problem, texts)
    weights = queries.weights(reader, run_id, epoch)
    if beam is not None:
        with of_run(run_id):
            return _beams(problem, weights, texts, beam, partial=partial)
    with of_run(run_id):
        answers = prediction.predict(problem, weights, texts, partial=partial)
    targets = [prediction.target_of(problem, string) for string in texts]
    if problem.lacks("labels"):
        answer, margin = (column.name for column in problem.kind.answer_columns)
        return pd.DataFrame(
            {
                "string": texts,
                "target": targets,
                answer: [x.answer for x in answers],
                margin: [x.logit for x in answers],
            }
        )
    return pd.DataFrame(
        {
            "string": texts,
            "label": targets,
            "predicted": [x.logit > 0 if x.logit == x.logit else None for x in answers],
            "logit": [x.logit for x in answers],
            "probability": [x.probability for x in answers],
        }
    )


def _beams(
    problem: Problem, weights: bytes, strings: Sequence[str], width: int, *, partial: bool
) -> pd.DataFrame:
    """The likeliest outputs of each string, as `predict` gives them."""
    written = prediction.outputs(problem, weights, strings, width)
    for string, some in zip(strings, written, strict=True):
        if not some and not partial:
            raise InvalidStringError(prediction.no_answer(problem, string))
    targets = [prediction.target_of(problem, string) for string in strings]
    rows = [
        (string, target, output.text, output.ended, output.log_probability)
        for string, target, some in zip(strings, targets, written, strict=True)
        for output in some
    ]
    return pd.DataFrame(rows, columns=["string", "target", "output", "ended", "log_probability"])


def explain(
    store: Store, run: int | str, string: str | Sequence[str], epoch: int | None = None
) -> "Explanation":
    """The cause of a model's answer; `seqcls.interpretability.sentences` tells it.

    Raises:
        UnknownRunError: as `predict`.
        ConfigError: of this model or task the explanation would not be true.
        InvalidStringError: the string is not of this alphabet.
    """
    from seqcls.interpretability import explanations

    network = _network(store, run, epoch, "explanations")
    return explanations.explain(network, network.tokenizer.notation(string))


def proofs(store: Store, run: int | str) -> "Certification":
    """What is proved of a model's answers for strings of every length.

    Raises:
        UnknownRunError: as `predict`.
        ConfigError: of this model or task nothing could be proved.
    """
    from seqcls.interpretability.certification import certify

    return certify(_network(store, run, None, "proofs"))


def family(
    store: Store, run: int | str, strings: str, epoch: int | None = None
) -> "Curve | FamilyMap | OutputFamily":
    """Where the answer changes as the free counts of a family such as `<ab>{n}` grow.

    By letter counts where these decide, exactly and up to a million; else, or where the family has
    groups, by running its strings, up to 2,000. Of a transduction: which outputs are right, of
    inputs of up to 400 tokens.

    Raises:
        UnknownRunError: as `predict`.
        InvalidStringError: it is no family of this alphabet.
    """
    from seqcls.interpretability.families import answers, output_family

    opened = model(store, run, epoch)
    strings = opened.tokenizer.notation(strings)
    if reason := opened.problem.unknown_labels:
        raise ConfigError(f"no family is judged: {reason}")
    # Languages report where the answer changes, transductions where rightness does.
    by_rightness = opened.problem.writes or opened.problem.at_places
    return (output_family if by_rightness else answers)(opened, strings)


def verdict(store: Store, run: int | str) -> "Verdict | OutputVerdict":
    """What a model makes of all strings up to a length: as stored, or else tried and stored.

    By letter counts where these decide and there are few enough; else string by string. Of a
    transduction every input up to a length is tried, anew each time.

    Raises:
        UnknownRunError: there is no such run, or it is not finished.
    """
    from seqcls.interpretability.verdicts import output_verdict, verdict_of

    reader, run_id = queries.open_run(store, run)
    stored = queries.verdict(reader, run_id)
    if stored is not None:
        return stored
    opened = trained_model(reader, run_id)
    if reason := opened.problem.unknown_labels:
        raise ConfigError(f"run {run_id}: there is no exhaustive check: {reason}")
    # Verdicts are stored of languages alone.
    if opened.problem.writes or opened.problem.at_places:
        return output_verdict(opened)
    tried = verdict_of(opened)
    if not is_read_only():
        with try_to_store("the verdict"):
            writer.record_verdict(to_write(store), run_id, tried)
    return tried


def _network(store: Store, run: int | str, epoch: int | None, what: str) -> "Network":
    """The model as a function of letter counts.

    Raises:
        ConfigError: that, or the task, is none, which `what` needs; what else can be asked.
    """
    from seqcls.interpretability.network import Network, obstacle

    reader, run_id = queries.open_run(store, run)
    problem = resolve(queries.run_config(reader, run_id))
    if absent := queries.why_no_weights(problem.config):
        raise UnknownRunError(f"run {run_id}: {absent}")
    reason = obstacle(problem)
    problem.require_language(f"run {run_id}: {what} are of languages")
    if reason is not None:
        # Imported where it is used: PyTorch takes long to load.
        from seqcls.interpretability.patching import can_be_patched

        others = ["`states`"]
        others += ["`patch`"] * can_be_patched(problem)
        others += ["`family`"] * (problem.unknown_labels is None)
        raise ConfigError(
            f"run {run_id}: {what} do not hold for this model: {reason}; try `seqcls model rules "
            f"{run_id}`, `seqcls model minimal {run_id}`, or, with a string, {' or '.join(others)}"
        )
    weights = queries.weights(reader, run_id, epoch)
    with of_run(run_id):
        return Network.of(problem, weights)
