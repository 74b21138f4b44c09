"""What training costs, roughly and in no unit: enough to order groups and to scale what was
measured.
"""

from seqcls.config import NetworkConfig
from seqcls.engines.base import Engine
from seqcls.engines.choice import choose_engine, engine_named
from seqcls.models import MODELS
from seqcls.problem import Problem

PER_STRING = 100.0
"""Multiply-adds that take as long as what a string costs beside its products, by letter counts."""

PER_TOKEN = 60.0
"""What costs as much for a token, where tokens are read one by one."""


def engine_of(problem: Problem) -> Engine:
    """The engine that trains a problem's models unless one is chosen."""
    return engine_named(choose_engine(problem).name)


def cost_of_training(problem: Problem) -> float:
    """What a member's training takes, comparable between problems of one engine.

    By letter counts a string costs the same however long it is; otherwise each of its tokens
    passes every block, and attends to every other.
    """
    by_counts = engine_of(problem).by_counts
    per_string = _of_counts(problem.network) if by_counts else _of_tokens(problem)
    return problem.config.max_num_epochs * problem.train.epoch_size * per_string


def _of_counts(network: NetworkConfig) -> float:
    mixed = network.num_attention_heads * network.attention_head_size
    hidden, inner = network.hidden_size, network.feed_forward_size
    first = mixed * (network.num_letters + hidden) + 2 * inner * hidden
    return network.num_blocks * (PER_STRING + first)


def _of_tokens(problem: Problem) -> float:
    network, tokens = problem.network, mean_length(problem) + 1
    products = MODELS[network.architecture].sizes.products(network, tokens)
    read = network.hidden_size * network.num_outputs if problem.writes else 0
    return tokens * (network.num_blocks * (PER_TOKEN + products) + read)


def mean_length(problem: Problem) -> float:
    """Tokens that are read of a training string, about half way from the shortest to the longest;
    where an output is written, with the target.
    """
    lengths = problem.train.lengths
    return sum(problem.kind.longest_reading(problem.task, x) for x in (lengths[0], lengths[-1])) / 2
