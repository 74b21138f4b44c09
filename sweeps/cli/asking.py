"""Commands that begin with a question: `sweep`, strings, shortcuts, estimates and theory."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from seqcls.errors import ConfigError
from seqcls.text import as_argument, count
from sweeps import api
from sweeps.cli.parameters import BAD_INPUT, NewDb, Panel, processes_of
from sweeps.cli.printing import Answer, Table, TableOptions, print_table, share_text, toml_values
from sweeps.cli.training import name_sweeps, read_specs, train_specs, warn_of_memory
from sweeps.terminal import format_duration, progress_bar, say

if TYPE_CHECKING:
    from sweeps.datasets.summary import Summary
    from sweeps.work.machine import WorkOptions

ask = Panel("Ask")

DRAWN_FIRST = 10
"""Number of strings that `try` shows before training."""


@ask.add("sweep report -w 4")
def sweep(
    training: "WorkOptions",
    spec: str,
    queue: bool = False,
    precision: str | None = None,
    db: NewDb = None,
) -> None:
    """Train the runs of a specification that the database doesn't have yet.

    `seqcls try` writes a specification to begin with.
    """
    # An open database provides the strings that a specification names by digest.
    api.existing(db)
    train_specs(read_specs(spec, precision), db, None if queue else training)


@ask.add("try '(ab|ba)*' --positions none,rotary --seeds 5", name="try")
def try_task(
    training: "WorkOptions",
    task: str,
    network: str = "transformer",
    positions: str = "none",
    seeds: str = "5",
    settings: list[str] | None = None,
    name: str | None = None,
    db: NewDb = None,
) -> None:
    """Train small networks on a task, and see how many generalize.

    Args:
        task: A task, such as parity, '(ab|ba)*', 'a > b' or the file words.csv; several, separated
            by commas.
        network: networks, separated by commas, such as 'transformer, lstm'.
        positions: position schemes, separated by commas, such as none,rotary.
        seeds: how many seeds of each configuration, or a range such as 0..4.
        settings: another setting, such as hidden_size=16,32 or negatives=near; repeatable.
        name: the name of the sweep and of its file; by default, made from the task.
    """
    from seqcls.problem import resolve
    from sweeps.api.first_question import specify, write_specification
    from sweeps.api.strings import drawn_strings

    placed = "" if positions == "none" else positions
    table = specify(
        task, networks=network, positions=placed, seeds=seeds, settings=settings or (), name=name
    )
    path = write_specification(table, Path())
    specs, status = read_specs(str(path)), 0
    problem = resolve(next(specs[0].configs()))
    drawn = drawn_strings(problem, "train", DRAWN_FIRST, in_notation=True)
    print_table(drawn, f"{count(len(drawn), 'string')} that models train on")
    try:
        train_specs(specs, db, training)
    # Trained models are shown nevertheless, and the command ends with that status.
    except typer.Exit as ended:
        status = ended.exit_code
    store = api.open_reader(db)
    found = api.configurations(store, str(table["name"]))
    if len(found):
        shown = found[["name", "seeds", "learned", "generalize"]].assign(
            accuracy_beyond=found["accuracy_beyond"].map(share_text)
        )
        print_table(shown, "How many of the seeds learn, and of these generalize")
    say(
        f"{path} asks this: change it and run `seqcls sweep {path}` to go on; `seqcls dashboard` "
        "shows every wrong string."
    )
    if status:
        raise typer.Exit(status)


@ask.add("draw heads.toml --part test")
def draw(
    spec: str,
    part: str = "train",
    number: int = 20,
    label: str | None = None,
    where: list[str] | None = None,
    form: Annotated[Literal["table", "csv", "jsonl"], typer.Option("--format")] = "table",
) -> None:
    """Show strings that models are trained or tested on, and how each was drawn.

    In strings, b{3} is bbb, <ab>{2} is abab, and "" is the empty string.

    Args:
        part: which strings: train, validation or test.
        number: how many strings to show.
        label: only positive or negative strings; by default, both.
        form: how to print them.
    """
    from seqcls.problem import resolve
    from seqcls.sampling.streams import stream
    from sweeps.api.overlaps import without_near
    from sweeps.api.strings import choose, kinds_of, negatives_sentence

    conditions, strings = where or (), "string" if label is None else f"{label} string"
    drawn = api.draw(spec, part, number, label, conditions, in_notation=form == "table")  # type: ignore[arg-type]
    if form == "csv":
        say(drawn.to_csv(index=False).rstrip("\n"), data=True)
    elif form == "jsonl":
        say(drawn.to_json(orient="records", lines=True).rstrip("\n"), data=True)
    else:
        configs = choose(spec, conditions)
        if sentence := without_near(configs):
            say(sentence, err=True)
        print_table(drawn, f"{count(len(drawn), strings)} of {part}")
        problem = resolve(configs[0])
        epoch = stream(problem.sampler(part)).epoch(0)
        if sentence := negatives_sentence(Counter(kinds_of(problem, epoch))):
            say(sentence)
    if len(drawn) < number:
        say(f"the first epoch has only {count(len(drawn), strings)}", err=True)


@ask.add("shortcuts heads.toml")
def shortcuts(spec: str, where: list[str] | None = None) -> Answer:
    """Show how much of each test can be solved from simple features, such as letter counts."""
    import pandas as pd

    from seqcls.shortcuts import READERS

    with progress_bar("fitting readers"):
        tests = api.shortcuts(spec, where or ())
    found = [(test, reader) for test in tests for reader in test.readers]
    rows = [{"task": test.task, **test.fields, **asdict(reader)} for test, reader in found]
    if not rows:
        return Answer(rows, ["no shortcut reader answers what these models are asked"])
    shares = {x: [share_text(row[x], 1) for row in rows] for x in ("within", "beyond")}
    frame = pd.DataFrame(rows).assign(**shares)
    frame = frame.assign(reader=frame["reader"].map(READERS), reason=frame["reason"].fillna(""))
    shown = Table(frame, "How often shortcut readers are right")
    advice = dict.fromkeys(test.advice for test in tests if test.advice)
    return Answer(rows, [shown, *advice])


@ask.add("estimate heads.toml -w 8")
def estimate(
    spec: str,
    look: TableOptions,
    db: NewDb = None,
    workers: Annotated[int | None, typer.Option(min=0)] = None,
    overlap: bool = False,
    engines: bool = False,
    engine: str = "auto",
    device: str = "auto",
) -> Answer:
    """Say how many runs a specification has and how long they will take on this machine.

    Args:
        overlap: draw all training strings, to count the test strings among them.
        engines: show which engine trains each configuration, and why.
    """
    from sweeps.api.overlaps import trained_on
    from sweeps.api.sweeping import growth_sentence

    # An open database provides the strings that a specification names by digest.
    there = api.existing(db)
    if engines:
        frame = api.engines(spec, engine, device)
        shown = toml_values(frame, except_for=("configuration", "sweep", "engine", "reason"))
        return Answer(frame, [Table(shown, count(len(frame), "configuration"), look)])
    processes = max(processes_of(workers), 1)
    specs = read_specs(spec)
    with progress_bar("timing a few steps"):
        judged = api.estimate(there, specs, processes)
    warn_of_memory(specs, processes)
    with progress_bar("drawing training strings"):
        sentence = trained_on(
            (x for sweep_spec in specs for x in sweep_spec.configs()), exact=overlap
        )
    runs = f"{count(judged.runs, 'run')}, {judged.there:,} already in the database"
    if judged.there == judged.runs:
        runs = f"all {count(judged.runs, 'run')} are already in the database"
    if judged.seconds:
        left = format_duration(judged.seconds)
        runs += f", about {left} for the rest with {processes} at a time"
    lines = [f"{name_sweeps(specs)}: {runs}. {judged.basis}".strip()]
    lines += [growth_sentence(sweep_spec) for sweep_spec in specs if sweep_spec.until]
    lines += [sentence] if sentence else []
    return Answer([{**asdict(judged), "trained_on": sentence}], lines)


@ask.add("theory '(ab|ba)*' --set positions=rotary")
def theory(task: str, settings: list[str] | None = None) -> Answer:
    """Say which class a language is in, and whether networks can recognize it at every length.

    Args:
        task: A task, such as parity, '(ab|ba)*' or 'a > b'.
        settings: A setting of the task or the network, such as alphabet=abc, path=lang.att or
            positions=rotary; repeatable.
    """
    from sweeps.api.selecting import condition

    fields: dict[str, Any] = {}
    for text in settings or []:
        name, value = "path", text.removeprefix("path=")
        if value == text:
            name, value = condition(text, f"--set {text}")
        if name == "task" or fields.setdefault(name, value) != value:
            raise ConfigError(f"--set {text}: {name} has another value before; leave one out")
    found = api.theory(task, **fields)
    return Answer(found.record(), found.describe())


@ask.add("data words.csv")
def data(file: str) -> Answer:
    """Describe a file of strings or an automaton, and list the lines that can't be read.

    Args:
        file: CSV, TSV, JSONL or Parquet with the columns tokens and label or target; a folder of
            FLaRe's; NAME_src.txt beside NAME_tgt.txt; or an automaton: .att, .dot, or JSON.
    """
    summary = api.data(file)
    return Answer(summary.record(), summary_parts(summary), BAD_INPUT if summary.refused else 0)


def summary_parts(summary: "Summary") -> Iterator[str | Table]:
    """Yields the parts of an answer about a file; reports refused lines."""
    import pandas as pd

    for problem in summary.refused:
        say(f"seqcls: {problem}", err=True)
    if summary.refused:
        return
    heading = f"{summary.path}: {summary.heading}"
    if summary.parts:
        frame = pd.DataFrame(summary.parts).rename(columns={"mean_length": "mean"})
        yield Table(frame.assign(mean=frame["mean"].map("{:.1f}".format)), heading)
    else:
        yield heading
    yield from summary.sentences
    file = f"task = {summary.task!r} and path = {summary.path!r}"
    yield (
        f"`seqcls try {as_argument(summary.path)}` trains small networks on it; a specification "
        f"has {file} in [fixed]"
    )
