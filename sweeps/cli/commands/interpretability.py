"""What the commands that look inside one model do, and how they show it."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import typer

from seqcls.errors import ConfigError
from seqcls.interpretability.counts.cause import Explanation
from seqcls.interpretability.counts.certification import Certification, SupportProof, certify
from seqcls.interpretability.counts.explain import explain
from seqcls.interpretability.counts.explanation_text import explanation_text
from seqcls.interpretability.counts.family import Curve, Map, area, curve, parse_family
from seqcls.interpretability.counts.network import Network
from seqcls.interpretability.counts.obstacle import obstacle
from seqcls.interpretability.counts.result_text import certification_text, curve_text, map_text
from seqcls.problem import resolve
from sweeps.store.opening import open_reader
from sweeps.store.reading import queries
from sweeps.store.reading.models import of_run


def explain_string(
    db: str | None, reference: str, string: str, epoch: int | None, as_json: bool
) -> None:
    """Prints the cause of a model's answer."""
    run_id, network = _network(db, reference, epoch, "explain")
    found = explain(network, string)
    said = explanation_text(found)
    _show(as_json, said, {"run": run_id, **_explanation_record(found), "sentences": said})


def show_family(
    db: str | None, reference: str, text: str, epoch: int | None, as_json: bool
) -> None:
    """Prints where a model's answer for a family of strings changes.

    By letter counts where these decide, and else, or for groups, by asking about its strings.
    """
    store = open_reader(db)
    problem = resolve(queries.run_config(store, queries.find_run(store, reference)))
    if "<" in text or obstacle(problem) is not None:
        from sweeps.cli.commands.groups import show_groups

        show_groups(db, reference, text, epoch, as_json)
        return
    run_id, network = _network(db, reference, epoch, "family")
    family = parse_family(text, network.config.num_letters)
    if len(family.names) == 1:
        found = curve(network, family)
        _show(as_json, curve_text(found), {"run": run_id, **_curve_record(found)})
    else:
        grid = area(network, family)
        _show(as_json, map_text(grid), {"run": run_id, **_map_record(grid)})


def show_certification(db: str | None, reference: str, as_json: bool) -> None:
    """Prints what is proved of a model's answers for strings of every length."""
    run_id, network = _network(db, reference, None, "verdict --beyond")
    found = certify(network)
    _show(as_json, certification_text(found), {"run": run_id, **_certification_record(found)})


def _network(
    db: str | None, reference: str, epoch: int | None, command: str
) -> tuple[int, Network]:
    store = open_reader(db)
    run_id = queries.find_run(store, reference)
    problem = resolve(queries.run_config(store, run_id))
    reason = obstacle(problem)
    if reason is not None:
        raise ConfigError(
            f"run {run_id}: `{command}` does not hold for this model: {reason}; try `seqcls rules "
            f"{run_id}`, `seqcls minimal {run_id}`, or `states`, `patch` and `family` with a string"
        )
    weights = queries.weights(store, run_id, epoch)
    with of_run(run_id):
        return run_id, Network.of(problem, weights)


def _show(as_json: bool, said: Sequence[str], record: dict[str, Any]) -> None:
    typer.echo(json.dumps(record, indent=1, allow_nan=False) if as_json else "\n".join(said))


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
