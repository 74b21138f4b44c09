"""Training and answering with recurrent networks."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from seqcls.config import NetworkConfig
from seqcls.engines.compiled.training import Flat, Update
from seqcls.engines.lanes.groups import (
    Groups,
    Strings,
    answering_groups,
    epoch_groups,
    validation_groups,
)
from seqcls.engines.lanes.packing import PackedProgram, pack, vectors
from seqcls.engines.lanes.recurrent.kernel import run
from seqcls.engines.lanes.recurrent.sizes import parameters_of, sizes_of, slots_of, states_of
from seqcls.engines.lanes.vectors.target import lanes
from seqcls.problem import Problem
from seqcls.results import Weights
from seqcls.tokens.strings import TokenStrings

GROUPS = 8
"""Groups that are answered together: enough to make use of each weight that is loaded."""


class RecurrentProgram(PackedProgram):
    """One member's epochs and validation."""

    def __init__(self, problem: Problem) -> None:
        network = problem.network
        super().__init__(network, slots_of(network), parameters_of(network).size)
        self._train = problem.train
        self._scaled = problem.config.train_loss == "sigmoid_scaled"
        self._validation = validation_groups(self._network.readout, problem.validation, GROUPS)

    def epoch(
        self, flat: Flat, moments: np.ndarray, steps: int, update: Update, number: int
    ) -> tuple[float, int]:
        """Implements `Program.epoch`."""
        groups = epoch_groups(self._network.readout, self._train, number)
        loss, _ = answered(self._network, flat, groups, moments, steps, update, self._scaled)
        return loss, len(groups.strings.ends)

    def validation(self, flat: Flat) -> tuple[float, bool]:
        """Implements `Program.validation`."""
        return answered(self._network, flat, self._validation, scaled=self._scaled)[0], False


def answered(
    network: NetworkConfig,
    flat: Flat,
    groups: Groups,
    moments: np.ndarray | None = None,
    steps: int = 0,
    update: Update | None = None,
    scaled: bool = False,
) -> tuple[float, Float[np.ndarray, "group lane"]]:
    """The sum of the losses of strings and their logits; trains on them if moments are given."""
    training = moments is not None
    sizes = sizes_of(network, scaled_loss=scaled)
    strings = groups.strings
    at = states_of(sizes, *most_rows(strings))
    logits = np.empty(strings.targets.shape, np.float32)
    table = np.zeros(sizes.gates * sizes.type_width, np.float32)
    loss: float = run(
        training,
        flat,
        np.zeros_like(flat) if training else flat[:0],
        np.zeros((2, 0), np.float32) if moments is None else moments,
        steps,
        Update(0.0, 0.0, 0.0) if update is None else update,
        sizes,
        parameters_of(network),
        at,
        vectors(at.size, lanes()),
        groups.strings,
        table,
        np.zeros_like(table),
        logits,
    )
    return loss, logits


def most_rows(strings: Strings) -> tuple[int, int]:
    """The most that a batch has: tokens of all its groups, and groups."""
    sums = np.concatenate([[0], np.cumsum(strings.lengths.max(axis=1))])
    starts = np.concatenate([[0], strings.ends[:-1]])
    rows = int((sums[strings.ends] - sums[starts]).max(initial=0))
    return rows, int((strings.ends - starts).max(initial=0))


def recurrent_logits(
    network: NetworkConfig, weights: Sequence[Weights], strings: TokenStrings
) -> Float[np.ndarray, "member string"]:
    """Logits of models of one shape."""
    groups = answering_groups(network.readout, strings, GROUPS)
    slots, size = slots_of(network), parameters_of(network).size
    rows = [answered(network, pack(slots, size, x), groups)[1] for x in weights]
    return np.stack([logits.reshape(-1)[groups.places] for logits in rows])
