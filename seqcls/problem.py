"""Problems: the language, strings and network of a configuration, checked against each other.

A configuration's names are looked up here once, and the result is passed on.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from typing import Any

import numpy as np
from jaxtyping import Bool

from seqcls.config import (
    ANY_SAMPLER,
    IMPORTED,
    REPORT_TASK,
    STRING_PARTS,
    NetworkConfig,
    RunConfig,
)
from seqcls.errors import ConfigError, InvalidStringError, PluginError, PluginMissingError
from seqcls.fields import (
    check_read,
    fields_unread,
)
from seqcls.kinds import KINDS, Kind, kind_name
from seqcls.kinds.base import Ability, Questions, Targets, pad_to_one_width
from seqcls.lookup import language, make_kind, make_network, make_sampler, task_of_test
from seqcls.models import MODELS, architectures_by_letter, check_network
from seqcls.models.positions import POSITIONS, longest_readable
from seqcls.plugin_checks import (
    check_architecture,
)
from seqcls.plugins import check_packages, packages_of
from seqcls.sampling import Sampler
from seqcls.sampling.streams import LengthSubset, have_lengths
from seqcls.strings.token_strings import TokenStrings
from seqcls.strings.tokenizer import Tokenizer
from seqcls.tasks import TASKS, CountTask, LanguageTask, Task
from seqcls.tasks.base import PartlyKnown
from seqcls.tasks.files import RowsTask
from seqcls.tasks.letter_counts import ContainsAll
from seqcls.tasks.places import AtEveryPlace, at_every_place


def configuration(fields: Mapping[str, Any]) -> RunConfig:
    """Makes a configuration from the names and values of its fields and checks it as a whole.

    Raises:
        ConfigError: an unknown field, a value out of its limits, an unknown task, sampler or
            network, or parts that do not fit each other.
    """
    fields = with_samplers(fields)
    config = RunConfig.from_mapping(fields)
    if config.is_loaded:
        raise ConfigError(
            f"imported={config.imported!r:.60}: such weights were trained elsewhere, and no model "
            "is trained here in their place"
        )
    if not config.plugins:
        # Packages are part of the key, since results may depend on their versions.
        config = RunConfig.from_mapping({**fields, "plugins": plugins_of(config)})
    check(config)
    return config


def with_samplers(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """Adds the samplers and the mask of the task's kind to fields that name none."""
    name, answers = str(fields.get("task", REPORT_TASK)), fields.get("answers", "string")
    if name not in TASKS or (kind := kind_name(TASKS[name], answers)) not in KINDS:
        return fields
    # A task whose strings one sampler alone can draw names it.
    sampler = getattr(TASKS[name], "sampler", KINDS[kind].sampler)
    architecture = str(fields.get("architecture", "transformer"))
    read = MODELS[architecture].reads if architecture in MODELS else ()
    # A default of the kind that the architecture does not read would be refused later.
    network = {x: value for x, value in KINDS[kind].defaults.items() if x in read}
    # `RunConfig` fills in this sampler for all tasks but the report's, which has another.
    parts = () if kind == "membership" and sampler == ANY_SAMPLER else STRING_PARTS
    return {**{f"{part}_sampler": sampler for part in parts}, **network, **fields}


def plugins_of(config: RunConfig) -> str:
    """Returns names and versions of the installed packages that bring a configuration's parts."""
    return packages_of(_parts(config))


def _parts(config: RunConfig) -> dict[str, tuple[Any, str]]:
    """Returns the parts that packages may bring, by the fields that name them."""
    letters = architectures_by_letter() if config.layers else {}
    return {
        "task": (TASKS, config.task),
        **({} if config.is_imported else {"architecture": (MODELS, config.architecture)}),
        "positions": (POSITIONS, config.positions),
        **{f"layers {x}": (MODELS, y) for x, y in letters.items() if x in config.layers},
    }


def missing_plugin(config: RunConfig) -> str | None:
    """Returns the plug-in that a stored configuration needs and lacks; None if there is none."""
    try:
        check_packages(config.plugins, plugins_of(config), _parts(config))
    except (PluginError, PluginMissingError) as error:
        return str(error)
    lost = [
        f"{field}={name!r}" for field, (known, name) in _parts(config).items() if name not in known
    ]
    return f"{' and '.join(lost)}: no package that is installed here brings it" if lost else None


def check(config: RunConfig) -> None:
    """Refuses a configuration whose parts do not fit each other.

    Raises:
        ConfigError: as `configuration`.
    """
    problem = resolve(config)
    if problem.config.is_imported:
        raise ConfigError(
            f"architecture={IMPORTED!r}: of models trained elsewhere; it cannot be trained here, "
            "and its results are imported by `seqcls import`"
        )
    check_read(config)
    check_network(problem.network, {x: problem.longest_reading(x) for x in STRING_PARTS})
    if not MODELS.is_own(config.architecture):
        with MODELS.wrap_errors(config.architecture):
            check_architecture(problem.network)
    # Strings of a file are known; drawing others takes longer than this check should.
    problem.check_can_be_right(drawn=isinstance(problem.task, RowsTask))


def obstacle_of(fields: RunConfig | Mapping[str, Any]) -> str | None:
    """Returns the reason why a configuration is impossible, or impossible here; None if it is not.

    Args:
        fields: names and values, as for `configuration`, or a configuration, such as a stored one.
    """
    try:
        if isinstance(fields, RunConfig):
            check(fields)
        else:
            configuration(fields)
    except ConfigError as error:
        return str(error)
    return None


def unread_fields(config: RunConfig) -> frozenset[str]:
    """Returns the fields that a configuration's language and network do not read; if a package is
    missing, those with their defaults.
    """
    if obstacle_of(config) is None:
        return fields_unread(config)
    return frozenset(RunConfig.model_fields) - {*config.changed}


@dataclass(frozen=True)
class Problem:
    """The parts that a configuration names; two are equal if their configurations are."""

    config: RunConfig
    task: Task = field(compare=False)
    kind: Kind = field(compare=False)
    train: Sampler = field(compare=False)
    validation: Sampler = field(compare=False)
    test: Sampler = field(compare=False)
    network: NetworkConfig = field(compare=False)
    """The network's settings, with those that the language and the training strings determine."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Other processes look up names again, since languages hold large values.
        return resolve, (self.config,)

    def sampler(self, part: str) -> Sampler:
        """Returns the sampler of `train`, `validation` or `test`."""
        return {"train": self.train, "validation": self.validation, "test": self.test}[part]

    @property
    def trained_lengths(self) -> range:
        """The lengths in tokens of strings that training may draw.

        They have no meaning if `config.knows_trained_lengths` is false.
        """
        return self.train.lengths

    def are_of_trained_lengths(self, strings: TokenStrings) -> Bool[np.ndarray, " string"]:
        """A mask of the strings whose length training may draw."""
        return have_lengths(self.trained_lengths, strings)

    @property
    def longest_train(self) -> Sampler:
        """The sampler of training strings of all lengths, that of the last stage."""
        if not self.config.train_lengths:
            return self.train
        return resolve(self.config.model_copy(update={"train_lengths": ""})).train

    @cached_property
    def asking_trained_lengths(self) -> "Problem":
        """The problem with validation strings of trained lengths alone."""
        return replace(self, validation=LengthSubset(self.validation, self.trained_lengths))

    def check_can_be_right(self, *, drawn: bool = True) -> None:
        """Refuses `stop_when_right` without validation strings of trained lengths, with which
        training would end immediately.

        Args:
            drawn: True to check drawn strings, False to check possible lengths alone.

        Raises:
            ConfigError: there is none.
        """
        if not self.config.stop_when_right:
            return
        trained, validated = self.trained_lengths, self.validation.lengths
        there = max(trained.start, validated.start) < min(trained.stop, validated.stop)
        if not there or (drawn and not self.asking_trained_lengths.validation.epoch_size):
            shortest, longest = trained[0], trained[-1]
            span = f"{shortest} to {longest}" if shortest < longest else str(shortest)
            raise ConfigError(
                f"stop_when_right=True: training strings have {span} tokens, and no validation "
                "string has; validate on strings of trained lengths too, or leave it out"
            )

    def longest_reading(self, part: str) -> int:
        """The most tokens that models read for a string of a part, without a special one."""
        return self.kind.longest_reading(self.task, self.sampler(part).lengths[-1])

    def longest_target(self, length: int) -> int:
        """The most tokens, or places, of the target of an input of so many tokens."""
        if self.at_places:
            return length + 1
        return self.kind.longest_reading(self.task, length) - length - 1

    @cached_property
    def longest_tested(self) -> int:
        """Number of tokens of the longest test string that models can read."""
        lengths, end = self.test.lengths, longest_readable(self.network)
        if end is None:
            return lengths[-1]
        read = partial(self.kind.longest_reading, self.task)
        return max((length for length in lengths if read(length) <= end), default=0)

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer of the language."""
        return Tokenizer(self.task.alphabet)

    @cached_property
    def without_dropout(self) -> "Problem":
        """The problem without dropout, as models are evaluated."""
        return resolve(self.config.model_copy(update={"dropout_rate": 0.0}))

    @property
    def language(self) -> LanguageTask:
        """The task, as a language.

        Raises:
            ConfigError: it is no language.
        """
        self.require_language()
        assert isinstance(self.task, LanguageTask)
        return self.task

    @property
    def tries_empty(self) -> bool:
        """True if exhaustive checks try the empty string, which a test may hold."""
        return 0 in self.test.lengths

    def lacks(self, ability: Ability) -> str | None:
        """Returns the reason why the task's kind lacks an ability; None if it has it."""
        reason = self.kind.absent.get(ability)
        return None if reason is None else f"task={self.config.task!r}{reason}"

    def require_language(self, what: str = "this analysis is of languages", then: str = "") -> None:
        """Refuses a task of another kind.

        Args:
            what: beginning of the message, before the reason.
            then: end of the message.

        Raises:
            ConfigError: it is no language.
        """
        if reason := self.lacks("labels"):
            raise ConfigError(f"{what}, and {reason}{then}")

    @property
    def writes(self) -> bool:
        """True if models answer with an output, token by token."""
        return self.network.writes

    @property
    def at_places(self) -> bool:
        """True if models answer at every place of a string."""
        return self.network.head == "places"

    def knows(self, strings: TokenStrings) -> Bool[np.ndarray, " string"]:
        """A mask of the strings with a known target; strings that are no inputs are refused."""
        if isinstance(self.task, PartlyKnown):
            return self.task.knows(strings)
        return np.ones(len(strings), dtype=bool)

    def check_inputs(self, strings: TokenStrings) -> None:
        """Refuses strings that are no inputs; inputs that a file lacks are accepted.

        Raises:
            InvalidStringError: there is one.
        """
        # Called for its refusals; an input that a file lacks has no target.
        self.kind.targets(self.task, strings.take(np.flatnonzero(self.knows(strings))))

    def targets_or_reason(self, strings: TokenStrings) -> Targets | str:
        """Returns the targets of strings, or the reason why one is no input."""
        try:
            return self.kind.targets(self.task, strings)
        except InvalidStringError as error:
            return str(error)

    def questions(self, strings: TokenStrings) -> Questions:
        """Makes questions of strings, with their targets as far as these are known."""
        if isinstance(self.task, AtEveryPlace) and not self.kind.every_string:
            has_target = self.task.are_inputs(strings)
            input_targets = self.kind.targets(self.task, strings.take(np.flatnonzero(has_target)))
            targets = np.zeros((len(strings), *input_targets.shape[1:]), dtype=input_targets.dtype)
            targets[has_target] = input_targets
            return Questions(strings, targets, has_target, has_target)
        if not self.kind.every_string:
            has_target, targets = self._inputs_among(strings)
            return Questions(strings, targets, has_target, has_target | ~self.knows(strings))
        every, has_target = np.ones(len(strings), dtype=bool), self.knows(strings)
        known = strings if has_target.all() else strings.take(np.flatnonzero(has_target))
        known_targets = self.kind.targets(self.task, known)
        if known is strings:
            return Questions(strings, known_targets, every, every)
        # Rows without a target hold zeros, which `has_target` marks as unknown.
        targets = np.zeros((len(strings), *known_targets.shape[1:]), dtype=known_targets.dtype)
        targets[has_target] = known_targets
        return Questions(strings, targets, has_target, every)

    def _inputs_among(self, strings: TokenStrings) -> tuple[Bool[np.ndarray, " string"], Targets]:
        """Returns a mask of inputs with a known target, and the targets, empty for the others."""
        targets = self.targets_or_reason(strings)
        if not isinstance(targets, str):
            return np.ones(len(strings), dtype=bool), targets
        by_row = [
            self.targets_or_reason(strings.take(slice(row, row + 1))) for row in range(len(strings))
        ]
        none = np.zeros((1, 0), dtype=np.uint8)
        rows = pad_to_one_width(*(none if isinstance(target, str) else target for target in by_row))
        return np.array([not isinstance(target, str) for target in by_row]), np.concatenate(rows)

    def targets_or(self, strings: TokenStrings, others: Targets) -> Targets:
        """Returns the targets of strings, with the given ones where they are not known.

        Given a model's answers, strings without a known target are not wrong.
        """
        questions = self.questions(strings)
        return np.where(questions.has_target, questions.targets, others)

    @property
    def known_strings(self) -> TokenStrings | None:
        """The only strings with a known target; None if the task has targets for all."""
        return self.task.known_strings() if isinstance(self.task, PartlyKnown) else None

    @property
    def unknown_labels(self) -> str | None:
        """The reason why some targets are not known; None if the task has targets for all."""
        if not isinstance(self.task, RowsTask):
            return None
        return (
            f"task={self.config.task!r}: of strings that are not in the file nobody knows what is "
            "right, nor whether the order of tokens matters"
        )

    @property
    def count_task(self) -> CountTask:
        """The task, as a language that letter counts determine.

        Raises:
            ConfigError: the language depends on the order of tokens.
        """
        if not isinstance(self.task, CountTask):
            raise ConfigError(
                f"task={self.config.task!r}: whether a string is in the language depends on the "
                "order of its tokens, so letter counts do not say it"
            )
        return self.task

    @property
    def required_letters(self) -> tuple[int, ...]:
        """Numbers of the letters that every positive string holds; empty but for `contains_all`."""
        return self.task.required if isinstance(self.task, ContainsAll) else ()


@lru_cache(maxsize=4096)
def resolve(config: RunConfig) -> Problem:
    """Looks up the parts that a configuration names, once in a process.

    Raises:
        ConfigError: there is no such task or sampler, or they do not fit each other.
        PluginError: a part from outside fails.
    """
    # A missing package is the clearest error, so it comes first.
    check_packages(config.plugins, plugins_of(config), _parts(config))
    read = language(config.task, dict(config))
    task = at_every_place(read, config.answers, config.task)
    kind = make_kind(task)
    if not config.knows_trained_lengths and (config.is_loaded or isinstance(task, RowsTask)):
        # The model's training strings need not be in the file, nor be known at all.
        train = validation = test = make_sampler(config, task, "test", None)
    else:
        train = make_sampler(config, task, "train", None)
        validation = make_sampler(config, task, "validation", train)
        test = make_sampler(config, task_of_test(config, task), "test", train)
    return Problem(
        config=config,
        task=task,
        kind=kind,
        train=train,
        validation=validation,
        test=test,
        network=make_network(config, task, kind, train, test),
    )


def tokenizer_of(config: RunConfig) -> Tokenizer | None:
    """Returns the tokenizer of a stored configuration's task.

    None if the task is unknown here, as without the package that brings it.
    """
    try:
        return resolve(config).tokenizer
    except ConfigError:
        return None
