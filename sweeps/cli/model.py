"""Commands that ask one model: what it answers, why, of which strings it holds, and what is in it.

Each is a question of `sweeps.api`; what its answer says, its class or `wording` knows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, astuple
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seqcls.text import count
from sweeps import api
from sweeps.cli.parameters import Asked, Panel, Text, Texts
from sweeps.cli.printing import Answer, Table, readable, share_text
from sweeps.terminal import say

if TYPE_CHECKING:
    import pandas as pd

    from seqcls.interpretability.ablation import Ablated
    from seqcls.interpretability.automaton import LearnedAutomaton, Round
    from seqcls.interpretability.family import OutputFamily
    from seqcls.interpretability.rules import Rules
    from seqcls.interpretability.states_by_strings import Prefixes
    from seqcls.problem import Problem
    from sweeps.api import Store
    from sweeps.api.interpretability import ModelStates

model = Panel(None, no_args_is_help=True, help="Ask one model, and look inside it.")


@model.add("model predict all_initializations/2 baac 'ab{100}c{55}'")
def predict(asked: Asked, strings: list[str], beam: int | None = None) -> Answer:
    """Give a model's probability that each string is in its language, or its output for it.

    Args:
        beam: for a transduction: the outputs of each input that a beam of this width finds, the
            likeliest first; by default, one, as it is tested.
    """
    from sweeps.api.presentation import display_strings

    frame = api.predict(asked.store, asked.run, strings, asked.epoch, partial=False, beam=beam)
    config = api.config(asked.store, asked.run)
    # Of a task that is no language all there is: strings with targets, answers and margins.
    if "label" in frame:
        # Of a model whose weights are not here, what it answered to strings of its test.
        shown = ["label", "predicted"] if config.is_imported else ["probability", "logit"]
        frame = frame[["string", *shown]]
    return Answer(frame, [Table(readable(display_strings(frame, config)), f"run {asked.run}")])


@model.add("model explain all_initializations/2 'ab{68}'")
def explain(asked: Asked, string: str) -> Answer:
    """Explain why a model answers a string as it does, and what would change the answer."""
    from seqcls.interpretability.sentences import explanation_text
    from seqcls.problem import resolve

    explanation = asked.ask(api.explain, string)
    said = explanation_text(explanation, resolve(asked.config).tokenizer.display)
    return asked.answer({**explanation.record(), "sentences": said}, said)


@model.add("model minimal all_initializations/2 'ab{100}c{55}'")
def minimal(asked: Asked, string: Text = None) -> Answer:
    """Shrink a string that a model gets wrong to a minimal one, and find the nearest right one.

    Args:
        string: A string that it gets wrong; by default, search for the shortest failing strings.
    """
    from seqcls.problem import resolve
    from sweeps.api.presentation import (
        nearest_sentence,
        said_of,
        shortest_sentences,
        whose_known,
        words_of,
    )

    words, whose = words_of(asked.config), whose_known(resolve(asked.config))
    if string is None:
        failing = asked.ask(api.shortest)
        answers = [answer.record() for answer in failing.answers]
        said = shortest_sentences(failing, words, whose)
        return asked.answer({**asdict(failing), "answers": answers}, said)
    reduced, nearest = asked.ask(api.minimal, string)
    tried = f"{reduced.tried:,} {words.plural('')} tried"
    said = [
        said_of(reduced.given),
        f"minimal failing {words.string}: {said_of(reduced.found)} (no single deletion{whose} "
        f"fails; {tried})",
        nearest_sentence(nearest, reduced.given, words, whose),
    ]
    record = {
        "given": reduced.given.record(),
        "minimal": {**reduced.found.record(), "tried": reduced.tried},
        "nearest_right": nearest.record(),
    }
    return asked.answer(record, said)


@model.add("model family all_initializations/2 'ab{n}'")
def family(asked: Asked, strings: str) -> Answer:
    """Say where a model's answer changes as the free counts of a family of strings grow.

    Of a transduction: which outputs are right, and up to which token.

    Args:
        strings: such as ab{n}, a{m}b{n} or <ab>{n}.
    """
    from seqcls.interpretability.family import OutputFamily, output_family_text
    from seqcls.interpretability.sentences import family_text
    from sweeps.api.presentation import display_strings

    tried = asked.ask(api.family, strings)
    if not isinstance(tried, OutputFamily):
        return asked.answer(tried.record(), family_text(tried))
    outputs = Table(
        display_strings(_outputs_table(tried), asked.config), f"outputs of run {asked.run}"
    )
    return asked.answer(tried.record(), [*output_family_text(tried), outputs])


def _outputs_table(written: "OutputFamily") -> "pd.DataFrame":
    """Counts, whether the output is right, how many tokens of it are, target and output."""
    import pandas as pd

    rows = [
        {
            **dict(zip(written.family.names, each.values, strict=True)),
            "output is": each.error_kind or "right",
            "right tokens": f"{each.right_tokens} of {each.target_tokens}",
            "target": each.target or '""',
            "output": each.output or '""',
        }
        for each in written.outputs
    ]
    return pd.DataFrame(rows)


@model.add("model rules all_initializations/2")
def rules(asked: Asked) -> Answer:
    """Find simple rules that predict a model's answers on all of its test strings."""
    fitting = asked.ask(api.rules)
    record = {"strings": fitting.strings, "rules": list(map(asdict, fitting.rules))}
    return asked.answer(record, _rules_sentences(fitting))


SHOWN = 10
"""Rules that are printed; `--json` has them all."""


def _rules_sentences(rules: "Rules") -> Iterator[str]:
    """The rules that agree best with a model's answers."""
    tried = count(rules.strings, "test string")
    yield f"rules tried on {tried}, by agreement with the model's answers"
    for rule in rules.rules[:SHOWN]:
        sides = [
            f"{share_text(share)} where it is predicted {name}"
            for name, share in (("positive", rule.on_positive), ("negative", rule.on_negative))
            if share is not None
        ]
        yield f"  {share_text(rule.agreement)}  {rule.text} ({', '.join(sides)})"


@model.add("model states all_initializations/2 'ab{10}'")
def states(asked: Asked, string: str) -> Answer:
    """Show what each part adds to a string's logit, and where in the string the answer is made."""
    from sweeps.api.presentation import said_of

    found = asked.ask(api.states, string)
    said = f"run {asked.run}: {said_of(found.answer)}"
    return asked.answer(found.record(), [said, *_states_tables(found)])


def _states_tables(found: "ModelStates") -> Iterator[Table]:
    import pandas as pd

    if found.steps is not None:
        steps = pd.DataFrame(list(map(vars, found.steps)))
        steps = steps.astype({"block": "Int64", "head": "Int64"})
        yield Table(steps.round(4), "what each part adds to the logit")
    if found.units is not None:
        units = pd.DataFrame(found.units.states[-1].round(3)).add_prefix("unit ")
        units.insert(0, "token", found.units.tokens)
        yield Table(units, "the last layer's units after each token")
    if found.output is not None:
        columns = ["token", "probability", "runner-up", "its probability"]
        output = pd.DataFrame(map(astuple, found.output), columns=columns)
        yield Table(output.round(4), "the output, token by token")
    if found.prefixes is not None:
        yield _prefixes_table(found.prefixes)


def _prefixes_table(prefixes: "Prefixes") -> Table:
    import pandas as pd

    logits, labels = prefixes.logits.round(4), prefixes.labels
    frame = pd.DataFrame({"token": prefixes.tokens, "logit": logits, "label": labels})
    if not any(isinstance(label, str) for label in labels):
        said = ["not known" if label is None else str(int(label)) for label in labels]
        return Table(frame.assign(label=said), "the logit after every prefix")
    frame = frame.set_axis(["token", "margin", "target"], axis=1)
    if prefixes.answers:
        frame["answer"] = prefixes.answers
    return Table(frame, "the margin after every prefix")


@model.add("model patch all_initializations/2 'ab{100}c{55}'")
def patch(asked: Asked, string: str, source: str | None = None) -> Answer:
    """Copy states over from another string, and say which of them flip the answer.

    Args:
        source: the source string, of the same length, whose states are patched in; by default, the
            nearest correctly classified string with the other prediction.
    """
    from sweeps.api.presentation import LISTED, flip_table, said_of

    found = asked.ask(api.patch, string, source)
    said = [f"base: {said_of(found.base)}", f"source: {said_of(found.source)}"]
    flips, patched = flip_table(found.patched), found.patched
    what = "" if patched.number == patched.unit else f": {patched.number}"
    more = f"; the first {LISTED} of {len(flips)}" if len(flips) > LISTED else ""
    title = f"states that flip the prediction when patched{more}{what}"
    none = "no single state, patched in, flips the prediction"
    table = none if flips.empty else Table(flips.head(LISTED), title)
    return asked.answer(found.record(), [*said, table])


@model.add("model ablate increased_num_attention_heads/0 --part head --prune")
def ablate(
    asked: Asked,
    part: list[str] | None = None,
    how: str = "zero",
    sample: Annotated[int | None, typer.Option(min=1, max=1000000)] = None,
    prune: bool = False,
) -> Answer:
    """Test a model without some of its heads, feed-forwards or units.

    Args:
        part: a head, feed-forward or unit; repeatable; by default, heads and feed-forwards; of a
            recurrent network, units.
        how: with zero, the part adds nothing; with mean, its mean.
        sample: distinct test strings to run and evaluate on; by default, all, by letter counts,
            where these decide; else 400.
        prune: remove one part after another, the least useful first.
    """
    from seqcls.problem import resolve

    run = asked.run
    found = api.ablate(
        asked.store, run, part or (), how, sample=sample, prune=prune, epoch=asked.epoch
    )
    record = {"how": how, "strings": found.strings, "exact": found.exact}
    record["steps" if prune else "parts"] = [each.record() for each in found.outcomes]
    strings = f"{found.strings:,} distinct test strings"
    if found.exact:
        strings = f"all {count(found.strings, 'test string')}, exactly, by letter counts"
    said = f"run {run}, by {how} ablation, on {strings}"
    title = "the cheapest part removed first" if prune else "without each part alone"
    table = _ablated_table(found.outcomes, prune, resolve(asked.config))
    return asked.answer(record, [said, Table(table, title)])


def _ablated_table(
    outcomes: "Sequence[Ablated]", prune: bool, problem: "Problem"
) -> "pd.DataFrame":
    import pandas as pd

    # Of what it is the log-probability needs no saying in a heading.
    changed = problem.kind.score_name.partition(" of ")[0]
    rows = []
    for each in outcomes:
        name = each.parts[-1].text if each.parts else "nothing"
        rows.append(
            {
                "without": f"{'and ' * (prune and len(each.parts) > 1)}{name}",
                problem.kind.words.missed: each.errors,
                "accuracy": share_text(each.accuracy),
                "loss": f"{each.loss:.4g}",
                f"change of the {changed}": f"{each.logit_change:.4g}",
            }
        )
    return pd.DataFrame(rows)


@model.add("model automaton increased_dimensionality/0")
def automaton(
    asked: Asked,
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
        states: at most this many states in a hypothesis.
        rounds: at most this many hypotheses.
        strings: at most this many short strings, all of which are tried.
        length: tokens of the longest string asked; by default, twice the longest tested.
        seconds: stop learning after this many seconds.
        inside: also look for its states in the model's own states.
        dot: print the automaton as a graph in the language DOT.
    """
    from rich.console import Console

    from seqcls.interpretability.automaton import count_of, inside_text, learned_text

    store, run, epoch = asked.store, asked.run, asked.epoch
    bounds = {"states": states, "rounds": rounds, "strings": strings, "length": length}
    with Console(stderr=True).status("asking the model") as status:

        def show_round(made: "Round") -> None:
            status.update(f"{count(made.states, 'state')}, {count(made.asked, 'string')} asked")

        learned = api.automaton(store, run, epoch, **bounds, seconds=seconds, on_round=show_round)
        within = api.automaton_inside(store, run, learned, epoch) if inside and not dot else None
    if dot:
        return asked.answer({"dot": learned.dot()}, [learned.dot()])
    record = _learned_record(learned)
    if within is not None:
        record["inside"] = within.record()

    def parts() -> Iterator[str | Table]:
        yield from [f"run {run}", *learned_text(learned)]
        title = "hypotheses, each with the string that refutes it"
        yield Table(_rounds_table(learned), title)
        shown = learned.main_hypothesis
        if shown.states <= SHOWN_STATES:
            title = count_of(shown.states, "state", "states")
            yield Table(_transitions_table(learned, shown), title)
        if within is not None:
            yield from inside_text(within)

    return asked.answer(record, parts())


SHOWN_STATES = 20
"""States of an automaton that are printed; `--json` and `--dot` have them all."""


ROUND = ("states", "asked", "agreement", "explained", "counterexample")
LEARNED = (
    *("found", "ended", "tried_length", "longer", "longest", "asked", "error_is_tested"),
    "explained",
)
"""What JSON has of a hypothesis, and of all that was learned."""


def _learned_record(learned: "LearnedAutomaton") -> dict[str, Any]:
    from seqcls.interpretability.automaton import learned_text

    return {
        **learned.record(),
        **{name: getattr(learned, name) for name in LEARNED},
        "budget": asdict(learned.budget),
        "error": None if learned.error is None else learned.error.record(),
        "test_errors": learned.wrong,
        "rounds": [{name: getattr(made, name) for name in ROUND} for made in learned.rounds],
        "said": learned_text(learned),
    }


def _rounds_table(learned: "LearnedAutomaton") -> "pd.DataFrame":
    """A row a hypothesis."""
    import pandas as pd

    from seqcls.interpretability.automaton import name_string

    rows = [
        {
            "states": made.states,
            "strings asked": f"{made.asked:,}",
            "agrees on tested": share_text(made.agreement),
            "test errors made": f"{made.explained:,} of {learned.wrong:,}",
            "refuted by": ""
            if made.counterexample is None
            else name_string(learned, made.counterexample),
        }
        for made in learned.rounds
    ]
    return pd.DataFrame(rows)


def _transitions_table(learned: "LearnedAutomaton", made: "Round") -> "pd.DataFrame":
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


@model.add("model verdict all_initializations/2")
def verdict(store: "Store", run: str, beyond: bool = False, every_length: bool = False) -> Answer:
    """Check a model on every string up to a length: by default, its longest test length.

    What is found of a language is kept.

    Args:
        beyond: show proofs for strings of every length instead.
        every_length: prove a recurrent network, as `prove` does.
    """
    import pandas as pd

    from seqcls.interpretability.sentences import certification_text
    from seqcls.interpretability.verdicts import OutputVerdict, output_verdict_text
    from seqcls.problem import resolve
    from seqcls.proofs.prover import proof_text

    run_id = api.find_run(store, run)
    if every_length:
        proof = api.prove(store, run_id)
        said = proof_text(api.model(store, run_id), proof)
        return Answer({"run": run_id, **proof.record()}, said)
    if beyond:
        proved = api.proofs(store, run_id)
        return Answer({"run": run_id, **proved.record()}, certification_text(proved))
    checked = api.verdict(store, run_id)
    if isinstance(checked, OutputVerdict):
        said = [f"run {run_id}: {sentence}" for sentence in output_verdict_text(checked)]
        return Answer({"run": run_id, **checked.record()}, said)
    problem = resolve(api.config(store, run_id))
    empty = "with" if problem.tries_empty else "without"
    shortest = problem.tokenizer.display(checked.shortest_error or "") or "the empty string"
    wrong = checked.false_positives + checked.false_negatives
    sentence = (
        f"run {run_id}: of {checked.inputs:,} {checked.unit}s up to length {checked.max_length}, "
        f"{empty} the empty string, {wrong:,} are misclassified ({checked.false_positives:,} false "
        f"positives, {checked.false_negatives:,} false negatives)"
        + (f"; the shortest is {shortest}" if wrong else "")
    )
    return Answer(pd.DataFrame([asdict(checked)]), [sentence])


@model.add("model prove 1 --certificate proof.json")
def prove(
    asked: Asked,
    certificate: Path | None = None,
    learned: bool = False,
    seconds: float = 60.0,
    regions: int = 3000,
    again: bool = False,
    force: bool = False,
) -> Answer:
    """Prove that a recurrent network is right on every string, or find one on which it is not.

    What is found is kept.

    Args:
        certificate: write what proves it to this file; by default, none.
        learned: hold the model against the automaton that is learned of it.
        seconds: give up after this many seconds.
        regions: at most this many regions of states.
        again: prove it anew, whatever is stored.
        force: replace a certificate.
    """
    from rich.console import Console

    from seqcls.proofs.certificate import to_text
    from seqcls.proofs.prover import proof_text
    from sweeps.api.models import ask_on_one_thread
    from sweeps.files import refuse_taken, whole_files

    store, run, epoch = asked.store, asked.run, asked.epoch
    if certificate is not None:
        refuse_taken([certificate], force=force)
    ask_on_one_thread()
    how: dict[str, Any] = {"learned": learned, "seconds": seconds, "regions": regions}
    with Console(stderr=True).status("proving") as status:
        proof = api.prove(store, run, epoch, again=again, on_progress=status.update, **how)
    said = [f"run {run}", *proof_text(api.model(store, run, epoch), proof)]
    if certificate is not None and proof.certificate is not None:
        with whole_files(certificate.parent, force=force) as folder:
            text = to_text(proof.certificate)
            (folder / certificate.name).write_text(text, encoding="utf-8")
        said.append(
            f"Its certificate is {certificate}; `seqcls model check {certificate}` checks it."
        )
    return asked.answer(proof.record(), said)


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
        references: runs or sweeps to retrain from initial values perturbed by one unit in the last
            place, and in double precision; by default, list what is stored.
        times: how many times to retrain each run from perturbed values.
    """
    if references:
        outcomes = api.sensitive(store, references, times)
        title = (
            f"{outcomes['sensitive'].sum()} of {count(len(outcomes), 'run')} come to another "
            f"confusion matrix with other rounding: {times} times from initial values moved by one "
            "unit in the last place, and once in double precision"
        )
        return Answer(outcomes, [Table(_perturbed_table(store, outcomes), title)])
    pairs = api.in_both_precisions(store)
    return Answer(pairs, _stored_sensitive(store, pairs))


def _stored_sensitive(store: "Store", pairs: "pd.DataFrame") -> Iterator[str | Table]:
    """What is stored of runs that were trained again, or in both precisions."""
    again = api.sensitive(store)
    if len(again):
        title = (
            f"{again['sensitive'].sum()} of {count(len(again), 'run')} trained again with other "
            "rounding come to another confusion matrix"
        )
        yield Table(_perturbed_table(store, again), title)
    elif pairs.empty:
        yield (
            "no run is stored in both precisions; `seqcls sweep SPEC --precision float64` trains "
            "those of a sweep in double precision, `seqcls model sensitive SWEEP` trains them "
            "again with other rounding"
        )
    if len(pairs):
        different = pairs[pairs["sensitive"]].drop(columns="sensitive")
        title = f"{len(different)} of {count(len(pairs), 'run')} in both precisions have other"
        title += " confusion matrices"
        different["sweeps"] = different["sweeps"].map(", ".join)
        yield Table(different, title) if len(different) else title


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
