"""What `seqcls minimal` does, and how it shows it."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from sweeps import api
from sweeps.cli.commands.opening import opened
from sweeps.cli.commands.printing import answer_record, show

if TYPE_CHECKING:
    from seqcls.interpretability.minimal.nearest import Nearest


def show_minimal(
    db: str | None, reference: str, string: str | None, epoch: int | None, as_json: bool
) -> None:
    """Prints the minimal failing string and the nearest right one, or the shortest of all."""
    from seqcls.problem import resolve
    from sweeps.analysis.answer_sentences import (
        nearest_sentence,
        said_of,
        shortest_sentences,
        whose_known,
        words_of,
    )
    from sweeps.store.reading.queries import run_config

    store, run_id = opened(db, reference)
    config = run_config(store, run_id)
    words = words_of(config)
    if string is None:
        failing = api.shortest(store, run_id, epoch)
        said = shortest_sentences(failing, words, whose_known(resolve(config)))
        record = {"run": run_id, **asdict(failing)}
        record["answers"] = list(map(answer_record, failing.answers))
        show(as_json, said, record)
        return
    reduced, nearest = api.minimal(store, run_id, string, epoch)
    whose = whose_known(resolve(config))
    said = [
        said_of(reduced.given),
        f"minimal failing {words.string}: {said_of(reduced.found)} (no single deletion{whose} "
        f"fails; "
        f"{reduced.tried:,} {words.plural('')} tried)",
        nearest_sentence(nearest, reduced.given, words, whose),
    ]
    record = {
        "run": run_id,
        "given": answer_record(reduced.given),
        "minimal": {**answer_record(reduced.found), "tried": reduced.tried},
        "nearest_right": nearest_record(nearest),
    }
    show(as_json, said, record)


def nearest_record(nearest: "Nearest") -> dict[str, Any] | None:
    if nearest.answer is None:
        return None
    return {**answer_record(nearest.answer), "edits": nearest.edits, "tried": nearest.tried}
