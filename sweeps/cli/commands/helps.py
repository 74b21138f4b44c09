"""What `seqcls helps` does, and how it shows it."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sweeps import api
from sweeps.cli.commands.opening import opened
from sweeps.cli.commands.printing import count, show
from sweeps.files import whole_files
from sweeps.terminal import say

if TYPE_CHECKING:
    from seqcls.kinds import Words
    from sweeps.analysis import remedy_trials


def show_helps(
    db: str | None, reference: str, save: Path | None, force: bool, as_json: bool
) -> None:
    """Prints what would help a failing run, and what came of it where it was trained."""
    from sweeps.analysis.answer_sentences import words_of
    from sweeps.store.reading.queries import run_config

    store, run_id = opened(db, reference)
    mechanisms, trials = api.helps(store, run_id)
    record = {
        "run": run_id,
        "mechanisms": mechanisms,
        "suggestions": [_record(trial) for trial in trials],
    }
    if save is not None:
        _save(save, trials, force)
    words = words_of(run_config(store, run_id))
    show(as_json, _sentences(run_id, words, mechanisms, trials), record)


def _sentences(
    run_id: int, words: "Words", mechanisms: list[str], trials: "tuple[remedy_trials.Trial, ...]"
) -> list[str]:
    from sweeps.analysis import remedy_trials

    if not mechanisms:
        return [f"run {run_id} {words.misses.format(f'no test {words.string}')}"]
    said = [f"run {run_id} fails by {', '.join(mechanisms)}"]
    if not trials:
        return [*said, "nothing on the list of remedies applies to its configuration"]
    for trial in trials:
        suggestion = trial.suggestion
        said += [
            f"try {suggestion.text}, against {suggestion.mechanism}",
            f"  {suggestion.reason} Source: {suggestion.source}.",
            f"  {remedy_trials.trial_sentence(trial)}",
        ]
        if record := remedy_trials.record_sentence(trial):
            said.append(f"  {record}")
    return said


def _record(trial: "remedy_trials.Trial") -> dict[str, Any]:
    comparison = trial.comparison
    return {
        **asdict(trial.suggestion),
        "mended": dict(zip(("seeds", "of"), trial.mended, strict=True)),
        "sweep": trial.spec.name,
        "trained": None
        if comparison is None
        else {
            "runs": list(comparison.runs),
            "failing": [share.value for share in comparison.failing],
            "pairs": asdict(comparison.table),
            "medians": list(comparison.medians),
        },
    }


def _save(folder: Path, trials: "tuple[remedy_trials.Trial, ...]", force: bool) -> None:
    from sweeps.grid.written_spec import toml_of

    with whole_files(folder, force=force) as new:
        for trial in trials:
            name = f"{trial.suggestion.field}-{trial.suggestion.value}.toml"
            (new / name).write_text(toml_of(trial.spec.submitted), encoding="utf-8")
    said = f"{count(len(trials), 'specification')} in {folder}; `seqcls sweep FILE` trains one"
    say(said, err=True)
