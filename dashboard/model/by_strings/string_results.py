"""What one model makes of one string, each thing computed once, when it is first asked for."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from dashboard.figures.string_axes import DRAWN, steps_frame, token_names
from dashboard.model.opened import AnyModel, remembered
from seqcls.interpretability.attribution.by_strings import has_residual_stream, logit_steps
from seqcls.interpretability.model.trained_model import Letters, TrainedModel
from seqcls.interpretability.states.by_strings import (
    Patterns,
    Units,
    attention_patterns,
    has_attention,
    has_decoder,
    has_units,
    prefix_logits,
    recurrent_units,
)
from sweeps.analysis import state_frames

steps_of = remembered(logit_steps)
prefixes_of = remembered(prefix_logits)
patterns_of = remembered(attention_patterns)
units_of = remembered(recurrent_units)


@dataclass(frozen=True, eq=False)
class StringResults:
    """A model and a string."""

    opened: AnyModel
    letters: Letters

    @property
    def model(self) -> TrainedModel:
        return self.opened.model

    @cached_property
    def has_residual_stream(self) -> bool:
        return has_residual_stream(self.model)

    @cached_property
    def has_attention(self) -> bool:
        return has_attention(self.model) and not self.has_decoder

    @cached_property
    def has_decoder(self) -> bool:
        return has_decoder(self.model)

    @cached_property
    def has_units(self) -> bool:
        return has_units(self.model)

    @cached_property
    def names(self) -> list[str]:
        """The tokens along the axis; where a decoder reads the output alone, its own."""
        names = token_names(self.model, self.letters)
        return names[len(self.letters) + 1 :] if self.has_decoder else names

    @property
    def is_long(self) -> bool:
        """Whether there are too many tokens to draw attention or units."""
        tokens = self.names if self.model.writes else self.letters
        return len(tokens) > DRAWN

    @cached_property
    def steps(self) -> pd.DataFrame:
        """What each part of a Transformer adds to the logit, as a waterfall draws it."""
        return steps_frame(steps_of(self.opened, self.letters), self.model.display(self.letters))

    @cached_property
    def prefixes(self) -> pd.DataFrame:
        """The logit after every prefix: length, token, logit, label."""
        return state_frames.prefixes_frame(prefixes_of(self.opened, self.letters))

    @cached_property
    def patterns(self) -> Patterns:
        """What every token attends to.

        Raises:
            ConfigError: the model is no Transformer.
        """
        return patterns_of(self.opened, self.letters)

    @cached_property
    def units(self) -> Units:
        """The states of a recurrent network.

        Raises:
            ConfigError: the model is none.
        """
        return units_of(self.opened, self.letters)

    def prefix_logits(self) -> list[float]:
        """Every prefix's logit; none of a model that writes."""
        return [] if self.model.writes else self.prefixes["logit"].tolist()

    def logit_ends(self) -> Iterator[float]:
        """Every sum of parts of the logit; none without a residual stream."""
        if self.has_residual_stream:
            yield from self.steps[["start", "end"]].to_numpy().ravel().tolist()

    def reaches(self) -> dict[str, float]:
        """The greatest value of each recurrent state; of what is not recurrent none."""
        if not self.has_units:
            return {}
        values = {"state": self.units.states, **self.units.gates}
        return {name: float(abs(states).max()) for name, states in values.items() if states.size}
