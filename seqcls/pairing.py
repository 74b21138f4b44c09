"""Pairing of configurations whose models of one seed start from the same weights."""

from seqcls.config import RunConfig
from seqcls.fields import WITHOUT_PARAMETERS, fields_unread
from seqcls.problem import resolve

_DRAWS_NOTHING = frozenset(
    {
        *("no_attend_cls", "dropout_rate", "precision", "attention_mask", "readout", "activation"),
        *("attention_scale", "norm_placement", "eigenvalue_range", "place_seed"),
    }
)
"""Settings of a network that change neither its parameters' shapes nor their initial values."""

_ONLY_PLACES = frozenset(
    {"positions", "position_draw", "position_range", "trained_length", "tested_length"}
)
"""Settings that change them only if a position scheme has parameters."""


def differing_starts(a: RunConfig, b: RunConfig) -> list[str]:
    """Returns the settings by which models of one seed of two configurations start differently.

    Empty if a seed gives both the same initial values, and training strings of one seed.

    Raises:
        ConfigError: a configuration cannot be resolved here.
    """
    networks = [resolve(config).network for config in (a, b)]
    # Settings that neither reads make no difference.
    nothing = _DRAWS_NOTHING | (fields_unread(a) & fields_unread(b))
    if any(network.attention_scale == "learned_log_length" for network in networks):
        # It has parameters.
        nothing -= {"attention_scale"}
    if all(network.positions in WITHOUT_PARAMETERS for network in networks):
        nothing |= _ONLY_PLACES
    first, second = (network.model_dump() for network in networks)
    apart = [name for name in first if name not in nothing and first[name] != second[name]]
    return apart + ["train_seed"] * (a.train_seed != b.train_seed)
