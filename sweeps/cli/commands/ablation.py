"""What `seqcls ablate` does, and how it shows it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sweeps import api
from sweeps.cli.commands.printing import print_record, print_table
from sweeps.terminal import say

if TYPE_CHECKING:
    import pandas as pd

    from seqcls.interpretability.ablation.judge import Ablated
    from seqcls.problem import Problem


def show_ablation(
    db: str | None,
    reference: str,
    kinds: list[str],
    how: str,
    sample: int,
    pruning: bool,
    epoch: int | None,
    as_json: bool,
) -> None:
    """Prints what a model is without each of its parts, or without more and more of them."""
    from seqcls.problem import resolve
    from sweeps.store.opening import open_reader
    from sweeps.store.reading.queries import find_run, run_config

    store = open_reader(db)
    judged = api.ablate(store, reference, kinds, how, sample=sample, prune=pruning, epoch=epoch)
    run_id = find_run(store, reference)
    if as_json:
        steps = {"steps" if pruning else "parts": list(map(_record, judged.outcomes))}
        print_record({"run": run_id, "how": how, "strings": judged.strings, **steps})
        return
    say(f"run {run_id}, by {how} ablation, on {judged.strings:,} distinct test strings")
    title = "the cheapest part removed first" if pruning else "without each part alone"
    problem = resolve(run_config(store, run_id))
    print_table(_table(judged.outcomes, pruning, problem), title)


def _table(outcomes: "Sequence[Ablated]", pruning: bool, problem: "Problem") -> "pd.DataFrame":
    import pandas as pd

    from seqcls.interpretability.rounded import percent

    changed = "log-probability" if problem.writes else "logit"
    return pd.DataFrame(
        [
            {
                "without": _name(each, pruning),
                problem.kind.words.missed: each.errors,
                "accuracy": percent(each.accuracy),
                "loss": f"{each.loss:.4g}",
                f"change of the {changed}": f"{each.logit_change:.4g}",
            }
            for each in outcomes
        ]
    )


def _name(each: "Ablated", pruning: bool) -> str:
    if not each.parts:
        return "nothing"
    return f"{'and ' * (pruning and len(each.parts) > 1)}{each.parts[-1].text}"


def _record(each: "Ablated") -> dict[str, Any]:
    return {
        "without": [part.text for part in each.parts],
        "misclassified": each.errors,
        "accuracy": each.accuracy,
        "loss": each.loss,
        "logit_change": each.logit_change,
        "lengths": each.lengths.tolist(),
        "strings": each.strings.tolist(),
        "right": each.right.tolist(),
    }
