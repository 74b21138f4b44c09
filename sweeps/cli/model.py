"""Commands about one model: predictions, explanations, states, automata and proofs.

Each is a question of `seqcls.questions`, which also describes the answer.
"""

from collections.abc import Iterator
from dataclasses import asdict, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seqcls.text import count
from sweeps import api
from sweeps.cli.parameters import RUNS_FAILED, OpenedModel, Panel, Text, Texts
from sweeps.cli.printing import Answer, Table, readable
from sweeps.terminal import say

if TYPE_CHECKING:
    from seqcls.interpretability.automaton import Round
    from seqcls.proofs.prover import Proof
    from sweeps.api import Store

model = Panel(None, no_args_is_help=True, help="Ask one model, and look inside it.")


@model.add("model predict all_initializations/2 baac 'ab{100}c{55}'")
def predict(opened: OpenedModel, strings: list[str], beam: int | None = None) -> Answer:
    """Print the probability a model gives each string of being in the language, or its output.

    Args:
        beam: for a transduction: list the outputs that a beam of this width finds, the likeliest
            first; by default, one, as in the test.
    """
    from sweeps.api.presentation import display_strings

    store, run = opened.store, opened.run
    frame = api.predict(store, run, strings, opened.epoch, partial=False, beam=beam)
    config = api.config(store, run)
    # For a task that is no language all columns: strings with targets, answers and margins.
    if "label" in frame:
        # For an imported model the stored answers to test strings.
        shown = ["label", "predicted"] if config.is_imported else ["probability", "logit"]
        frame = frame[["string", *shown]]
    return Answer(frame, [Table(readable(display_strings(frame, config)), f"run {run}")])


@model.add("model explain all_initializations/2 'ab{68}'")
def explain(opened: OpenedModel, string: str) -> Answer:
    """Explain why a model answers a string as it does, and what would change the answer."""
    found = opened.ask("explain", string)
    return Answer({**found.record, "sentences": (sentences := [*found.parts])}, sentences)


@model.add("model minimal all_initializations/2 'ab{100}c{55}'")
def minimal(opened: OpenedModel, string: Text = None) -> Answer:
    """Shrink a string that a model gets wrong to a minimal one, and find the nearest right one.

    Args:
        string: A string that the model gets wrong; by default, the shortest ones are searched for.
    """
    return opened.ask("shortest") if string is None else opened.ask("minimal", string)


@model.add("model family all_initializations/2 'ab{n}'")
def family(opened: OpenedModel, strings: str) -> Answer:
    """Say where a model's answer changes as the free counts of a family of strings grow.

    For a transduction: which outputs are right, and up to which token.

    Args:
        strings: A family, such as ab{n}, a{m}b{n} or <ab>{n}.
    """
    return opened.ask("family", strings)


@model.add("model rules all_initializations/2")
def rules(opened: OpenedModel) -> Answer:
    """Find simple rules that predict a model's answers on all of its test strings."""
    return opened.ask("rules")


@model.add("model states all_initializations/2 'ab{10}'")
def states(opened: OpenedModel, string: str) -> Answer:
    """Show what each part adds to a string's logit, and where in the string the answer emerges."""
    return opened.ask("states", string)


@model.add("model patch all_initializations/2 'ab{100}c{55}'")
def patch(opened: OpenedModel, string: str, source: str | None = None) -> Answer:
    """Copy states from another string, and say which of them flip the answer.

    Args:
        source: the string, of the same length, to copy states from; by default, the nearest
            correctly classified string with the other prediction.
    """
    return opened.ask("patch", string, source)


@model.add("model ablate increased_num_attention_heads/0 --part head --prune")
def ablate(
    opened: OpenedModel,
    part: list[str] | None = None,
    how: str = "zero",
    sample: Annotated[int | None, typer.Option(min=1, max=1000000)] = None,
    prune: bool = False,
) -> Answer:
    """Test a model without some of its heads, feed-forwards, units or dimensions.

    Args:
        part: head, feed-forward, unit or dimension (of the residual stream); repeatable; by
            default, heads and feed-forwards; for a recurrent network, units.
        how: what the part adds instead: zero (nothing) or mean (its mean over all tokens).
        sample: how many distinct test strings to evaluate on; by default, all where letter counts
            decide the answer, else 400.
        prune: remove one part after another, the least useful first.
    """
    return opened.ask("ablate", part or (), how, sample=sample, prune=prune)


@model.add("model automaton increased_dimensionality/0")
def automaton(
    opened: OpenedModel,
    states: int = 40,
    rounds: int = 100,
    strings: int = 65536,
    length: int | None = None,
    seconds: float = 60.0,
    inside: bool = False,
    dot: bool = False,
) -> Answer:
    """Learn the minimal automaton of a model's answers, and where the language differs.

    Args:
        states: the most states that a hypothesis may have.
        rounds: the most hypotheses to try.
        strings: the most short strings to try, all of each length.
        length: the most tokens of a string to try; by default, twice the longest tested.
        seconds: stop learning after this many seconds.
        inside: also look for the automaton's states in the model's own states.
        dot: print the automaton as a graph in the language DOT.
    """
    from rich.console import Console

    from seqcls.interpretability.rows import record as record_of

    bounds = {"states": states, "rounds": rounds, "strings": strings, "length": length}
    with Console(stderr=True).status("asking the model") as status:

        def show_round(made: "Round") -> None:
            status.update(f"{count(made.states, 'state')}, {count(made.asked, 'string')} asked")

        learned = opened.model.automaton(**bounds, seconds=seconds, on_round=show_round)
        within = opened.model.automaton_inside(learned) if inside and not dot else None
    if dot:
        return Answer({"run": opened.run, "dot": learned.dot()}, [learned.dot()])
    record, parts = {"run": opened.run, **learned.learning()}, [*learned.describe(opened.model)]
    if within is None:
        return Answer(record, parts)
    return Answer({**record, "inside": record_of(within)}, [*parts, *within.describe(opened.model)])


@model.add("model verdict all_initializations/2")
def verdict(store: "Store", run: str, beyond: bool = False, every_length: bool = False) -> Answer:
    """Check a model on every string up to its longest test length.

    Results for languages are stored.

    Args:
        beyond: show proofs for strings of every length instead.
        every_length: try to prove a recurrent network right on every string, as `prove` does.
    """
    opened = OpenedModel(store, api.find_run(store, run), None)
    if every_length:
        return _tell_proof(opened, api.prove(store, opened.run))
    if beyond:
        return opened.ask("proofs")
    checked = api.verdict(store, opened.run)
    answer = opened.tell(checked)
    # The verdict on a language is printed as the row that is stored.
    return replace(answer, record=[asdict(checked)]) if is_dataclass(checked) else answer


def _tell_proof(opened: OpenedModel, proof: "Proof") -> Answer:
    undecided = proof.outcome == "not decided"
    return replace(opened.tell(proof), status=RUNS_FAILED if undecided else 0)


@model.add("model prove 1 --certificate proof.json")
def prove(
    opened: OpenedModel,
    certificate: Path | None = None,
    learned: bool = False,
    seconds: float = 60.0,
    regions: int = 3000,
    again: bool = False,
    force: bool = False,
) -> Answer:
    """Prove that a recurrent network is right on every string, or find one on which it is not.

    Results are stored.

    Args:
        certificate: write the proof to this file; by default, none.
        learned: check the model against the automaton learned from it.
        seconds: give up after this many seconds of processor time; a busy machine takes longer.
        regions: the most regions of states to use.
        again: prove again, ignoring stored results.
        force: overwrite an existing certificate.
    """
    from rich.console import Console

    from seqcls.proofs.certificate import to_text
    from sweeps.api.models import ask_on_one_thread
    from sweeps.files import refuse_taken, whole_files

    if certificate is not None:
        refuse_taken([certificate], force=force)
    ask_on_one_thread()
    how: dict[str, Any] = {"learned": learned, "seconds": seconds, "regions": regions}
    with Console(stderr=True).status("proving") as status:
        how |= {"again": again, "on_progress": status.update}
        proof = api.prove(opened.store, opened.run, opened.epoch, **how)
    answer = _tell_proof(opened, proof)
    lines = [f"run {opened.run}", *answer.parts]
    if certificate is not None and proof.certificate is not None:
        with whole_files(certificate.parent, force=force) as folder:
            text = to_text(proof.certificate)
            (folder / certificate.name).write_text(text, encoding="utf-8")
        checks = f"`seqcls model check {certificate}` checks it"
        lines.append(f"Its certificate is {certificate}; {checks}.")
    elif certificate is not None:
        lines.append(f"Nothing is proved, so {certificate} is not written.")
    return replace(answer, parts=lines)


@model.add("model check proof.json")
def check(certificate: str, weights: str | None = None) -> None:
    """Check a certificate that a model answers as an automaton on every string.

    Args:
        certificate: A file that `seqcls model prove` wrote.
        weights: the model's weights, a safetensors file as `seqcls give` writes it; by default,
            those in the certificate.
    """
    from seqcls.proofs.certificate import check_file

    claim, number = check_file(Path(certificate), Path(weights) if weights else None)
    say(f"accepted, {count(number, 'region')}: {claim}")


@model.add("model sensitive lower_magnitude_initializations")
def sensitive(
    store: "Store",
    references: Texts = None,
    times: Annotated[int, typer.Option(min=1, max=1000)] = 8,
) -> Answer:
    """Find the runs whose outcome depends on rounding.

    Args:
        references: Runs or sweeps to retrain from initial values perturbed by one unit in the last
            place, and in double precision; by default, list what is stored.
        times: how many times to retrain each run from perturbed values.
    """
    from sweeps.api.results import stored_runs

    again = api.sensitive(store, references or (), times)
    pairs = again if references else api.in_both_precisions(store)

    def parts() -> Iterator[str | Table]:
        if len(again):
            # The numbers of misclassified test strings, from the least to the most.
            shown = again[again["sensitive"]].drop(columns="sensitive")
            runs = stored_runs(store).set_index("id").loc[shown["run_id"]]
            shown.insert(1, "sweeps", [", ".join(names) for names in runs["sweeps"]])
            shown.insert(2, "model_seed", runs["model_seed"].tolist())
            changing = f"{len(shown)} of {count(len(again), 'run')}"
            title = f"{changing} retrained with other rounding get another confusion matrix"
            yield Table(shown, title)
        elif pairs.empty:
            yield (
                "no run is stored in both precisions; `seqcls sweep SPEC --precision float64` "
                "trains those of a sweep in double precision, `seqcls model sensitive SWEEP` "
                "trains them again with other rounding"
            )
        if len(pairs) and not references:
            shown = pairs[pairs["sensitive"]].drop(columns="sensitive")
            shown["sweeps"] = shown["sweeps"].map(", ".join)
            changing = f"{len(shown)} of {count(len(pairs), 'run')}"
            yield Table(shown, f"{changing} in both precisions have other confusion matrices")

    return Answer(pairs, parts())
