"""Families of strings as data."""

from dataclasses import asdict
from typing import Any

from seqcls.interpretability.families.curves import Change, Curve, Map
from seqcls.interpretability.families.output_family import FamilyOutput, OutputFamily


def family_record(found: Curve | Map | OutputFamily) -> dict[str, Any]:
    """What programs read of a family: flips where letter counts decide, else what was tried."""
    if isinstance(found, OutputFamily):
        return _outputs_record(found)
    return _curve_record(found) if isinstance(found, Curve) else _map_record(found)


def _curve_record(found: Curve) -> dict[str, Any]:
    tried = {"n": found.n.tolist(), "logit": found.logits.tolist()}
    if found.limit is not None:
        return {
            "family": found.family.text,
            "label": bool(found.labels[0]),
            "flips": [asdict(change) for change in found.changes],
            "limit": found.limit,
            **tried,
        }
    return {
        "family": found.family.text,
        "n": tried["n"],
        "label": found.labels.tolist(),
        "logit": tried["logit"],
        "changes": [_change(change) for change in found.changes],
        "first_wrong": found.first_wrong,
    }


def _map_record(found: Map) -> dict[str, Any]:
    first, second = found.family.names
    family = {"family": found.family.text}
    axes = {first: found.first.tolist(), second: found.second.tolist()}
    logit = [[None if x != x else x for x in row] for row in found.logits.tolist()]
    if found.exact:
        flips = [[asdict(change) for change in row] for row in found.changes]
        label = bool(found.labels[0, 0])
        return {**family, "label": label, **axes, "logit": logit, "flips": flips}
    changes = [[_change(change) for change in row] for row in found.changes]
    return {**family, **axes, "label": found.labels.tolist(), "logit": logit, "changes": changes}


def _outputs_record(found: OutputFamily) -> dict[str, Any]:
    names = found.family.names
    outputs = [
        {**dict(zip(names, each.values, strict=True)), **output_record(each)}
        for each in found.outputs
    ]
    left_out = {"no_inputs": found.no_inputs, "no_places": found.no_places}
    return {"family": found.family.text, "outputs": outputs, **left_out}


def output_record(each: FamilyOutput) -> dict[str, Any]:
    """One output of a family."""
    record = asdict(each)
    del record["values"]
    return {**record, "right": each.is_right}


def _change(change: Change) -> dict[str, Any]:
    return {"n": change.n, "answer": change.answer}
