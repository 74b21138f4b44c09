"""Which of a configuration's fields say anything about its models."""

from functools import lru_cache

from seqcls.config import PARTS, RunConfig
from seqcls.data import strings_read
from seqcls.models import MODELS, OF_ATTENTION, RECURRENT
from seqcls.models.positions import POSITIONS
from seqcls.sampling import SAMPLERS
from seqcls.tasks import TASKS


@lru_cache(maxsize=4096)
def fields_unread(config: RunConfig) -> frozenset[str]:
    """The fields that change nothing: of another language, sampler or architecture than its own.

    An LSTM has no heads, and `parity` no required letters, whatever stands in these fields.
    """
    read = {"train_sampler", "validation_sampler", "test_sampler"}
    for part in PARTS:
        read |= set(strings_read(config, part))
    read |= read_by_network(config.architecture, config.positions)
    return _read_by_some() - read


def read_by_network(architecture: str, positions: str) -> frozenset[str]:
    """The fields that a network of this kind reads and another may not."""
    read = MODELS[architecture].reads
    if architecture not in RECURRENT:
        read |= OF_ATTENTION
    if "positions" in read:
        read |= POSITIONS[positions].reads
    return read


@lru_cache(maxsize=1)
def _read_by_some() -> frozenset[str]:
    """The fields that some read and others do not."""
    fields = set(read_by_some_networks())
    for task in TASKS.values():
        fields |= task.reads
    for sampler in SAMPLERS.values():
        own = frozenset(sampler.reads).union(*sampler.reads_of_part.values())
        fields |= {x for name in own for x in (name, *(f"{part}_{name}" for part in PARTS))}
    return frozenset(fields & set(RunConfig.model_fields))


def read_by_some_networks() -> frozenset[str]:
    """The fields that some networks read and others do not."""
    return OF_ATTENTION.union(*(x.reads for x in (*MODELS.values(), *POSITIONS.values())))
