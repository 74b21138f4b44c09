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
    reduced, near = minimal(store, run_id, string, epoch)
    said = [
        said_of(reduced.given),
        f"minimal failing string: {named(reduced.found)}: {_answer(reduced.found)} "
        f"(no single deletion fails; {reduced.tried:,} strings tried)",
        nearest_sentence(near, reduced.given),
    ]
    record = {
        "run": run_id,
        "given": answer_record(reduced.given),
        "minimal": {**answer_record(reduced.found), "tried": reduced.tried},
        "nearest_right": nearest_record(near),
    }
    show(as_json, said, record)


def shortest_sentences(found: Shortest) -> list[str]:
    """What trying all strings has found."""
    if found.length is None:
        return [
            f"all {found.tried:,} strings of up to {found.max_length} tokens are classified "
            "correctly"
        ]
    said = [
        f"the shortest failing strings have {found.length} tokens: {found.count:,} of them "
        f"({found.tried:,} strings tried, all up to that length)"
    ]
    said += [f"  {named(answer)}: {_answer(answer)}" for answer in found.answers]
    left = found.count - len(found.answers)
    return [*said, f"  and {left:,} more"] if left else said


def nearest_sentence(found: Nearest, given: Answer) -> str:
    """What the search for the nearest right string has found."""
    tried = f"{found.tried:,} strings tried"
    if found.answer is None:
        all_of_them = "" if found.complete else ", not all of them"
        return (
            f"no string within {found.edits} edits is classified correctly ({tried}{all_of_them})"
        )
    edits = "1 edit" if found.edits == 1 else f"{found.edits} edits"
    same = ""
    if found.answer.predicted == given.predicted:
        same = "; same prediction, different label"
    elif found.answer.label == given.label:
        same = "; same label, different prediction"
    return (
        f"nearest correctly classified string: {named(found.answer)}, {edits} away: "
        f"{_answer(found.answer)}{same}"
    )


def nearest_record(found: Nearest) -> dict[str, Any] | None:
    if found.answer is None:
        return None
    return {**answer_record(found.answer), "edits": found.edits, "tried": found.tried}


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
