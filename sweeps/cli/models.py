"""Commands on trained models: their runs, errors, answers and checks."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from textwrap import fill
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sweeps import api
from sweeps.cli.parameters import (
    AsJson,
    Columns,
    Db,
    Device,
    Engine,
    Epoch,
    Run,
    Spec,
    Wide,
    filtered,
)
from sweeps.cli.printing import (
    TableOptions,
    count,
    is_fitted,
    open_database,
    open_run,
    print_json,
    print_table,
    show,
)
from sweeps.terminal import say

if TYPE_CHECKING:
    import pandas as pd

    from sweeps.api import Store


MODELS = "Models"

LONGEST = 30
"""Characters of a configuration's name in a table that has to fit a terminal."""


def engines(
    spec: Spec,
    engine: Engine = "auto",
    device: Device = "auto",
    wide: Wide = False,
    columns: Columns = None,
    db: Db = None,
) -> None:
    """Say which engine trains each configuration of a specification, and why."""
    look = TableOptions(wide, columns)
    frame = api.engines(spec, engine, device, api.existing(db))
    for name in frame.columns.difference(["configuration", "sweep", "engine", "reason"]):
        frame[name] = frame[name].map(toml_value, na_action="ignore")
    print_table(frame, count(len(frame), "configuration"), look)


def verdict(
    run: Run,
    db: Db = None,
    beyond: Annotated[
        bool, typer.Option("--beyond", help="Show proofs for strings of every length instead.")
    ] = False,
    every_length: Annotated[
        bool, typer.Option("--every-length", help="Prove a recurrent network, as `prove` does.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check a model on every string up to a length: by default, its longest test length.

    What is found of a language is kept.
    """
    import pandas as pd

    from seqcls.interpretability.sentences import certification_text
    from seqcls.interpretability.verdicts import OutputVerdict, output_verdict_text
    from seqcls.problem import resolve

    store, run_id = open_run(db, run)
    if every_length:
        from seqcls.proofs.prover import proof_text

        proof = api.prove(store, run_id)
        said = proof_text(api.model(store, run_id), proof)
        show(as_json, said, {"run": run_id, **proof.record()})
        return
    if beyond:
        proved = api.proofs(store, run_id)
        show(as_json, certification_text(proved), {"run": run_id, **proved.record()})
        return
    checked = api.verdict(store, run_id)
    if isinstance(checked, OutputVerdict):
        said = [f"run {run_id}: {sentence}" for sentence in output_verdict_text(checked)]
        show(as_json, said, {"run": run_id, **checked.record()})
        return
    if as_json:
        print_json(pd.DataFrame([asdict(checked)]))
        return
    problem = resolve(api.config(store, run_id))
    empty = "with" if problem.tries_empty else "without"
    shortest = problem.tokenizer.display(checked.shortest_error or "") or "the empty string"
    wrong = checked.false_positives + checked.false_negatives
    say(
        f"run {run_id}: of {checked.inputs:,} {checked.unit}s up to length {checked.max_length}, "
        f"{empty} the empty string, {wrong:,} are misclassified ({checked.false_positives:,} false "
        f"positives, {checked.false_negatives:,} false negatives)"
        + (f"; the shortest is {shortest}" if wrong else "")
    )


def sensitive(
    references: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[RUN|SWEEP]...",
            help="Runs or sweeps to retrain from initial values perturbed by one unit in the last "
            "place, and in double precision.",
            show_default="list what is stored",
        ),
    ] = None,
    db: Db = None,
    times: Annotated[
        int,
        typer.Option(
            min=1, max=1000, help="How many times to retrain each run from perturbed values."
        ),
    ] = 8,
    as_json: AsJson = False,
) -> None:
    """Find the runs whose outcome depends on rounding."""
    store = open_database(db)
    if references:
        outcomes = api.sensitive(store, references, times)
        if as_json:
            print_json(outcomes)
            return
        number = int(outcomes["sensitive"].sum())
        title = (
            f"{number} of {count(len(outcomes), 'run')} come to another confusion matrix with "
            f"other rounding: {times} times from initial values moved by one unit in the last "
            "place, and once in double precision"
        )
        print_table(_perturbed_table(store, outcomes), title)
        return
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
    title = (
        f"{pairs['sensitive'].sum()} of {count(len(pairs), 'run')} in both precisions have other"
    )
    title += " confusion matrices"
    if not pairs["sensitive"].any():
        say(title)
        return
    shown = pairs[pairs["sensitive"]].drop(columns="sensitive")
    shown["sweeps"] = shown["sweeps"].map(", ".join)
    print_table(shown, title)


@filtered
def runs(
    chosen: dict[str, Any],
    db: Db = None,
    as_json: AsJson = False,
    wide: Wide = False,
    columns: Columns = None,
) -> None:
    """List runs with their results and outcomes."""
    import pandas as pd

    from seqcls.imported import MODEL
    from seqcls.theory.table import NOT_KNOWN
    from sweeps.api.naming import names_of
    from sweeps.api.overlaps import trained_on
    from sweeps.api.presentation import describe_proofs
    from sweeps.api.reading import deciding, languages
    from sweeps.api.results import call_datasets, stored_runs
    from sweeps.results import BORDER_SHARES, differing_fields, solved_or_none

    look = TableOptions(wide, columns)
    store = open_database(db)
    frame = stored_runs(store, **chosen)
    if as_json:
        print_json(frame.drop(columns="config_id"))
        return
    frame["dataset"] = call_datasets(store, frame["dataset"])
    # In the order of their weight: a narrow terminal leaves the last out.
    first = ["id", "model_seed", "outcome", "accuracy", "fp", "fn", "solved_length", "sweeps"]
    shown = frame[first].copy()
    named = names_of(store, frame["config_id"].unique().tolist())
    if is_fitted(look):
        named = {x: y if len(y) <= LONGEST else f"{y[: LONGEST - 1]}…" for x, y in named.items()}
    shown.insert(0, "configuration", frame["config_id"].map(named))
    shortest = api.shortest_tested(store, set(frame["config_id"]))
    solved = solved_or_none(frame["solved_length"], frame["config_id"].map(shortest).fillna(-1))
    none = frame["solved_length"].notna() & solved.isna()
    if none.any():
        shown["solved_length"] = solved.astype(object).mask(none, "none")
    shown["sweeps"] = shown["sweeps"].map(_in_short if is_fitted(look) else ", ".join)
    shown["outcome"] = shown["outcome"].fillna("")
    shown["accuracy"] = [_percent(value) for value in shown["accuracy"]]
    if "every_length" in frame:
        refuted = frame.loc[frame["refuted_by"].notna(), "config_id"].unique().tolist()
        proved = describe_proofs(frame, api.configs(store, refuted))
        shown.insert(3, "every length", proved)
    if (frame["state"] != api.RunState.DONE).any():
        shown.insert(4, "state", frame["state"])
    foreign = [MODEL] if MODEL in frame else []
    for name in dict.fromkeys([*foreign, *differing_fields(frame)]):
        shown[name] = frame[name].map(toml_value, na_action="ignore")
    if (frame["predicted"] != NOT_KNOWN).any():
        shown["predicted"] = frame["predicted"]
    for name in ("state", "epochs", "best_epoch", "tn", "tp"):
        shown[name] = frame[name]
    tested = frame[frame["state"] == api.RunState.DONE]
    if len(tested) and tested["fp"].isna().all():
        # Of tasks that are no languages there are no such counts.
        shown = shown.drop(columns=["fp", "fn", "tn", "tp"])
    if look.columns is not None:
        # Asked for, any is shown: a setting that is the same in all of them, too.
        rest = frame.columns.difference([*shown, "config_id"], sort=False)
        others = {name: frame[name].map(toml_value, na_action="ignore") for name in rest}
        shown = pd.concat([shown, pd.DataFrame(others, index=shown.index)], axis=1)
    shares = ["accuracy_within", "accuracy_beyond", "shortcut_within", "shortcut_beyond"]
    for name in [*shares, *(x for x in BORDER_SHARES if x in frame)]:
        if frame[name].notna().any():
            shown[name] = [_percent(value) for value in frame[name]]
        elif name in shown:
            shown[name] = ""
    print_table(shown, f"{count(len(frame), 'run')} in {store.name}", look)
    config_ids = frame["config_id"].unique().tolist()
    if len(config_ids) <= MOST_ASKED:
        read = frame[frame["shortcut_within"].notna() | frame["shortcut_beyond"].notna()]
        of = pd.Series(languages(store)).loc[read["config_id"].unique()]
        by = pd.Series(deciding(store, set(of.index)), dtype=object).loc[of.index].dropna()
        decided = pd.DataFrame({"language": of.loc[by.index], "by": by}).drop_duplicates()
        for each, some in decided.groupby("by", sort=False)["language"]:
            subjects = [f"{name} is" for name in some]
            if len(some) > MOST_NAMED:
                subjects = [f"of {of.nunique():,} tasks {len(some):,} are"]
            for which in subjects:
                line = f"{which} decided by {each}: to read nothing else is no shortcut"
                say(fill(line, FITTED) if is_fitted(look) else line)
        said = trained_on(api.configs(store, config_ids).values())
        if said:
            say(said)


@filtered
def populations(
    chosen: dict[str, Any],
    db: Db = None,
    by: Annotated[
        list[str] | None,
        typer.Option(
            "--by",
            help="A setting that tells populations apart; repeatable.",
            show_default="the fewest that do",
        ),
    ] = None,
    as_json: AsJson = False,
    wide: Wide = False,
    columns: Columns = None,
) -> None:
    """Sum up configurations that differ only by the language: the share of languages learned.

    Intervals are over languages. Random and border are median accuracies over languages, beyond
    trained lengths of the models that learned.
    """
    from sweeps.results import describe_longer

    store = open_database(db)
    found = api.populations(store, chosen.pop("sweeps", None), by or (), **chosen)
    if as_json:
        print_json(found.table())
        return
    shown = found.texts()
    if shown.empty:
        say("no configurations of this database differ only by the language")
        return
    title = f"{count(len(shown), 'population')} of languages in {store.name}"
    print_table(shown, title, TableOptions(wide, columns))
    if said := describe_longer(found.longer):
        say(said)


def errors(
    run: Run,
    db: Db = None,
    sort: Annotated[
        str, typer.Option(help="length, string, logit or occurrences, smallest first.")
    ] = "length",
    limit: Annotated[
        int | None,
        typer.Option("--limit", "-n", min=1, help="List at most this many.", show_default="all"),
    ] = None,
    as_json: AsJson = False,
    wide: Wide = False,
    columns: Columns = None,
) -> None:
    """List the test strings that a run gets wrong, the shortest first."""
    from sweeps.api.presentation import border_sentence, display_strings, words_of
    from sweeps.api.reading import View, border_accuracies

    store = open_database(db)
    frame = api.errors_of_run(store, run, sort)
    number, tested = len(frame), int(frame["occurrences"].sum())
    frame = frame if limit is None else frame.head(limit)
    if as_json:
        print_json(frame)
        return
    run_id = api.find_run(store, run)
    of = api.config(store, run_id)
    frame = _readable(display_strings(frame, of))
    part = f"; the first {limit:,} by {sort}" if limit else ""
    words = words_of(of)
    strings = f"{number:,} {words.plural('distinct')}, {tested:,} in the test set"
    title = f"{words.missed} by run {run_id}: {strings}{part}"
    shown = ["string", "kind", "length", "logit", "occurrences"]
    shown.append("target" if "target" in frame else "label")
    if "output" in frame:
        # Imported where it is used: help is fast.
        from seqcls.problem import resolve

        sure = resolve(of).kind.answer_columns[1].name
        frame = frame.rename(columns={"log_probability": sure})
        shown = ["string", "kind", "length", "target", "output", "first_wrong", sure, "occurrences"]
    if "drawn" in frame:
        shown.append("drawn")
    print_table(frame[shown], title, TableOptions(wide, columns))
    if len(ways := api.by_drawn(store, run_id)) > 1:
        shares = zip(ways["drawn"], ways["accuracy"], strict=True)
        told = ", ".join(f"{way} {_percent(share)}" for way, share in shares)
        say(f"accuracy by how strings were drawn: {told}")
    if said := border_sentence(border_accuracies(store.reader(), View(run_ids=(run_id,)))):
        say(said)


def predict(
    run: Run,
    strings: Annotated[
        list[str], typer.Argument(help="Strings such as baac or ab{100}c{55}.", show_default=False)
    ],
    db: Db = None,
    epoch: Epoch = None,
    beam: Annotated[
        int | None,
        typer.Option(
            help="For a transduction: the outputs of each input that a beam of this width finds, "
            "the likeliest first.",
            show_default="one, as it is tested",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Give a model's probability that each string is in its language, or its output for it."""
    from sweeps.api.presentation import display_strings

    store, run_id = open_run(db, run)
    answers = api.predict(store, run_id, strings, epoch, partial=False, beam=beam)
    config = api.config(store, run_id)
    # Of a task that is no language all there is: strings with targets, answers and margins.
    frame = answers
    if "label" in answers:
        # Of a model whose weights are not here, what it answered to strings of its test.
        shown = ["label", "predicted"] if config.is_imported else ["probability", "logit"]
        frame = answers[["string", *shown]]
    if as_json:
        print_json(frame)
        return
    print_table(_readable(display_strings(frame, config)), f"run {run_id}")


COMMANDS: Mapping[Callable[..., None], str] = {
    engines: "Example: seqcls engines report",
    verdict: "Example: seqcls verdict all_initializations/2",
    sensitive: "Example: seqcls sensitive lower_magnitude_initializations",
    runs: "Example: seqcls runs --sweep all_initializations --failing",
    populations: "Example: seqcls populations --sweep known/mlregtest_sample",
    errors: "Example: seqcls errors all_initializations/2 --limit 10",
    predict: "Example: seqcls predict all_initializations/2 baac 'ab{100}c{55}'",
}
"""In the order of the help, with what it ends with."""


MOST_ASKED = 1_000
"""Configurations of which it is said how much of their tests they were trained on."""

FITTED = 80
"""Columns of sentences where tables are fitted to a terminal."""

MOST_NAMED = 10
"""Languages that are named of those that the same decides; of more their number is said."""


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


def _readable(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Strings and numbers as a table shows them: an empty string is seen, a number is short."""
    import pandas as pd

    from seqcls.interpretability.wording import score_text

    frame = frame.copy()
    for name in frame.columns.intersection(["string", "target", "output"]):
        frame[name] = frame[name].replace("", '""').fillna("not known")
    # Models that were trained elsewhere may have given no scores.
    for name in frame.columns.intersection(["logit", "margin", "log_probability"]):
        frame[name] = ["" if pd.isna(x) else score_text(x) for x in frame[name]]
    if "probability" in frame:
        frame["probability"] = ["" if pd.isna(x) else f"{x:.6f}" for x in frame["probability"]]
    return frame


def toml_value(value: Any) -> str:
    """A value as it is written in a specification: 0.0, true, "balanced"."""
    return json.dumps(value) if isinstance(value, bool | str) else str(value)


def _in_short(sweeps: Sequence[str]) -> str:
    """The first of them, and how many more there are."""
    return " +".join([*sweeps[:1], *([str(len(sweeps) - 1)] if len(sweeps) > 1 else [])])


def _percent(value: Any) -> str:
    import pandas as pd

    from seqcls.interpretability.wording import percent

    return "" if pd.isna(value) else percent(value)
