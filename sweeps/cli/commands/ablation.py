"""What `seqcls ablate` does, and how it shows it."""

from typing import Any

import pandas as pd
import typer

from seqcls.errors import ConfigError
from seqcls.interpretability.strings.ablation import (
    Ablated,
    AblationMethod,
    Judge,
    main_parts,
    parts_of,
    prune,
    rank,
)
from seqcls.models.parts import PART_KINDS, PartKind
from sweeps.analysis.opened_models import opened
from sweeps.cli.commands.any_model import show
from sweeps.cli.commands.printing import print_table

WAYS: tuple[AblationMethod, ...] = ("zero", "mean")


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
    wanted, way = [_kind(own) for own in kinds], _how(how)
    run_id, model = opened(db, reference, epoch)
    parts = parts_of(model, wanted) if wanted else main_parts(model)
    if not parts:
        raise ConfigError(f"run {run_id} has no such part; leave --part out to see those it has")
    judge = Judge(model, sample)
    whole = judge.without((), way)
    found = list(prune(judge, parts, way)) if pruning else [whole, *rank(judge, parts, way)]
    strings = len(judge.targets)
    if as_json:
        record = {"run": run_id, "how": way, "strings": strings}
        show(True, [], {**record, "steps" if pruning else "parts": list(map(_record, found))})
        return
    typer.echo(f"run {run_id}, by {way} ablation, on {strings:,} distinct test strings")
    title = "the cheapest part removed first" if pruning else "without each part alone"
    print_table(_table(found, pruning), title)


def _table(found: list[Ablated], pruning: bool) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                "without": _name(own, pruning),
                "misclassified": own.errors,
                "accuracy": f"{own.accuracy:.2%}",
                "loss": f"{own.loss:.4g}",
                "change of the logit": f"{own.logit_change:.4g}",
            }
            for own in found
        ]
    )


def _name(own: Ablated, pruning: bool) -> str:
    if not own.parts:
        return "nothing"
    return f"{'and ' * (pruning and len(own.parts) > 1)}{own.parts[-1].text}"


def _record(own: Ablated) -> dict[str, Any]:
    return {
        "without": [part.text for part in own.parts],
        "misclassified": own.errors,
        "accuracy": own.accuracy,
        "loss": own.loss,
        "logit_change": own.logit_change,
        "lengths": own.lengths.tolist(),
        "strings": own.strings.tolist(),
        "right": own.right.tolist(),
    }


def _kind(text: str) -> PartKind:
    for kind in PART_KINDS:
        if text == kind:
            return kind
    raise ConfigError(f"--part {text}: expected {', '.join(PART_KINDS)}")


def _how(text: str) -> AblationMethod:
    for way in WAYS:
        if text == way:
            return way
    raise ConfigError(f"--how {text}: expected zero or mean")
