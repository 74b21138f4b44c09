"""What the commands do that hold for any task and any model, and how they show it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import typer

from seqcls.interpretability.minimal.minimal import Shortest
from seqcls.interpretability.minimal.nearest import Nearest
from seqcls.interpretability.model.trained_model import Answer
from sweeps.cli.commands.opening import opened
from sweeps.questions.inside import minimal, shortest


def show_minimal(
    db: str | None, reference: str, string: str | None, epoch: int | None, as_json: bool
) -> None:
    """Prints the minimal failing string and the nearest right one, or the shortest of all."""
    store, run_id = opened(db, reference)
    if string is None:
        failing = shortest(store, run_id, epoch)
        record = {"run": run_id, **asdict(failing)}
        record["answers"] = list(map(answer_record, failing.answers))
        show(as_json, shortest_sentences(failing), record)
        return
    reduced, nearest = minimal(store, run_id, string, epoch)
    said = [
        said_of(reduced.given),
        f"minimal failing string: {named(reduced.found)}: {_answer(reduced.found)} "
        f"(no single deletion fails; {reduced.tried:,} strings tried)",
        nearest_sentence(nearest, reduced.given),
    ]
    record = {
        "run": run_id,
        "given": answer_record(reduced.given),
        "minimal": {**answer_record(reduced.found), "tried": reduced.tried},
        "nearest_right": nearest_record(nearest),
    }
    show(as_json, said, record)


def shortest_sentences(shortest: Shortest) -> list[str]:
    """What trying all strings has found."""
    if shortest.length is None:
        return [
            f"all {shortest.tried:,} strings of up to {shortest.max_length} tokens are classified "
            "correctly"
        ]
    said = [
        f"the shortest failing strings have {shortest.length} tokens: {shortest.count:,} of them "
        f"({shortest.tried:,} strings tried, all up to that length)"
    ]
    said += [f"  {named(answer)}: {_answer(answer)}" for answer in shortest.answers]
    left = shortest.count - len(shortest.answers)
    return [*said, f"  and {left:,} more"] if left else said


def nearest_sentence(nearest: Nearest, given: Answer) -> str:
    """What the search for the nearest right string has found."""
    tried = f"{nearest.tried:,} strings tried"
    if nearest.answer is None:
        all_of_them = "" if nearest.complete else ", not all of them"
        return (
            f"no string within {nearest.edits} edits is classified correctly ({tried}{all_of_them})"
        )
    edits = "1 edit" if nearest.edits == 1 else f"{nearest.edits} edits"
    same = ""
    if nearest.answer.predicted == given.predicted:
        same = "; same prediction, different label"
    elif nearest.answer.label == given.label:
        same = "; same label, different prediction"
    return (
        f"nearest correctly classified string: {named(nearest.answer)}, {edits} away: "
        f"{_answer(nearest.answer)}{same}"
    )


def nearest_record(nearest: Nearest) -> dict[str, Any] | None:
    if nearest.answer is None:
        return None
    return {**answer_record(nearest.answer), "edits": nearest.edits, "tried": nearest.tried}


def answer_record(answer: Answer) -> dict[str, Any]:
    return {**asdict(answer), "predicted": answer.predicted}


def named(answer: Answer) -> str:
    """A string as it is shown; the empty one needs a name."""
    return answer.string or "the empty string"


def said_of(answer: Answer) -> str:
    """One string's label and the model's answer."""
    return f"{named(answer)}: {_answer(answer)}"


def show(as_json: bool, said: Sequence[str], record: Mapping[str, Any]) -> None:
    """Prints sentences, or the same as data."""
    typer.echo(json.dumps(record, indent=1, allow_nan=False) if as_json else "\n".join(said))


def _answer(answer: Answer) -> str:
    if isinstance(answer.label, str):
        return (
            f"is {answer.label}, predicted {answer.predicted} ({answer.number} {answer.logit:.4f})"
        )
    label, predicted = (("negative", "positive")[int(x)] for x in (answer.label, answer.predicted))
    return f"is {label}, predicted {predicted} (logit {answer.logit:.4f})"
