"""Commands that explain one model's answers to strings and families of strings."""

from typing import TYPE_CHECKING, Annotated

import typer

from sweeps import api
from sweeps.cli.parameters import INSIDE, AsJson, Commands, Db, Epoch, Run
from sweeps.cli.printing import open_run, print_table, show

if TYPE_CHECKING:
    import pandas as pd

    from seqcls.interpretability.family import OutputFamily


app = Commands()


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
    from seqcls.problem import resolve

    store, run_id = open_run(db, run)
    explanation = api.explain(store, run_id, string, epoch)
    said = explanation_text(explanation, resolve(api.config(store, run_id)).tokenizer.display)
    show(as_json, said, {"run": run_id, **explanation.record(), "sentences": said})


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
    from sweeps.api.presentation import display_strings

    store, run_id = open_run(db, run)
    tried = api.family(store, run_id, strings, epoch)
    record = {"run": run_id, **tried.record()}
    if not isinstance(tried, OutputFamily):
        show(as_json, family_text(tried), record)
        return
    show(as_json, output_family_text(tried), record)
    if not as_json:
        table = display_strings(_outputs_table(tried), api.config(store, run_id))
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
