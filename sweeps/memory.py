"""How much memory training takes at least, and how much this machine has."""

from collections.abc import Iterable
from pathlib import Path

import psutil

from seqcls.config import RunConfig
from seqcls.data import network_of

_BYTES = {"float32": 4, "float64": 8}
_LIMIT_OF_GROUP = Path("/sys/fs/cgroup/memory.max")
"""Where Linux says how much a container may have."""

COPIES = 4
"""The member in training: its values, their gradient, and two moments of each."""

COPIES_A_MEMBER = 2
"""Of every member of a group: its initial values, and those of its best epoch."""


def parameter_bytes(config: RunConfig) -> int:
    """The bytes of one model's parameters, those of positions aside; roughly, where it recurs."""
    network = network_of(config)
    hidden, blocks = network.hidden_size, network.num_blocks
    if network.architecture == "transformer":
        heads = network.num_attention_heads * network.attention_head_size
        rows = 4 * heads + 2 * network.feed_forward_size
        if network.has_norms:
            rows += 4 if network.layer_norm == "nn" else 2
    else:
        # As many as the largest recurrent layer has, whose four gates read input and state.
        rows = 8 * hidden
    rows = blocks * rows + network.vocabulary_size + 1
    return rows * hidden * _BYTES[network.precision]


def training_bytes(config: RunConfig, members: int = 1) -> int:
    """What the values alone take in training so many members together, in bytes."""
    return parameter_bytes(config) * (COPIES + COPIES_A_MEMBER * members)


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
