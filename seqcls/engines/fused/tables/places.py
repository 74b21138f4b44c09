"""What places do to one block that is read at one of them, in NumPy; PyTorch is not loaded.

Places are counted from the reader's, whose own comes first: those of the letters follow in the
order of their distance. The definitions are those of `seqcls.models.positions`, and tested so.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int64

from seqcls.config import NetworkConfig
from seqcls.engines.fused.learned import learned_places
from seqcls.models.positions.numbers import (
    angles,
    buckets,
    drawn_places,
    slopes,
    tested_places,
    waves,
)

SINUSOIDAL, LEARNT, ROTARY, ALIBI, RELATIVE = range(5)
SCHEMES = {
    "sinusoidal": SINUSOIDAL,
    "learned": LEARNT,
    "rotary": ROTARY,
    "alibi": ALIBI,
    "relative": RELATIVE,
}
ADDED = ("sinusoidal", "learned")
"""Those that add to the embedding, so that keys and values depend on the place as well."""


class Places(NamedTuple):
    """What the places of some batches, or of one for all, do; the unused one of the two is empty.

    By scheme, for place 0 (the reader's) and those of the letters:
    """

    numbers: Float[np.ndarray, "batch number place"]
    """`sinusoidal`: what is added; `rotary`: cosines, then sines, of the angles from the reader;
    `alibi`: each head's bias."""
    rows: Int64[np.ndarray, "batch place"]
    """`learned`, `relative`: the row of the learned table."""


def places_of(config: NetworkConfig, places: Int64[np.ndarray, "batch place"]) -> Places:
    """What tokens at these places do, the reader's place first."""
    no_numbers = np.zeros((len(places), 0, places.shape[1]), config.precision)
    no_rows = np.zeros((len(places), 0), np.int64)
    distances = places - places[:, :1]
    if config.positions == "learned":
        # Beyond the table there is only padding: strings that are longer are not asked about.
        return Places(no_numbers, np.minimum(places, learned_places(config)[0] - 1))
    if config.positions == "relative":
        both = config.attention_mask == "full"
        return Places(no_numbers, buckets(distances, both_directions=both))
    numbers = {"sinusoidal": _waves, "rotary": _turns, "alibi": _biases}[config.positions](
        config, places if config.positions == "sinusoidal" else distances
    )
    return Places(np.ascontiguousarray(numbers, config.precision), no_rows)


def fixed_places(config: NetworkConfig, letters: int) -> Int64[np.ndarray, "1 place"]:
    """One place after another; read at the end, distances from there."""
    sign = -1 if config.readout == "last" else 1
    return sign * np.arange(letters + 1)[None]


def training_places(
    config: NetworkConfig, rng: np.random.Generator, letters: list[int], most: int
) -> Int64[np.ndarray, "batch place"]:
    """The places of batches whose longest strings have so many letters, drawn one by one."""
    places = np.zeros((len(letters), most + 1), np.int64)
    for row, length in zip(places, letters, strict=True):
        row[: length + 1] = drawn_places(rng, config.position_range, length + 1)
    return places


def testing_places(config: NetworkConfig, letters: int) -> Int64[np.ndarray, "1 place"]:
    """The places of every string of so many letters when nothing is learned."""
    return tested_places(config.position_range, config.place_seed, letters + 1)[None]


def _waves(config: NetworkConfig, places: np.ndarray) -> np.ndarray:
    return waves(places, config.hidden_size).swapaxes(1, 2)


def _turns(config: NetworkConfig, distances: np.ndarray) -> np.ndarray:
    turned = angles(distances, config.attention_head_size).swapaxes(1, 2)
    return np.concatenate([np.cos(turned), np.sin(turned)], axis=1)


def _biases(config: NetworkConfig, distances: np.ndarray) -> np.ndarray:
    slope: np.ndarray = np.array(slopes(config.num_attention_heads))
    biases: np.ndarray = -np.abs(distances)[:, None, :] * slope[:, None]
    return biases
