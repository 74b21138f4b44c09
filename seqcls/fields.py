"""The fields of a configuration that its models and its test strings depend on."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from inspect import signature
from typing import Any, ClassVar, Literal, get_args, get_origin

import numpy as np
from jaxtyping import Bool, Int64

from seqcls.config import (
    ABOUT,
    ANY_SAMPLER,
    AS_OTHERS,
    AS_TRAINED,
    STRING_PARTS,
    CheckFields,
    RunConfig,
    default_fields,
)
from seqcls.curricula import block_number, frozen_parts, stages_of
from seqcls.errors import ConfigError
from seqcls.kinds import KINDS, kind_name
from seqcls.models import MODELS, settings_of
from seqcls.models.positions import POSITIONS
from seqcls.sampling import SAMPLERS, Sampler
from seqcls.tasks import TASKS, Task
from seqcls.text import canonical_json, nearest

NO_SETTINGS = {"task", "part", "trained"}
"""Arguments of samplers that no field determines."""


@lru_cache(maxsize=1)
def readers() -> Mapping[str, tuple[str, ...]]:
    """Returns the parts, by the fields that name them or `kind`, that may read each field, of
    fields that not every run reads.
    """
    by_part = {
        "task": [read_by_task(task, "test") for task in TASKS.parts()],
        "kind": [kind.reads for kind in KINDS.parts()],
        "architecture": [entry.reads for entry in MODELS.parts()],
        "positions": [entry.reads for entry in POSITIONS.parts()],
        "stop_when_right": [CheckFields.reads],
        **{f"{x}_sampler": [_read_for(y, x) for y in SAMPLERS.values()] for x in STRING_PARTS},
    }
    names = frozenset[str]().union(*(some for own in by_part.values() for some in own))
    return {
        name: tuple(part for part, own in by_part.items() if any(name in some for some in own))
        for name in sorted(names, key=list(ABOUT).index)
    }


def fields_read(config: RunConfig) -> dict[str, frozenset[str]]:
    """Returns the fields that each part of a configuration reads, by the field that names the part
    or `kind`.

    Raises:
        ConfigError: there is no such part.
    """
    task = part_named("task", config.task, TASKS)
    kind = kind_name(task, config.answers)
    part_named("architecture", config.architecture, MODELS)
    positions = part_named("positions", config.positions, POSITIONS)
    read_by_model = settings_of(config)
    read = {
        "task": read_by_task(task, "test"),
        "kind": KINDS[kind].reads if kind in KINDS else frozenset(),
        "architecture": read_by_model,
        "positions": positions.reads if "positions" in read_by_model else frozenset(),
        "stop_when_right": CheckFields.reads if config.stop_when_right else frozenset(),
    }
    for part in STRING_PARTS:
        field = f"{part}_sampler"
        sampler = part_named(field, getattr(config, field), SAMPLERS)
        read[field] = _fields_of(sampler, part, config)
    return read


def read_by_task(task: type[Task], part: str) -> frozenset[str]:
    """Returns the fields that define a task for a part's strings, with those of tests alone, such
    as `test_ignore_share`.
    """
    own = {f"test_{name}" for name in task.reads} if part == "test" else set[str]()
    return task.reads | (own & RunConfig.model_fields.keys())


def strings_read(config: RunConfig, part: str) -> tuple[str, ...]:
    """Returns the fields of a configuration that determine the strings of a part, sorted."""
    sampler: type[Sampler] = part_named(
        f"{part}_sampler", getattr(config, f"{part}_sampler"), SAMPLERS
    )
    task = part_named("task", config.task, TASKS)
    names = {"task", "plugins", f"{part}_sampler", *read_by_task(task, part)}
    names |= {"answers"} & config.changed.keys()
    names |= _fields_of(sampler, part, config)
    if not config.train_lengths:
        # Test sets of configurations older than this field keep their keys.
        names.discard("train_lengths")
    elif part == "train":
        # Stages end at shares of all epochs.
        names.add("max_num_epochs")
    if "disjoint" in names and config.disjoint:
        # Training strings are left out of the part, so they determine it too.
        names |= {"max_num_epochs", *strings_read(config, "train")}
    return tuple(sorted(names))


def _fields_of(sampler: type[Sampler], part: str, config: RunConfig) -> frozenset[str]:
    """Returns the fields of a configuration that a sampler reads for a part."""
    names = _read_for(sampler, part)
    if "test_strings" in names and config.test_strings != "random":
        # Negative ones are uniform, or partners of positive ones.
        return names - {"test_negatives", "negatives", "negative_lengths"}
    return names


def _read_for(sampler: type[Sampler], part: str) -> frozenset[str]:
    names = frozenset(settings_read(sampler, part).values())
    # Tests are drawn by `negatives`, unless they have a value of `test_negatives`.
    return names | {"negatives"} if "test_negatives" in names else names


@lru_cache(maxsize=64)
def settings_read(sampler: type[Sampler], part: str) -> Mapping[str, str]:
    """Returns a sampler's settings, with the fields of a configuration that hold them for a part.

    `max_length` is held by the part's field, such as `test_max_length`, if there is one.
    """
    of_parts = sampler.reads_of_part
    taken = frozenset(signature(sampler).parameters).difference(*of_parts.values(), NO_SETTINGS)
    own = taken | of_parts.get(part, frozenset())
    return {x: f"{part}_{x}" if f"{part}_{x}" in ABOUT else x for x in own}


def check_read(config: RunConfig) -> None:
    """Refuses changed fields without effect, so that equal configurations have one key."""
    read = fields_read(config)
    for name, may_read in readers().items():
        if name not in config.changed or ABOUT[name].alone:
            continue
        if not any(name in read[reader] for reader in may_read):
            named = {**dict(config), "kind": kind_name(TASKS[config.task], config.answers)}
            if name == "num_blocks" and config.layers:
                raise ConfigError(
                    f"num_blocks={config.num_blocks} with layers={config.layers!r}: these are "
                    f"{len(config.layers)} blocks, one for each letter; leave num_blocks out"
                )
            by = ", ".join(f"{reader} {named[reader]!r}" for reader in may_read)
            if name == "test_negatives" and config.test_strings != "random":
                by += f" with test_strings={config.test_strings!r}"
            elif name in ("negatives", "test_negatives"):
                by += f": only {ANY_SAMPLER} lets choose how negative strings are drawn"
            raise ConfigError(f"{name}={config.changed[name]!r}: not read by {by}; leave it out")
    if (stages := stages_of(config.train_lengths)) and stages[-1][0] != config.train_max_length:
        raise ConfigError(
            f"train_lengths={config.train_lengths!r}: ends at length {stages[-1][0]}, and "
            f"train_max_length={config.train_max_length}; let the last stage have that length"
        )
    _check_freeze(config)
    if config.decay != "all" and config.weight_decay == 0:
        raise ConfigError(
            f"decay={config.decay!r}: with weight_decay=0.0 nothing decays; leave it out"
        )
    if config.learning_rate_interval != "epoch" and config.final_learning_rate_factor == 1:
        raise ConfigError(
            f"learning_rate_interval={config.learning_rate_interval!r}: with "
            "final_learning_rate_factor=1.0 the learning rate does not fall; leave it out"
        )


WITHOUT_PARAMETERS = ("none", "sinusoidal", "rotary", "alibi")
"""Position schemes that add no parameter."""


def _check_freeze(config: RunConfig) -> None:
    """Refuses to freeze parts that do not exist, or all parts."""
    parts, prefix = frozen_parts(config.freeze), f"freeze={config.freeze!r}: "
    blocks = len(config.layers) or config.num_blocks
    for part in parts:
        number = block_number(part)
        if number is not None and number >= blocks:
            raise ConfigError(f"{prefix}there is no {part}; expected 'block 0' to {blocks - 1}")
    if "head" in parts and config.tied_embeddings:
        raise ConfigError(f"{prefix}with tied_embeddings=True the head is the embeddings")
    if "positions" in parts and config.positions in WITHOUT_PARAMETERS:
        raise ConfigError(f"{prefix}positions={config.positions!r} has no weights")
    every = {"embeddings", "blocks", *(["head"] * (not config.tied_embeddings))}
    if parts.keys() >= every:
        raise ConfigError(f"{prefix}nothing is left to be trained at the start; leave a part out")


def part_named(field: str, name: str, known: Mapping[str, Any]) -> Any:
    """Returns the part that a field names.

    Raises:
        ConfigError: there is none.
    """
    if name not in known:
        raise ConfigError(f"{field}={name!r}: {nearest(name, sorted(known))}")
    return known[name]


@lru_cache(maxsize=4096)
def fields_unread(config: RunConfig) -> frozenset[str]:
    """Returns the fields without effect, those of other languages, samplers and architectures.

    An LSTM has no heads, and `parity` no required letters, whatever these fields hold.
    """
    if config.is_imported:
        # Its network and training are unknown, and its settings have other names.
        return frozenset(RunConfig.model_fields) - {*strings_read(config, "test"), "architecture"}
    unread = frozenset(readers()).difference(*fields_read(config).values())
    return unread | fields_of_training(config) if config.is_loaded else unread


def fields_of_training(config: RunConfig) -> frozenset[str]:
    """Returns the fields of training, and of its strings unless these are known, which have no
    meaning for loaded weights.
    """
    names = {name for name, about in ABOUT.items() if about.group == "Training"}
    if not config.knows_trained_lengths:
        names |= {x for part in STRING_PARTS[:2] for x in strings_read(config, part)}
    return frozenset(names.difference(strings_read(config, "test")))


def limits_of(name: str) -> str:
    """Returns the limits of a field in words."""
    registries: dict[str, Iterable[str]] = {"architecture": MODELS, "positions": POSITIONS}
    registries |= {f"{part}_sampler": SAMPLERS for part in STRING_PARTS}
    field = RunConfig.model_fields[name]
    if name in registries:
        return ", ".join(registries[name])
    if get_origin(field.annotation) is Literal:
        return ", ".join(map(str, get_args(field.annotation)))
    if field.annotation is bool:
        return "true, false"
    signs = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}
    limits = ((x, y) for x in field.metadata for y in signs if hasattr(x, y))
    return ", ".join(f"{signs[sign]} {getattr(limit, sign):,}" for limit, sign in limits)


def phrases_of(config: RunConfig) -> list[str]:
    """Returns the phrases of a protocol of training, one for each field that has one."""
    unread = fields_unread(config)
    # Fields of training come before those of the network, each in the order of declaration.
    read = [ABOUT[name] for name in config.model_dump() if name not in unread]
    tellers = [about.phrase for about in sorted(read, key=lambda about: about.group != "Training")]
    return [phrase for tell in tellers if tell and (phrase := tell(config))]


def language_fields(task: str) -> tuple[str, ...]:
    """Returns the fields that define the language, without those of its samplers."""
    # For a task that is not installed here, these are the fields that any task reads.
    read = [TASKS[task]] if task in TASKS else TASKS.parts()
    return ("task", *sorted({name for part in read for name in part.reads}))


def language_of(fields: Mapping[str, Any], datasets: Mapping[str, str] | None = None) -> str:
    """Names a language: `contains_all, num_letters=3, required_letters=ab`.

    Args:
        fields: those of a configuration, or of its test set; a missing one has its default.
        datasets: names of datasets by digest.
    """
    known = {**default_fields(), **fields}
    known["dataset"] = (datasets or {}).get(known["dataset"], known["dataset"])
    _, *names = language_fields(known["task"])
    # Settings of a language that are left out are not shown.
    names += ["answers"] * (known["answers"] != "string")
    settings = {name: known[name] for name in names if known[name] != ""}
    texts = (f"{x}={str(y).lower() if isinstance(y, bool) else y}" for x, y in settings.items())
    return ", ".join([str(known["task"]), *texts])


# Test sets are identified by the fields that determine them, or by a digest of their strings.


def test_set_json(config: RunConfig) -> dict[str, Any]:
    """Returns all fields of a configuration that determine its test strings.

    Tests drawn in one way are the same, whether `negatives` or `test_negatives` determines it.
    """
    fields = {name: getattr(config, name) for name in strings_read(config, "test")}
    for name, as_trained in {"negatives": AS_TRAINED, "ignore_share": AS_OTHERS}.items():
        tested = fields.pop(f"test_{name}", as_trained)
        if tested != as_trained:
            # If training strings are left out of the test, the way those are drawn matters too.
            fields[f"test_{name}" if config.disjoint else name] = tested
    return fields


def test_set_key(config: RunConfig) -> str:
    """Hashes the fields that determine the test strings to 64 hexadecimal digits.

    A field added later, at its default, changes no key, as for `RunConfig.key`.
    """
    defaults = default_fields()
    changed = {k: v for k, v in test_set_json(config).items() if v != defaults[k]}
    return hashlib.sha256(canonical_json(changed).encode()).hexdigest()


@dataclass(frozen=True, eq=False)
class TestSet:
    """The distinct strings of a test set, sorted as text; a string's number is its index."""

    __test__: ClassVar[bool] = False

    texts: Sequence[str]
    lengths: Int64[np.ndarray, " string"]
    bits: Bool[np.ndarray, " string"] | None
    """The labels; None if the task is no language, whose strings have targets instead."""
    occurrences: Int64[np.ndarray, " string"]
    targets: Sequence[str] | None = None
    """None for languages."""
    drawn: Sequence[str | None] | None = None
    """The way each was drawn, one of `seqcls.results.DRAWN`; None if it is not known. It is no part
    of the digest, since the same strings are the same test."""

    @property
    def labels(self) -> Bool[np.ndarray, " string"]:
        """A mask of the strings in the language."""
        assert self.bits is not None
        return self.bits

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of the strings in their order, 64 hexadecimal digits."""
        hasher = hashlib.sha256("\n".join(self.texts).encode())
        if self.targets is not None:
            hasher.update("\n".join(["", *self.targets]).encode())
        columns = (self.lengths, self.bits, self.occurrences)
        for column in (x for x in columns if x is not None):
            # A fixed type and byte order make the digest the same on every machine.
            hasher.update(np.ascontiguousarray(column, dtype="<i8").tobytes())
        return hasher.hexdigest()
