"""One run's model after every stored epoch: its losses, and what strings do in each epoch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import altair as alt
import numpy as np
import pandas as pd

from dashboard.charts.colors import GREY, INK, OKABE_ITO
from dashboard.charts.scales import LOG_AXIS, SIDE, Drawing, class_color, outcome, reserve_height
from dashboard.figures.figure import Projection, project
from seqcls.config import RunConfig
from seqcls.interpretability.network import Network
from seqcls.interpretability.states_by_counts import Activations, activations
from seqcls.problem import resolve
from sweeps.api.reading import StoredModel, of_run

PARTS = {"training": OKABE_ITO[0], "validation": OKABE_ITO[1]}
HEIGHT = 300


def losses(frame: pd.DataFrame, kept_epoch: int | None, shown_epoch: int) -> Drawing:
    """Loss on a log scale, with rules at the kept epoch and at the one that is shown.

    Args:
        frame: epoch, part (`training` or `validation`), loss (mean nats a string), sum (nats).
        kept_epoch: the epoch whose model is kept and tested.
        shown_epoch: the epoch of the other figures; 0 is before training.
    """
    drawn = frame[frame["loss"] > 0]  # a logarithm needs more than zero
    lines = (
        alt.Chart(drawn)
        .mark_line(point=True)
        .encode(
            x=alt.X(
                "epoch:Q",
                title="Epoch",
                scale=alt.Scale(domain=[0, int(frame["epoch"].max())], nice=False),
                axis=alt.Axis(tickMinStep=1, format="d"),
            ),
            y=alt.Y(
                "loss:Q",
                title="Loss (mean nats per string, log)",
                scale=alt.Scale(type="log"),
                axis=alt.Axis(**LOG_AXIS),
            ),
            color=class_color("part", PARTS, "Loss on"),
            tooltip=[
                alt.Tooltip("epoch:Q", title="Epoch"),
                alt.Tooltip("part:N", title="Loss on"),
                alt.Tooltip("loss:Q", title="Mean (nats per string)", format=".6g"),
                alt.Tooltip("sum:Q", title="Sum (nats)", format=".6g"),
            ],
        )
    )
    return alt.layer(lines, *_marks(kept_epoch, shown_epoch)).properties(
        width=2 * SIDE, height=HEIGHT, title="Loss by epoch", **reserve_height(HEIGHT)
    )


def kept_sentence(config: RunConfig) -> str:
    """Which epoch's model is kept, and what is said of one that ended early."""
    if not config.stop_when_right:
        return "The model of the epoch with the lowest validation loss is kept and tested."
    said = (
        "Training ends with the first model that is right on all validation strings of trained "
        "lengths, and keeps it; where none is, that with the lowest validation loss is kept."
    )
    if config.check_every:
        said += " The last epoch may have ended early: its mean is that of the strings seen."
    return said


def _marks(kept_epoch: int | None, shown_epoch: int) -> list[alt.Chart]:
    marks = [{"epoch": shown_epoch, "label": "shown", "place": "bottom"}]
    if kept_epoch is not None:
        marks.append({"epoch": kept_epoch, "label": "kept", "place": "top"})
    frame = pd.DataFrame(marks)
    rules = alt.Chart(frame).mark_rule(color=GREY, strokeDash=[4, 4]).encode(x="epoch:Q")
    labels = [
        alt.Chart(frame[frame["place"] == place])
        .mark_text(align="left", dx=4, dy=dy, color=INK)
        .encode(x="epoch:Q", y=alt.value(y), text="label:N")
        for place, y, dy in (("top", 0, 8), ("bottom", "height", -8))
    ]
    return [rules, *labels]


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
        if with_initial and not stored.config.is_loaded:
            # Imported where it is used: it loads PyTorch.
            from seqcls.engines.member import draw_initial

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
