"""Commands on why runs fail, whether rounding decides them, and what would help."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seqcls.interpretability.mechanisms import NOT_LEARNED, SAMPLE, forgetting_text
from sweeps import api
from sweeps.cli.parameters import AsJson, Commands, Db, Force, Run, SweepName, filtered
from sweeps.cli.printing import (
    count,
    open_database,
    open_run,
    print_record,
    print_table,
    show,
)
from sweeps.terminal import say

if TYPE_CHECKING:
    import pandas as pd

    from seqcls.kinds import Words
    from sweeps.api.trials import RemedyTrial


PANEL = "Why models fail"

app = Commands()


@app.command(rich_help_panel=PANEL, epilog="Example: seqcls causes lower_magnitude_initializations")
@filtered
def causes(
    chosen: dict[str, Any],
    sweep: SweepName,
    db: Db = None,
    sample: Annotated[
        int, typer.Option(min=1, max=100_000, help="Errors to examine per run.")
    ] = SAMPLE,
    as_json: AsJson = False,
) -> None:
    """Say why the failing runs of a sweep fail, and store the causes."""
    from sweeps.api.failures import causes_by_configuration as by_configuration
    from sweeps.api.presentation import words_of
    from sweeps.api.results import stored_runs
    from sweeps.results import rows_of

    store = open_database(db)
    runs = stored_runs(store, (sweep,), **{**chosen, "failing": True})
    stored = api.causes(store, sweep, sample, **chosen)
    table = by_configuration(runs, stored)
    forgotten = list(_find_forgetting(store, sweep, chosen))
    if as_json:
        record = {"sweep": sweep, "failing": len(runs), "causes": rows_of(stored)}
        record |= {"by_configuration": rows_of(table), "forgetting": [x for x, _ in forgotten]}
        print_record(record)
        return
    if runs.empty:
        ids = stored_runs(store, (sweep,))["config_id"].unique().tolist()
        words = words_of(*api.configs(store, ids).values())
        said = words.misses.format(f"a test {words.string}")
        say(f"no finished run of sweep {sweep!r} {said if chosen['below'] >= 1 else 'fails'}")
    else:
        print_table(_shown_table(store, table), f"{count(len(runs), 'failing run')} of {sweep}")
        print_table(_shown_causes(runs, stored), "by run, of the errors that were looked at")
    for _, sentence in forgotten:
        say(sentence)


def _find_forgetting(
    store: "api.Store", sweep: str, chosen: dict[str, Any]
) -> Iterator[tuple[dict[str, Any], str]]:
    """What runs forget while a word repeats, where proofs found that: as JSON, and in a sentence.

    Of runs without a test error, too.
    """
    from sweeps.api.presentation import display_of
    from sweeps.api.reading import forgettings
    from sweeps.api.results import stored_runs

    if not (found := forgettings(store.reader())):
        return
    runs = stored_runs(store, (sweep,), **{**chosen, "failing": False})
    runs = runs[runs["id"].isin(found)]
    configs = api.configs(store, runs["config_id"].unique().tolist())
    for run_id, config_id in zip(runs["id"].tolist(), runs["config_id"].tolist(), strict=True):
        said = forgetting_text(found[run_id], display_of(configs[config_id]))
        yield {"run_id": run_id, **found[run_id]}, f"run {run_id}: {said}"


@app.command(rich_help_panel=PANEL, epilog="Example: seqcls remedies all_initializations/2")
@filtered
def remedies(
    chosen: dict[str, Any],
    run: Run,
    db: Db = None,
    save: Annotated[
        Path | None,
        typer.Option(
            file_okay=False,
            help="A folder for a specification of each suggestion, with the same seeds.",
            show_default=False,
        ),
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Suggest which field to change so that a failing run may work, best record first."""
    from sweeps.api.failures import why_not_learned
    from sweeps.api.presentation import words_of

    store, run_id = open_run(db, run)
    mechanisms, trials = api.remedies(store, run_id, **chosen)
    record = {
        "run": run_id,
        "mechanisms": mechanisms,
        "suggestions": [trial.record() for trial in trials],
    }
    if save is not None:
        _save(save, trials, force)
    words = words_of(api.run_config(store, run_id))
    at = chosen["learned_at"]
    unlearned = why_not_learned(store, run_id, at) if NOT_LEARNED in mechanisms else None
    said = [*_why(run_id, words, mechanisms, unlearned), *_sentences(trials)]
    if mechanisms and not trials:
        said.append("nothing on the list of remedies applies to its configuration")
    show(as_json, said, record)


def _shown_table(store: "api.Store", table: "pd.DataFrame") -> "pd.DataFrame":
    """Configurations by their names, with mechanisms and their shares."""
    from seqcls.interpretability.wording import percent, percents
    from sweeps.api.naming import names_of

    shown = table[["mechanism", "seeds", "failing"]].copy()
    shown["share (95%)"] = [
        f"{percent(row['share'], 0)} ({percents(row['low'], row['high'], 0)})"
        for row in table.to_dict("records")
    ]
    named = names_of(store, table["config_id"].unique().tolist())
    shown.insert(0, "configuration", table["config_id"].map(named))
    return shown


def _shown_causes(runs: "pd.DataFrame", stored: "pd.DataFrame") -> "pd.DataFrame":
    import pandas as pd

    from seqcls.interpretability.wording import percent

    shown = stored.drop(columns="number")
    shown.insert(1, "seed", shown["run_id"].map(runs.set_index("id")["model_seed"]))
    shown["head"] = shown["head"].astype("Int64")
    # It is said of the model, not of some of its errors.
    shown["share"] = shown["share"].mask(shown["mechanism"] == NOT_LEARNED)
    for name in ("share", "agreement"):
        shown[name] = ["" if pd.isna(x) else percent(x, 1) for x in shown[name]]
    return shown


def _why(
    run_id: int, words: "Words", mechanisms: list[str], unlearned: str | None
) -> Iterator[str]:
    """Why a run fails, or that it does not."""
    if not mechanisms:
        yield f"run {run_id} {words.misses.format(f'no test {words.string}')}"
    if unlearned is not None:
        yield f"run {run_id} has not learned the trained lengths: {unlearned}"
    if causes := [name for name in mechanisms if name != NOT_LEARNED]:
        yield f"run {run_id} fails by {', '.join(causes)}"


def _sentences(trials: "tuple[RemedyTrial, ...]") -> list[str]:
    from sweeps.api import trials as tried

    said = []
    for trial in trials:
        suggestion = trial.suggestion
        said += [
            f"try {suggestion.text}, against {suggestion.mechanism}",
            f"  {suggestion.reason} Source: {suggestion.source}.",
            *(f"  {sentence}" for sentence in tried.sentences(trial)),
        ]
    return said


def _save(folder: Path, trials: "tuple[RemedyTrial, ...]", force: bool) -> None:
    from sweeps.files import whole_files
    from sweeps.grid.written_spec import toml_of

    with whole_files(folder, force=force) as new:
        for trial in trials:
            name = f"{trial.suggestion.field}-{trial.suggestion.value}.toml"
            (new / name).write_text(toml_of(trial.spec.submitted), encoding="utf-8")
    said = f"{count(len(trials), 'specification')} in {folder}; `seqcls sweep FILE` trains one"
    say(said, err=True)
