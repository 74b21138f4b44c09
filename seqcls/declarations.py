"""How a field of a configuration is declared: once, in the class that reads it.

    class Brackets(Fields):
        '''max_depth: Brackets open at once; 0 means no limit.'''

        max_depth: Annotated[int, Field(ge=0, le=10_000), About("Task", 9)] = 0

Type, limits, default, place on the form, other names and the phrase of a protocol stand in the
annotation, and what it is in the docstring: a line for each field, more lines where it needs them.
All else follows. `RunConfig` is made of these classes by inheritance; a part of a run reads the
fields of its class, and what no part reads has to keep its default. Forms, names, refusals and docs
ask the configuration.
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
"""The parts of a run's strings; each has fields of its own, such as `train_size`."""

LAST = 1_000
"""The place of a field that names none."""


KNOWN: set[str] = set()
"""The fields of every configuration, once `seqcls.config` is there."""

FOREIGN: set[str] = set()
"""Those of them that other packages declare."""

# What is said of a field ends where a line begins with another name and a colon.
_MEANING = re.compile(r"^(\w+): (.+(?:\n(?!\w+: ).+)*)", re.MULTILINE)
"""What a docstring says of a field; of each part's, such as `train_size`, under `size`."""


class About:
    """What is said of a field in its annotation.

    Args:
        group: where it stands among the settings of a new sweep; None where it is filled in.
        place: its place in the group, where those come first that are asked for most.
        also: what others call it, with spaces between.
        phrase: makes of a configuration the phrase of its protocol about the field, or nothing.
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
        """What the field is, in sentences, as the docstring of its class says."""
        self.alone = False
        """Whether it may differ from its default where nothing reads it."""

    def complete(self, name: str, cls: type, *, alone: bool) -> None:
        """Takes what the field is from the docstring of the class that declares it.

        Raises:
            TypeError: it does not say it.
        """
        if self.says:  # By a class before, whose subclass this is.
            return
        says = dict(_MEANING.findall(inspect.cleandoc(cls.__doc__ or "")))
        part, _, rest = name.partition("_")
        # Fields of the three parts have one line, in which {} stands for the part.
        text = says.get(name) or (says.get(rest, "") if part in STRING_PARTS else "")
        if not text:
            raise TypeError(
                f"{cls.__qualname__} declares {name}: expected a line '{name}: …' in its docstring "
                "that says what it is"
            )
        whose = "training" if part == "train" else part
        self.says, self.alone = " ".join(text.split()).replace("{}", whose), alone
        for other in self.also:
            # A name that two fields claim is that of the first.
            OTHER_NAMES.setdefault(other, name)

    @property
    def order(self) -> tuple[int, int]:
        """Where it stands among all settings."""
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
    """The annotations of the fields that a class and its bases declare, by name.

    Args:
        alone: as of `Fields`.

    Raises:
        TypeError: a docstring does not say what one of them is.
    """
    found: dict[str, Any] = {}
    # Bases come first, so that what a class says itself is what counts.
    for base in reversed(cls.__mro__):
        # Its own annotations alone: those of its bases have had their turn.
        for name, annotation in vars(base).get("__annotations__", {}).items():
            for about in getattr(annotation, "__metadata__", ()):
                if isinstance(about, About):
                    found[name] = annotation
                    about.complete(name, base, alone=alone)
    return found


def about_of(field: FieldInfo) -> About:
    """What is said of a field of a configuration."""
    return next(x for x in field.metadata if isinstance(x, About))


class Fields:
    """What declares fields of a configuration, or is made of classes that do.

    A class is made with `alone=True` where its own may differ from their defaults though nothing
    reads them, as those of the first version may: such configurations are stored.

    Raises:
        TypeError: its docstring does not say what one of its fields is.
    """

    reads: ClassVar[frozenset[str]] = frozenset()
    """The names of the fields that it reads; a class adds those that it and its bases declare."""

    def __init_subclass__(cls, *, alone: bool = False, **given: Any) -> None:
        super().__init_subclass__(**given)
        if own := declared_by(cls, alone=alone):
            cls.reads = cls.reads.union(own)


class Settings(BaseModel):
    """A frozen value with checked fields; what is wrong is refused in one line."""

    model_config = ConfigDict(
        frozen=True, strict=True, extra="forbid", allow_inf_nan=False, validate_default=True
    )

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy with other values, of which nothing is kept that was computed from those before,
        such as a key.
        """
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
