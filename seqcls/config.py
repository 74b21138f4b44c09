"""Configurations: everything but the seed that determines a trained model, as one frozen value."""

import hashlib
import json
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from seqcls.curricula import frozen_as_json, frozen_parts
from seqcls.declarations import (
    FOREIGN,
    KNOWN,
    STRING_PARTS,
    About,
    Fields,
    Name,
    Settings,
    Text,
    about_of,
)
from seqcls.errors import ConfigError
from seqcls.kinds.transduction import WritingFields
from seqcls.network import COUPLED, IMPORTED, NetworkConfig, NetworkFields, are_imported
from seqcls.plugins import foreign_fields
from seqcls.sampling.balanced import AS_TRAINED, BalancedFields
from seqcls.sampling.by_length import LengthFields
from seqcls.sampling.dataset_rows import ShareFields
from seqcls.sampling.parts import ANY_SAMPLER, REPORT_SAMPLER, PartFields
from seqcls.tasks.counting import FormulaFields
from seqcls.tasks.files import FileFields
from seqcls.tasks.finite_state import Elements
from seqcls.tasks.flip_flop import AS_OTHERS, IgnoredInTests
from seqcls.tasks.letter_counts import RequiredLetters
from seqcls.tasks.memory import AmongNoise, Neighbors
from seqcls.tasks.numbers import Operands
from seqcls.tasks.paragraph import PageFields
from seqcls.tasks.places import AnswersFields
from seqcls.tasks.rewriting import RewriteFields
from seqcls.tasks.stack import Brackets
from seqcls.tasks.subregular import ClassFields, LanguageClass
from seqcls.tasks.transductions import DistinctTokens
from seqcls.text import canonical_json, count

__all__ = [
    "ABOUT", "ANY_SAMPLER", "AS_OTHERS", "AS_TRAINED", "COUPLED", "IMPORTED",
    "REPORT_SAMPLER", "STRING_PARTS", "LanguageClass", "NetworkConfig", "RunConfig", "are_imported",
]  # fmt: skip

MAX_MODEL_SEED = 2**63 - 1
REPORT_TASK = "contains_all"

Decay = Literal["all", "matrices"]


def _say_warm_up(run: Any) -> str:
    return f"a warm-up of {count(run.warm_up_steps, 'step')}" if run.warm_up_steps else ""


def _say_frozen(run: Any) -> str:
    frozen = frozen_parts(run.freeze).items()
    return ", ".join(f"{part} fixed until {until:.0%} of training" for part, until in frozen)


def _say_decay(run: Any) -> str:
    restriction = " of matrices alone" * (run.decay != "all" and run.weight_decay > 0)
    return f"weight decay {run.weight_decay:g}{restriction}"


def _say_clip(run: Any) -> str:
    return f"gradients clipped to norm {run.gradient_clip:g}" if run.gradient_clip else ""


class OptimizerFields(Fields):
    """The loss and the optimizer.

    train_loss: `sigmoid_scaled`: the loss of the report's program.
    learning_rate: The optimizer's rate at the start.
    final_learning_rate_factor: What is left of the learning rate after `max_num_epochs` epochs.
    learning_rate_schedule: The way it falls to that.
    learning_rate_interval: Whether it falls after every epoch, or at every step after the warm-up.
    warm_up_steps: Steps over which the learning rate grows to its value, linearly.
    freeze: Parts whose weights stay as they were drawn until a share of training, such as
        `[["embeddings", 0.2]]`: `embeddings`, `positions`, `blocks`, one `block 0`, `head`.
    weight_decay: How strongly weights are pulled toward 0.
    decay: Which weights are: all, or only matrices, embeddings among them, and no biases or norms.
    gradient_clip: The largest norm of a member's gradient; 0 means no limit.
    """

    train_loss: Annotated[Literal["default", "sigmoid_scaled"], About("Training", 7)] = "default"
    learning_rate: Annotated[float, Field(gt=0, le=10), About("Training", 1, "lr rate")] = 1e-2
    final_learning_rate_factor: Annotated[float, Field(ge=0, le=1), About("Training", 3)] = 0.5
    learning_rate_schedule: Annotated[
        Literal["linear", "cosine"], About("Training", 4, "schedule scheduler lr_schedule")
    ] = "linear"
    learning_rate_interval: Annotated[
        Literal["epoch", "step"], About("Training", 5, "interval lr_interval")
    ] = "epoch"
    warm_up_steps: Annotated[
        int,
        Field(ge=0, le=1_000_000),
        About("Training", 6, "warmup warmup_steps warm_up", _say_warm_up),
    ] = 0
    freeze: Annotated[
        Text, BeforeValidator(frozen_as_json), About("Training", 17, phrase=_say_frozen)
    ] = ""
    weight_decay: Annotated[float, Field(ge=0, le=10), About("Training", 13, "wd", _say_decay)] = (
        0.01
    )
    decay: Annotated[Decay, About("Training", 14)] = "all"
    gradient_clip: Annotated[
        float,
        Field(ge=0, le=1e6),
        About("Training", 15, "clip grad_clip max_grad_norm", _say_clip),
    ] = 0.0


class CheckFields(Fields):
    """check_every: Steps after which that is looked at, counted over all of training; 0: only after
        epochs.
    train_more_steps: Steps that training goes on for once all was right: it then ends, and keeps
        that model, as soon as all is right when it is looked at.
    """

    check_every: Annotated[int, Field(ge=0, le=1_000_000_000), About("Training", 12)] = 0
    train_more_steps: Annotated[int, Field(ge=0, le=1_000_000_000), About("Training", 18)] = 0


Epochs = Annotated[int, Field(ge=1, le=100_000)]


class BudgetFields(CheckFields):
    """max_num_epochs: Training ends after so many epochs.
    min_num_epochs: Training does not stop early before so many epochs.
    patience: Epochs without a lower validation loss after which training stops.
    min_validation_loss: Training stops below this sum over the validation strings, in nats.
    stop_when_right: Whether training ends, and keeps that model, as soon as every validation string
        of trained lengths is answered right.
    """

    max_num_epochs: Annotated[
        Epochs, About("Training", 2, "epochs num_epochs max_epochs n_epochs")
    ] = 30
    min_num_epochs: Annotated[int, Field(ge=0, le=100_000), About("Training", 8)] = 5
    patience: Annotated[Epochs, About("Training", 9)] = 3
    min_validation_loss: Annotated[float, Field(ge=0), About("Training", 10)] = 0.05
    stop_when_right: Annotated[bool, About("Training", 11)] = False


class RunConfig(
    Settings,
    OptimizerFields,
    BudgetFields,
    ShareFields,
    BalancedFields,
    LengthFields,
    PartFields,
    WritingFields,
    AnswersFields,
    FileFields,
    ClassFields,
    PageFields,
    RewriteFields,
    Operands,
    IgnoredInTests,
    AmongNoise,
    Neighbors,
    DistinctTokens,
    Brackets,
    Elements,
    FormulaFields,
    RequiredLetters,
    NetworkFields,
):
    """One configuration of task, alphabet, network, strings and training.

    Every field is an axis that a sweep can vary; the defaults are those of the report's program.
    Strings of other tasks than the report's are drawn by `balanced_strings` where no sampler is
    named. `seqcls.problem.configuration` checks that task, samplers and network fit each other.

    Raises:
        ConfigError: an unknown field, or a value out of its limits.

    task: The language to recognize, or the transduction to compute.
    plugins: Names and versions of the packages that results depend on; `seqcls.problem` fills them
        in.
    imported: The name and settings of a model trained elsewhere, as JSON; see `seqcls.imported`.
        With an architecture of ours its weights are here.
    """

    task: Annotated[Name, About("Task", 1, "language problem")] = REPORT_TASK
    plugins: Annotated[Text, About(None)] = ""
    imported: Annotated[str, Field(max_length=100_000), About(None)] = ""

    if TYPE_CHECKING:
        # Mypy knows the fields of the classes above, and not that this is made of them.
        def __init__(self, **fields: Any) -> None: ...

    @model_validator(mode="before")
    @classmethod
    def _blocks_of_layers(cls, fields: Any) -> Any:
        layers = fields.get("layers") if isinstance(fields, Mapping) else None
        if not isinstance(layers, str) or not layers or fields.get("num_blocks") != len(layers):
            return fields
        # `layers` already determines it, and equal configurations need one key.
        return {name: value for name, value in fields.items() if name != "num_blocks"}

    @model_validator(mode="before")
    @classmethod
    def _samplers_of_the_task(cls, fields: Any) -> Any:
        if not isinstance(fields, Mapping) or fields.get("task", REPORT_TASK) == REPORT_TASK:
            return fields
        # Given fields come last and override these.
        return {**{f"{part}_sampler": ANY_SAMPLER for part in STRING_PARTS}, **fields}

    @property
    def is_loaded(self) -> bool:
        """True if its models' weights were trained elsewhere and loaded here."""
        return bool(self.imported) and not self.is_imported

    @cached_property
    def knows_trained_lengths(self) -> bool:
        """True if it determines the lengths of its models' training strings."""
        if self.is_imported or not self.imported:
            return not self.is_imported
        return bool(self._origin.get("trained"))

    @property
    def loaded_places(self) -> int | None:
        """Number of rows of a loaded table of positions; None if there is none."""
        places = self._origin.get("places") if self.is_loaded else None
        return places if isinstance(places, int) and places > 0 else None

    @cached_property
    def _origin(self) -> Mapping[str, Any]:
        """The stored description of a model that was trained elsewhere; see `seqcls.imported`."""
        try:
            content = json.loads(self.imported or "{}")
        except (ValueError, RecursionError):
            return {}
        return content if isinstance(content, dict) else {}

    @classmethod
    def from_mapping(cls, fields: Mapping[str, Any]) -> Self:
        """Makes a configuration from the names and values of its fields.

        Raises:
            ConfigError: an unknown field, or a value out of its limits.
        """
        return cls.model_validate(dict(fields))

    @classmethod
    def from_stored(cls, fields: Mapping[str, Any]) -> "RunConfig":
        """Makes a configuration that was stored, perhaps with fields of packages missing here.

        Raises:
            ConfigError: an unknown field, or a value out of its limits.
        """
        # Only a configuration that names packages may have fields that are not declared here.
        lacks = fields.get("plugins") and not fields.keys() <= cls.model_fields.keys()
        return (_WithForeignFields if lacks else cls).from_mapping(fields)

    @cached_property
    def changed(self) -> dict[str, Any]:
        """The fields that differ from their default, by name."""
        defaults = default_fields()
        fields = sorted(self.model_dump().items())
        # Adding zero turns -0.0 into 0.0.
        positive = {k: v + 0.0 if isinstance(v, float) else v for k, v in fields}
        return {k: v for k, v in positive.items() if k not in defaults or v != defaults[k]}

    @cached_property
    def key(self) -> str:
        """A hash of the fields that differ from their default, 64 hexadecimal digits.

        A field added later, at its default, changes no key.
        """
        return hashlib.sha256(canonical_json(self.changed).encode()).hexdigest()

    @cached_property
    def group_key(self) -> str:
        """A text that is equal for configurations that can train in one group, with any seeds.

        Members differ in initial values alone; they share shapes, strings and steps.
        """
        not_shared = {
            "embeddings_init_strategy",
            "attention_init_strategy",
            "feed_forward_init_strategy",
        }
        return canonical_json({k: v for k, v in self.changed.items() if k not in not_shared})


def _list_fields() -> dict[str, About]:
    """Adds the fields that other packages declare, and sorts all in the order of a form.

    Returns:
        The description of each.
    """
    fields, networks = RunConfig.model_fields, NetworkConfig.model_fields
    for name, field in foreign_fields(fields).items():
        FOREIGN.add(name)
        fields[name] = field
        if about_of(field).group == "Network":
            networks[name] = field
    # Pydantic has already compiled the classes, so new fields need a rebuild.
    if FOREIGN:
        NetworkConfig.model_rebuild(force=True)
        RunConfig.model_rebuild(force=True)
    listed = sorted(fields, key=lambda name: about_of(fields[name]).order)
    for name in listed:
        # Moving each to the end gives Pydantic's mapping this order.
        fields[name] = fields.pop(name)
    return {name: about_of(fields[name]) for name in listed}


ABOUT = _list_fields()
"""The description of each field."""

KNOWN.update(ABOUT)


class _WithForeignFields(RunConfig):
    """A stored configuration with fields of a package that is missing here."""

    model_config = ConfigDict(extra="allow")


def default_fields() -> dict[str, Any]:
    """Returns every field of a configuration with its default."""
    return {name: field.default for name, field in RunConfig.model_fields.items()}


def check_model_seed(seed: int) -> int:
    """Returns a seed that PyTorch's generators and every database can hold.

    Raises:
        ConfigError: it is no whole number from 0 to `MAX_MODEL_SEED`.
    """
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed <= MAX_MODEL_SEED:
        raise ConfigError(
            f"model_seed={seed!r}: expected a whole number from 0 to {MAX_MODEL_SEED}"
        )
    return seed
