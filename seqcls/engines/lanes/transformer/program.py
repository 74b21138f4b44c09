"""Training and answering with Transformers."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from seqcls.caching.remembered import remembered
from seqcls.config import NetworkConfig
from seqcls.engines.compiled.training import Flat, Update
from seqcls.engines.lanes.groups import Groups, answering_groups, epoch_groups, validation_groups
from seqcls.engines.lanes.packing import PackedProgram, pack, vectors
from seqcls.engines.lanes.transformer.kernel import Places, run
from seqcls.engines.lanes.transformer.sizes import (
    parameters_of,
    score_factor,
    sizes_of,
    slots_of,
    states_of,
)
from seqcls.engines.lanes.transformer.tables import make_places
from seqcls.engines.lanes.vectors.target import lanes
from seqcls.models.positions.numbers import drawn_places, tested_places, training_generator
from seqcls.problem import Problem
from seqcls.results import Weights
from seqcls.tokens.strings import TokenStrings

GROUPS = 64
"""Groups of a batch that is answered: any number, since each goes through the network alone."""


def _alike(network: NetworkConfig) -> bool:
    """Whether the strings of a group have to be of one length, whose places are drawn for it."""
    return network.position_range > 0


class TransformerProgram(PackedProgram):
    """One member's epochs and validation."""

    def __init__(self, problem: Problem) -> None:
        network = problem.network
        super().__init__(network, slots_of(network), parameters_of(network).size)
        self._train = problem.train
        self._scaled = problem.config.train_loss == "sigmoid_scaled"
        self.rng = training_generator(problem.config.train_seed)
        self._validation = validation_groups(
            self._network.readout, problem.validation, GROUPS, alike=_alike(self._network)
        )
        self._validation_places = answering_places(self._network, self._validation)

    def epoch(
        self, flat: Flat, moments: np.ndarray, steps: int, update: Update, number: int
    ) -> tuple[float, int]:
        """Implements `Program.epoch`."""
        groups = epoch_groups(self._network.readout, self._train, number)
        loss, _ = answered(
            self._network, flat, groups, self._places(groups), moments, steps, update, self._scaled
        )
        return loss, len(groups.strings.ends)

    def validation(self, flat: Flat) -> tuple[float, bool]:
        """Implements `Program.validation`."""
        strings, places = self._validation, self._validation_places
        return answered(self._network, flat, strings, places, scaled=self._scaled)[0], False

    def _places(self, groups: Groups) -> Places:
        strings = groups.strings
        count, tokens, _ = strings.ids.shape
        if not self._network.position_range:
            return fixed_places(self._network, count, tokens)
        starts = np.concatenate([[0], strings.ends[:-1]])
        # The longest strings of a batch stand in its first group.
        longest = strings.lengths[starts].max(axis=1).tolist()
        assert self.rng is not None
        drawn = [drawn_places(self.rng, self._network.position_range, x) for x in longest]
        rows = np.repeat(np.arange(len(drawn)), np.diff(strings.ends, prepend=0))
        return make_places(self._network, rows, drawn, tokens)


@remembered
def fixed_places(network: NetworkConfig, groups: int, tokens: int) -> Places:
    """The places of tokens one after another, the same for all groups."""
    return make_places(network, np.zeros(groups, np.int64), [np.arange(tokens)], tokens)


def answering_places(network: NetworkConfig, groups: Groups) -> Places:
    """The places of strings when nothing is learned."""
    count, tokens, _ = groups.strings.ids.shape
    if not network.position_range:
        return fixed_places(network, count, tokens)
    # All strings of a group have the same length.
    lengths = groups.strings.lengths.max(axis=1)
    known, rows = np.unique(lengths, return_inverse=True)
    drawn = [
        tested_places(network.position_range, network.place_seed, length)
        for length in known.tolist()
    ]
    return make_places(network, rows.astype(np.int64), drawn, tokens)


def answered(
    network: NetworkConfig,
    flat: Flat,
    groups: Groups,
    places: Places,
    moments: np.ndarray | None = None,
    steps: int = 0,
    update: Update | None = None,
    scaled: bool = False,
) -> tuple[float, Float[np.ndarray, "group lane"]]:
    """The sum of the losses of strings and their logits; trains on them if moments are given."""
    training = moments is not None
    sizes = sizes_of(network, scaled_loss=scaled)
    at = states_of(sizes, groups.strings.ids.shape[1], training=training)
    logits = np.empty(groups.strings.targets.shape, np.float32)
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
        places,
        np.float32(score_factor(network)),
        logits,
    )
    return loss, logits


def transformer_logits(
    network: NetworkConfig, weights: Sequence[Weights], strings: TokenStrings
) -> Float[np.ndarray, "member string"]:
    """Logits of models of one shape."""
    groups = answering_groups(network.readout, strings, GROUPS, alike=_alike(network))
    places = answering_places(network, groups)
    slots, size = slots_of(network), parameters_of(network).size
    rows = [answered(network, pack(slots, size, x), groups, places)[1] for x in weights]
    return np.stack([logits.reshape(-1)[groups.places] for logits in rows])
