"""Which fields of a configuration say anything about its models, and about its test strings."""

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
"""What a sampler is given that no field says."""


@lru_cache(maxsize=1)
def readers() -> Mapping[str, tuple[str, ...]]:
    """What may read each field that some runs read and others do not, by the field that names it;
    and `kind`.
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
    """The fields that each part of a configuration reads, by the field that names it; and `kind`.

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
    """The fields that define a task as a part's strings are drawn: `ignore_share`, which tests
    may have of their own as `test_ignore_share`.
    """
    own = {f"test_{name}" for name in task.reads} if part == "test" else set[str]()
    return task.reads | (own & RunConfig.model_fields.keys())


def strings_read(config: RunConfig, part: str) -> tuple[str, ...]:
    """The fields of a configuration that determine the strings of a part, sorted."""
    sampler: type[Sampler] = part_named(
        f"{part}_sampler", getattr(config, f"{part}_sampler"), SAMPLERS
    )
    task = part_named("task", config.task, TASKS)
    names = {"task", "plugins", f"{part}_sampler", *read_by_task(task, part)}
    names |= {"answers"} & config.changed.keys()
    names |= _fields_of(sampler, part, config)
    if not config.train_lengths:
        # What is made of the fields of older configurations is what it was.
        names.discard("train_lengths")
    elif part == "train":
        # Its stages end at shares of all epochs.
        names.add("max_num_epochs")
    if "disjoint" in names and config.disjoint:
        # What was trained on is kept out, so it matters what that was.
        names |= {"max_num_epochs", *strings_read(config, "train")}
    return tuple(sorted(names))


def _fields_of(sampler: type[Sampler], part: str, config: RunConfig) -> frozenset[str]:
    """The fields of a configuration that a sampler reads for a part."""
    names = _read_for(sampler, part)
    if "test_strings" in names and config.test_strings != "random":
        # Negative ones are uniform, or partners of positive ones.
        return names - {"test_negatives", "negatives", "negative_lengths"}
    return names


def _read_for(sampler: type[Sampler], part: str) -> frozenset[str]:
    names = frozenset(settings_read(sampler, part).values())
    # Tests are drawn as `negatives` says, unless they have a word of their own.
    return names | {"negatives"} if "test_negatives" in names else names


@lru_cache(maxsize=64)
def settings_read(sampler: type[Sampler], part: str) -> Mapping[str, str]:
    """What a sampler reads, and the fields of a configuration that say it for this part.

    `max_length` is the part's own, such as `test_max_length`, where there is such a field.
    """
    of_parts = sampler.reads_of_part
    taken = frozenset(signature(sampler).parameters).difference(*of_parts.values(), NO_SETTINGS)
    own = taken | of_parts.get(part, frozenset())
    return {x: f"{part}_{x}" if f"{part}_{x}" in ABOUT else x for x in own}


def check_read(config: RunConfig) -> None:
    """Refuses later fields that change nothing, so that what is the same has one key."""
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
    """Refuses to hold fixed what is not there, or all that there is."""
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
    """The part that a field names.

    Raises:
        ConfigError: there is none.
    """
    if name not in known:
        raise ConfigError(f"{field}={name!r}: {nearest(name, sorted(known))}")
    return known[name]


@lru_cache(maxsize=4096)
def fields_unread(config: RunConfig) -> frozenset[str]:
    """The fields that change nothing: of another language, sampler or architecture than its own.

    An LSTM has no heads, and `parity` no required letters, whatever these fields hold.
    """
    if config.is_imported:
        # Of network and training nothing is known; its settings have names of their own.
        return frozenset(RunConfig.model_fields) - {*strings_read(config, "test"), "architecture"}
    unread = frozenset(readers()).difference(*fields_read(config).values())
    return unread | fields_of_training(config) if config.is_loaded else unread


def fields_of_training(config: RunConfig) -> frozenset[str]:
    """The fields of training, and of its strings unless these are known: of loaded weights they
    say nothing.
    """
    names = {name for name, about in ABOUT.items() if about.group == "Training"}
    if not config.knows_trained_lengths:
        names |= {x for part in STRING_PARTS[:2] for x in strings_read(config, part)}
    return frozenset(names.difference(strings_read(config, "test")))


def limits_of(name: str) -> str:
    """What a field may be, in words."""
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
    """What a protocol says of how models are trained: a phrase of each field that has one."""
    unread = fields_unread(config)
    # In the order of their declaration, training before the network.
    read = [ABOUT[name] for name in config.model_dump() if name not in unread]
    tellers = [about.phrase for about in sorted(read, key=lambda about: about.group != "Training")]
    return [phrase for tell in tellers if tell and (phrase := tell(config))]


def language_fields(task: str) -> tuple[str, ...]:
    """The fields that define the language, without those that say how its strings are drawn."""
    # For a task that is not installed here, the fields that any task reads.
    read = [TASKS[task]] if task in TASKS else TASKS.parts()
    return ("task", *sorted({name for part in read for name in part.reads}))


def language_of(fields: Mapping[str, Any], datasets: Mapping[str, str] | None = None) -> str:
    """What a language is called: `contains_all, num_letters=3, required_letters=ab`.

    Args:
        fields: those of a configuration, or of its test set; one that is missing has its default.
        datasets: what datasets are called, by their digests.
    """
    known = {**default_fields(), **fields}
    known["dataset"] = (datasets or {}).get(known["dataset"], known["dataset"])
    _, *names = language_fields(known["task"])
    # What may be left out of a language, and is, says nothing of it.
    names += ["answers"] * (known["answers"] != "string")
    settings = {name: known[name] for name in names if known[name] != ""}
    texts = (f"{x}={str(y).lower() if isinstance(y, bool) else y}" for x, y in settings.items())
    return ", ".join([str(known["task"]), *texts])


# The strings that configurations are tested on are known by the fields that determine them, or by
# a digest of the strings themselves.


def test_set_json(config: RunConfig) -> dict[str, Any]:
    """All of a configuration that determines its test strings.

    Tests that are drawn alike are the same, whether `negatives` or `test_negatives` says how.
    """
    fields = {name: getattr(config, name) for name in strings_read(config, "test")}
    for name, as_trained in {"negatives": AS_TRAINED, "ignore_share": AS_OTHERS}.items():
        tested = fields.pop(f"test_{name}", as_trained)
        if tested != as_trained:
            # Where training strings are kept out of the test, it matters how those are drawn, too.
            fields[f"test_{name}" if config.disjoint else name] = tested
    return fields


def test_set_key(config: RunConfig) -> str:
    """A hash of what determines the test strings, as 64 hexadecimal digits.

    As with a configuration's own key, a field added later, at its default, changes no key.
    """
    defaults = default_fields()
    changed = {k: v for k, v in test_set_json(config).items() if v != defaults[k]}
    return hashlib.sha256(canonical_json(changed).encode()).hexdigest()


@dataclass(frozen=True, eq=False)
class TestSet:
    """The distinct strings of a test set. A string's number is its place, sorted as text."""

    __test__: ClassVar[bool] = False

    texts: Sequence[str]
    lengths: Int64[np.ndarray, " string"]
    bits: Bool[np.ndarray, " string"] | None
    """The labels; None where the task is no language: what is right is then its target."""
    occurrences: Int64[np.ndarray, " string"]
    targets: Sequence[str] | None = None
    """None for languages."""
    drawn: Sequence[str | None] | None = None
    """How each was drawn, one of `seqcls.results.DRAWN`; None where that is not known. No part
    of the digest: the same strings are the same test."""

    @property
    def labels(self) -> Bool[np.ndarray, " string"]:
        """Which strings are in the language."""
        assert self.bits is not None
        return self.bits

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of the strings in their order, as 64 hexadecimal digits."""
        hasher = hashlib.sha256("\n".join(self.texts).encode())
        if self.targets is not None:
            hasher.update("\n".join(["", *self.targets]).encode())
        columns = (self.lengths, self.bits, self.occurrences)
        for column in (x for x in columns if x is not None):
            # One type and one order of bytes make the digest the same on every machine.
            hasher.update(np.ascontiguousarray(column, dtype="<i8").tobytes())
        return hasher.hexdigest()
