"""What the commands that look inside one model do, and how they show it."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from seqcls.interpretability.counts.cause import Explanation
from seqcls.interpretability.counts.certification import Certification, SupportProof
from seqcls.interpretability.counts.explanation_text import explanation_text
from seqcls.interpretability.counts.family import Curve, Map
from seqcls.interpretability.counts.result_text import certification_text, curve_text, map_text
from seqcls.interpretability.strings.families import GroupCurve, GroupMap
from sweeps.cli.commands import groups
from sweeps.cli.commands.any_model import show
from sweeps.cli.commands.opening import opened
from sweeps.questions.models import explain, family, proofs


def explain_string(
    db: str | None, reference: str, string: str, epoch: int | None, as_json: bool
) -> None:
    """Prints the cause of a model's answer."""
    store, run_id = opened(db, reference)
    explanation = explain(store, run_id, string, epoch)
    said = explanation_text(explanation)
    show(as_json, said, {"run": run_id, **_explanation_record(explanation), "sentences": said})


def show_family(
    db: str | None, reference: str, text: str, epoch: int | None, as_json: bool
) -> None:
    """Prints where a model's answer for a family of strings changes."""
    store, run_id = opened(db, reference)
    said, record = _told(family(store, run_id, text, epoch))
    show(as_json, said, {"run": run_id, **record})


def show_certification(db: str | None, reference: str, as_json: bool) -> None:
    """Prints what is proved of a model's answers for strings of every length."""
    store, run_id = opened(db, reference)
    proved = proofs(store, run_id)
    show(as_json, certification_text(proved), {"run": run_id, **_certification_record(proved)})


def _told(tried: Curve | Map | GroupCurve | GroupMap) -> tuple[Sequence[str], dict[str, Any]]:
    """A family as sentences and as data."""
    match tried:
        case Curve():
            return curve_text(tried), _curve_record(tried)
        case Map():
            return map_text(tried), _map_record(tried)
        case GroupCurve():
            return groups.curve_text(tried), groups.curve_record(tried)
        case GroupMap():
            return groups.map_text(tried), groups.map_record(tried)


def _explanation_record(found: Explanation) -> dict[str, Any]:
    record = asdict(found)
    for head in record["heads"]:
        # Programs read this name.
        head["seen"] = [{"kind": entry.pop("token_type"), **entry} for entry in head["seen"]]
    return record


def _curve_record(found: Curve) -> dict[str, Any]:
    return {
        "family": found.family.text,
        "label": found.label,
        "flips": [asdict(flip) for flip in found.flips],
        "limit": found.limit,
        "n": found.n.tolist(),
        "logit": found.logit.tolist(),
    }


def _map_record(found: Map) -> dict[str, Any]:
    first, second = found.family.names
    return {
        "family": found.family.text,
        "label": found.label,
        first: found.first.tolist(),
        second: found.second.tolist(),
        "logit": found.logit.tolist(),
        "flips": [[asdict(flip) for flip in row] for row in found.boundary],
    }


def _certification_record(found: Certification) -> dict[str, Any]:
    return {
        "least_length": found.least_length,
        "supports": [_proof_record(proof) for proof in found.supports],
        "left_out": found.left_out,
    }


def _proof_record(proof: SupportProof) -> dict[str, Any]:
    record = {name: value for name, value in vars(proof).items() if name != "cells"}
    return {**record, "intervals": [asdict(interval) for interval in proof.intervals]}
