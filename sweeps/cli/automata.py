"""The command that learns the automaton that a model has become, and how it shows it."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sweeps import api
from sweeps.cli.parameters import INSIDE, AsJson, Commands, Db, Epoch, Run
from sweeps.cli.printing import count, open_run, print_record, print_table, show
from sweeps.terminal import say

if TYPE_CHECKING:
    import pandas as pd

    from seqcls.interpretability.automaton import LearnedAutomaton, Round


app = Commands()


@app.command(rich_help_panel=INSIDE, epilog="Example: seqcls automaton increased_dimensionality/0")
def automaton(
    run: Run,
    states: Annotated[int, typer.Option(help="At most this many states in a hypothesis.")] = 40,
    rounds: Annotated[int, typer.Option(help="At most this many hypotheses.")] = 100,
    strings: Annotated[
        int, typer.Option(help="At most this many short strings, all of which are tried.")
    ] = 65_536,
    length: Annotated[
        int | None,
        typer.Option(
            help="Tokens of the longest string asked.", show_default="twice the longest tested"
        ),
    ] = None,
    seconds: Annotated[float, typer.Option(help="Stop learning after this many seconds.")] = 60.0,
    inside: Annotated[
        bool,
        typer.Option("--inside", help="Also look for its states in the model's own states."),
    ] = False,
    dot: Annotated[
        bool, typer.Option("--dot", help="Print the automaton as a graph in the language DOT.")
    ] = False,
    db: Db = None,
    epoch: Epoch = None,
    as_json: AsJson = False,
) -> None:
    """Learn the minimal automaton of a model's answers, and where the language differs."""
    from rich.console import Console

    from seqcls.interpretability.automaton import count_of, inside_text, learned_text

    bounds = {"states": states, "rounds": rounds, "strings": strings, "length": length}
    store, run_id = open_run(db, run)
    console = Console(stderr=True)
    with console.status("asking the model") as status:

        def show_round(made: "Round") -> None:
            status.update(f"{count(made.states, 'state')}, {count(made.asked, 'string')} asked")

        learned = api.automaton(
            store, run_id, epoch, **bounds, seconds=seconds, on_round=show_round
        )
        within = api.automaton_inside(store, run_id, learned, epoch) if inside and not dot else None
    if dot:
        say(learned.dot())
        return
    if as_json:
        record = {"run": run_id, **learned_record(learned)}
        if within is not None:
            record["inside"] = within.record()
        print_record(record)
        return
    say("\n".join([f"run {run_id}", *learned_text(learned)]))
    print_table(rounds_table(learned), "hypotheses, each with the string that refutes it")
    shown = learned.main_hypothesis
    if shown.states <= SHOWN:
        print_table(transitions_table(learned, shown), count_of(shown.states, "state", "states"))
    if within is not None:
        say("\n".join(inside_text(within)))


@app.command(rich_help_panel=INSIDE, epilog="Example: seqcls prove 1 --certificate proof.json")
def prove(
    run: Run,
    certificate: Annotated[
        Path | None, typer.Option(help="Write what proves it to this file.", show_default="none")
    ] = None,
    learned: Annotated[
        bool,
        typer.Option(
            "--learned", help="Hold the model against the automaton that is learned of it."
        ),
    ] = False,
    seconds: Annotated[float, typer.Option(help="Give up after this many seconds.")] = 60.0,
    regions: Annotated[int, typer.Option(help="At most this many regions of states.")] = 3_000,
    again: Annotated[
        bool, typer.Option("--again", help="Prove it anew, whatever is stored.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a certificate.")] = False,
    db: Db = None,
    epoch: Epoch = None,
    as_json: AsJson = False,
) -> None:
    """Prove that a recurrent network is right on every string, or find one on which it is not.

    What is found is kept.
    """
    from rich.console import Console

    from seqcls.proofs.certificate import to_text
    from seqcls.proofs.prover import proof_text
    from sweeps.api.models import ask_on_one_thread
    from sweeps.files import refuse_taken, whole_files

    if certificate is not None:
        refuse_taken([certificate], force=force)
    store, run_id = open_run(db, run)
    ask_on_one_thread()
    with Console(stderr=True).status("proving") as status:
        proof = api.prove(
            store,
            run_id,
            epoch,
            learned=learned,
            seconds=seconds,
            regions=regions,
            again=again,
            on_progress=status.update,
        )
    said = [f"run {run_id}", *proof_text(api.model(store, run_id, epoch), proof)]
    if certificate is not None and proof.certificate is not None:
        with whole_files(certificate.parent, force=force) as folder:
            text = to_text(proof.certificate)
            (folder / certificate.name).write_text(text, encoding="utf-8")
        said.append(f"Its certificate is {certificate}; `seqcls check {certificate}` checks it.")
    show(as_json, said, {"run": run_id, **proof.record()})


@app.command(rich_help_panel=INSIDE, epilog="Example: seqcls check proof.json")
def check(
    certificate: Annotated[str, typer.Argument(help="A file that `seqcls prove` wrote.")],
    weights: Annotated[
        str | None,
        typer.Option(
            help="The model's weights, a safetensors file as `seqcls give` writes it.",
            show_default="those in the certificate",
        ),
    ] = None,
) -> None:
    """Check a certificate that a model answers as an automaton on every string."""
    from seqcls.proofs.certificate import check_file

    claim, regions = check_file(Path(certificate), Path(weights) if weights else None)
    say(f"accepted, {count(regions, 'region')}: {claim}")


SHOWN = 20
"""States of an automaton that are printed; `--json` and `--dot` have them all."""


def learned_record(learned: "LearnedAutomaton") -> dict[str, Any]:
    """All that was found, as JSON has it."""
    from seqcls.interpretability.automaton import learned_text

    return {
        **learned.record(),
        "found": learned.found,
        "ended": learned.ended,
        "budget": asdict(learned.budget),
        "tried_length": learned.tried_length,
        "longer": learned.longer,
        "longest": learned.longest,
        "asked": learned.asked,
        "error": None if learned.error is None else learned.error.record(),
        "error_is_tested": learned.error_is_tested,
        "test_errors": learned.wrong,
        "explained": learned.explained,
        "rounds": [
            {
                "states": made.states,
                "asked": made.asked,
                "agreement": made.agreement,
                "explained": made.explained,
                "counterexample": made.counterexample,
            }
            for made in learned.rounds
        ],
        "said": learned_text(learned),
    }


def rounds_table(learned: "LearnedAutomaton") -> "pd.DataFrame":
    """A row a hypothesis."""
    import pandas as pd

    from seqcls.interpretability.automaton import name_string
    from seqcls.interpretability.wording import percent

    return pd.DataFrame(
        {
            "states": [made.states for made in learned.rounds],
            "strings asked": [f"{made.asked:,}" for made in learned.rounds],
            "agrees on tested": [percent(made.agreement) for made in learned.rounds],
            "test errors made": [
                f"{made.explained:,} of {learned.wrong:,}" for made in learned.rounds
            ],
            "refuted by": [
                "" if made.counterexample is None else name_string(learned, made.counterexample)
                for made in learned.rounds
            ],
        }
    )


def transitions_table(learned: "LearnedAutomaton", made: "Round") -> "pd.DataFrame":
    """A row a state of a hypothesis: whether it accepts, and where each token leads."""
    import pandas as pd

    frame = pd.DataFrame(made.automaton.table, columns=list(learned.alphabet))
    accepts = ["yes" if x else "" for x in made.automaton.accepting.tolist()]
    frame.insert(0, "accepts", accepts)
    if learned.names:
        frame["accepts"] = [learned.names[output] for output in made.automaton.says.tolist()]
        frame = frame.rename(columns={"accepts": "output"})
    frame.insert(0, "state", range(made.states))
    return frame
