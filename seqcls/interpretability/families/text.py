"""What a model says of a family of strings, in plain sentences."""

from seqcls.interpretability.families.by_counts import MAX_COUNT
from seqcls.interpretability.families.curves import Change, Curve, Map
from seqcls.interpretability.wording import number, sign


def family_text(curve: Curve | Map) -> tuple[str, ...]:
    """Where the answer changes: of two free counts, along some rows; the first sentence is of all.

    Where strings were run, it is said how many, and how many are misclassified.
    """
    if isinstance(curve, Map):
        return _counted_map(curve) if curve.exact else _tried_map(curve)
    return _tried_curve(curve) if curve.limit is None else _counted_curve(curve, curve.limit)


def _counted_curve(curve: Curve, limit: float) -> tuple[str, ...]:
    (name,) = curve.family.names
    start, label = float(curve.logits[0]), bool(curve.labels[0])
    said = [
        f"{curve.family.text} is {sign(label)} for every {name} from 1 on.",
        f"With {name} = 1 the model predicts {_judged(start > 0, label)} (logit {number(start)}).",
        *(
            f"From {name} = {change.n:,} on it predicts {_judged(change.answer, label)} "
            f"(logit {number(change.logit_before)} before, {number(change.logit)} then)."
            for change in curve.changes
        ),
    ]
    if not curve.changes:
        said.append(f"The answer is the same for every {name} up to {MAX_COUNT:,}.")
    return (
        *said,
        f"As {name} grows without bound, the logit tends to {number(limit)}: "
        f"{_judged(limit > 0, label)}.",
    )


def _tried_curve(curve: Curve) -> tuple[str, ...]:
    (name,) = curve.family.names
    labels, logits = curve.labels.tolist(), curve.logits.tolist()
    wrong = int(((curve.logits > 0) != curve.labels).sum())
    return (
        f"{len(labels)} strings of {curve.family.text} were run, {name} from {curve.n[0]} to "
        f"{curve.n[-1]:,}; between them the answer may change unseen.",
        f"With {name} = {curve.n[0]} it is {sign(labels[0])}, predicted {sign(logits[0] > 0)} "
        f"(logit {number(logits[0])}).",
        *(
            f"From {name} = {change.n:,} on it is predicted {sign(change.answer)}."
            for change in curve.changes
        ),
        "Every string that was run is answered rightly."
        if curve.first_wrong is None
        else f"{wrong} of them are misclassified, the first with {name} = {curve.first_wrong:,}.",
    )


def _counted_map(plane: Map) -> tuple[str, ...]:
    first, second = plane.family.names
    label = bool(plane.labels[0, 0])
    said = [f"{plane.family.text} is {sign(label)} for all {first} and {second} from 1 on."]
    for row in range(0, len(plane.first), max((len(plane.first) - 1) // 6, 1)):
        start = _judged(float(plane.logits[row, 0]) > 0, label)
        changes = _changes(plane.changes[row], second)
        said.append(
            f"With {first} = {plane.first[row]:,}: {start} for {second} = 1; "
            f"{changes or f'the same up to {second} = {MAX_COUNT:,}'}."
        )
    return tuple(said)


def _tried_map(plane: Map) -> tuple[str, ...]:
    first, second = plane.family.names
    said = [
        f"{plane.labels.size} strings of {plane.family.text} were run; "
        f"{int(plane.wrong.sum())} of them are misclassified."
    ]
    for row, value in enumerate(plane.first.tolist()):
        start = sign(float(plane.logits[row, 0]) > 0)
        changes = _changes(plane.changes[row], second)
        said.append(
            f"{first} = {value:,}: predicted {start} for {second} = 1"
            f"{'; ' + changes if changes else ', and no change seen'}; "
            f"{int(plane.wrong[row].sum())} misclassified"
        )
    return tuple(said)


def _changes(changes: tuple[Change, ...], name: str) -> str:
    return ", ".join(f"{sign(change.answer)} from {name} = {change.n:,} on" for change in changes)


def _judged(answer: bool, label: bool) -> str:
    return f"{sign(answer)} ({'correct' if answer == label else 'wrong'})"
