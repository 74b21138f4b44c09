"""One run's model after every stored epoch, and what strings do in it, by letter counts.

Equal letters have equal states, so a string is read as `CLS` and every letter of the alphabet once,
with how often it occurs; a letter that does not occur has the states that it would have.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from jaxtyping import Float, Int64

from dashboard import marks
from dashboard.figures.projection import Projection, project
from seqcls.config import RunConfig
from seqcls.errors import UnknownRunError
from seqcls.interpretability.domains import obstacle
from seqcls.interpretability.trained_model import TrainedModel
from seqcls.problem import Problem
from seqcls.questions import RunModel
from seqcls.strings.alphabets import CLS_NAME
from sweeps.api import Store, reading
from sweeps.api.models import trained_model, untrained_model

States = Mapping[str, np.ndarray]
"""States of strings by their names: string first, then head, then token type."""

BLOCK = "blocks.0."


@dataclass(frozen=True, eq=False)
class Epochs:
    """Strings through a run's model at every stored epoch, 0 being before training."""

    models: Mapping[int, RunModel]
    """By epoch, in order."""
    kept_epoch: int
    """The epoch whose model was stored and tested."""
    shown: int
    """The epoch of which figures are drawn; their limits are those of all."""
    strings: tuple[str, ...]
    losses: pd.DataFrame
    """epoch, train_loss, validation_loss: sums over an epoch's strings, in nats."""

    @property
    def model(self) -> RunModel:
        """The model of the epoch that is shown."""
        return self.models[self.shown]

    @property
    def config(self) -> RunConfig:
        """Its configuration."""
        return self.model.config

    @cached_property
    def tokens(self) -> tuple[str, ...]:
        """The token types: `CLS` and the letters."""
        return (CLS_NAME, *self.model.tokenizer.alphabet)

    @cached_property
    def counts(self) -> Int64[np.ndarray, "string letter"]:
        """Count of each letter in each string.

        Raises:
            InvalidStringError: a string that is not of the model's alphabet.
        """
        rows = [self.model.tokenizer.counts(string) for string in self.strings]
        return np.array(rows, dtype=np.int64).reshape(len(rows), self.model.num_letters)

    @cached_property
    def attended(self) -> Float[np.ndarray, "string token_type"]:
        """Count of each token type that can be attended to."""
        # `CLS` begins every string, and so occurs once where it may be attended to.
        cls = np.full((len(self.counts), 1), float(not self.config.no_attend_cls))
        return np.concatenate([cls, self.counts], axis=1)

    @cached_property
    def states(self) -> Mapping[int, States]:
        """All states of the strings, by epoch."""
        return {epoch: states_by_counts(x, self.counts) for epoch, x in self.models.items()}

    @property
    def now(self) -> States:
        """Those of the epoch that is shown."""
        return self.states[self.shown]

    def classifier(self, epoch: int) -> Float[np.ndarray, " hidden"]:
        """The direction in which the classifier's logit grows."""
        return np.asarray(self.models[epoch].weights["classifier.weight"][0], dtype=np.float64)

    @cached_property
    def outcomes(self) -> list[str]:
        """Outcome of each string: `false negative` and the like."""
        answers = (self.now["logit"] > 0).tolist()
        labels = self.model.problem.count_task.labels_of_counts(self.counts).tolist()
        return list(map(marks.answer_color, labels, answers))

    def projection(
        self,
        states: Sequence[Float[np.ndarray, "state hidden"]],
        name: str = "dimension",
        towards: Float[np.ndarray, " hidden"] | None = None,
    ) -> Projection:
        """Projects the states of each epoch, in order."""
        return project(states, list(self.models).index(self.kept_epoch), name, towards)


def are_figures_by_counts(problem: Problem) -> bool:
    """Returns True if the model is one block by letter counts, read at `CLS`."""
    network = problem.network
    block = (network.num_blocks, network.readout, network.norm_placement)
    # The figures' formulas are those of this block: no biases, and scores over a square root.
    is_plain = not network.biases and not network.final_norm
    is_drawn = is_plain and block == (1, "first", "pre") and network.attention_scale == "sqrt"
    return is_drawn and obstacle(problem, "labels") is None


def through_epochs(
    store: Store, run: int, strings: Sequence[str], shown: int | None = None
) -> Epochs:
    """Runs strings through a run's model at every stored epoch, the untrained one included.

    Args:
        store: the database.
        run: the run's id.
        strings: in the usual notation.
        shown: the epoch of which figures are drawn; by default the tested one.

    Raises:
        UnknownRunError: there is no such run, or no weights of that epoch are stored.
        StoreError: weights are damaged.
    """
    # A damaged run is refused.
    run, models = reading.find_run(store, run), dict[int, RunModel]()
    with store.read():
        reading.check_done(store, run, "has no model to look into")
        epochs, losses = reading.stored_epochs(store, run), reading.epochs(store, run)
        # Nothing is known of a model that was trained elsewhere from before.
        if not reading.run_config(store, run).is_loaded:
            models[0] = untrained_model(store, run)
        models |= {epoch: trained_model(store, run, epoch) for epoch in sorted(epochs)}
    shown = epochs[-1] if shown is None else shown
    if shown not in models:
        known = ", ".join(map(str, models))
        raise UnknownRunError(
            f"run {run} has no weights of epoch {shown}; there are those of {known}"
        )
    # A string that is typed twice is drawn once.
    strings = tuple(dict.fromkeys(strings))
    return Epochs(models, epochs[-1], shown, strings, losses)


def states_by_counts(
    model: TrainedModel, counts: Int64[np.ndarray, "string letter"]
) -> dict[str, np.ndarray]:
    """All states of strings of a one-block model, by their names within the block.

    Scores of attention are those of one token of each type, weights those of all its tokens.
    """
    # Imported where it is used: PyTorch takes a second or two to load.
    from seqcls.interpretability.readable_model import from_counts, states

    found = states(model, from_counts(model, counts))
    return {name.removeprefix(BLOCK): state.numpy() for name, state in found.items()}
