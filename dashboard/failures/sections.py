"""Why models fail, what helps, which strings break most of them, and which models those are."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pandas as pd

import dashboard.failures.words  # noqa: F401  Its words are those of these sections.
from dashboard.section import Section
from dashboard.words.sentences import as_code, say
from seqcls.errors import InvalidStringError
from seqcls.interpretability.mechanisms import CAUSES, forgetting_text
from seqcls.interpretability.wording import EMPTY
from seqcls.problem import tokenizer_of
from seqcls.strings.tokenizer import Tokenizer
from seqcls.text import count
from sweeps.api import Store, configs, failing, forgettings, names_of
from sweeps.api.reading import Selection
from sweeps.api.trials import RemedyTrial, Tried, remedies_tried, why_left_out
from sweeps.results import Outcome

WHY = "Why do they fail?"
WHICH = "Which models fail?"
NAMED = 3
"""Causes, remedies and models that sentences name."""


def _phrase(mechanism: str) -> str:
    return CAUSES[mechanism].phrase


def _failing(models: pd.DataFrame) -> str:
    """Number of failing models, as the sentences name them."""
    unknown = int((models["outcome"] == Outcome.NOT_KNOWN).sum())
    fail = count(len(models) - unknown, "failing model")
    err = f"{count(unknown, 'model')} with errors and unknown outcome"
    return " and ".join([fail] * (unknown < len(models)) + [err] * (unknown > 0))


def _nothing(store: Store, selection: Selection, title: str) -> Section:
    tested = failing.count_tested(store, selection)
    return Section(title, (say("none_fails", tested=tested) if tested else say("no_models"),))


def _names(store: Store, selection: Selection, config_ids: Iterable[int]) -> dict[int, str]:
    """Names of configurations beside all others of the selection, by id."""
    chosen = selection.config_ids
    return names_of(store, list(dict.fromkeys(config_ids if chosen is None else chosen)))


# Why they fail.


def causes(store: Store, selection: Selection) -> Section:
    """Causes by configuration, as counts of models, with one of them to look into."""
    models = failing.failing_models(store, selection)
    if models.empty:
        return _nothing(store, selection, WHY)
    leading, known = failing.main_causes(store, models, selection)
    _, reasons = failing.waiting(store, models, leading["run_id"])
    return Section(
        WHY,
        tuple(_say_causes(models, leading, reasons)),
        _causes_table(models, leading, known, _names(store, selection, models["config_id"])),
        opens="run",
    )


def _say_causes(
    models: pd.DataFrame, leading: pd.DataFrame, reasons: dict[str, int]
) -> Iterator[str]:
    counts = leading["mechanism"].value_counts()
    ranked = [(int(n), _phrase(str(mechanism))) for mechanism, n in counts.items()]
    # One more is named as well: "other causes" would mean it alone.
    if len(ranked) > NAMED + 1:
        ranked = [*ranked[:NAMED], (sum(n for n, _ in ranked[NAMED:]), "other causes")]
    failing_models = _failing(models)
    if ranked:
        (most, first), *others = ranked
        listed = [f"{most:,} {'fails' if most == 1 else 'fail'} by {first}"]
        listed += [f"{n:,} by {phrase}" for n, phrase in others]
        yield say("causes", failing=failing_models, listed=_and(listed))
    else:
        yield say("no_causes", failing=failing_models)
    for reason, number in reasons.items():
        yield say("without_causes", number=int(number), reason=reason)
    to_come = len(models) - len(leading) - sum(reasons.values())
    # If none is known yet, `no_causes` reports it.
    if to_come and ranked:
        yield say("causes_to_come", number=to_come)


def _and(parts: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(parts[:-1]), parts[-1]]))


def _causes_table(
    models: pd.DataFrame, leading: pd.DataFrame, known: pd.DataFrame, names: dict[int, str]
) -> pd.DataFrame:
    """A row a cause and configuration, the most frequent causes first; of each its worst model."""
    groups = leading.groupby(["mechanism", "config_id"], as_index=False, sort=False)
    # Models come the worst first, and groups in their order: the first of each is its worst.
    table = groups.agg(run=("run_id", "first"), number=("run_id", "size"))
    table["of_cause"] = table.groupby("mechanism")["number"].transform("sum")
    order = ["of_cause", "mechanism", "number"]
    # Stable, so that equal counts stay in the order of the worst models.
    table = table.sort_values(order, ascending=[False, True, False], kind="stable")
    failing_seeds = table["config_id"].map(models["config_id"].value_counts())
    seeds = table["run"].map(models.set_index("run_id")["model_seed"])
    pairs = zip(table["run"], table["mechanism"], strict=True)
    about = _about(known[known["run_id"].isin(table["run"])])
    table = table.assign(
        cause=table["mechanism"].map(_phrase),
        configuration=table["config_id"].map(names),
        failing=[f"{n:,} of {m:,}" for n, m in zip(table["number"], failing_seeds, strict=True)],
        example=[f"seed {n}: {about[x]}" for n, x in zip(seeds, pairs, strict=True)],
    )
    columns = ["cause", "configuration", "failing", "example", "run"]
    return table[columns].reset_index(drop=True)


def _about(causes: pd.DataFrame) -> dict[tuple[int, str], str]:
    """Subject of each cause of each run, such as `head 1: a by b`."""
    subjects: dict[tuple[int, str], list[str]] = defaultdict(list)
    columns = [causes[name] for name in ("run_id", "mechanism", "head", "tokens")]
    for run, mechanism, head, tokens in zip(*columns, strict=True):
        subjects[run, mechanism].append(tokens if pd.isna(head) else f"head {head}: {tokens}")
    return {x: "; ".join([*filter(None, dict.fromkeys(y))][:NAMED]) for x, y in subjects.items()}


# What helps.


def remedies(store: Store, selection: Selection) -> Section:
    """Remedies tried against each cause and their outcomes, or the remedies to try first."""
    tried = remedies_tried(store, selection)
    names = _names(store, selection, [case.config_id for case in tried])
    rows = [
        _remedy(case, trial, names)
        for case in tried
        # Where nothing was tried, the first that may be.
        for trial in [x for x in case.trials if x.is_begun] or case.trials[:1]
    ]
    title = "What helps?"
    if not rows:
        return Section(title, (say("no_remedies"),) if tried else ())
    table = pd.DataFrame(rows).sort_values("is_begun", ascending=False, kind="stable")
    left_out = ["is_begun"]
    # Where nothing was tried, these columns would be empty.
    if not table["is_begun"].any():
        left_out += ["mended", "broken", "p_of_remedy"]
    says, table = tuple(_say_remedies(tried)), table.drop(columns=left_out)
    return Section(title, says, table.reset_index(drop=True), opens="run")


def _change(trial: RemedyTrial) -> str:
    return ", ".join(f"{name}={value}" for name, value in trial.suggestion.fields.items())


def _remedy(tried: Tried, trial: RemedyTrial, names: dict[int, str]) -> dict[str, object]:
    compared, results, notes = trial.comparison, trial.results.values(), []
    if trial.waiting:
        notes.append(f"{trial.waiting:,} in training")
    if trial.left_out[0]:
        notes.append(f"{trial.left_out[0]:,} {why_left_out(tried.mechanism)}")
    if trial.lost:
        notes.append(f"{trial.lost:,} failed")
    return {
        "cause": _phrase(tried.mechanism),
        "configuration": names[tried.config_id],
        "remedy": _change(trial),
        "mended": f"{sum(results):,} of {len(results):,}" if results else "",
        "broken": f"{trial.broken:,}" if results else "",
        "p_of_remedy": None if compared is None else compared.p_value,
        "came_of_it": ", ".join(notes) if trial.is_begun else "not tried yet",
        "run": tried.run_ids[0],
        "is_begun": trial.is_begun,
    }


def _say_remedies(tried: Iterable[Tried]) -> Iterator[str]:
    sums: dict[tuple[str, str], list[bool]] = defaultdict(list)
    for case in tried:
        for trial in case.trials:
            # One change may have been tried in several configurations that fail by the same cause.
            sums[case.mechanism, _change(trial)] += trial.results.values()
    done = {key: (sum(seeds), len(seeds)) for key, seeds in sums.items() if seeds}
    best = sorted(done.items(), key=lambda case: -case[1][0])
    for (mechanism, change), (mended, seeds) in best[:NAMED]:
        yield say("mended", change=change, cause=_phrase(mechanism), mended=mended, seeds=seeds)
    if not done:
        yield say("untried")


# Which strings break most of them.

STRINGS = 50

MIN_DOUBTING_MODELS = 4
"""Models that have to get a row of a file wrong for its label to be doubted."""


def strings(store: Store, selection: Selection) -> Section:
    """The strings that most failing models of a task get wrong, and what proofs saw forgotten.

    A click gives the string as it is shown; its table has it as it is stored, too, and a model that
    gets it wrong.
    """
    title = "Which strings break most of them?"
    models = failing.failing_models(store, selection)
    if models.empty:
        return Section(title)
    found, num_counted = failing.breaking_strings(store, models, STRINGS)
    configs_by_id = configs(store, models["config_id"].drop_duplicates().tolist())
    # Configurations of a task share their alphabet; one of a missing package has none here.
    tokenizer = next(filter(None, map(tokenizer_of, configs_by_id.values())), None)
    display: Callable[[str], str] = str if tokenizer is None else tokenizer.display
    table = found.rename(columns={"string": "stored", "run_id": "run"}).assign(
        breaks=[f"{n:,} of {m:,}" for n, m in found[["models", "of"]].to_numpy()],
        string=found["string"].map(lambda text: display(text) or EMPTY),
    )
    columns = ["string", *(["kind"] if set(found["kind"]) - {"wrong"} else []), "length", "breaks"]
    if "output" in found:
        columns[1:2] = ["output", "wrong_token"]
        texts = found[["output", "target", "first_wrong"]].to_numpy(dtype=object)
        table = table.assign(
            output=found["output"].map(display, na_action="ignore"),
            wrong_token=pd.Series([_wrong_token(tokenizer, *row) for row in texts], dtype=object),
        )
    says = [*_say_strings(table, num_counted, len(models))]
    # Labels of other tasks are computed: they cannot be mistaken.
    is_of_files = all(config.dataset for config in configs_by_id.values())
    if num_counted >= MIN_DOUBTING_MODELS and is_of_files:
        never = int((table["models"] == num_counted).sum())
        says += [say("check_labels", number=never, models=num_counted)] if never else []
    says += _forgotten(store, models, display)
    return Section(title, tuple(says), table[[*columns, "stored", "run"]], opens="string")


def _say_strings(table: pd.DataFrame, num_counted: int, number: int) -> Iterator[str]:
    if len(table):
        most = table.iloc[0]
        alike = int((table["models"] == most["models"]).sum()) - 1
        # The table ends there, and more strings may be like these.
        least = "at least " if alike + 1 == STRINGS else ""
        more = f", as {'does' if alike == 1 else 'do'} {least}{alike:,} more" if alike else ""
        counts = {"models": int(most["models"]), "of": int(most["of"])}
        yield say("most_broken", string=most["string"], more=more, **counts)
    if num_counted < number:
        yield say("some_asked", asked=num_counted, number=number)


def _wrong_token(tokenizer: Tokenizer | None, output: Any, target: Any, place: Any) -> str | None:
    """The first wrong token of an output, as `3: b for a`."""
    if tokenizer is None or pd.isna(place):
        return None
    try:
        # Places are counted behind `CLS`, with which every encoded string begins.
        given, right = (tokenizer.encode(text)[1 + place :] for text in (output, target))
    except InvalidStringError:  # Answers at places are no strings of the alphabet.
        return f"{place + 1}"
    first, second = (tokenizer.decode(x[:1]) if x else "the end" for x in (given, right))
    return f"{place + 1}: {first} for {second}"


def _forgotten(store: Store, models: pd.DataFrame, display: Callable[[str], str]) -> Iterator[str]:
    known = forgettings(store)
    for run in models.loc[models["run_id"].isin(known), "run_id"].head(NAMED):
        sentence = forgetting_text(known[run], lambda text: as_code(display(text)))
        yield f"Model {run}: {sentence[0].lower()}{sentence[1:]}"


# Which models fail.

PAGE = 50
"""Models of one page of the table."""


def models(store: Store, selection: Selection, number: int = 1) -> Section:
    """The failing models, the worst first, and after them those whose outcome is not known.

    Args:
        number: which page of the table, from 1 on.
    """
    found = failing.failing_models(store, selection)
    if found.empty:
        return Section(WHICH)
    beyond, unlearned, unknown = (
        int((found["outcome"] == outcome).sum())
        for outcome in (*failing.FAILING, Outcome.NOT_KNOWN)
    )
    tested, says = failing.count_tested(store, selection), []
    if known := beyond + unlearned:
        which = "some_learned" if beyond and unlearned else "all_learned" if beyond else None
        how = say(which or "none_learned", beyond=beyond, unlearned=unlearned)
        how = f"{how[0].lower()}{how[1:]}"
        says.append(say("failing_models", number=known, tested=tested, how=how))
    if unknown:
        says.append(say("unknown_models", number=unknown))
    some = found.iloc[PAGE * (number - 1) : PAGE * number]
    # Of this page's models alone: causes of the others are not shown.
    leading, _ = failing.main_causes(store, some, selection)
    main = some["run_id"].map(leading.set_index("run_id")["mechanism"])
    names = _names(store, selection, some["config_id"])
    table = some.assign(
        configuration=some["config_id"].map(names),
        seed=some["model_seed"],
        accuracy_of_all=some["accuracy"],
        cause=main.map(_phrase, na_action="ignore"),
        run=some["run_id"],
    )
    columns = ["configuration", "seed", "outcome", "first_wrong_length", "errors"]
    columns += ["accuracy_of_all", "cause", "run"]
    table = table[columns].reset_index(drop=True)
    # What no model has, has no column; a row leads to its run.
    shown = tuple(x for x in columns[:-1] if x != "cause" or table[x].notna().any())
    return Section(WHICH, tuple(says), table, opens="run", shown=shown)
