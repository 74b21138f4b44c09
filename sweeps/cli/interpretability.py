"""Commands that explain one model's answers to strings and families of strings."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sweeps import api
from sweeps.cli.parameters import INSIDE, AsJson, Db, Epoch, Run
from sweeps.cli.printing import open_run, print_table, show

if TYPE_CHECKING:
    import pandas as pd

    from seqcls.interpretability.explanations import Explanation
    from seqcls.interpretability.family import Change, Curve, FamilyMap, FamilyOutput, OutputFamily


app = typer.Typer()


@app.command(
    rich_help_panel=INSIDE, epilog="Example: seqcls explain all_initializations/2 'ab{68}'"
)
def explain(
    run: Run,
    string: Annotated[str, typer.Argument(help="Such as ab{100}c{55}.", show_default=False)],
    db: Db = None,
    epoch: Epoch = None,
    as_json: AsJson = False,
) -> None:
    """Explain why a model answers a string as it does, and what would change the answer."""
    from seqcls.interpretability.sentences import explanation_text

    store, run_id = open_run(db, run)
    explanation = api.explain(store, run_id, string, epoch)
    said = explanation_text(explanation)
    show(as_json, said, {"run": run_id, **_explanation_record(explanation), "sentences": said})


@app.command(rich_help_panel=INSIDE, epilog="Example: seqcls family all_initializations/2 'ab{n}'")
def family(
    run: Run,
    strings: Annotated[
        str, typer.Argument(help="Such as ab{n}, a{m}b{n} or <ab>{n}.", show_default=False)
    ],
    db: Db = None,
    epoch: Epoch = None,
    as_json: AsJson = False,
) -> None:
    """Say where a model's answer changes as the free counts of a family of strings grow.

    Of a transduction: which outputs are right, and up to which token.
    """
    from seqcls.interpretability.family import OutputFamily, output_family_text
    from seqcls.interpretability.sentences import family_text
    from sweeps.api.presentation import displayed

    store, run_id = open_run(db, run)
    tried = api.family(store, run_id, strings, epoch)
    record = {"run": run_id, **family_record(tried)}
    if not isinstance(tried, OutputFamily):
        show(as_json, family_text(tried), record)
        return
    show(as_json, output_family_text(tried), record)
    if not as_json:
        table = displayed(_outputs_table(tried), api.config(store, run_id))
        print_table(table, f"outputs of run {run_id}")


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


def _explanation_record(explanation: "Explanation") -> dict[str, Any]:
    record = asdict(explanation)
    for head in record["heads"]:
        # Programs read this name.
        head["seen"] = [{"kind": entry.pop("token_type"), **entry} for entry in head["seen"]]
    return record


def family_record(answered: "Curve | FamilyMap | OutputFamily") -> dict[str, Any]:
    """What programs read of a family: flips where letter counts decide, else what was tried."""
    from seqcls.interpretability.family import Curve, OutputFamily

    if isinstance(answered, OutputFamily):
        return _outputs_record(answered)
    return _curve_record(answered) if isinstance(answered, Curve) else _map_record(answered)


def _curve_record(curve: "Curve") -> dict[str, Any]:
    tried = {"n": curve.n.tolist(), "logit": curve.logits.tolist()}
    if curve.limit is not None:
        return {
            "family": curve.family.text,
            "label": bool(curve.labels[0]),
            "flips": [asdict(change) for change in curve.changes],
            "limit": curve.limit,
            **tried,
        }
    return {
        "family": curve.family.text,
        "n": tried["n"],
        "label": curve.labels.tolist(),
        "logit": tried["logit"],
        "changes": [_change(change) for change in curve.changes],
        "first_wrong": curve.first_wrong,
    }


def _map_record(plane: "FamilyMap") -> dict[str, Any]:
    first, second = plane.family.names
    family = {"family": plane.family.text}
    axes = {first: plane.first.tolist(), second: plane.second.tolist()}
    logit = [[None if x != x else x for x in row] for row in plane.logits.tolist()]
    if plane.exact:
        flips = [[asdict(change) for change in row] for row in plane.changes]
        label = bool(plane.labels[0, 0])
        return {**family, "label": label, **axes, "logit": logit, "flips": flips}
    changes = [[_change(change) for change in row] for row in plane.changes]
    return {**family, **axes, "label": plane.labels.tolist(), "logit": logit, "changes": changes}


def _outputs_record(written: "OutputFamily") -> dict[str, Any]:
    names = written.family.names
    outputs = [
        {**dict(zip(names, each.values, strict=True)), **output_record(each)}
        for each in written.outputs
    ]
    left_out = {"no_inputs": written.no_inputs, "no_places": written.no_places}
    return {"family": written.family.text, "outputs": outputs, **left_out}


def output_record(each: "FamilyOutput") -> dict[str, Any]:
    """One output of a family."""
    record = asdict(each)
    del record["values"]
    return {**record, "right": each.is_right}


def _change(change: "Change") -> dict[str, Any]:
    return {"n": change.n, "answer": change.answer}
