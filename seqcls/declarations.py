"""Declarations of a configuration's fields, each once, in the class that reads it.

    class Brackets(Fields):
        '''max_depth: Brackets open at once; 0 means no limit.'''

        max_depth: Annotated[int, Field(ge=0, le=10_000), About("Task", 9)] = 0

Type, limits, default, place on the form, other names and the phrase of a protocol are in the
annotation; the meaning is in the docstring, one or more lines for each field. `RunConfig` inherits
from these classes; a part of a run reads the fields of its class, and a field that no part reads
must have its default. Forms, names, refusals and docs use the configuration's fields.
"""

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar, Literal, Self, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    ValidationError,
    model_validator,
)
from pydantic.fields import FieldInfo

from seqcls.errors import ConfigError
from seqcls.text import OTHER_NAMES, in_one_line

Group = Literal["Task", "Strings", "Network", "Training"]
"""The groups of settings of a new sweep."""

STRING_PARTS = ("train", "validation", "test")
"""The parts of a run's strings, with separate fields such as `train_size`."""

LAST = 1_000
"""The place of a field that names none."""


KNOWN: set[str] = set()
"""The fields of every configuration, once `seqcls.config` is imported."""

FOREIGN: set[str] = set()
"""The fields that other packages declare."""

# The meaning of a field ends where a line begins with another name and a colon.
_MEANING = re.compile(r"^(\w+): (.+(?:\n(?!\w+: ).+)*)", re.MULTILINE)
"""The meaning of a field in a docstring; fields of parts, such as `train_size`, share `size`."""


class About:
    """Description of a field in its annotation.

    Args:
        group: its group in the settings of a new sweep; None for a field that is filled in.
        place: its place in the group, in which the most used fields come first.
        also: other names for it, separated by spaces.
        phrase: a function from a configuration to the field's phrase in the protocol, or "".
    """

    def __init__(
        self,
        group: Group | None,
        place: int = LAST,
        also: str = "",
        phrase: Callable[[Any], str] | None = None,
    ) -> None:
        self.group, self.place, self.also, self.phrase = group, place, also.split(), phrase
        self.says = ""
        """The meaning of the field in sentences, from the docstring of its class."""
        self.alone = False
        """True if it may differ from its default although nothing reads it."""

    def complete(self, name: str, cls: type, *, alone: bool) -> None:
        """Reads the meaning of the field from the docstring of the class that declares it.

        Raises:
            TypeError: the docstring lacks it.
        """
        if self.says:  # By a class before, whose subclass this is.
            return
        says = dict(_MEANING.findall(inspect.cleandoc(cls.__doc__ or "")))
        part, _, rest = name.partition("_")
        # Fields of the three parts share a line, in which {} is the part.
        text = says.get(name) or (says.get(rest, "") if part in STRING_PARTS else "")
        if not text:
            raise TypeError(
                f"{cls.__qualname__} declares {name}: expected a line '{name}: …' in its docstring "
                "that says what it is"
            )
        whose = "training" if part == "train" else part
        self.says, self.alone = " ".join(text.split()).replace("{}", whose), alone
        for other in self.also:
            # A name that two fields claim belongs to the first.
            OTHER_NAMES.setdefault(other, name)

    @property
    def order(self) -> tuple[int, int]:
        """Its sort key among all settings."""
        groups = get_args(Group)
        return (groups.index(self.group) if self.group else len(groups)), self.place

    @property
    def line(self) -> str:
        """Its first sentence, as a form shows it."""
        return re.split(r"(?<=\.)\s", self.says)[0]


Size = Annotated[int, Field(ge=0, le=4096)]
PositiveSize = Annotated[int, Field(ge=1, le=4096)]
Name = Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[A-Za-z_][A-Za-z0-9_.-]*$")]
"""The name of a task, a sampler, a position scheme or an architecture, a plug-in's among them."""
Seed = Annotated[int, Field(ge=0, lt=2**32)]
Share = Annotated[float, Field(gt=0, lt=1)]
Text = Annotated[str, Field(max_length=1_000)]


def declared_by(cls: type, *, alone: bool = False) -> dict[str, Any]:
    """Returns the annotations of the fields that a class and its bases declare, by name.

    Args:
        alone: that of `Fields`.

    Raises:
        TypeError: a docstring lacks the meaning of one of them.
    """
    found: dict[str, Any] = {}
    # Bases come first, so that a class overrides them.
    for base in reversed(cls.__mro__):
        # `vars` has the annotations of this class alone; its bases came before.
        for name, annotation in vars(base).get("__annotations__", {}).items():
            for about in getattr(annotation, "__metadata__", ()):
                if isinstance(about, About):
                    found[name] = annotation
                    about.complete(name, base, alone=alone)
    return found


def about_of(field: FieldInfo) -> About:
    """Returns the description of a field of a configuration."""
    return next(x for x in field.metadata if isinstance(x, About))


class Fields:
    """Base of classes that declare fields of a configuration.

    With `alone=True` the fields of a class may differ from their defaults although nothing reads
    them, as in stored configurations of the first version.

    Raises:
        TypeError: the docstring lacks the meaning of a field.
    """

    reads: ClassVar[frozenset[str]] = frozenset()
    """Names of the fields that it reads, those that it and its bases declare."""

    def __init_subclass__(cls, *, alone: bool = False, **given: Any) -> None:
        super().__init_subclass__(**given)
        if own := declared_by(cls, alone=alone):
            cls.reads = cls.reads.union(own)


class Settings(BaseModel):
    """A frozen value with checked fields, which refuses wrong ones in one line."""

    model_config = ConfigDict(
        frozen=True, strict=True, extra="forbid", allow_inf_nan=False, validate_default=True
    )

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Copies it with other values, without cached properties such as a key."""
        copied = super().model_copy(update=update, deep=deep)
        for name in copied.__dict__.keys() - type(self).model_fields.keys():
            del copied.__dict__[name]
        return copied

    @model_validator(mode="wrap")
    @classmethod
    def _refuse_in_one_line(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        try:
            return handler(data)
        except ValidationError as error:
            raise ConfigError(in_one_line(cls, error)) from None
