"""Whether recurrent networks are right on every string: proved once, stored, and read again."""

import json
import logging
import zlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields, replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from seqcls import __version__
from seqcls.errors import ConfigError
from seqcls.interpretability.trained_model import TrainedModel
from seqcls.proofs.checker import digest
from seqcls.results import ProofOutcome
from seqcls.tasks.automaton import Automaton, language_automaton
from seqcls.text import with_nulls
from sweeps.access import is_read_only
from sweeps.api.models import trained_model
from sweeps.results import ProofRecord
from sweeps.store import writer
from sweeps.store.databases.engine import Store
from sweeps.store.opening import to_write, try_to_store
from sweeps.store.reads import explained, queries

if TYPE_CHECKING:
    from seqcls.proofs.prover import Proof, ProofBudget

Bounds = TypeVar("Bounds")

_log = logging.getLogger(__name__)


def prove(
    store: Store,
    run: int | str,
    epoch: int | None = None,
    *,
    learned: bool = False,
    seconds: float | None = None,
    regions: int | None = None,
    again: bool = False,
    on_progress: Callable[[str], None] | None = None,
) -> "Proof":
    """Whether a recurrent network is right on every string: proved, refuted, or not decided.

    What is found of a run's kept epoch is stored, and read from there; but where it was not decided
    within a smaller budget, that is tried anew.

    Args:
        learned: hold it against the automaton that is learned of its answers, not the language's.
        seconds: after which it is not decided; this and what follows as the `ProofBudget` has it,
            if not named.
        regions: regions of states at most.
        again: prove it anew, whatever is stored.
        on_progress: told what is tried.

    Raises:
        UnknownRunError: there is no such run, or it has no such weights.
        ConfigError: nothing can be proved of such a model, or no automaton is known of it.
    """
    from seqcls.proofs.prover import ProofBudget

    budget = ProofBudget()
    if seconds is not None:
        budget = replace(budget, seconds=seconds)
    if regions is not None:
        budget = replace(budget, regions=regions)
    reader, run_id = queries.open_run(store, run)
    opened = trained_model(reader, run_id, epoch)
    return prove_model(
        reader, run_id, opened, epoch, budget, learned=learned, again=again, on_progress=on_progress
    )


def prove_model(
    store: Store,
    run_id: int,
    opened: TrainedModel,
    epoch: int | None,
    budget: "ProofBudget",
    *,
    learned: bool = False,
    again: bool = False,
    on_progress: Callable[[str], None] | None = None,
) -> "Proof":
    """Does what `prove` does, for a run's model that is open already."""
    from seqcls.interpretability.automaton_learning import learn
    from seqcls.proofs import prover

    before = stored_proof(store, run_id, opened, epoch, learned=learned)
    if before is not None and not again and _suffices(before, budget):
        return before
    found = learn(opened) if learned else None
    if found is not None and not found.found:
        raise ConfigError(f"no automaton of the model was found: {found.ended}")
    automaton = None if found is None else found.automaton
    proof = prover.prove(opened, automaton, budget, on_progress)
    # What was decided stays so, however long it was tried anew.
    if before is None or proof.outcome != "not decided" or before.outcome == "not decided":
        _store(store, run_id, opened, epoch, proof)
    return proof


def stored_proof(
    store: Store,
    run_id: int,
    opened: TrainedModel,
    epoch: int | None = None,
    *,
    learned: bool = False,
) -> "Proof | None":
    """What is stored of a run's model; None where nothing is, or of other weights.

    Args:
        opened: the run's model after the epoch; only of the kept one anything is stored.
    """
    if not _is_kept(store, run_id, epoch):
        return None
    record = explained.proof(store, run_id, of_language=not learned)
    if record is None or record.weights != digest(opened.weights):
        return None
    return _proof_of(record, opened)


def _is_kept(store: Store, run_id: int, epoch: int | None) -> bool:
    return epoch is None or epoch == queries.run_status(store, run_id).best_epoch


def _suffices(proof: "Proof", budget: "ProofBudget") -> bool:
    """Whether trying again with a budget can find nothing more."""
    is_within = budget.seconds <= proof.budget.seconds and budget.regions <= proof.budget.regions
    return proof.outcome != "not decided" or is_within


def _store(
    store: Store, run_id: int, opened: TrainedModel, epoch: int | None, proof: "Proof"
) -> None:
    """Stores a proof of the kept epoch, where this process may write the database."""
    if is_read_only() or not _is_kept(store, run_id, epoch):
        return
    with try_to_store("the proof"):
        writer.record_proof(to_write(store), run_id, _record_of(proof, opened))


# A proof as it is stored.


def _record_of(proof: "Proof", opened: TrainedModel) -> ProofRecord:
    from seqcls.proofs.certificate import to_text
    from seqcls.proofs.forgetting import find_forgetting

    forgets = None
    if proof.string is not None and proof.of_language:
        forgets = find_forgetting(opened, proof.automaton, proof.string)
    made, automaton = proof.certificate, proof.automaton
    learned = {
        "start": int(automaton.start),
        "accepting": automaton.accepting.nonzero()[0].tolist(),
        "transitions": automaton.table.tolist(),
    }
    details: dict[str, Any] = {
        "budget": asdict(proof.budget),
        "attempts": list(map(asdict, proof.attempts)),
        "automaton": None if proof.of_language else learned,
        "forgetting": None if forgets is None else forgets.record(),
    }
    said = None
    if proof.string is not None:
        # The column says what is not right; that there is no answer stands in the details.
        details["unanswered"], said = proof.said is None, int(not proof.wanted)
    return ProofRecord(
        of_language=int(proof.of_language),
        result=proof.outcome,
        states=len(automaton.table),
        regions=proof.regions,
        seconds=proof.seconds,
        string=proof.string,
        said=said,
        details=json.dumps(
            with_nulls(details), ensure_ascii=False, separators=(",", ":"), allow_nan=False
        ),
        weights=digest(opened.weights),
        version=__version__,
        certificate=None if made is None else zlib.compress(to_text(made).encode(), 9),
    )


def _proof_of(record: ProofRecord, opened: TrainedModel) -> "Proof | None":
    """A proof that was stored; None where this version cannot read it."""
    from seqcls.proofs.certificate import FORMAT
    from seqcls.proofs.prover import Attempt, Proof, ProofBudget

    details, packed = json.loads(record.details), record.certificate
    learned = details.get("automaton")
    automaton = language_automaton(opened.task) if learned is None else _automaton_of(learned)
    try:
        budget = _read(ProofBudget, details["budget"])
        attempts = tuple(_read(Attempt, each) for each in details["attempts"])
    except (KeyError, TypeError, ConfigError):
        return None
    certificate = None if packed is None else json.loads(zlib.decompress(packed))
    # An older certificate binds no letters, and was made without a look at overflow.
    if automaton is None or (certificate is not None and certificate["format"] != FORMAT):
        return None
    return Proof(
        outcome=cast(ProofOutcome, record.result),
        automaton=automaton,
        of_language=bool(record.of_language),
        budget=budget,
        certificate=certificate,
        string=record.string,
        said=None if record.said is None or details.get("unanswered") else bool(record.said),
        wanted=record.said == 0,
        attempts=attempts,
        seconds=record.seconds,
    )


def _automaton_of(stored: Mapping[str, Any]) -> Automaton:
    table = np.array(stored["transitions"])
    accepting = np.isin(np.arange(len(table)), stored["accepting"])
    return Automaton(table, accepting, stored["start"])


def _read(kind: type[Bounds], stored: Mapping[str, Any]) -> Bounds:
    """The fields that there are by now."""
    names = {each.name for each in fields(cast(Any, kind))}
    return kind(**{name: value for name, value in stored.items() if name in names})
