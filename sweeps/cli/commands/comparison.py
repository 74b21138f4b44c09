"""What `seqcls compare` and `seqcls rules` do, and how they show it."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from sweeps import api
from sweeps.cli.commands.opening import opened
from sweeps.cli.commands.printing import rows_of, show

if TYPE_CHECKING:
    from seqcls.config import RunConfig
    from seqcls.interpretability.rules import Rules
    from seqcls.kinds import Words
    from sweeps.analysis.compared_configurations import Compared
    from sweeps.statistics.intervals import Interval

SHOWN = 10
"""Rules, and strings, that are printed; `--json` has them all."""


def show_comparison(db: str | None, a: str, b: str, as_json: bool) -> None:
    """Prints how two configurations differ."""
    from sweeps.analysis.answer_sentences import words_of
    from sweeps.store.opening import open_reader
    from sweeps.store.reading import queries

    store = open_reader(db)
    compared = api.compare(store, a, b)
    configs = queries.configs(store, compared.config_ids).values()
    said = comparison_sentences(compared, words_of(*configs), *configs)
    show(as_json, said, _record(compared))


def show_rules(db: str | None, reference: str, epoch: int | None, as_json: bool) -> None:
    """Prints which simple rules predict a model's answers."""
    store, run_id = opened(db, reference)
    fitting = api.rules(store, run_id, epoch)
    record = {"run": run_id, "strings": fitting.strings, "rules": list(map(asdict, fitting.rules))}
    show(as_json, rules_sentences(fitting), record)


def comparison_sentences(compared: "Compared", words: "Words", *configs: "RunConfig") -> list[str]:
    """The difference of two configurations in a few lines; a difference is a less b.

    Args:
        compared: the two.
        words: what their errors are called.
        configs: the two, by which their strings are shown.
    """
    from seqcls.interpretability.rounded import p_value_text, percent
    from sweeps.analysis.answer_sentences import displayed

    comparison = compared.comparison
    said = [f"a: {compared.names[0]}", f"b: {compared.names[1]}"]
    said += [f"{name}: {a} in a, {b} in b" for name, (a, b) in compared.fields.items()]
    for side, share, runs in zip("ab", comparison.failing, comparison.runs, strict=True):
        said.append(f"failing seeds of {side}: {_percent(share)} of {runs}")
    if comparison.p_value is not None:
        table = comparison.table
        said.append(
            f"{table.pairs} seeds in both: {table.both} fail in both, {table.only_first} only in "
            f"a, {table.only_second} only in b, {table.none} in none (exact McNemar "
            f"{p_value_text(comparison.p_value)})"
        )
    else:
        said.append("no seed is in both: the two are compared as independent samples")
    said.append(f"difference of failing shares: {_percent(comparison.difference, 'Newcombe')}")
    medians = " and ".join(percent(value) for value in comparison.medians)
    apart = _percent(comparison.median_difference, "bootstrap over seeds")
    said.append(f"median accuracy: {medians}; difference {apart}")
    if comparison.is_same:
        said.append("no difference")
    if compared.strings is None:
        return [*said, "tested on different strings, so no string is compared"]
    count = len(compared.strings)
    said.append(
        f"{count:,} {words.plural('test')} are {words.missed} by more runs of the one than the "
        "other"
    )
    said += [
        f"  {row['string'] or 'the empty string'}: by {row['wrong_a']} of a, {row['wrong_b']} of b"
        for row in displayed(compared.strings.head(SHOWN), *configs).to_dict("records")
    ]
    return said


def rules_sentences(rules: "Rules") -> list[str]:
    """The rules that agree best with a model's answers."""
    from seqcls.interpretability.rounded import percent

    said = [f"rules tried on {rules.strings:,} test strings, by agreement with the model's answers"]
    for rule in rules.rules[:SHOWN]:
        sides = [
            f"{percent(share)} where it is predicted {name}"
            for name, share in (("positive", rule.on_positive), ("negative", rule.on_negative))
            if share is not None
        ]
        said.append(f"  {percent(rule.agreement)}  {rule.text} ({', '.join(sides)})")
    return said


def _record(compared: "Compared") -> dict[str, Any]:
    from sweeps.statistics.seed_by_seed import FEWEST_OF_A_MEAN

    comparison = compared.comparison
    return {
        "a": compared.names[0],
        "b": compared.names[1],
        "fields": {name: list(values) for name, values in compared.fields.items()},
        "runs": list(comparison.runs),
        "failing": [asdict(share) for share in comparison.failing],
        "pairs": asdict(comparison.table),
        "p_value": comparison.p_value,
        "difference": asdict(comparison.difference),
        "medians": list(comparison.medians),
        "median_difference": {
            name: None if value != value else value
            for name, value in asdict(comparison.median_difference).items()
        },
        "lengths_interval": (
            "95% interval of the mean difference over seeds (Student's t, within -1 and 1); null "
            f"where fewer than {FEWEST_OF_A_MEAN} seeds are compared"
        ),
        "lengths": rows_of(compared.lengths),
        "strings": None if compared.strings is None else rows_of(compared.strings),
    }


def _percent(interval: "Interval", by: str = "Wilson") -> str:
    from seqcls.interpretability.rounded import percent, percents
    from sweeps.statistics.median_intervals import FEWEST

    if interval.low != interval.low:
        return f"{percent(interval.value)} (no interval: fewer than {FEWEST} seeds)"
    return f"{percent(interval.value)} (95%, {by}: {percents(interval.low, interval.high, 2)})"
