"""Lookup of the parts that a configuration names: task, kind of answers, samplers and network.

Parts from outside are checked against their descriptions.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from inspect import signature
from typing import Any

from seqcls.config import ANY_SAMPLER, AS_OTHERS, AS_TRAINED, COUPLED, NetworkConfig, RunConfig
from seqcls.curricula import stages_of
from seqcls.errors import ConfigError, PluginError
from seqcls.fields import part_named, settings_read
from seqcls.kinds import KINDS, Kind, kind_name
from seqcls.models.positions import special_tokens
from seqcls.plugin_checks import check_draws, check_inputs, check_kind, check_language
from seqcls.sampling import SAMPLERS, Sampler, sampler_obstacle
from seqcls.sampling.distinct import Training
from seqcls.sampling.streams import AnsweredAgain, Staged
from seqcls.tasks import TASKS, InputTask, LanguageTask, Task
from seqcls.tasks.places import AtEveryPlace, at_every_place, samplers_of
from seqcls.text import canonical_json


def language(name: str, settings: Mapping[str, Any]) -> Task:
    """Makes the task of a name from its settings, which may be among others.

    Raises:
        ConfigError: there is no such task, or its settings are invalid.
    """
    task: type[Task] = part_named("task", name, TASKS)
    with TASKS.wrap_errors(name):
        made = task(**{setting: settings[setting] for setting in task.reads})
        if not TASKS.is_own(name):
            check_language(made)
    return made


def task_of_test(config: RunConfig, task: Task) -> Task:
    """Returns the task from which test strings are drawn; targets of strings are the same."""
    if config.test_ignore_share == AS_OTHERS:
        return task
    own = {**dict(config), "ignore_share": config.test_ignore_share}
    return at_every_place(language(config.task, own), config.answers, config.task)


def make_kind(task: Task) -> Kind:
    """Makes the kind of a task's answers, and checks one from outside."""
    name = kind_name(task)
    kind: type[Kind] = part_named("kind", name, KINDS)
    with KINDS.wrap_errors(name):
        made = kind()
        if not KINDS.is_own(name):
            check_kind(made, task)
    return made


def make_sampler(config: RunConfig, task: Task, part: str, train: Sampler | None) -> Sampler:
    """Makes the sampler of a part; others may have to leave out the strings of `train`."""
    field = f"{part}_sampler"
    name = getattr(config, field)
    sampler: type[Sampler] = part_named(field, name, SAMPLERS)
    if isinstance(task, AtEveryPlace):
        if name not in (draw := samplers_of(task.kind)):
            named = f"{field}={name!r} with answers={config.answers!r}"
            raise ConfigError(f"{named}: expected {' or '.join(draw)}")
        if task.kind != "next_symbols":
            return AnsweredAgain(make_sampler(config, task.language, part, train), task)
    if (obstacle := sampler_obstacle(name, task)) is not None:
        raise ConfigError(f"{field}={name!r} cannot serve task {config.task!r}: {obstacle}")
    names = settings_read(sampler, part)
    settings = {x: getattr(config, setting) for x, setting in names.items()}
    if settings.get("negatives") == AS_TRAINED:
        settings["negatives"] = config.negatives
    if settings.get("test_strings", "random") != "random":
        # These have no effect, and equal tests need equal samplers.
        settings |= {"negatives": "uniform", "negative_lengths": "uniform"}
    if "part" in signature(sampler).parameters:
        settings["part"] = part
    if "disjoint" in settings:
        keep_out = train if settings.pop("disjoint") else None
        settings["trained"] = Training(keep_out, config.max_num_epochs) if keep_out else None
    make: Any = sampler
    try:
        with TASKS.wrap_errors(config.task):
            stages = stages_of(settings.pop("lengths", ""))
            drawn_by: Sampler = make(task=task, **settings)
            if stages:
                drawn_by = _add_stages(drawn_by, stages, config.max_num_epochs)
            if not TASKS.is_own(config.task):
                _check_drawn(name, task, drawn_by.lengths)
    # It is a ConfigError too, and already names the part.
    except PluginError:
        raise
    except ConfigError as error:
        task_too = f"task={config.task!r}, " if name == ANY_SAMPLER else ""
        raise ConfigError(task_too + _name_settings(str(error), names)) from None
    return drawn_by


def _add_stages(
    longest: Sampler, stages: Sequence[tuple[int, float]], max_num_epochs: int
) -> Sampler:
    """Makes a sampler of stages of shorter strings before those of the given one."""
    batches = max_num_epochs * -(-longest.epoch_size // longest.batch_size)
    made: Any = longest
    # The last stage ends with training: it is the sampler itself.
    earlier = [
        (replace(made, max_length=length), round(share * batches)) for length, share in stages[:-1]
    ]
    return Staged(longest, tuple(earlier)) if earlier else longest


def _check_drawn(sampler: str, task: Task, lengths: range) -> None:
    """Checks a task from outside against its description."""
    if sampler == ANY_SAMPLER and isinstance(task, LanguageTask):
        check_draws(task, lengths)
    elif sampler == "uniform_inputs" and isinstance(task, InputTask):
        check_inputs(task, lengths)


def make_network(
    config: RunConfig, task: Task, kind: Kind, train: Sampler, test: Sampler
) -> NetworkConfig:
    settings = {x: getattr(config, x) for x in NetworkConfig.model_fields if x in _SHARED}
    tested = kind.longest_reading(task, test.lengths[-1])
    shifted = config.position_draw == "shifted" or config.positions in COUPLED
    network = NetworkConfig(
        **{
            **settings,
            **kind.network(task, dict(config)),
            # `layers` has a letter for each block.
            "num_blocks": len(config.layers) or config.num_blocks,
            "trained_length": kind.longest_reading(task, train.lengths[-1]),
            "tested_length": tested if shifted else 0,
            "coupling": _coupling(config, task, kind, max(train.lengths[-1], test.lengths[-1])),
            "picture": _task_as_json(config) if hasattr(task, "page") else "",
            "place_seed": config.test_seed if config.position_range else 0,
        }
    )
    if config.loaded_places is None:
        return network
    # A table that was learned elsewhere has a fixed size, whatever these strings need.
    longest = max(config.loaded_places - special_tokens(network), 0)
    return network.model_copy(update={"trained_length": longest, "tested_length": longest})


def _coupling(config: RunConfig, task: Any, kind: Kind, longest: int) -> str:
    """Returns the task that defines shared positions, with their offset in tests, as JSON.

    It is empty for positions that are not shared.

    Raises:
        ConfigError: the task does not define them.
    """
    if config.positions not in COUPLED or kind_name(task) != "transduction":
        return ""
    obstacle = getattr(task, "coupling_obstacle", lambda: "the task does not say which do")()
    if obstacle is not None:
        raise ConfigError(f"positions={config.positions!r} with task={config.task!r}: {obstacle}")
    if config.positions == "coupled":
        return _task_as_json(config)
    # A table has room for input and output, one after the other. The positions of the longest of
    # either, with one before and one after, are moved to its middle.
    read = kind.longest_reading(task, longest)
    free = read - (max(longest, read - longest - 1) + 2)
    return _task_as_json(config, marks=True, tested_offset=max(0, free // 2))


def _task_as_json(config: RunConfig, **more: Any) -> str:
    names = ("task", *sorted(TASKS[config.task].reads))
    return canonical_json({**{name: getattr(config, name) for name in names}, **more})


_SHARED = set(RunConfig.model_fields)


def _name_settings(message: str, names: Mapping[str, str]) -> str:
    """Replaces a sampler's settings in a message by the configuration's fields."""
    for name, setting in sorted(names.items(), key=lambda item: -len(item[0])):
        message = re.sub(rf"(?<![a-z_]){name}\b", setting, message)
    return message
