"""Results on families of strings, as text and as data."""

from dataclasses import asdict
from typing import Any

from seqcls.interpretability.counts.result_text import number, sign
from seqcls.interpretability.strings.families import Change, GroupCurve, GroupMap


def curve_text(tried: GroupCurve) -> list[str]:
    """Where the answer changes, and where it is wrong first."""
    (name,) = tried.family.names
    labels, logits = tried.labels.tolist(), tried.logits.tolist()
    said = [
        f"{len(labels)} strings of {tried.family.text} were run, {name} from {tried.n[0]} to "
        f"{tried.n[-1]:,}; between them the answer may change unseen.",
        f"With {name} = {tried.n[0]} it is {sign(labels[0])}, predicted {sign(logits[0] > 0)} "
        f"(logit {number(logits[0])}).",
        *(_change(change, name) for change in tried.changes),
    ]
    if tried.first_wrong is None:
        return [*said, "Every string that was run is answered rightly."]
    wrong = int(((tried.logits > 0) != tried.labels).sum())
    return [
        *said,
        f"{wrong} of them are misclassified, the first with {name} = {tried.first_wrong:,}.",
    ]


def map_text(tried: GroupMap) -> list[str]:
    """Where the answer changes along each row of the grid."""
    first, second = tried.family.names
    said = [
        f"{tried.labels.size} strings of {tried.family.text} were run; "
        f"{int(tried.wrong.sum())} of them are misclassified."
    ]
    for row, value in enumerate(tried.first.tolist()):
        changes = ", ".join(
            f"{sign(change.answer)} from {second} = {change.n:,} on"
            for change in tried.changes[row]
        )
        start = sign(float(tried.logits[row, 0]) > 0)
        wrong = int(tried.wrong[row].sum())
        said.append(
            f"{first} = {value:,}: predicted {start} for {second} = 1"
            f"{'; ' + changes if changes else ', and no change seen'}; {wrong} misclassified"
        )
    return said


def _change(change: Change, name: str) -> str:
    return f"From {name} = {change.n:,} on it is predicted {sign(change.answer)}."


def curve_record(tried: GroupCurve) -> dict[str, Any]:
    return {
        "family": tried.family.text,
        "n": tried.n.tolist(),
        "label": tried.labels.tolist(),
        "logit": tried.logits.tolist(),
        "changes": [asdict(change) for change in tried.changes],
        "first_wrong": tried.first_wrong,
    }


def map_record(tried: GroupMap) -> dict[str, Any]:
    first, second = tried.family.names
    known = [[None if x != x else x for x in row] for row in tried.logits.tolist()]
    return {
        "family": tried.family.text,
        first: tried.first.tolist(),
        second: tried.second.tolist(),
        "label": tried.labels.tolist(),
        "logit": known,
        "changes": [[asdict(change) for change in row] for row in tried.changes],
    }
