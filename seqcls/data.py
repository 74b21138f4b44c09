"""From a configuration to its language, its strings and its network; and whether they fit."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from seqcls.config import ANY_SAMPLER, PARTS, NetworkConfig, RunConfig, default_fields
from seqcls.errors import ConfigError, PluginError
from seqcls.models import MODELS
from seqcls.models.fitting import check_network
from seqcls.models.positions import POSITIONS
from seqcls.plugins import check_packages, packages_of
from seqcls.sampling import SAMPLERS, Sampler
from seqcls.sampling.balanced import Training
from seqcls.spelling import nearest
from seqcls.tasks import TASKS, CountTask, Task
from seqcls.tasks.contains_all import ContainsAll
from seqcls.tasks.outside import check_draws, check_language
from seqcls.tokens.tokenizer import Tokenizer


def configuration(fields: Mapping[str, Any]) -> RunConfig:
    """A configuration from the names and values of its fields, checked as a whole.

    Raises:
        ConfigError: an unknown field, a value out of its limits, a task, sampler or network that
            is not there, or parts that do not fit each other.
    """
    config = RunConfig.from_mapping(fields)
    if not config.plugins:
        config = RunConfig.from_mapping({**fields, "plugins": plugins_of(config)})
    check(config)
    return config


def plugins_of(config: RunConfig) -> str:
    """Names and versions of the installed packages that a configuration's parts are from."""
    return packages_of(
        {
            "task": (TASKS, config.task),
            "architecture": (MODELS, config.architecture),
            "positions": (POSITIONS, config.positions),
        }
    )


def check(config: RunConfig) -> None:
    """Refuses a configuration whose parts do not fit each other.

    Raises:
        ConfigError: as `configuration`.
    """
    check_packages(config.plugins, plugins_of(config))
    longest = {part: sampler_of(config, part).lengths[-1] for part in PARTS}
    _check_read(config)
    check_network(network_of(config), longest)


@lru_cache(maxsize=4096)
def task_of(config: RunConfig) -> Task:
    """The language of a configuration.

    Raises:
        ConfigError: there is no such task, or its settings are no language.
    """
    check_packages(config.plugins, plugins_of(config))
    return language(config.task, dict(config))


def language(name: str, settings: Mapping[str, Any]) -> Task:
    """The language of a name with its settings, which may stand among others.

    Raises:
        ConfigError: as `task_of`.
    """
    task: type[Task] = _named("task", name, TASKS)
    with TASKS.guarded(name):
        made = task(**{setting: settings[setting] for setting in task.reads})
        if not TASKS.is_own(name):
            check_language(made)
    return made


@lru_cache(maxsize=4096)
def sampler_of(config: RunConfig, part: str) -> Sampler:
    """How a configuration's strings are drawn: those of `train`, `validation` or `test`.

    Raises:
        ConfigError: there is no such sampler, or it cannot draw these.
    """
    field = f"{part}_sampler"
    name = getattr(config, field)
    sampler: type[Sampler] = _named(field, name, SAMPLERS)
    task = task_of(config)
    obstacle = sampler.obstacle(task)
    if obstacle is not None:
        raise ConfigError(f"{field}={name!r} cannot serve task {config.task!r}: {obstacle}")
    own = _own_settings(sampler, part)
    settings = {x: getattr(config, setting) for x, setting in own.items()}
    if "part" in sampler.reads:
        settings["part"] = part
    if "disjoint" in settings:
        keep_out = settings.pop("disjoint")
        training = sampler_of(config, "train") if keep_out else None
        settings["trained"] = Training(training, config.max_num_epochs) if training else None
    make: Any = sampler
    try:
        with TASKS.guarded(config.task):
            drawn_by: Sampler = make(task=task, **settings)
            if name == ANY_SAMPLER and not TASKS.is_own(config.task):
                check_draws(task, drawn_by.lengths)
    except PluginError:
        raise
    except ConfigError as error:
        task_too = f"task={config.task!r}, " if name == ANY_SAMPLER else ""
        raise ConfigError(task_too + _of_part(str(error), own)) from None
    return drawn_by


def strings_read(config: RunConfig, part: str) -> tuple[str, ...]:
    """The fields of a configuration that determine the strings of a part, sorted."""
    sampler: type[Sampler] = _named(f"{part}_sampler", getattr(config, f"{part}_sampler"), SAMPLERS)
    own = _own_settings(sampler, part).values()
    names = {"task", "plugins", f"{part}_sampler", *task_of(config).reads, *own}
    if "disjoint" in names and config.disjoint:
        # What was trained on is kept out, so it matters what that was.
        names |= {"max_num_epochs", *strings_read(config, "train")}
    return tuple(sorted(names))


def _own_settings(sampler: type[Sampler], part: str) -> dict[str, str]:
    """What a sampler reads, and the fields of a configuration that say it for this part."""
    known = default_fields()
    return {
        x: f"{part}_{x}" if f"{part}_{x}" in known else x
        for x in sampler.reads | sampler.reads_of_part.get(part, frozenset())
        if x != "part"
    }


def _check_read(config: RunConfig) -> None:
    """Refuses later fields that change nothing, so that what is the same has one key."""
    read: dict[str, set[str]] = {"task": set(TASKS[config.task].reads)}
    for part in PARTS:
        sampler = SAMPLERS[getattr(config, f"{part}_sampler")]
        read[f"{part}_sampler"] = set(_own_settings(sampler, part).values())
    read["architecture"] = set(_named("architecture", config.architecture, MODELS).reads)
    read["positions"] = set(_named("positions", config.positions, POSITIONS).reads)
    for field, readers in _READERS.items():
        if field in config.changed and not any(field in read[reader] for reader in readers):
            by = ", ".join(f"{reader} {getattr(config, reader)!r}" for reader in readers)
            raise ConfigError(f"{field}={config.changed[field]!r}: not read by {by}; leave it out")


_SAMPLERS = tuple(f"{part}_sampler" for part in PARTS)

_READERS: dict[str, tuple[str, ...]] = {
    "alphabet": ("task",),
    "pattern": ("task",),
    "formula": ("task",),
    "bracket_types": ("task",),
    "max_depth": ("task",),
    "train_min_length": ("train_sampler",),
    "validation_min_length": ("validation_sampler",),
    "test_min_length": ("test_sampler",),
    "train_set": ("train_sampler",),
    "negatives": _SAMPLERS,
    "negative_lengths": _SAMPLERS,
    "disjoint": ("test_sampler",),
    "num_blocks": ("architecture",),
    "positions": ("architecture",),
    "position_range": ("positions",),
    "attention_mask": ("architecture",),
    "readout": ("architecture",),
    "attention_scale": ("architecture",),
    "norm_placement": ("architecture",),
    "activation": ("architecture",),
    "biases": ("architecture",),
}
"""Fields later than the first version's, and the fields that name who may read them. One that
none of them reads has to keep its default."""


def count_task_of(config: RunConfig) -> CountTask:
    """The language of a configuration in which letter counts decide.

    Raises:
        ConfigError: in its language the order of tokens has a part.
    """
    task = task_of(config)
    if not isinstance(task, CountTask):
        raise ConfigError(
            f"task={config.task!r}: whether a string is in the language depends on the order of "
            "its tokens, so letter counts do not say it"
        )
    return task


def required_letters_of(config: RunConfig) -> tuple[int, ...]:
    """The numbers of the letters that every positive string holds; none where the task names none.

    Only `contains_all` names any.
    """
    task = task_of(config)
    return task.required if isinstance(task, ContainsAll) else ()


def tokenizer_of(config: RunConfig) -> Tokenizer:
    """Text to and from the tokens of a configuration's language."""
    return Tokenizer(task_of(config).alphabet)


@lru_cache(maxsize=4096)
def network_of(config: RunConfig | NetworkConfig) -> NetworkConfig:
    """A run's network: its settings, and what its language and its strings determine of it."""
    if isinstance(config, NetworkConfig):
        return config
    own = {name: getattr(config, name) for name in NetworkConfig.model_fields if name in _SHARED}
    return NetworkConfig(
        **{
            **own,
            "num_letters": len(task_of(config).alphabet),
            "trained_length": sampler_of(config, "train").lengths[-1],
            "place_seed": config.test_seed if config.position_range else 0,
        }
    )


_SHARED = set(RunConfig.model_fields)


def _named(field: str, name: str, known: Mapping[str, Any]) -> Any:
    if name not in known:
        raise ConfigError(f"{field}={name!r}: {nearest(name, sorted(known))}")
    return known[name]


def _of_part(message: str, own: Mapping[str, str]) -> str:
    """A sampler's message with its settings called what the configuration calls them."""
    for name, setting in sorted(own.items(), key=lambda item: -len(item[0])):
        message = re.sub(rf"(?<![a-z_]){name}\b", setting, message)
    return message
