"""How much memory training takes at least, and how much this machine has."""

from collections.abc import Iterable
from pathlib import Path

import psutil

from seqcls.config import NetworkConfig, RunConfig
from sweeps.grouping import training_strings

_BYTES = {"float32": 4, "float64": 8}
_LIMIT_OF_GROUP = Path("/sys/fs/cgroup/memory.max")
"""Where Linux says how much a container may have."""

COPIES = 4
"""The member in training: its values, their gradient, and two moments of each."""

COPIES_A_MEMBER = 2
"""Of every member of a group: its initial values, and those of its best epoch."""


def parameter_bytes(config: NetworkConfig) -> int:
    """The bytes of one model's parameters."""
    hidden, inner = config.hidden_size, config.feed_forward_size
    heads = config.num_attention_heads * config.attention_head_size
    rows = config.vocabulary_size + 4 * heads + 2 * inner + 1
    if config.has_norms:
        rows += 4 if config.layer_norm == "nn" else 2
    return rows * hidden * _BYTES[config.precision]


def training_bytes(config: RunConfig, members: int = 1) -> int:
    """What training so many members together takes at least, in bytes: values and strings."""
    values = parameter_bytes(config) * (COPIES + COPIES_A_MEMBER * members)
    lengths = [config.longest_train_length, config.validation_max_length, config.test_max_length]
    sizes = [training_strings(config), config.validation_size, config.test_size]
    # A token is a byte, and every string begins with CLS.
    return values + sum(size * (own + 1) for size, own in zip(sizes, lengths, strict=True))


def machine_bytes() -> int:
    """All the memory of this machine, or of the container, in bytes."""
    machine = int(psutil.virtual_memory().total)
    try:
        return min(machine, int(_LIMIT_OF_GROUP.read_text()))
    except (OSError, ValueError):
        # No container, or one without a limit, which reads `max`.
        return machine


def shortage(config: RunConfig, members: int = 1) -> str | None:
    """Why this machine cannot train so many members together; None where it may be able to."""
    needed, there = training_bytes(config, members), machine_bytes()
    if needed <= there:
        return None
    return f"training takes at least {_readable(needed)} of memory, and this machine has " + (
        f"{_readable(there)}; lower the sizes"
    )


def warning(configs: Iterable[RunConfig], workers: int = 1) -> str | None:
    """What to say of configurations that this many processes cannot train at once here."""
    largest = max(configs, key=training_bytes, default=None)
    if largest is None:
        return None
    needed, there = training_bytes(largest), machine_bytes()
    if needed * workers <= there:
        return None
    # Fewer processes help, where one of them has room.
    advice = "use fewer --workers" if needed <= there else "such runs fail; lower the sizes"
    return (
        f"the largest model takes at least {_readable(needed)} of memory to train, and this "
        f"machine has {_readable(there)}: {advice}"
    )


def _readable(number: int) -> str:
    return f"{number / 1e9:,.1f} GB"
