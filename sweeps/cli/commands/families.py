"""Families of strings as data."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seqcls.interpretability.families.curves import Change, Curve, Map
    from seqcls.interpretability.families.output_family import FamilyOutput, OutputFamily


def family_record(answered: "Curve | Map | OutputFamily") -> dict[str, Any]:
    """What programs read of a family: flips where letter counts decide, else what was tried."""
    from seqcls.interpretability.families.curves import Curve
    from seqcls.interpretability.families.output_family import OutputFamily

    if isinstance(answered, OutputFamily):
        return _outputs_record(answered)
    return _curve_record(answered) if isinstance(answered, Curve) else _map_record(answered)


def _curve_record(curve: "Curve") -> dict[str, Any]:
    tried = {"n": curve.n.tolist(), "logit": curve.logits.tolist()}
    if curve.limit is not None:
        return {
            "family": curve.family.text,
            "label": bool(curve.labels[0]),
            "flips": [asdict(change) for change in curve.changes],
            "limit": curve.limit,
            **tried,
        }
    return {
        "family": curve.family.text,
        "n": tried["n"],
        "label": curve.labels.tolist(),
        "logit": tried["logit"],
        "changes": [_change(change) for change in curve.changes],
        "first_wrong": curve.first_wrong,
    }


def _map_record(plane: "Map") -> dict[str, Any]:
    first, second = plane.family.names
    family = {"family": plane.family.text}
    axes = {first: plane.first.tolist(), second: plane.second.tolist()}
    logit = [[None if x != x else x for x in row] for row in plane.logits.tolist()]
    if plane.exact:
        flips = [[asdict(change) for change in row] for row in plane.changes]
        label = bool(plane.labels[0, 0])
        return {**family, "label": label, **axes, "logit": logit, "flips": flips}
    changes = [[_change(change) for change in row] for row in plane.changes]
    return {**family, **axes, "label": plane.labels.tolist(), "logit": logit, "changes": changes}


def _outputs_record(written: "OutputFamily") -> dict[str, Any]:
    names = written.family.names
    outputs = [
        {**dict(zip(names, each.values, strict=True)), **output_record(each)}
        for each in written.outputs
    ]
    left_out = {"no_inputs": written.no_inputs, "no_places": written.no_places}
    return {"family": written.family.text, "outputs": outputs, **left_out}


def output_record(each: "FamilyOutput") -> dict[str, Any]:
    """One output of a family."""
    record = asdict(each)
    del record["values"]
    return {**record, "right": each.is_right}


def _change(change: "Change") -> dict[str, Any]:
    return {"n": change.n, "answer": change.answer}
