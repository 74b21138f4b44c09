"""How the command on theory shows what it says."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from seqcls.errors import ConfigError
from sweeps import api
from sweeps.cli.commands.printing import print_record
from sweeps.terminal import say

if TYPE_CHECKING:
    from sweeps.questions.theory import PredictedNetwork


def show_theory(task: str, conditions: Sequence[str], as_json: bool) -> None:
    """Prints a language's class, and of each network what is predicted, under which condition."""
    from sweeps.analysis.configuration_lookup import condition

    fields: dict[str, Any] = {}
    for text in conditions:
        name, value = condition(text, f"--set {text}")
        if fields.setdefault(name, value) != value:
            raise ConfigError(
                f"--set {text}: {name} has another value before; leave one of them out"
            )
    if "task" in fields:
        raise ConfigError(f"--set task={fields['task']}: the task is named before; leave it out")
    said = api.theory(task, **fields)
    if as_json:
        networks = [
            {"network": each.network, "predictions": [asdict(x) for x in each.predictions]}
            for each in said.networks
        ]
        record = {"task": said.task, "language": said.language, "networks": networks}
        print_record(record)
        return
    say(f"{said.task}\n{said.language}")
    for each in said.networks:
        say("\n".join(["", *_lines(each)]))


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
