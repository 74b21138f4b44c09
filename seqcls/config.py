"""All that determines a trained model but its seed, as one frozen value."""

import difflib
import hashlib
import json
import math
from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from seqcls.errors import ConfigError
from seqcls.sampling import MAX_FIXED_LENGTH_STRINGS, SAMPLERS, Sampler, VariableLength
from seqcls.tasks import TASKS
from seqcls.tasks.contains_all import ContainsAll
from seqcls.tokenizer import MAX_LETTERS, Tokenizer

MAX_MODEL_SEED = 2**63 - 1
MAX_REQUIRED_LETTERS = 10
"""The sampler keeps a budget for each of the 2**r sets of required letters."""

Size = Annotated[int, Field(ge=0, le=4096)]
PositiveSize = Annotated[int, Field(ge=1, le=4096)]
StringLength = Annotated[int, Field(ge=1, le=10_000)]
BatchSize = Annotated[int, Field(ge=1, le=1_000_000)]
Alpha = Annotated[float, Field(ge=0.05, le=1e6)]
"""Below that a Dirichlet draw of only zeros, after rounding, would be more than a theory."""
SamplerSeed = Annotated[int, Field(ge=0, lt=2**32)]
InitStrategy = Literal["default", "output_fan_out"]


class _Settings(BaseModel):
    model_config = ConfigDict(
        frozen=True, strict=True, extra="forbid", allow_inf_nan=False, validate_default=True
    )

    @model_validator(mode="wrap")
    @classmethod
    def _refuse_in_one_line(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        try:
            return handler(data)
        except ValidationError as error:
            raise ConfigError(_one_line(cls, error)) from None


class NetworkConfig(_Settings):
    """The network: everything that determines its parameters' shapes and its function."""

    num_letters: Annotated[int, Field(ge=1, le=MAX_LETTERS)] = 3
    hidden_size: PositiveSize = 2
    num_attention_heads: Size = 2
    attention_head_size: PositiveSize = 1
    feed_forward_size: Size = 2
    layer_norm: Literal["rms", "nn"] = "rms"
    layer_norm_eps: Annotated[float, Field(ge=0, le=1)] = 1e-5
    """0 means no norm at all."""
    no_attend_cls: bool = False
    dropout_rate: Annotated[float, Field(ge=0, lt=1)] = 0.0
    embeddings_init_strategy: Literal["default", "linear_like"] = "default"
    attention_init_strategy: InitStrategy = "default"
    feed_forward_init_strategy: InitStrategy = "default"
    precision: Literal["float32", "float64"] = "float32"

    @property
    def has_norms(self) -> bool:
        return self.layer_norm_eps > 0

    @property
    def vocabulary_size(self) -> int:
        return self.num_letters + 2


class RunConfig(NetworkConfig):
    """One configuration of task, alphabet, network, strings and training.

    Every field is an axis that a sweep can vary; the defaults are those of the report's program.

    Raises:
        ConfigError: an unknown field, or a value or combination that cannot be trained.
    """

    task: str = "contains_all"
    required_letters: str = "ab"

    train_sampler: str = "variable_length"
    train_max_length: StringLength = 10
    train_alpha: Alpha = 1.0
    train_size: BatchSize = 10_000
    """Strings an epoch for `variable_length`, rounded down to whole batches."""
    sequence_length: Annotated[int, Field(ge=2, le=100)] = 10
    """Tokens of each string of `fixed_length`, `CLS` counted."""
    train_batch_size: BatchSize = 64
    train_seed: SamplerSeed = 0

    validation_max_length: StringLength = 50
    validation_alpha: Alpha = 0.5
    validation_size: BatchSize = 1_000
    validation_batch_size: BatchSize = 64
    validation_seed: SamplerSeed = 0

    test_max_length: StringLength = 200
    test_alpha: Alpha = 0.1
    test_size: BatchSize = 10_000
    test_batch_size: BatchSize = 256
    test_seed: SamplerSeed = 2

    train_loss: Literal["default", "sigmoid_scaled"] = "default"
    learning_rate: Annotated[float, Field(gt=0, le=10)] = 1e-2
    final_learning_rate_factor: Annotated[float, Field(gt=0, le=1)] = 0.5
    """What is left of the learning rate after `max_num_epochs` epochs."""
    max_num_epochs: Annotated[int, Field(ge=1, le=100_000)] = 30
    min_num_epochs: Annotated[int, Field(ge=0, le=100_000)] = 5
    patience: Annotated[int, Field(ge=1, le=100_000)] = 3
    min_validation_loss: Annotated[float, Field(ge=0)] = 0.05
    """Training stops below this sum over the validation strings, in nats."""

    @field_validator("task", "train_sampler")
    @classmethod
    def _registered(cls, name: str, info: ValidationInfo) -> str:
        known: dict[str, Any] = TASKS if info.field_name == "task" else SAMPLERS
        if name not in known:
            raise ValueError(f"expected one of {', '.join(map(repr, sorted(known)))}")
        return name

    @field_validator("required_letters")
    @classmethod
    def _in_order(cls, letters: str) -> str:
        if not letters or len(set(letters)) < len(letters):
            raise ValueError("expected distinct letters, at least one, such as 'ab'")
        if len(letters) > MAX_REQUIRED_LETTERS:
            raise ValueError(f"expected at most {MAX_REQUIRED_LETTERS} letters")
        return "".join(sorted(letters))

    @model_validator(mode="after")
    def _possible(self) -> Self:
        self._check_letters()
        self._check_lengths()
        self._check_sizes()
        return self

    def _check_letters(self) -> None:
        alphabet = Tokenizer(self.num_letters).alphabet
        outside = sorted(set(self.required_letters) - set(alphabet))
        if outside:
            raise ConfigError(
                f"required_letters={self.required_letters!r}: {outside[0]!r} is outside the "
                f"alphabet {alphabet!r}; raise num_letters or require other letters"
            )
        if len(self.required_letters) == self.num_letters:
            raise ConfigError(
                f"required_letters={self.required_letters!r} leaves no other letters of the "
                f"alphabet {alphabet!r} to draw strings from; raise num_letters or require fewer"
            )

    def _check_lengths(self) -> None:
        for part in ("train", "validation", "test"):
            longest = getattr(self, f"{part}_max_length")
            if longest < len(self.required_letters):
                raise ConfigError(
                    f"{part}_max_length={longest}: no string of that length holds all required "
                    f"letters {self.required_letters!r}; expected at least "
                    f"{len(self.required_letters)}"
                )
        strings = self.num_letters ** (self.sequence_length - 1)
        if self.train_sampler == "fixed_length" and strings > MAX_FIXED_LENGTH_STRINGS:
            raise ConfigError(
                f"sequence_length={self.sequence_length}: fixed_length would train on all "
                f"{self.num_letters}^{self.sequence_length - 1} strings, expected at most "
                f"{MAX_FIXED_LENGTH_STRINGS:,}; lower sequence_length or num_letters"
            )

    def _check_sizes(self) -> None:
        for part in ("train", "validation", "test"):
            size, batch = getattr(self, f"{part}_size"), getattr(self, f"{part}_batch_size")
            enumerated = part == "train" and self.train_sampler == "fixed_length"
            if size < batch and not enumerated:
                raise ConfigError(
                    f"{part}_size={size} is less than one batch of {part}_batch_size={batch}; "
                    f"raise {part}_size or lower {part}_batch_size"
                )

    @classmethod
    def from_mapping(cls, fields: Mapping[str, Any]) -> Self:
        """A configuration from the names and values of its fields.

        Raises:
            ConfigError: as the class.
        """
        return cls.model_validate(dict(fields))

    @cached_property
    def changed(self) -> dict[str, Any]:
        """The fields that differ from their default, by name."""
        defaults = default_fields()
        fields = sorted(self.model_dump().items())
        # Adding zero makes -0.0 what it equals.
        positive = {k: v + 0.0 if isinstance(v, float) else v for k, v in fields}
        return {k: v for k, v in positive.items() if v != defaults[k]}

    @cached_property
    def key(self) -> str:
        """A hash of the fields that differ from their default, as 64 hexadecimal digits.

        A field added later, at its default, changes no key.
        """
        return hashlib.sha256(canonical_json(self.changed).encode()).hexdigest()

    @cached_property
    def group_key(self) -> str:
        """Equal for configurations whose members can train in one group, seeds aside.

        Initial values are the members' own; all else, shapes and strings and steps, they share.
        """
        own = {
            "embeddings_init_strategy",
            "attention_init_strategy",
            "feed_forward_init_strategy",
        }
        return canonical_json({k: v for k, v in self.changed.items() if k not in own})

    @cached_property
    def language(self) -> ContainsAll:
        return TASKS[self.task](self.num_letters, self.required_letters)

    @property
    def longest_train_length(self) -> int:
        """Letters of the longest string that the model may be trained on."""
        if self.train_sampler == "fixed_length":
            return self.sequence_length - 1
        return self.train_max_length

    @cached_property
    def train_strings(self) -> Sampler:
        return SAMPLERS[self.train_sampler].of_part(self, "train")

    @cached_property
    def validation_strings(self) -> Sampler:
        return VariableLength.of_part(self, "validation")

    @cached_property
    def test_strings(self) -> Sampler:
        return VariableLength.of_part(self, "test")


def default_fields() -> dict[str, Any]:
    """Every field of a configuration with its default."""
    return {name: field.default for name, field in RunConfig.model_fields.items()}


def canonical_json(value: Any) -> str:
    """JSON with sorted keys and no spaces: equal values, equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def check_model_seed(seed: int) -> int:
    """The seed, where PyTorch's generators and every database can hold it.

    Raises:
        ConfigError: it is no whole number from 0 to `MAX_MODEL_SEED`.
    """
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed <= MAX_MODEL_SEED:
        raise ConfigError(
            f"model_seed={seed!r}: expected a whole number from 0 to {MAX_MODEL_SEED}"
        )
    return seed


def nearest(name: str, known: list[str]) -> str:
    """A hint at the known name that looks most like this one."""
    matches = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"did you mean {matches[0]!r}?" if matches else f"known are {', '.join(known)}"


def _one_line(cls: type[BaseModel], error: ValidationError) -> str:
    problems = []
    for problem in error.errors(include_url=False):
        name = ".".join(map(str, problem["loc"])) or cls.__name__
        if problem["type"] == "extra_forbidden":
            problems.append(f"unknown field {name!r}: {nearest(name, list(cls.model_fields))}")
            continue
        message = problem["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
        shown = "NaN" if _is_nan(problem["input"]) else repr(problem["input"])
        problems.append(f"{name}={shown[:80]}: expected {message.removeprefix('expected ')}")
    return "; ".join(problems)


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)
