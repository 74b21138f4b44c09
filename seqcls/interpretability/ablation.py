"""Ablation: what a model can do without, each part alone, and pruned from the cheapest on.

A part that is ablated by *zero* adds nothing; by *mean*, it has its mean over all tokens of all
strings that the model is judged by, whatever the string. Models that write are teacher forced.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor

from seqcls.cancellation import check
from seqcls.errors import ConfigError
from seqcls.evaluation import DistinctStrings, distinct_test_strings
from seqcls.interpretability import readable_model
from seqcls.interpretability.domains import obstacle, sampled_strings
from seqcls.interpretability.readable_model import plain_model
from seqcls.interpretability.rows import record
from seqcls.interpretability.trained_model import TrainedModel
from seqcls.interpretability.wording import Table, percent
from seqcls.kinds.transduction import separator_id
from seqcls.models.forms import form
from seqcls.models.parts import Site
from seqcls.strings.tokenizer import PAD
from seqcls.text import count

AblationMethod = Literal["zero", "mean"]
Ablation = Mapping[Site, AblationMethod]
"""The ablated parts, each with its method."""

SAMPLE = 400
"""Distinct test strings that are run by default."""

NUMBERS_KNOWN = 2**26
"""Numbers in the states that are remembered at most: half a gigabyte."""

PARTS_PRUNED = 24
"""Parts that pruning begins with at most where strings are run: every step tries all that are left.
"""


class Ablated(NamedTuple):
    """A model's results without some of its parts."""

    parts: tuple[Site, ...]
    errors: int
    accuracy: float
    """In [0, 1]."""
    loss: float
    """Mean over the strings, in nats; no logit is scaled."""
    logit_change: float
    """Mean |change of the logit|; of a model that writes, of the target's log-probability."""
    lengths: Int64[np.ndarray, " length"]
    """Those of the strings, ascending."""
    strings: Int64[np.ndarray, " length"]
    right: Int64[np.ndarray, " length"]
    """The number of strings of each length, and of those that are answered rightly."""


@dataclass(frozen=True, eq=False)
class Judge:
    """A model, and the test strings on which it is evaluated without some of its parts."""

    model: TrainedModel
    sample: int | None = None
    """Distinct strings to run, spread evenly over the lengths. If no number is named, all test
    strings, each as often as it occurs, where letter counts decide; else `SAMPLE`."""

    @cached_property
    def exact(self) -> bool:
        """True if all test strings are evaluated, by letter counts."""
        return self.sample is None and obstacle(self.model.problem, "labels") is None

    @cached_property
    def tested(self) -> DistinctStrings:
        """The test strings, each as often as it counts: all, or once each the shortest first."""
        if self.exact:
            return distinct_test_strings(self.model.problem.test)
        chosen = sampled_strings(self.model.problem, self.sample or SAMPLE)
        return replace(chosen, occurrences=np.ones_like(chosen.occurrences))

    def parts(self, kinds: Sequence[str] = ()) -> tuple[Site, ...]:
        """The parts of these kinds; heads and feed-forwards if none is named, or else all units.

        Raises:
            ConfigError: an architecture from outside that names none.
        """
        if not self._states:
            raise ConfigError(
                f"architecture={self.model.config.architecture!r} names no parts that it could do "
                "without"
            )
        main = tuple(x for x in self._states if x.name in (kinds or ("head", "feed-forward")))
        return main if kinds or main else tuple(plain_model(self.model).parts())

    def ablate(self, ablation: Ablation) -> Ablated:
        """Evaluates the model without these parts."""
        check()
        kind, tested, times = self.model.problem.kind, self.tested, self.tested.occurrences
        outputs, network = self.outputs(ablation), plain_model(self.model).config
        if self._writes:
            # Tokens of the output alone are scored, although training may count those of the input.
            network = network.model_copy(update={"head": "output"})
        encoded = torch.from_numpy(kind.encoded(self.model.task, tested, network))
        given = torch.from_numpy(outputs)
        losses = kind.losses(given, encoded, "default").numpy()
        wrong = ~kind.are_right(given, encoded).numpy()
        margins = kind.margins(outputs, tested.targets)
        lengths, rows = np.unique(tested.strings.lengths, return_inverse=True)
        strings, right = (
            np.bincount(rows, x, len(lengths)).astype(np.int64) for x in (times, times * ~wrong)
        )
        return Ablated(
            parts=tuple(ablation),
            errors=int((strings - right).sum()),
            accuracy=float(right.sum() / strings.sum()),
            loss=float(np.average(losses, weights=times)),
            logit_change=float(np.average(np.abs(margins - self.before), weights=times)),
            lengths=lengths,
            strings=strings,
            right=right,
        )

    def rank(self, parts: Sequence[Site], how: AblationMethod = "zero") -> tuple[Ablated, ...]:
        """Evaluates the model without each part alone; the most important part comes first."""
        # Errors rank first; where parts cost as many, how far they move the logit does.
        outcomes = [self.ablate({part: how}) for part in parts]
        return tuple(sorted(outcomes, key=lambda left: (-left.errors, -left.logit_change)))

    def prune(self, parts: Sequence[Site], how: AblationMethod = "zero") -> Iterator[Ablated]:
        """Without more and more parts, each time that one which costs the fewest errors.

        On a tie, the one with the least loss. The first has all parts (Michel, Levy & Neubig 2019,
        *Are Sixteen Heads Really Better than One?*).

        Raises:
            ConfigError: more than `PARTS_PRUNED` parts of a model that is run.
        """
        if len(parts) > PARTS_PRUNED and not self.exact:
            # A model of units alone has nothing coarser that could be pruned.
            others = any(part.name != "unit" for part in self.parts())
            raise ConfigError(
                f"{len(parts)} parts are too many to prune one by one: expected at most "
                f"{PARTS_PRUNED}; "
                + ("take heads, or feed-forwards" if others else "ablate each on its own instead")
            )
        best = self.ablate({})
        yield best
        while len(best.parts) < len(parts):
            # Greedily, as sets of parts are too many to be tried.
            gone = dict.fromkeys(best.parts, how)
            tried = [self.ablate({**gone, part: how}) for part in parts if part not in gone]
            best = min(tried, key=lambda left: (left.errors, left.loss))
            yield best

    @cached_property
    def before(self) -> Float[np.ndarray, " string"]:
        """The logits, or margins, of the whole model."""
        return self.model.problem.kind.margins(self.outputs({}), self.tested.targets)

    def outputs(self, ablation: Ablation) -> Float[np.ndarray, "string *output"]:
        """The head's outputs for the strings, or for each token that is scored, without parts."""
        changed = dict[str, list[Site]]()
        for part in ablation:
            for name in self._states[part]:
                changed.setdefault(name, []).append(part)

        def change(name: str, _position: int | None, state: Tensor) -> Tensor:
            gone = changed.get(name, ())
            # The recorded state may be a known one, which the next ablation needs unchanged.
            state = state.clone() if gone else state
            for part in gone:
                value = 0.0 if ablation[part] == "zero" else part.within(self._means[name])
                part.within(state)[...] = value
            return state

        parts = []
        for batch, states in zip(self._batches, self._known, strict=True):
            # Up to the first that changes, states are those of the whole model.
            last = next((place for place, x in enumerate(states) if x in changed), len(states))
            known = dict(list(states.items())[: last + 1])
            parts.append(self._select(batch, readable_model.run(self.model, batch, change, known)))
        return torch.cat(parts).numpy()

    def _select(self, batch: readable_model.Batch, outputs: Tensor) -> Tensor:
        """Selects the outputs that are scored: of outputs each token, or every place."""
        problem, judged = self.model.problem, batch.ids != PAD
        if self._writes:
            separators = batch.ids == separator_id(problem.network)
            # From `SEP` on each position predicts a token of the output; those before predict none.
            judged = judged & (separators.cumsum(dim=1) > 0)
        return outputs[judged] if self._writes or problem.at_places else outputs

    @property
    def _writes(self) -> bool:
        return self.model.problem.lacks("outputs") is None

    @cached_property
    def _states(self) -> Mapping[Site, tuple[str, ...]]:
        """The names of the states that each part is in; a hidden dimension is in all of a stream.

        A norm after a sum would put something into a dimension again.
        """
        plain = plain_model(self.model)
        states = {part: (name,) for part, name in plain.parts().items()}
        if form(plain, "residual_stream") is None or plain.config.norm_placement == "post":
            return states
        # Whatever is added to the stream writes its dimensions.
        added = ("embedding", "attention", "feed-forward")
        stream = tuple(y for x, names in plain.sites().items() if x.name in added for y in names)
        sizes = range(plain.config.hidden_size)
        return {**states, **{Site("dimension", number=number): stream for number in sizes}}

    @cached_property
    def _batches(self) -> list[readable_model.Batch]:
        if self.exact:
            return readable_model.count_batches(self.model, self.tested.strings.counts)
        read = self.model.problem.kind.reading(self.model.task, self.tested)
        return list(readable_model.spell(self.model, read))

    @cached_property
    def _known(self) -> list[dict[str, Tensor]]:
        """The whole model's states of parts, in the order of the computation, batch by batch."""
        names = tuple({name for states in self._states.values() for name in states})
        size = plain_model(self.model).config.hidden_size * len(names)
        numbers = sum(batch.ids.numel() for batch in self._batches) * size
        # Of strings token by token they are too many to be remembered.
        if not self.exact or numbers > NUMBERS_KNOWN:
            return [{} for _ in self._batches]
        return [readable_model.states(self.model, batch, names) for batch in self._batches]

    @cached_property
    def _means(self) -> Mapping[str, Tensor]:
        """The means of states over all tokens of all strings, with one string and one token."""
        plain = plain_model(self.model)
        names = tuple({name for states in self._states.values() for name in states})
        sums, tokens, start = dict[str, Tensor](), dict[str, float](), 0
        for batch in self._batches:
            occurrences = self.tested.occurrences[start : start + len(batch.ids)]
            start += len(batch.ids)
            for name, state in readable_model.states(self.model, batch, names).items():
                times = (
                    batch.times if batch.counts is not None else plain.tokens_of(batch.ids, name)
                )
                # A string that is in the test twice counts twice, as it does in the errors.
                times = times * torch.from_numpy(occurrences)[:, None]
                # A head's states have the head before the position.
                weights = times[:, None, :, None] if state.dim() == 4 else times[:, :, None]
                total = (state * weights).sum(dim=(0, -2), keepdim=True)
                sums[name] = sums.get(name, torch.zeros_like(total)) + total
                tokens[name] = tokens.get(name, 0.0) + float(times.sum())
        return {name: total / max(tokens[name], 1) for name, total in sums.items()}


class Ablations(NamedTuple):
    """A model's results without its parts, and the test strings that they are of."""

    strings: int
    outcomes: tuple[Ablated, ...]
    """The whole model first."""
    exact: bool
    """True if these are all test strings, each as often as it occurs, by letter counts; else they
    are a sample of distinct ones, which were run."""
    how: str
    pruned: bool
    """True if more and more parts are removed, the cheapest first."""

    def record(self) -> dict[str, Any]:
        """The results as programs read them."""
        outcomes = [
            {
                "without": [part.text for part in x.parts],
                "misclassified": x.errors,
                # `parts` and `errors` are listed above under the names that programs know.
                **{name: record(getattr(x, name)) for name in Ablated._fields[2:]},
            }
            for x in self.outcomes
        ]
        steps = {"steps" if self.pruned else "parts": outcomes}
        return {"how": self.how, "strings": self.strings, "exact": self.exact, **steps}

    def describe(self, model: TrainedModel) -> Iterator[str | Table]:
        """By which strings it is judged, and a row a part."""
        strings = f"{self.strings:,} distinct test strings"
        if self.exact:
            strings = f"all {count(self.strings, 'test string')}, exactly, by letter counts"
        yield f"{model.name}, by {self.how} ablation, on {strings}"
        kind = model.problem.kind
        # A heading needs no target of the log-probability.
        change = f"change of the {kind.score_name.partition(' of ')[0]}"
        rows = [
            {
                "without": "and " * (self.pruned and len(x.parts) > 1)
                + (x.parts[-1].text if x.parts else "nothing"),
                kind.words.missed: x.errors,
                "accuracy": percent(x.accuracy),
                "loss": f"{x.loss:.4g}",
                change: f"{x.logit_change:.4g}",
            }
            for x in self.outcomes
        ]
        title = "the cheapest part removed first" if self.pruned else "without each part alone"
        yield Table(title, rows)
