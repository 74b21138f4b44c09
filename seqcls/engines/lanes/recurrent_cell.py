"""Recurrent networks as programs take them, those that write among them."""

from typing import Any

import numpy as np

from seqcls.config import NetworkConfig
from seqcls.engines.compiled.engine import Flat
from seqcls.engines.lanes.batches import Blank, LaneStrings
from seqcls.engines.lanes.loss import OutputBuffers
from seqcls.engines.lanes.packing import vectors
from seqcls.engines.lanes.program import LaneCell
from seqcls.engines.lanes.recurrent_kernel import run
from seqcls.engines.lanes.recurrent_outputs import run_outputs, write
from seqcls.engines.lanes.recurrent_sizes import (
    RecurrentSizes,
    RecurrentStates,
    parameters_of,
    sizes_of,
    slots_of,
    states_of,
)
from seqcls.engines.lanes.vector import lanes
from seqcls.strings.token_strings import TokenStrings


class RecurrentCell(LaneCell):
    """A recurrent network as compiled code takes it."""

    groups = 8  # Enough to make use of each weight that is loaded.
    run = staticmethod(run)
    run_outputs = staticmethod(run_outputs)

    def __init__(self, network: NetworkConfig) -> None:
        super().__init__(network, slots_of(network), parameters_of(network))

    def sizes(self, *, scaled_loss: bool) -> RecurrentSizes:
        return sizes_of(self.network, scaled_loss=scaled_loss)

    def states(
        self, sizes: RecurrentSizes, strings: LaneStrings, *, training: bool
    ) -> RecurrentStates:
        return states_of(sizes, *most_rows(strings), training=training)

    def own_arguments(self) -> tuple[Any, ...]:
        sizes = self.sizes(scaled_loss=False)
        table = np.zeros(sizes.gates * sizes.type_width, np.float32)
        return table, np.zeros_like(table)

    def write(
        self,
        flat: Flat,
        sizes: RecurrentSizes,
        blank: Blank,
        inputs: TokenStrings,
        outputs: OutputBuffers,
    ) -> None:
        groups = min(self.groups, len(blank.begins))
        at = states_of(sizes, groups, groups, training=True)
        kept = 2 * sizes.layers * groups * (sizes.width + 1)
        write(
            flat,
            sizes,
            self.parameters,
            at,
            at.size,
            groups,
            vectors(at.size + kept, lanes()),
            outputs,
            np.zeros(sizes.gates * sizes.type_width, np.float32),
        )


def most_rows(strings: LaneStrings) -> tuple[int, int]:
    """The most that a batch has: tokens of all its groups, and groups."""
    sums = np.concatenate([[0], np.cumsum(strings.lengths.max(axis=1))])
    starts = np.concatenate([[0], strings.ends[:-1]])
    rows = int((sums[strings.ends] - sums[starts]).max(initial=0))
    return rows, int((strings.ends - starts).max(initial=0))
