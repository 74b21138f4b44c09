"""What comes of questions to one model that look into it from several sides.

Each answer has `record()`, what programs read, and `describe(model)`: sentences and tables.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from seqcls.interpretability.minimal import Minimal, Nearest, whose_known
from seqcls.interpretability.trained_model import Answer, TrainedModel
from seqcls.interpretability.wording import Table, percent
from seqcls.text import count

if TYPE_CHECKING:
    from seqcls.interpretability.ablation import Ablated
    from seqcls.interpretability.attribution import LogitStep
    from seqcls.interpretability.patching import Patched
    from seqcls.interpretability.states_by_strings import Path, Patterns, Prefixes, Units
    from seqcls.interpretability.states_of_outputs import OutputToken

LISTED = 12
"""States that turn the answer of which a table shows no more."""


class Reduced(NamedTuple):
    """A misclassified string, made as short as it can be, and the nearest right one."""

    minimal: Minimal
    nearest: Nearest

    def record(self) -> dict[str, Any]:
        """What programs read of it."""
        found = {**self.minimal.found.record(), "tried": self.minimal.tried}
        near = self.nearest.record()
        return {"given": self.minimal.given.record(), "minimal": found, "nearest_right": near}

    def describe(self, model: TrainedModel) -> list[str]:
        """The string, its shortest failing part and the nearest right string."""
        given, words = self.minimal.given, model.problem.kind.words
        return [
            given.text,
            f"minimal failing {words.string}: {self.minimal.found.text} (no single deletion"
            f"{whose_known(model.problem)} fails; {self.minimal.tried:,} {words.plural('')} tried)",
            self.nearest.describe(model, given),
        ]


class ModelStates(NamedTuple):
    """A model's states along a string, as far as its architecture has them."""

    answer: Answer
    prefixes: "Prefixes | None"
    """None of a model that writes."""
    output: "tuple[OutputToken, ...] | None"
    """What a model writes, token by token; None of a model that answers at once."""
    steps: "tuple[LogitStep, ...] | None"
    """What each part adds to the logit; None without a residual stream."""
    attention: "Patterns | None"
    units: "Units | None"
    path: "Path | None"
    """The path of the last layer's units, in the plane in which they vary most."""

    def record(self) -> dict[str, Any]:
        """The answer and the states as programs read them, as far as there are any."""
        record = self.answer.record()
        if self.prefixes is not None:
            record["prefix_logits"] = self.prefixes.logits.tolist()
            if self.prefixes.answers:
                record["prefix_answers"] = list(self.prefixes.answers)
        if self.output is not None:
            record["output"] = list(map(vars, self.output))
        if self.steps is not None:
            record["steps"] = list(map(vars, self.steps))
        if self.attention is not None:
            attention = self.attention
            record |= {"tokens": attention.tokens, "attention": attention.weights.tolist()}
        if self.units is not None and self.path is not None:
            record |= {
                "tokens": self.units.tokens,
                "units": self.units.states.tolist(),
                "gates": {name: gate.tolist() for name, gate in self.units.gates.items()},
                "path": self.path.points.tolist(),
            }
        return record

    def describe(self, model: TrainedModel) -> Iterator[str | Table]:
        """The answer, and a table of each of the states."""
        yield f"{model.name}: {self.answer.text}"
        if self.steps is not None:
            rounded = [
                {**vars(x), "adds": np.round(x.adds, 4), "logit": np.round(x.logit, 4)}
                for x in self.steps
            ]
            yield Table("what each part adds to the logit", rounded)
        if self.units is not None:
            yield self.units.table()
        if self.output is not None:
            written = [
                {
                    "token": x.token,
                    "probability": np.round(x.probability, 4),
                    "runner-up": x.runner_up,
                    "its probability": np.round(x.runner_up_probability, 4),
                }
                for x in self.output
            ]
            yield Table("the output, token by token", written)
        if self.prefixes is not None:
            yield self.prefixes.table()


class Patches(NamedTuple):
    """States carried over from one string to another, and the answers to both."""

    patched: "Patched"
    base: Answer
    source: Answer

    def record(self) -> dict[str, Any]:
        """What programs read of it."""
        patched = self.patched
        what = {} if patched.number == patched.unit else {"number": patched.number}
        return {
            **what,
            "base": self.base.record(),
            "source": self.source.record(),
            "tokens": {"base": patched.base_tokens, "source": patched.source_tokens},
            "sites": [site.text for site in patched.sites],
            "logits": [
                [None if logit != logit else logit for logit in logits]
                for logits in patched.logits.tolist()
            ],
            "flips": patched.flips.tolist(),
        }

    def describe(self, _: TrainedModel) -> Iterator[str | Table]:
        """Both answers, and the states that flip the prediction."""
        yield f"base: {self.base.text}"
        yield f"source: {self.source.text}"
        if not (flips := self.patched.flip_rows()):
            yield "no single state, patched in, flips the prediction"
            return
        number, unit = self.patched.number, self.patched.unit
        more = f"; the first {LISTED} of {len(flips)}" if len(flips) > LISTED else ""
        what = "" if number == unit else f": {number}"
        yield Table(f"states that flip the prediction when patched{more}{what}", flips[:LISTED])


class Ablations(NamedTuple):
    """What is left of a model without its parts, and by which test strings that is judged."""

    strings: int
    outcomes: "tuple[Ablated, ...]"
    """The whole model first."""
    exact: bool
    """Whether these are all test strings, each as often as it occurs, by letter counts; else they
    are a sample of distinct ones, which were run."""
    how: str
    pruned: bool
    """Whether more and more parts are removed, the cheapest first."""

    def record(self) -> dict[str, Any]:
        """What programs read of it."""
        outcomes = [each.record() for each in self.outcomes]
        steps = {"steps" if self.pruned else "parts": outcomes}
        return {"how": self.how, "strings": self.strings, "exact": self.exact, **steps}

    def describe(self, model: TrainedModel) -> Iterator[str | Table]:
        """By which strings it is judged, and a row a part."""
        strings = f"{self.strings:,} distinct test strings"
        if self.exact:
            strings = f"all {count(self.strings, 'test string')}, exactly, by letter counts"
        yield f"{model.name}, by {self.how} ablation, on {strings}"
        kind = model.problem.kind
        # Of what it is the log-probability needs no saying in a heading.
        change = f"change of the {kind.score_name.partition(' of ')[0]}"
        rows = [
            {
                "without": "and " * (self.pruned and len(each.parts) > 1)
                + (each.parts[-1].text if each.parts else "nothing"),
                kind.words.missed: each.errors,
                "accuracy": percent(each.accuracy),
                "loss": f"{each.loss:.4g}",
                change: f"{each.logit_change:.4g}",
            }
            for each in self.outcomes
        ]
        title = "the cheapest part removed first" if self.pruned else "without each part alone"
        yield Table(title, rows)
