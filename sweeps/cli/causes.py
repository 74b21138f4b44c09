"""Commands on why runs fail, whether rounding decides them, and what would help."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seqcls.interpretability.mechanisms import SAMPLE
from sweeps import api
from sweeps.cli.parameters import AsJson, Db, Force, Run
from sweeps.cli.printing import count, opened, print_json, print_record, print_table, rows_of, show
from sweeps.terminal import say

if TYPE_CHECKING:
    import pandas as pd

    from seqcls.kinds import Words
    from sweeps.api import remedies
    from sweeps.store.databases.engine import Store


PANEL = "Why models fail"

app = typer.Typer()


@app.command(rich_help_panel=PANEL)
def causes(
    sweep: Annotated[str, typer.Argument(help="The name of a sweep.", show_default=False)],
    db: Db = None,
    sample: Annotated[
        int, typer.Option(min=1, max=100_000, help="Errors to examine per run.")
    ] = SAMPLE,
    as_json: AsJson = False,
) -> None:
    """Say why the failing runs of a sweep fail, and store the causes."""
    show_causes(db, sweep, sample, as_json)


@app.command(rich_help_panel=PANEL)
def helps(
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
    show_helps(db, run, save, force, as_json)


def show_causes(db: str | None, sweep: str, sample: int, as_json: bool) -> None:
    """Prints the causes of a sweep's failing runs, after finding those that are not stored."""
    from sweeps.api.failures import causes_by_configuration as by_configuration
    from sweeps.api.presentation import words_of
    from sweeps.api.results import stored_runs
    from sweeps.store.opening import open_reader
    from sweeps.store.reads import queries

    store = open_reader(db)
    runs = stored_runs(store, (sweep,), failing=True)
    stored = api.causes(store, sweep, sample)
    table = by_configuration(runs, stored)
    if as_json:
        record = {"sweep": sweep, "failing": len(runs), "causes": rows_of(stored)}
        print_record({**record, "by_configuration": rows_of(table)})
        return
    if runs.empty:
        ids = stored_runs(store, (sweep,))["config_id"].unique().tolist()
        words = words_of(*queries.configs(store, ids).values())
        said = words.misses.format(f"a test {words.string}")
        say(f"no finished run of sweep {sweep!r} {said}")
        return
    print_table(_shown_table(runs, table), f"{count(len(runs), 'failing run')} of {sweep}")
    print_table(_shown_causes(runs, stored), "by run, of the errors that were looked at")


def show_sensitivity(db: str | None, references: Sequence[str], times: int, as_json: bool) -> None:
    """Prints which runs come to something else with other rounding, after training them so."""
    from sweeps.store.opening import open_reader

    store = open_reader(db)
    outcomes = api.sensitive(store, references, times)
    if as_json:
        print_json(outcomes)
        return
    number = int(outcomes["sensitive"].sum())
    title = (
        f"{number} of {count(len(outcomes), 'run')} come to another confusion matrix with other "
        f"rounding: {times} times from initial values moved by one unit in the last place, and "
        "once in double precision"
    )
    print_table(_perturbed_table(store, outcomes), title)


def list_sensitive(db: str | None, as_json: bool) -> None:
    """Prints the runs whose confusion matrix depends on the precision, or on rounding."""
    from sweeps.store.opening import open_reader

    store = open_reader(db)
    pairs = api.in_both_precisions(store)
    if as_json:
        print_json(pairs)
        return
    again = api.sensitive(store)
    if len(again):
        title = (
            f"{again['sensitive'].sum()} of {count(len(again), 'run')} trained again with other "
            "rounding come to another confusion matrix"
        )
        print_table(_perturbed_table(store, again), title)
        if pairs.empty:
            return
    if pairs.empty:
        say(
            "no run is stored in both precisions; `seqcls sweep SPEC --precision float64` trains "
            "those of a sweep in double precision, `seqcls sensitive SWEEP` trains them again with "
            "other rounding"
        )
        return
    title = f"{pairs['sensitive'].sum()} of {len(pairs)} runs in both precisions have other"
    title += " confusion matrices"
    if not pairs["sensitive"].any():
        say(title)
        return
    shown = pairs[pairs["sensitive"]].drop(columns="sensitive")
    shown["sweeps"] = shown["sweeps"].map(", ".join)
    print_table(shown, title)


def _perturbed_table(store: "Store", outcomes: "pd.DataFrame") -> "pd.DataFrame":
    """Sensitive runs and how many test strings they misclassify, from the least to the most."""
    from sweeps.api.results import stored_runs

    runs = stored_runs(store).set_index("id")
    changing = outcomes[outcomes["sensitive"]]
    shown = changing[["run_id", "times", "wrong", "least", "most"]].copy()
    for place, name in enumerate(("sweeps", "model_seed"), start=1):
        shown.insert(place, name, [runs.loc[run_id, name] for run_id in changing["run_id"]])
    shown["sweeps"] = shown["sweeps"].map(", ".join)
    return shown


def _shown_table(runs: "pd.DataFrame", table: "pd.DataFrame") -> "pd.DataFrame":
    """Configurations by the fields in which they differ, with mechanisms and their shares."""
    from seqcls.interpretability.wording import percent, percents
    from sweeps.results import differing_fields

    shown = table[["mechanism", "seeds", "failing"]].copy()
    shown["share (95%)"] = [
        f"{percent(row['share'], 0)} ({percents(row['low'], row['high'], 0)})"
        for row in table.to_dict("records")
    ]
    settings = runs.drop_duplicates("config_id").set_index("config_id")
    for place, name in enumerate(differing_fields(runs)):
        shown.insert(place, name, table["config_id"].map(settings[name]))
    return shown


def _shown_causes(runs: "pd.DataFrame", stored: "pd.DataFrame") -> "pd.DataFrame":
    import pandas as pd

    from seqcls.interpretability.wording import percent

    shown = stored.drop(columns="number")
    shown.insert(1, "seed", shown["run_id"].map(runs.set_index("id")["model_seed"]))
    shown["head"] = shown["head"].astype("Int64")
    for name in ("share", "agreement"):
        shown[name] = ["" if pd.isna(x) else percent(x, 1) for x in shown[name]]
    return shown


def show_helps(
    db: str | None, reference: str, save: Path | None, force: bool, as_json: bool
) -> None:
    """Prints what would help a failing run, and what came of it where it was trained."""
    from sweeps.api.presentation import words_of
    from sweeps.store.reads.queries import run_config

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
    run_id: int, words: "Words", mechanisms: list[str], trials: "tuple[remedies.RemedyTrial, ...]"
) -> list[str]:
    from sweeps.api import remedies

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
            f"  {remedies.trial_sentence(trial)}",
        ]
        if record := remedies.record_sentence(trial):
            said.append(f"  {record}")
    return said


def _record(trial: "remedies.RemedyTrial") -> dict[str, Any]:
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


def _save(folder: Path, trials: "tuple[remedies.RemedyTrial, ...]", force: bool) -> None:
    from sweeps.files import whole_files
    from sweeps.grid.written_spec import toml_of

    with whole_files(folder, force=force) as new:
        for trial in trials:
            name = f"{trial.suggestion.field}-{trial.suggestion.value}.toml"
            (new / name).write_text(toml_of(trial.spec.submitted), encoding="utf-8")
    said = f"{count(len(trials), 'specification')} in {folder}; `seqcls sweep FILE` trains one"
    say(said, err=True)
