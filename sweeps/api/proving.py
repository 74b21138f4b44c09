"""Proofs that recurrent networks are right on every string, stored and read again."""

import json
import zlib
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from seqcls import __version__
from seqcls.interpretability.trained_model import TrainedModel
from seqcls.proofs.checker import digest
from seqcls.questions import RunModel, within
from seqcls.results import ProofOutcome
from seqcls.tasks.automaton import Automaton, language_automaton
from seqcls.text import with_nulls
from sweeps.access import is_read_only
from sweeps.api.models import trained_model
from sweeps.results import ProofRecord
from sweeps.store import writer
from sweeps.store.database import Store
from sweeps.store.opening import open_writer, try_to_store
from sweeps.store.reads import explained, queries

if TYPE_CHECKING:
    from seqcls.proofs.prover import Proof


def prove(
    store: Store,
    run: int | str | RunModel,
    epoch: int | None = None,
    *,
    learned: bool = False,
    seconds: float | None = None,
    regions: int | None = None,
    again: bool = False,
    on_progress: Callable[[str], None] | None = None,
) -> "Proof":
    """Proves or refutes that a recurrent network is right on every string, if it can be decided.

    The result of a run's best epoch is stored, and read from there; one that was not decided is
    tried anew with a larger budget.

    Args:
        run: its id, its sweep and model seed, as `heads/2`, or its model after the epoch.
        learned: compare with the automaton learned from its answers, not with the language's.
        seconds: maximum processor time; by default, that of `ProofBudget`, as for `regions`.
        regions: maximum number of regions of states.
        again: prove it anew, whatever is stored.
        on_progress: called with a description of each attempt.

    Raises:
        UnknownRunError: there is no such run, or it has no such weights.
        ConfigError: such a model cannot be proved right, or no automaton of it is known.
    """
    from seqcls.proofs.prover import ProofBudget

    opened = run
    if not isinstance(opened, RunModel):
        opened = trained_model(store, queries.find_run(store, opened), epoch)
    budget = within(ProofBudget(), seconds=seconds, regions=regions)
    before = stored_proof(store, opened, epoch, learned=learned)
    if before is not None and not again:
        # An undecided proof is tried anew only with more time or more regions.
        larger = budget.seconds > before.budget.seconds or budget.regions > before.budget.regions
        if before.outcome != "not decided" or not larger:
            return before
    proof = opened.prove(learned=learned, on_progress=on_progress, **asdict(budget))
    # A decided proof is not replaced by an undecided one.
    stays = before is not None and before.outcome != "not decided"
    is_news = not stays or proof.outcome != "not decided"
    if is_news and _is_kept(store, opened, epoch) and not is_read_only():
        with try_to_store("the proof"):
            run_id, found = cast(int, opened.run), [_record_of(proof, opened)]
            writer.record_findings(open_writer(store), run_id, "proof", found)
    return proof


def stored_proof(
    store: Store, opened: RunModel, epoch: int | None = None, *, learned: bool = False
) -> "Proof | None":
    """Returns the stored proof of a run's model; None where there is none, or of other weights.

    Args:
        opened: the run's model after the epoch; only proofs of the best epoch are stored.
    """
    if not _is_kept(store, opened, epoch):
        return None
    record = explained.proof(store, cast(int, opened.run), of_language=not learned)
    # A proof holds for these weights alone.
    if record is None or record.weights != digest(opened.weights):
        return None
    return _proof_of(record, opened)


def _is_kept(store: Store, opened: RunModel, epoch: int | None) -> bool:
    run = opened.run
    return run is not None and epoch in (None, queries.run_status(store, run).best_epoch)


# Conversion of proofs to and from stored records.


def _record_of(proof: "Proof", opened: TrainedModel) -> ProofRecord:
    from seqcls.proofs.certificate import to_text
    from seqcls.proofs.forgetting import find_forgetting

    automaton, string, forgets = proof.automaton, proof.string, None
    learned = {
        "start": int(automaton.start),
        "accepting": automaton.accepting.nonzero()[0].tolist(),
        "transitions": automaton.table.tolist(),
    }
    if string is not None and proof.of_language:
        forgets = find_forgetting(opened, automaton, string)
    details: dict[str, Any] = {
        "budget": asdict(proof.budget),
        "attempts": list(map(asdict, proof.attempts)),
        "automaton": None if proof.of_language else learned,
        "forgetting": None if forgets is None else forgets.record(),
    }
    if string is not None:
        # The column holds the wrong answer; a missing one is noted in the details.
        details["unanswered"] = proof.predicted is None
    made = proof.certificate
    return ProofRecord(
        of_language=int(proof.of_language),
        result=proof.outcome,
        states=len(automaton.table),
        regions=proof.regions,
        seconds=proof.seconds,
        string=string,
        said=None if string is None else int(not proof.target),
        details=json.dumps(with_nulls(details), ensure_ascii=False, separators=(",", ":")),
        weights=digest(opened.weights),
        version=__version__,
        # Compressed at the highest level: it is written once, and copied with every database.
        certificate=None if made is None else zlib.compress(to_text(made).encode(), 9),
    )


def _proof_of(record: ProofRecord, opened: TrainedModel) -> "Proof | None":
    """Reads a stored proof; None where this version cannot read it."""
    from seqcls.proofs.certificate import FORMAT
    from seqcls.proofs.prover import Attempt, Proof, ProofBudget

    details, automaton = json.loads(record.details), language_automaton(opened.task)
    packed = record.certificate
    certificate = None if packed is None else json.loads(zlib.decompress(packed))
    if (learned := details["automaton"]) is not None:
        table = np.array(learned["transitions"])
        accepting = np.isin(np.arange(len(table)), learned["accepting"])
        automaton = Automaton(table, accepting, learned["start"])
    if automaton is None or (certificate and certificate["format"] != FORMAT):
        return None
    return Proof(
        outcome=cast(ProofOutcome, record.result),
        automaton=automaton,
        of_language=bool(record.of_language),
        budget=ProofBudget(**details["budget"]),
        certificate=certificate,
        string=record.string,
        predicted=None if record.said is None or details.get("unanswered") else bool(record.said),
        target=record.said == 0,
        attempts=tuple(Attempt(**attempt) for attempt in details["attempts"]),
        seconds=record.seconds,
    )
