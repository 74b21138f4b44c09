"""Families of strings with groups, `<ab>{n}` or `0{m}1{n}`, for a model of any architecture."""

from dataclasses import asdict
from typing import Any

from seqcls.interpretability.counts.result_text import number, sign
from seqcls.interpretability.strings.families import (
    Change,
    GroupCurve,
    GroupMap,
    group_curve,
    group_map,
    parse_groups,
)
from sweeps.analysis.opened_models import opened
from sweeps.cli.commands.any_model import show


def show_groups(
    db: str | None, reference: str, text: str, epoch: int | None, as_json: bool
) -> None:
    """Prints labels and answers of a family, as its strings were run."""
    run_id, model = opened(db, reference, epoch)
    family = parse_groups(model, text)
    if len(family.names) == 1:
        found = group_curve(model, family)
        show(as_json, curve_text(found), {"run": run_id, **_curve_record(found)})
    else:
        grid = group_map(model, family)
        show(as_json, map_text(grid), {"run": run_id, **_map_record(grid)})


def curve_text(found: GroupCurve) -> list[str]:
    """Where the answer changes, and where it is wrong first."""
    (name,) = found.family.names
    labels, logits = found.labels.tolist(), found.logits.tolist()
    said = [
        f"{len(labels)} strings of {found.family.text} were run, {name} from {found.n[0]} to "
        f"{found.n[-1]:,}; between them the answer may change unseen.",
        f"With {name} = {found.n[0]} it is {sign(labels[0])}, predicted {sign(logits[0] > 0)} "
        f"(logit {number(logits[0])}).",
        *(_change(own, name) for own in found.changes),
    ]
    if found.first_wrong is None:
        return [*said, "Every string that was run is answered rightly."]
    wrong = int(((found.logits > 0) != found.labels).sum())
    return [
        *said,
        f"{wrong} of them are misclassified, the first with {name} = {found.first_wrong:,}.",
    ]


def map_text(found: GroupMap) -> list[str]:
    """Where the answer changes along each row of the grid."""
    first, second = found.family.names
    said = [
        f"{found.labels.size} strings of {found.family.text} were run; "
        f"{int(found.wrong.sum())} of them are misclassified."
    ]
    for row, value in enumerate(found.first.tolist()):
        changes = ", ".join(
            f"{sign(own.answer)} from {second} = {own.n:,} on" for own in found.changes[row]
        )
        start = sign(float(found.logits[row, 0]) > 0)
        wrong = int(found.wrong[row].sum())
        said.append(
            f"{first} = {value:,}: predicted {start} for {second} = 1"
            f"{'; ' + changes if changes else ', and no change seen'}; {wrong} misclassified"
        )
    return said


def _change(own: Change, name: str) -> str:
    return f"From {name} = {own.n:,} on it is predicted {sign(own.answer)}."


def _curve_record(found: GroupCurve) -> dict[str, Any]:
    return {
        "family": found.family.text,
        "n": found.n.tolist(),
        "label": found.labels.tolist(),
        "logit": found.logits.tolist(),
        "changes": [asdict(own) for own in found.changes],
        "first_wrong": found.first_wrong,
    }


def _map_record(found: GroupMap) -> dict[str, Any]:
    first, second = found.family.names
    known = [[None if x != x else x for x in row] for row in found.logits.tolist()]
    return {
        "family": found.family.text,
        first: found.first.tolist(),
        second: found.second.tolist(),
        "label": found.labels.tolist(),
        "logit": known,
        "changes": [[asdict(own) for own in row] for row in found.changes],
    }
