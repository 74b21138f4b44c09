"""Commands on results: runs, their errors, configurations compared, causes and remedies."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seqcls.interpretability.mechanisms import NOT_LEARNED, SAMPLE, forgetting_text
from seqcls.text import count
from sweeps import api
from sweeps.cli.parameters import LEARNED_AT, Panel
from sweeps.cli.printing import (
    Answer,
    Table,
    TableOptions,
    fit_sentence,
    is_fitted,
    readable,
    share_text,
    toml_values,
)
from sweeps.terminal import say

if TYPE_CHECKING:
    import pandas as pd

    from seqcls.config import RunConfig
    from seqcls.kinds import Words
    from sweeps.api import Store
    from sweeps.api.comparisons import Compared
    from sweeps.api.trials import RemedyTrial

results = Panel("Results")

LONGEST = 30
"""Characters of a configuration's name in a table that has to fit a terminal."""

MOST_ASKED = 1_000
"""Configurations of which it is said how much of their tests they were trained on."""

MOST_NAMED = 10
"""Languages that are named of those that the same decides; of more their number is said."""


@results.add("runs --sweep all_initializations --failing")
def runs(
    store: "Store", chosen: dict[str, Any], look: TableOptions, by: list[str] | None = None
) -> Answer:
    """List runs with their results and outcomes, or sum them up by their class of languages.

    Args:
        by: with class, sum up configurations that differ only by the language, as shares of
            languages learned, with intervals over languages; a setting tells such populations
            apart, by default the fewest that do; repeatable.
    """
    if by:
        return _populations(store, chosen, [x for x in by if x != "class"], look)
    from sweeps.api.results import stored_runs

    frame = stored_runs(store, **chosen)
    return Answer(frame.drop(columns="config_id"), _runs_parts(store, frame, look))


def _populations(
    store: "Store", chosen: dict[str, Any], by: list[str], look: TableOptions
) -> Answer:
    from sweeps.results import describe_longer

    found = api.populations(store, chosen.pop("sweeps", None), by, **chosen)
    shown, longer = found.texts(), describe_longer(found.longer)
    if shown.empty:
        said = "no configurations of this database differ only by the language"
        return Answer(found.table(), [said])
    title = f"{count(len(shown), 'population')} of languages in {store.name}"
    return Answer(found.table(), [Table(shown, title, look), *([longer] if longer else [])])


def _runs_parts(store: "Store", frame: "pd.DataFrame", look: TableOptions) -> Iterator[str | Table]:
    """The runs in columns of which the first weigh most: a narrow terminal leaves the last out."""
    import pandas as pd

    from seqcls.imported import MODEL
    from seqcls.theory.table import NOT_KNOWN
    from sweeps.api.naming import names_of
    from sweeps.api.overlaps import trained_on
    from sweeps.api.presentation import describe_proofs
    from sweeps.api.results import call_datasets
    from sweeps.results import BORDER_SHARES, differing_fields, solved_or_none

    frame["dataset"] = call_datasets(store, frame["dataset"])
    done, fits = api.RunState.DONE, is_fitted(look)
    config_ids = frame["config_id"].unique().tolist()
    named = names_of(store, config_ids)
    if fits:
        named = {x: y if len(y) <= LONGEST else f"{y[: LONGEST - 1]}…" for x, y in named.items()}
    shortest = api.shortest_tested(store, set(config_ids))
    solved = solved_or_none(frame["solved_length"], frame["config_id"].map(shortest).fillna(-1))
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
    # Of tasks that are no languages there are no such counts.
    counts = [] if len(tested) and tested.isna().all() else ["fp", "fn", "tn", "tp"]
    shown[counts[:2]] = frame[counts[:2]]
    shown["solved_length"] = frame["solved_length"]
    if none.any():
        shown["solved_length"] = solved.astype(object).mask(none, "none")
    shown["sweeps"] = frame["sweeps"].map(_in_short if fits else ", ".join)
    foreign = [MODEL] if MODEL in frame else []
    settings = list(dict.fromkeys([*foreign, *differing_fields(frame)]))
    shown[settings] = toml_values(frame[settings])
    if (frame["predicted"] != NOT_KNOWN).any():
        shown["predicted"] = frame["predicted"]
    for name in ("state", "epochs", "best_epoch", *counts[2:]):
        shown[name] = frame[name]
    if look.columns is not None:
        # Asked for, any is shown: a setting that is the same in all of them, too.
        rest = frame.columns.difference([*shown, "config_id"], sort=False)
        shown = pd.concat([shown, toml_values(frame[rest])], axis=1)
    shares = ["accuracy_within", "accuracy_beyond", "shortcut_within", "shortcut_beyond"]
    for name in [*shares, *(x for x in BORDER_SHARES if x in frame)]:
        if name in shown or frame[name].notna().any():
            shown[name] = frame[name].map(share_text)
    yield Table(shown, f"{count(len(frame), 'run')} in {store.name}", look)
    if len(config_ids) <= MOST_ASKED:
        for line in _deciding_sentences(store, frame):
            yield fit_sentence(line, look)
        if said := trained_on(api.configs(store, config_ids).values()):
            yield said


def _deciding_sentences(store: "Store", frame: "pd.DataFrame") -> Iterator[str]:
    """Where what a shortcut reader reads is all that counts, that it is no shortcut."""
    import pandas as pd

    from sweeps.api.old_pages.reading import deciding, languages

    read = frame[frame["shortcut_within"].notna() | frame["shortcut_beyond"].notna()]
    of = pd.Series(languages(store)).loc[read["config_id"].unique()]
    by = pd.Series(deciding(store, set(of.index)), dtype=object).loc[of.index].dropna()
    decided = pd.DataFrame({"language": of.loc[by.index], "by": by}).drop_duplicates()
    for each, some in decided.groupby("by", sort=False)["language"]:
        subjects = [f"{name} is" for name in some]
        if len(some) > MOST_NAMED:
            subjects = [f"of {of.nunique():,} tasks {len(some):,} are"]
        for which in subjects:
            yield f"{which} decided by {each}: to read nothing else is no shortcut"


def _in_short(sweeps: list[str]) -> str:
    """The first of them, and how many more there are."""
    return f"{sweeps[0]} +{len(sweeps) - 1}" if len(sweeps) > 1 else "".join(sweeps)


@results.add("errors all_initializations/2 --limit 10")
def errors(
    run: str,
    store: "Store",
    look: TableOptions,
    sort: str = "length",
    limit: Annotated[int | None, typer.Option(min=1)] = None,
) -> Answer:
    """List the test strings that a run gets wrong, the shortest first.

    Args:
        sort: by length, string, logit or occurrences, smallest first.
        limit: list at most this many; by default, all.
    """
    from seqcls.problem import resolve
    from sweeps.api.old_pages.reading import View, border_accuracies
    from sweeps.api.presentation import border_sentence, display_strings, words_of

    frame = api.errors_of_run(store, run, sort)
    number, tested = len(frame), int(frame["occurrences"].sum())
    frame = frame if limit is None else frame.head(limit)

    def parts() -> Iterator[str | Table]:
        run_id = api.find_run(store, run)
        of = api.config(store, run_id)
        table, words = readable(display_strings(frame, of)), words_of(of)
        part = f"; the first {limit:,} by {sort}" if limit else ""
        strings = f"{number:,} {words.plural('distinct')}, {tested:,} in the test set"
        shown = ["string", "kind", "length", "logit", "occurrences"]
        shown.append("target" if "target" in table else "label")
        if "output" in table:
            sure = resolve(of).kind.answer_columns[1].name
            table = table.rename(columns={"log_probability": sure})
            shown = ["string", "kind", "length", "target", "output", "first_wrong", sure]
            shown.append("occurrences")
        shown += ["drawn"] if "drawn" in table else []
        yield Table(table[shown], f"{words.missed} by run {run_id}: {strings}{part}", look)
        if len(ways := api.by_drawn(store, run_id)) > 1:
            shares = zip(ways["drawn"], ways["accuracy"], strict=True)
            told = ", ".join(f"{way} {share_text(share)}" for way, share in shares)
            yield f"accuracy by how strings were drawn: {told}"
        if said := border_sentence(border_accuracies(store, View(run_ids=(run_id,)))):
            yield said

    return Answer(frame, parts())


@results.add("compare all_initializations increased_dimensionality")
def compare(
    a: str, b: str, store: "Store", learned_at: float = LEARNED_AT, below: float = 1.0
) -> Answer:
    """Say whether two configurations differ by more than chance, in what, and on which strings.

    Args:
        a: a sweep, SWEEP:FIELD=VALUE,…, or a run, which stands for its configuration. If 2 is both
            a sweep and a run, write 2: for the sweep and SWEEP/SEED for the run.
        b: likewise.
    """
    from sweeps.api.presentation import words_of

    compared = api.compare(store, a, b, learned_at=learned_at, below=below)
    configs = api.configs(store, compared.config_ids).values()
    said = comparison_sentences(compared, words_of(*configs), *configs)
    return Answer(compared.record(), said)


SHOWN = 10
"""Strings that are printed; `--json` has them all."""


def comparison_sentences(compared: "Compared", words: "Words", *configs: "RunConfig") -> list[str]:
    """The difference of two configurations in a few lines; a difference is a less b."""
    from sweeps.api.comparison_text import QUESTIONS, sentence_of
    from sweeps.api.presentation import display_strings
    from sweeps.results import BORDER_MEDIANS

    sides = zip("ab", compared.called, compared.names, strict=True)
    said = [f"{side}: {called} ({asked})" for side, called, asked in sides]
    for name, values in compared.fields.items():
        a, b = ("not set" if value is None else value for value in values)
        said.append(f"{name}: {a} in a, {b} in b")
    said += [compared.verdict(), compared.pairing]
    said += filter(None, [compared.longer_strings])
    said += [sentence_of(name, found) for name, found in compared.questions.items()]
    said += [f"{QUESTIONS[name]}: {why}" for name, why in compared.absent.items()]
    if "learned" not in compared.questions:
        said.append("whether they learned is not known of both, so the whole test is compared")
    said += [
        f"median accuracy, {BORDER_MEDIANS[name]}: "
        + " and ".join(share_text(share) or "none" for share in shares)
        for name, shares in compared.border.items()
    ]
    said += _shortcut_sentences(compared)
    if compared.strings is None:
        return [*said, "tested on different strings, so no string is compared"]
    strings = f"{len(compared.strings):,} {words.plural('test')}"
    said.append(f"{strings} are {words.missed} by more runs of one than of the other")
    said += [
        f"  {row['string'] or 'the empty string'}: by {row['wrong_a']} of a, {row['wrong_b']} of b"
        for row in display_strings(compared.strings.head(SHOWN), *configs).to_dict("records")
    ]
    return said


def _shortcut_sentences(compared: "Compared") -> list[str]:
    """What the best shortcut reader of each side's test reaches."""
    from seqcls.shortcuts import READERS

    said = {}
    for side, config_id in zip("ab", compared.config_ids, strict=True):
        for best in compared.shortcut_of(config_id).to_dict("records"):
            shares = {x: share_text(best[x]) for x in ("within", "beyond")}
            shares_said = " and ".join(f"{text} {x}" for x, text in shares.items() if text)
            reader = READERS.get(best["reader"], best["reader"])
            said[side] = f"{reader}; accuracy {shares_said} trained lengths"
            if best["decided_by"] is not None:
                said[side] += f"; no shortcut, as the task is decided by {best['decided_by']}"
    if len(said) == 2 and said["a"] == said["b"]:
        return [f"best shortcut on their tests: {said['a']}"]
    return [f"best shortcut on the test of {side}: {text}" for side, text in said.items()]


@results.add("causes lower_magnitude_initializations")
def causes(
    store: "Store",
    chosen: dict[str, Any],
    sweep: str,
    sample: Annotated[int, typer.Option(min=1, max=100000)] = SAMPLE,
) -> Answer:
    """Say why the failing runs of a sweep fail, and store the causes.

    Args:
        sample: errors to examine per run.
    """
    from sweeps.api.failures import causes_by_configuration
    from sweeps.api.presentation import words_of
    from sweeps.api.results import stored_runs
    from sweeps.results import rows_of

    failing = stored_runs(store, (sweep,), **{**chosen, "failing": True})
    stored = api.causes(store, sweep, sample, **chosen)
    table = causes_by_configuration(failing, stored)
    forgotten = list(_find_forgetting(store, sweep, chosen))
    record = {"sweep": sweep, "failing": len(failing), "causes": rows_of(stored)}
    record |= {"by_configuration": rows_of(table), "forgetting": [x for x, _ in forgotten]}

    def parts() -> Iterator[str | Table]:
        if failing.empty:
            ids = stored_runs(store, (sweep,))["config_id"].unique().tolist()
            words = words_of(*api.configs(store, ids).values())
            said = words.misses.format(f"a test {words.string}")
            yield f"no finished run of sweep {sweep!r} {said if chosen['below'] >= 1 else 'fails'}"
        else:
            title = f"{count(len(failing), 'failing run')} of {sweep}"
            yield Table(_causes_by_configuration(store, table), title)
            yield Table(
                _causes_by_run(failing, stored), "by run, of the errors that were looked at"
            )
        yield from (sentence for _, sentence in forgotten)

    return Answer(record, parts())


def _find_forgetting(
    store: "Store", sweep: str, chosen: dict[str, Any]
) -> Iterator[tuple[dict[str, Any], str]]:
    """What runs forget while a word repeats, where proofs found that: as JSON, and in a sentence.

    Of runs without a test error, too.
    """
    from sweeps.api.old_pages.reading import forgettings
    from sweeps.api.presentation import display_of
    from sweeps.api.results import stored_runs

    if not (found := forgettings(store)):
        return
    runs = stored_runs(store, (sweep,), **{**chosen, "failing": False})
    runs = runs[runs["id"].isin(found)]
    configs = api.configs(store, runs["config_id"].unique().tolist())
    for run_id, config_id in zip(runs["id"].tolist(), runs["config_id"].tolist(), strict=True):
        said = forgetting_text(found[run_id], display_of(configs[config_id]))
        yield {"run_id": run_id, **found[run_id]}, f"run {run_id}: {said}"


def _causes_by_configuration(store: "Store", table: "pd.DataFrame") -> "pd.DataFrame":
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


def _causes_by_run(runs: "pd.DataFrame", stored: "pd.DataFrame") -> "pd.DataFrame":
    shown = stored.drop(columns="number")
    shown.insert(1, "seed", shown["run_id"].map(runs.set_index("id")["model_seed"]))
    shown["head"] = shown["head"].astype("Int64")
    # It is said of the model, not of some of its errors.
    shown["share"] = shown["share"].mask(shown["mechanism"] == NOT_LEARNED)
    for name in ("share", "agreement"):
        shown[name] = [share_text(x, 1) for x in shown[name]]
    return shown


@results.add("remedies all_initializations/2")
def remedies(
    store: "Store", chosen: dict[str, Any], run: str, save: Path | None = None, force: bool = False
) -> Answer:
    """Suggest which field to change so that a failing run may work, best record first.

    Args:
        save: A folder for a specification of each suggestion, with the same seeds.
    """
    from sweeps.api.failures import why_not_learned
    from sweeps.api.presentation import words_of
    from sweeps.api.trials import sentences

    run_id = api.find_run(store, run)
    mechanisms, trials = api.remedies(store, run_id, **chosen)
    suggestions = [trial.record() for trial in trials]
    if save is not None:
        _save(save, trials, force)
    words, said = words_of(api.run_config(store, run_id)), []
    if not mechanisms:
        said.append(f"run {run_id} {words.misses.format(f'no test {words.string}')}")
    if NOT_LEARNED in mechanisms:
        why = why_not_learned(store, run_id, chosen["learned_at"])
        said.append(f"run {run_id} has not learned the trained lengths: {why}")
    if found := [name for name in mechanisms if name != NOT_LEARNED]:
        said.append(f"run {run_id} fails by {', '.join(found)}")
    for trial in trials:
        suggestion = trial.suggestion
        said.append(f"try {suggestion.text}, against {suggestion.mechanism}")
        said.append(f"  {suggestion.reason} Source: {suggestion.source}.")
        said += [f"  {sentence}" for sentence in sentences(trial)]
    if mechanisms and not trials:
        said.append("nothing on the list of remedies applies to its configuration")
    record = {"run": run_id, "mechanisms": mechanisms, "suggestions": suggestions}
    return Answer(record, said)


def _save(folder: Path, trials: "Sequence[RemedyTrial]", force: bool) -> None:
    from sweeps.files import whole_files
    from sweeps.grid.written_spec import toml_of

    with whole_files(folder, force=force) as new:
        for trial in trials:
            name = f"{trial.suggestion.field}-{trial.suggestion.value}.toml"
            (new / name).write_text(toml_of(trial.spec.submitted), encoding="utf-8")
    said = f"{count(len(trials), 'specification')} in {folder}; `seqcls sweep FILE` trains one"
    say(said, err=True)
