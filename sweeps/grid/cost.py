"""What training costs, roughly and in no unit: enough to order groups and to scale what was
measured.
"""

from seqcls.config import RunConfig
from seqcls.data import check, network_of, sampler_of
from seqcls.engines.choice import choose_engine, engine_named
from seqcls.errors import ConfigError

PER_STRING = 100.0
"""Multiply-adds that take as long as what a string costs beside its products, by letter counts."""

PER_TOKEN = 60.0
"""Likewise for a token, where tokens are read one by one."""

_GATES = {"rnn": 1, "gru": 3, "lstm": 4}


def is_here(config: RunConfig) -> bool:
    """Whether all parts of a stored configuration are installed, a plug-in's among them."""
    try:
        check(config)
    except ConfigError:
        return False
    return True


def training_strings(config: RunConfig) -> int:
    """How many strings one epoch has."""
    return sampler_of(config, "train").epoch_size


def engine_of(config: RunConfig) -> str:
    """The name of the engine that trains a configuration where none is asked for."""
    return choose_engine(config).name


def cost_of_training(config: RunConfig) -> float:
    """What a member's training takes, comparable between configurations of one engine.

    By letter counts a string costs the same however long it is; otherwise each of its tokens
    passes every block, and attends to every other.
    """
    counted = engine_named(engine_of(config)).by_counts
    per_string = _of_counts(config) if counted else _of_tokens(config)
    return config.max_num_epochs * training_strings(config) * per_string


def _of_counts(config: RunConfig) -> float:
    mixed = config.num_attention_heads * config.attention_head_size
    hidden, inner = config.hidden_size, config.feed_forward_size
    first = mixed * (network_of(config).num_letters + hidden) + 2 * inner * hidden
    return config.num_blocks * (PER_STRING + first)


def _of_tokens(config: RunConfig) -> float:
    hidden, tokens = config.hidden_size, mean_length(config) + 1
    if config.architecture != "transformer":
        each = 2.0 * _GATES.get(config.architecture, 1) * hidden**2
    else:
        mixed = config.num_attention_heads * config.attention_head_size
        each = 4 * mixed * hidden + 2 * config.feed_forward_size * hidden + 2 * mixed * tokens
    return config.num_blocks * tokens * (PER_TOKEN + each)


def mean_length(config: RunConfig) -> float:
    """Tokens of a training string, about half way from the shortest to the longest."""
    lengths = sampler_of(config, "train").lengths
    return (lengths[0] + lengths[-1]) / 2
