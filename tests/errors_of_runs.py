"""What is said of stored models' errors, checked error by error.

python -m tests.errors_of_runs DATABASE [ERRORS OF EACH RUN]
"""

import sys
from collections import Counter
from collections.abc import Iterator

import torch

from seqcls.interpretability.attribution import logit_steps
from seqcls.interpretability.minimal import minimal_failing, nearest_right
from seqcls.interpretability.patching import patch
from seqcls.interpretability.readable_model import ids_of, plain_model
from seqcls.interpretability.trained_model import MAX_LENGTH, Letters, TrainedModel
from seqcls.models.parts import Site
from sweeps.api.models import trained_model
from sweeps.store.databases.engine import Store
from sweeps.store.opening import open_reader
from sweeps.store.reads import queries, string_queries
from tests.patching import outputs_patched_everywhere

EXACT = 1e-10
PATCHED_LENGTH = 24
"""Tokens up to which states are carried over: each place is a run of the model."""


def check_runs(store: Store, of_each: int) -> Counter[str]:
    """Checks errors of every finished run, spread from its shortest to its longest.

    Returns:
        How many errors were checked, by what was.

    Raises:
        AssertionError: something that was said is not so; with the run and the string.
    """
    checked = Counter[str]()
    runs = queries.runs(store)
    for run_id in runs.loc[(runs["state"] == "done") & (runs["errors"] > 0), "id"].astype(int):
        model = trained_model(store, run_id)
        texts = string_queries.string_errors(store, run_id)["string"].unique().tolist()
        texts = sorted(texts, key=lambda own: (len(model.letters(own)), own))
        for text in texts[:: max(len(texts) // of_each, 1)][:of_each]:
            for what, holds in _claims(model, model.letters(text)):
                assert holds, f"run {run_id}, {text!r}: {what}"
                checked[what] += 1
    return checked


def _claims(model: TrainedModel, letters: Letters) -> Iterator[tuple[str, bool]]:
    logit = _logit(model, letters)
    if model.config.architecture == "transformer":
        last = logit_steps(model, letters)[-1].logit
        yield "the parts sum to the logit", abs(last - logit) <= EXACT * max(1, abs(logit))
    if len(letters) <= PATCHED_LENGTH:
        yield from _claims_of_patching(model, letters, logit)
    if model.answer(letters).is_wrong and len(letters) <= MAX_LENGTH:
        found = model.letters(minimal_failing(model, letters).found.string)
        shorter = [found[:place] + found[place + 1 :] for place in range(len(found))]
        least = 0 if model.problem.tries_empty else 1
        shorter = [own for own in shorter if len(own) >= least]
        yield "the minimal string fails", model.answer(found).is_wrong
        still = bool(shorter) and bool(model.ask_all(shorter).wrong.any())
        yield "with any one token less it does not", not still


def _claims_of_patching(
    model: TrainedModel, letters: Letters, logit: float
) -> Iterator[tuple[str, bool]]:
    own = patch(model, letters, letters)
    yield "a string patched with itself stays", bool(abs(own.logits - logit).max() <= EXACT)
    near = nearest_right(model, letters, same_length=True, max_edits=1)
    if near.answer is None:
        return
    last = model.config.num_blocks - 1
    read = {Site("embedding"), Site("block", last), Site("layer", last)}
    read |= {Site("state", last)} if last == 0 else set()
    for site in read.intersection(plain_model(model).sites()):
        found = float(outputs_patched_everywhere(model, letters, near.letters, site))
        given = abs(found - _logit(model, near.letters)) <= EXACT
        yield f"all of {site.name} patched gives the other's logit", given


def _logit(model: TrainedModel, letters: Letters) -> float:
    with torch.no_grad():
        return float(plain_model(model)(ids_of(model, [letters])))


def main() -> None:
    db, *of_each = sys.argv[1:]
    torch.set_num_threads(1)
    print(dict(check_runs(open_reader(db), int(of_each[0]) if of_each else 5)))


if __name__ == "__main__":
    main()
