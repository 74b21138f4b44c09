"""Commands that hold for a model of any architecture, on any task, and how they show it."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seqcls.errors import ConfigError
from sweeps import api
from sweeps.cli.parameters import (
    INSIDE,
    LEARNED_AT,
    AsJson,
    Below,
    Commands,
    Db,
    Epoch,
    LearnedAt,
    Run,
)
from sweeps.cli.printing import count, open_database, open_run, print_record, show
from sweeps.terminal import say

if TYPE_CHECKING:
    from seqcls.config import RunConfig
    from seqcls.interpretability.rules import Rules
    from seqcls.kinds import Words
    from sweeps.api.comparisons import Compared
    from sweeps.api.task_theory import PredictedNetwork


app = Commands()


@app.command(
    rich_help_panel=INSIDE, epilog="Example: seqcls minimal all_initializations/2 'ab{100}c{55}'"
)
def minimal(
    run: Run,
    string: Annotated[
        str | None,
        typer.Argument(
            help="A string that it gets wrong, such as (){30}.",
            show_default="search for the shortest failing strings",
        ),
    ] = None,
    db: Db = None,
    epoch: Epoch = None,
    as_json: AsJson = False,
) -> None:
    """Shrink a string that a model gets wrong to a minimal one, and find the nearest right one."""
    from seqcls.problem import resolve
    from sweeps.api.presentation import (
        nearest_sentence,
        said_of,
        shortest_sentences,
        whose_known,
        words_of,
    )

    store, run_id = open_run(db, run)
    config = api.run_config(store, run_id)
    words = words_of(config)
    if string is None:
        failing = api.shortest(store, run_id, epoch)
        said = shortest_sentences(failing, words, whose_known(resolve(config)))
        record = {"run": run_id, **asdict(failing)}
        record["answers"] = [answer.record() for answer in failing.answers]
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
        "given": reduced.given.record(),
        "minimal": {**reduced.found.record(), "tried": reduced.tried},
        "nearest_right": nearest.record(),
    }
    show(as_json, said, record)


@app.command(rich_help_panel=INSIDE, epilog="Example: seqcls rules all_initializations/2")
def rules(run: Run, db: Db = None, epoch: Epoch = None, as_json: AsJson = False) -> None:
    """Find simple rules that predict a model's answers on all of its test strings."""
    store, run_id = open_run(db, run)
    fitting = api.rules(store, run_id, epoch)
    record = {"run": run_id, "strings": fitting.strings, "rules": list(map(asdict, fitting.rules))}
    show(as_json, rules_sentences(fitting), record)


Configuration = Annotated[
    str,
    typer.Argument(
        help="A sweep, SWEEP:FIELD=VALUE,…, or a run, which stands for its configuration. If 2 "
        "is both a sweep and a run, write 2: for the sweep and SWEEP/SEED for the run.",
        show_default=False,
    ),
]


@app.command(
    rich_help_panel="Models",
    epilog="Example: seqcls compare all_initializations increased_dimensionality",
)
def compare(
    a: Configuration,
    b: Configuration,
    db: Db = None,
    learned_at: LearnedAt = LEARNED_AT,
    below: Below = 1.0,
    as_json: AsJson = False,
) -> None:
    """Say whether two configurations differ by more than chance, in what, and on which strings."""
    from sweeps.api.presentation import words_of

    store = open_database(db)
    compared = api.compare(store, a, b, learned_at=learned_at, below=below)
    configs = api.configs(store, compared.config_ids).values()
    said = comparison_sentences(compared, words_of(*configs), *configs)
    show(as_json, said, compared.record())


@app.command(
    rich_help_panel="Models",
    epilog="Example: seqcls theory regular --set alphabet=ab --set pattern='(ab)*'",
)
def theory(
    task: Annotated[
        str, typer.Argument(help="A task, such as parity or regular.", show_default=False)
    ],
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="A field of the task or the network, as pattern='(ab)*', path=lang.att or "
            "positions=rotary; repeatable.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say which class a language is in, and whether networks can recognize it at every length."""
    from sweeps.api.configurations import condition

    conditions = settings or []
    fields: dict[str, Any] = {}
    for text in conditions:
        if text.startswith("path="):
            name, value = "path", text.removeprefix("path=")
        else:
            name, value = condition(text, f"--set {text}")
        if fields.setdefault(name, value) != value:
            raise ConfigError(
                f"--set {text}: {name} has another value before; leave one of them out"
            )
    if "task" in fields:
        raise ConfigError(f"--set task={fields['task']}: the task is named before; leave it out")
    said = api.theory(task, **fields)
    if as_json:
        print_record(said.record())
        return
    say(f"{said.task}\n{said.language}")
    for found in said.classes:
        say(f"\n{found.words}: {found.definition}\n  decided by: {found.test}\n  {found.source}")
    if said.witnesses:
        say("\n".join(["", *(each.because for each in said.witnesses)]))
    for each in said.networks:
        say("\n".join(["", *_lines(each)]))


SHOWN = 10
"""Rules, and strings, that are printed; `--json` has them all."""


def comparison_sentences(compared: "Compared", words: "Words", *configs: "RunConfig") -> list[str]:
    """The difference of two configurations in a few lines; a difference is a less b."""
    from sweeps.api.comparisons import QUESTIONS, sentence_of
    from sweeps.api.presentation import display_strings

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
    said += _border_sentences(compared)
    said += _shortcut_sentences(compared)
    if compared.strings is None:
        return [*said, "tested on different strings, so no string is compared"]
    count = len(compared.strings)
    said.append(
        f"{count:,} {words.plural('test')} are {words.missed} by more runs of one than of the other"
    )
    said += [
        f"  {row['string'] or 'the empty string'}: by {row['wrong_a']} of a, {row['wrong_b']} of b"
        for row in display_strings(compared.strings.head(SHOWN), *configs).to_dict("records")
    ]
    return said


def _border_sentences(compared: "Compared") -> list[str]:
    """Median accuracies on border pairs, and on random strings of the same tests."""
    from seqcls.interpretability.wording import percent
    from sweeps.results import BORDER_MEDIANS

    return [
        f"median accuracy, {BORDER_MEDIANS[name]}: "
        + " and ".join("none" if share != share else percent(share) for share in shares)
        for name, shares in compared.border.items()
    ]


def _shortcut_sentences(compared: "Compared") -> list[str]:
    """What the best shortcut reader of each side's test reaches."""
    from seqcls.interpretability.wording import percent
    from seqcls.shortcuts import READERS

    said = {}
    for side, config_id in zip("ab", compared.config_ids, strict=True):
        for best in compared.shortcut_of(config_id).to_dict("records"):
            shares = [
                f"{percent(best[name])} {name}"
                for name in ("within", "beyond")
                if best[name] == best[name]
            ]
            reader = READERS.get(best["reader"], best["reader"])
            said[side] = f"{reader}; accuracy {' and '.join(shares)} trained lengths"
            if best["decided_by"] is not None:
                said[side] += f"; no shortcut, as the task is decided by {best['decided_by']}"
    if len(said) == 2 and said["a"] == said["b"]:
        return [f"best shortcut on their tests: {said['a']}"]
    return [f"best shortcut on the test of {side}: {text}" for side, text in said.items()]


def rules_sentences(rules: "Rules") -> list[str]:
    """The rules that agree best with a model's answers."""
    from seqcls.interpretability.wording import percent

    said = [
        f"rules tried on {count(rules.strings, 'test string')}, by agreement with the model's "
        "answers"
    ]
    for rule in rules.rules[:SHOWN]:
        sides = [
            f"{percent(share)} where it is predicted {name}"
            for name, share in (("positive", rule.on_positive), ("negative", rule.on_negative))
            if share is not None
        ]
        said.append(f"  {percent(rule.agreement)}  {rule.text} ({', '.join(sides)})")
    return said


def _lines(said: "PredictedNetwork") -> list[str]:
    named = ", ".join(f"{name}={value}" for name, value in said.network.items())
    lines = [f"{named}: {said.predictions[0].verdict}"]
    for prediction in said.predictions:
        lines.append(f"  {prediction.because}")
        if prediction.condition:
            lines.append(f"    holds {prediction.condition}")
        if prediction.source:
            lines.append(f"    {prediction.source}")
    return lines
