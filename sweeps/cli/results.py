"""Commands on results: runs, errors, comparisons, causes and remedies."""

from collections.abc import Iterator
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seqcls.errors import ConfigError
from seqcls.interpretability.mechanisms import NOT_LEARNED, SAMPLE, forgetting_text
from seqcls.text import count
from sweeps import api
from sweeps.cli.parameters import LEARNED_AT, Panel, Texts
from sweeps.cli.printing import (
    FITTED,
    Answer,
    Table,
    TableOptions,
    is_fitted,
    readable,
    share_text,
    toml_values,
)
from sweeps.terminal import say

if TYPE_CHECKING:
    import pandas as pd

    from sweeps.api import Store

results = Panel("Results")

LONGEST_NAME = 30
"""Maximum length of a configuration's name in a table that has to fit a terminal."""

MOST_CHECKED = 1_000
"""Maximum number of configurations whose overlap of training and test is reported."""

MOST_NAMED = 10
"""Maximum number of languages listed as decided by the same property; else their number."""


@results.add("runs --sweep all_initializations --failing")
def runs(
    store: "Store", chosen: dict[str, Any], look: TableOptions, by: list[str] | None = None
) -> Answer:
    """List runs with their results and outcomes, or summarize them by class of languages.

    Args:
        by: 'class' summarizes configurations that differ only in the language: how many languages
            are learned, by class; add settings, such as hidden_size, to split further (default: as
            few as needed); repeatable.
    """
    from sweeps.api.results import stored_runs
    from sweeps.results import describe_longer

    if not by:
        frame = stored_runs(store, **chosen)
        return Answer(frame.drop(columns="config_id"), _runs_parts(store, frame, look))
    settings = [name for name in by if name != "class"]
    found = api.populations(store, chosen.pop("sweeps", None), settings, **chosen)
    shown, longer = found.texts(), describe_longer(found.longer)
    if shown.empty:
        sentence = "no configurations of this database differ only by the language"
        return Answer(found.table, [sentence])
    title = f"{count(len(shown), 'population')} of languages in {store.name}"
    return Answer(found.table, [Table(shown, title, look), *([longer] if longer else [])])


def _runs_parts(store: "Store", frame: "pd.DataFrame", look: TableOptions) -> Iterator[str | Table]:
    """Yields the table of runs, the most important columns first, and sentences about it."""
    import pandas as pd

    from seqcls.imported import MODEL
    from seqcls.theory.table import NOT_KNOWN
    from sweeps.api.overlaps import trained_on
    from sweeps.api.presentation import describe_proofs
    from sweeps.api.watching import dataset_names
    from sweeps.results import BORDER_SHARES, differing_fields, solved_or_none

    frame["dataset"] = frame["dataset"].replace(dataset_names(store))
    done, fits = api.RunState.DONE, is_fitted(look)
    config_ids = frame["config_id"].unique().tolist()
    named = api.names_of(store, config_ids)
    if fits:
        named = {
            x: y if len(y) <= LONGEST_NAME else f"{y[: LONGEST_NAME - 1]}…"
            for x, y in named.items()
        }
    shortest = api.shortest_tested(store, set(config_ids))
    solved = solved_or_none(frame["solved_length"], frame["config_id"].map(shortest).fillna(-1))
    # Below the shortest test string: nothing is solved.
    none = frame["solved_length"].notna() & solved.isna()
    shown = pd.DataFrame({"configuration": frame["config_id"].map(named), "id": frame["id"]})
    shown["model_seed"] = frame["model_seed"]
    if "every_length" in frame:
        refuted = frame.loc[frame["refuted_by"].notna(), "config_id"].unique().tolist()
        shown["every length"] = describe_proofs(frame, api.configs(store, refuted))
    if (frame["state"] != done).any():
        shown["state"] = frame["state"]
    shown["outcome"] = frame["outcome"].fillna("")
    shown["accuracy"] = frame["accuracy"].map(share_text)
    tested = frame.loc[frame["state"] == done, "fp"]
    # Tasks that are no languages have no such counts.
    counts = [] if len(tested) and tested.isna().all() else ["fp", "fn", "tn", "tp"]
    shown[counts[:2]] = frame[counts[:2]]
    shown["solved_length"] = frame["solved_length"]
    if none.any():
        shown["solved_length"] = solved.astype(object).mask(none, "none")
    shown["sweeps"] = frame["sweeps"].map(", ".join)
    if fits:
        more = frame["sweeps"].map(lambda names: f" +{len(names) - 1}" if len(names) > 1 else "")
        shown["sweeps"] = frame["sweeps"].map(lambda names: "".join(names[:1])) + more
    foreign = [MODEL] if MODEL in frame else []
    settings = list(dict.fromkeys([*foreign, *differing_fields(frame)]))
    shown[settings] = toml_values(frame[settings])
    if (frame["predicted"] != NOT_KNOWN).any():
        shown["predicted"] = frame["predicted"]
    if frame["counting"].notna().any():
        shown["counting"] = frame["counting"].fillna("")
    for name in ("state", "epochs", "best_epoch", *counts[2:], "num_parameters"):
        shown[name] = frame[name]
    if look.columns is not None:
        # Any column may be chosen, also a setting that is the same in all runs.
        rest = frame.columns.difference([*shown, "config_id"], sort=False)
        shown = pd.concat([shown, toml_values(frame[rest])], axis=1)
    shares = ["accuracy_within", "accuracy_beyond", "shortcut_within", "shortcut_beyond"]
    for name in [*shares, *(x for x in BORDER_SHARES if x in frame)]:
        if name in shown or frame[name].notna().any():
            shown[name] = frame[name].map(share_text)
    yield Table(shown, f"{count(len(frame), 'run')} in {store.name}", look)
    if len(config_ids) <= MOST_CHECKED:
        for line in _deciding_sentences(store, frame):
            yield fill(line, FITTED) if fits else line
        if sentence := trained_on(api.configs(store, config_ids).values()):
            yield sentence


def _deciding_sentences(store: "Store", frame: "pd.DataFrame") -> Iterator[str]:
    """Lists languages decided by the features of a shortcut reader, which is no shortcut then."""
    import pandas as pd

    read = frame[frame["shortcut_within"].notna() | frame["shortcut_beyond"].notna()]
    languages = pd.Series(api.language_names(store)).loc[read["config_id"].unique()]
    by = (
        pd.Series(api.deciding(store, set(languages.index)), dtype=object)
        .loc[languages.index]
        .dropna()
    )
    decided = pd.DataFrame({"language": languages.loc[by.index], "by": by}).drop_duplicates()
    for decider, some in decided.groupby("by", sort=False)["language"]:
        subjects = [f"{name} is" for name in some]
        if len(some) > MOST_NAMED:
            subjects = [f"of {languages.nunique():,} tasks {len(some):,} are"]
        for which in subjects:
            yield f"{which} decided by {decider}: to read nothing else is no shortcut"


@results.add("errors all_initializations/2 --limit 10")
def errors(
    run: str,
    store: "Store",
    look: TableOptions,
    sort: str = "length",
    limit: Annotated[int | None, typer.Option(min=1)] = None,
) -> Answer:
    """List the test strings that a run gets wrong, the shortest first.

    In strings, b{3} is bbb, <ab>{2} is abab, and "" is the empty string.

    Args:
        sort: length, string, logit or occurrences, smallest first.
        limit: list at most this many; by default, all.
    """
    from seqcls.problem import resolve
    from sweeps.api.presentation import border_sentence, display_strings, words_of

    frame = api.errors_of_run(store, run, sort)
    number, tested = len(frame), int(frame["occurrences"].sum())
    frame = frame if limit is None else frame.head(limit)

    def parts() -> Iterator[str | Table]:
        run_id = api.find_run(store, run)
        run_config = api.config(store, run_id)
        table, words = readable(display_strings(frame, run_config)), words_of(run_config)
        part = f"; the first {limit:,} by {sort}" if limit else ""
        strings = f"{number:,} {words.plural('distinct')}, {tested:,} in the test set"
        shown = ["string", "kind", "length", "logit", "occurrences"]
        shown.append("target" if "target" in table else "label")
        if "output" in table:
            sure = resolve(run_config).kind.answer_columns[1]
            table = table.rename(columns={"log_probability": sure})
            shown = ["string", "kind", "length", "target", "output", "first_wrong", sure]
            shown.append("occurrences")
        shown += ["drawn"] if "drawn" in table else []
        yield Table(table[shown], f"{words.missed} by run {run_id}: {strings}{part}", look)
        if len(ways := api.by_drawn(store, run_id)) > 1:
            shares = zip(ways["drawn"], ways["accuracy"], strict=True)
            listed = ", ".join(f"{way} {share_text(share)}" for way, share in shares)
            yield f"accuracy by how strings were drawn: {listed}"
        if sentence := border_sentence(
            api.border_accuracies(store, api.Selection(run_ids=(run_id,)))
        ):
            yield sentence

    return Answer(frame, parts())


@results.add("compare all_initializations increased_dimensionality")
def compare(
    store: "Store",
    look: TableOptions,
    names: Texts = None,
    sweeps: list[str] | None = None,
    every_pair: Annotated[bool, typer.Option("--all")] = False,
    learned_at: float = LEARNED_AT,
    below: float = 1.0,
) -> Answer:
    """Say whether configurations differ significantly, in what, and on which strings.

    Args:
        names: Two or more configurations; every pair is compared. Give each by its name, a sweep,
            SWEEP:FIELD=VALUE,…, or a run, which stands for its configuration. If 2 is both a sweep
            and a run, write 2: for the sweep and SWEEP/SEED for the run.
        every_pair: compare every pair of configurations, of the sweeps named or of all, with
            p-values corrected for the number of pairs.
    """
    from seqcls.interpretability.wording import percent, percents
    from sweeps.api.questions import QUESTIONS

    thresholds = {"learned_at": learned_at, "below": below}
    references = names or []
    if len(references) == 2 and not every_pair:
        compared = api.compare(store, references[0], references[1], **thresholds)
        configs = api.configs(store, compared.config_ids).values()
        return Answer(compared.record(), compared.describe(*configs))
    if every_pair:
        references, sweeps = [], [*(sweeps or ()), *references]
    elif len(references) < 2:
        raise ConfigError("expected two or more configurations, or --all and names of sweeps")
    found = api.compare_all(store, references, sweeps=sweeps or (), **thresholds)
    shown = found[["a", "b", "question"]].copy()
    shown["difference"] = [percent(x) for x in found["value"]]
    limits = found[["low", "high"]].itertuples(index=False)
    shown["95%"] = ["" if x != x else percents(x, y, 2) for x, y in limits]
    for name in ("p_value", "holm"):
        shown[name] = found[name].map("{:.3g}".format)
    meanings = "; ".join(f"{x}: {QUESTIONS[x]}" for x in dict.fromkeys(found["question"]))
    legend = "a minus b; holm is p corrected for all pairs of the same question (Holm 1979)"
    title = f"{count(len(found), 'comparison')} in {store.name}"
    return Answer(found, [Table(shown, title, look), f"{legend}. {meanings}."])


@results.add("causes lower_magnitude_initializations")
def causes(
    store: "Store",
    chosen: dict[str, Any],
    sweep: str,
    sample: Annotated[int, typer.Option(min=1, max=100000)] = SAMPLE,
) -> Answer:
    """Find out why the failing runs of a sweep fail, and store the causes.

    Args:
        sample: how many errors to examine per run.
    """
    from seqcls.interpretability.wording import percent, percents
    from sweeps.api.failures import causes_by_configuration
    from sweeps.api.presentation import display_of, words_of
    from sweeps.api.results import stored_runs
    from sweeps.results import rows_of

    every = stored_runs(store, (sweep,), **{**chosen, "failing": False})
    failing = stored_runs(store, (sweep,), **{**chosen, "failing": True})
    stored = api.causes(store, sweep, sample, **chosen)
    configs = api.configs(store, every["config_id"].unique().tolist())
    table = causes_by_configuration(failing, stored)
    # Found by proofs, also of runs without a test error.
    forgets, config_ids = api.forgettings(store), every.set_index("id")["config_id"]
    forgets = {run: forgets[run] for run in config_ids.index if run in forgets}
    record = {"sweep": sweep, "failing": len(failing), "causes": rows_of(stored)}
    record |= {"by_configuration": rows_of(table)}
    record |= {"forgetting": [{"run_id": run, **found} for run, found in forgets.items()]}

    def parts() -> Iterator[str | Table]:
        if failing.empty:
            words = words_of(*(configs[x] for x in config_ids.unique()))
            misses = words.misses.format(f"a test {words.string}")
            fails = misses if chosen["below"] >= 1 else "fails"
            yield f"no finished run of sweep {sweep!r} {fails}"
        else:
            named = api.names_of(store, table["config_id"].unique().tolist())
            shown = table[["mechanism", "seeds", "failing"]].copy()
            shown.insert(0, "configuration", table["config_id"].map(named))
            rows = table[["share", "low", "high"]].itertuples(index=False)
            shown["share (95%)"] = [f"{percent(x, 0)} ({percents(y, z, 0)})" for x, y, z in rows]
            yield Table(shown, f"{count(len(failing), 'failing run')} of {sweep}")
            shown = stored.drop(columns="number").astype({"head": "Int64"})
            shown.insert(1, "seed", shown["run_id"].map(failing.set_index("id")["model_seed"]))
            # Not learned is about the model, not a share of its errors.
            shown["share"] = shown["share"].mask(shown["mechanism"] == NOT_LEARNED)
            shown["share"] = [share_text(x, 1) for x in shown["share"]]
            shown["agreement"] = [share_text(x, 1) for x in shown["agreement"]]
            yield Table(shown, "by run, of the errors that were examined")
        for run, found in forgets.items():
            yield f"run {run}: {forgetting_text(found, display_of(configs[config_ids[run]]))}"

    return Answer(record, parts())


@results.add("remedies all_initializations/2")
def remedies(
    store: "Store", chosen: dict[str, Any], run: str, save: Path | None = None, force: bool = False
) -> Answer:
    """Suggest settings to change so that a failing run may succeed, the most promising first.

    Args:
        save: write a specification of each suggestion, with the same seeds, to this folder.
    """
    from sweeps.api.failures import why_not_learned
    from sweeps.api.presentation import words_of
    from sweeps.api.trials import sentences
    from sweeps.files import whole_files
    from sweeps.grid.written_spec import toml_of

    run_id = api.find_run(store, run)
    mechanisms, trials = api.remedies(store, run_id, **chosen)
    if save is not None:
        with whole_files(save, force=force) as folder:
            for trial in trials:
                name = f"{trial.suggestion.field}-{trial.suggestion.value}.toml"
                (folder / name).write_text(toml_of(trial.spec.submitted), encoding="utf-8")
        saved = f"{count(len(trials), 'specification')} in {save}"
        say(f"{saved}; `seqcls sweep FILE` trains one", err=True)
    words, lines = words_of(api.run_config(store, run_id)), []
    if not mechanisms:
        lines.append(f"run {run_id} {words.misses.format(f'no test {words.string}')}")
    if NOT_LEARNED in mechanisms:
        why = why_not_learned(store, run_id, chosen["learned_at"])
        lines.append(f"run {run_id} has not learned the trained lengths: {why}")
    if found := [name for name in mechanisms if name != NOT_LEARNED]:
        lines.append(f"run {run_id} fails by {', '.join(found)}")
    for trial in trials:
        suggestion = trial.suggestion
        lines.append(f"try {suggestion.text}, against {suggestion.mechanism}")
        lines.append(f"  {suggestion.reason} Source: {suggestion.source}.")
        lines += [f"  {sentence}" for sentence in sentences(trial)]
    if mechanisms and not trials:
        lines.append("nothing on the list of remedies applies to its configuration")
    suggestions = [trial.record() for trial in trials]
    return Answer({"run": run_id, "mechanisms": mechanisms, "suggestions": suggestions}, lines)
