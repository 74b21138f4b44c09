"""One run's model after every stored epoch, and what strings do in each of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from dashboard.charts.style.encodings import outcome
from dashboard.figures.projection import Projection, project
from seqcls.config import RunConfig
from seqcls.interpretability.model.network import Network
from seqcls.interpretability.states.by_counts import Activations, activations
from seqcls.problem import resolve
from sweeps.store.reading.models import StoredModel, of_run


@dataclass(frozen=True, eq=False)
class History:
    """A run's parameters at every epoch that is stored, 0 being those before training."""

    config: RunConfig
    networks: Mapping[int, Network]
    """By epoch, in order."""
    kept_epoch: int
    losses: pd.DataFrame
    """epoch, train_loss, validation_loss: sums over an epoch's strings, in nats."""

    @classmethod
    def of(cls, stored: StoredModel, *, with_initial: bool = False) -> "History":
        """The history of a stored run, from before its training if that is asked for.

        The initial parameters are drawn from the model seed, for which PyTorch is loaded.

        Raises:
            StoreError: the weights are damaged.
        """
        networks = {}
        if with_initial:
            # Imported where it is used: it loads PyTorch.
            from seqcls.engines.initial import draw_initial

            (initial,) = draw_initial([(resolve(stored.config), stored.model_seed)])
            networks[0] = Network.of(resolve(stored.config), initial)
        for epoch, weights in stored.weights.items():
            with of_run(stored.run_id):
                networks[epoch] = Network.of(resolve(stored.config), weights)
        return cls(stored.config, networks, stored.kept_epoch, stored.losses)

    def through(self, strings: Sequence[str]) -> "Traces":
        """What these strings do at every epoch.

        Raises:
            InvalidStringError: a string that is not of the model's alphabet.
        """
        states = {epoch: activations(net, strings) for epoch, net in self.networks.items()}
        return Traces(self, tuple(strings), states)


def losses_by_part(config: RunConfig, losses: pd.DataFrame) -> pd.DataFrame:
    """One row an epoch and part: epoch, part, loss (mean nats a string), sum (nats).

    Args:
        config: of the run.
        losses: epoch, train_loss, validation_loss: sums over an epoch's strings, in nats.
    """
    columns = {"training": ("train_loss", "train"), "validation": ("validation_loss", "validation")}
    frames = [
        pd.DataFrame(
            {
                "epoch": losses["epoch"],
                "part": part,
                "loss": losses[column] / resolve(config).sampler(drawn_by).epoch_size,
                "sum": losses[column],
            }
        )
        for part, (column, drawn_by) in columns.items()
    ]
    return pd.concat(frames, ignore_index=True)


@dataclass(frozen=True, eq=False)
class Traces:
    """Strings through a run's model at every epoch."""

    history: History
    strings: tuple[str, ...]
    states: Mapping[int, Activations]
    """By epoch."""

    @cached_property
    def tokens(self) -> tuple[str, ...]:
        return self.states[self.history.kept_epoch].token_types

    @cached_property
    def positive(self) -> np.ndarray:
        """Which strings are in the language."""
        counts = self.states[self.history.kept_epoch].counts[:, 1:]
        return resolve(self.history.config).count_task.labels_of_counts(counts)

    def outcomes(self, epoch: int) -> list[str]:
        """What the model of an epoch makes of each string: `false negative` and the like."""
        answers = (self.states[epoch].logit > 0).tolist()
        labels = self.positive.tolist()
        return [outcome(*pair) for pair in zip(labels, answers, strict=True)]

    def projection(
        self,
        states: Sequence[np.ndarray],
        name: str = "dimension",
        towards: np.ndarray | None = None,
    ) -> Projection:
        """How states, shape (state, hidden) for each epoch in order, are drawn at all of them."""
        return project(states, list(self.states).index(self.history.kept_epoch), name, towards)
