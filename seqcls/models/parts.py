"""What a model has: parts that can be ablated, and states that can be carried over."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from torch import Tensor

PartKind = Literal["head", "feed-forward", "unit", "dimension"]
PART_KINDS: tuple[PartKind, ...] = ("head", "feed-forward", "unit")
"""Those that any model may name; a hidden dimension of the stream is ablated by letter counts."""


@dataclass(frozen=True, order=True)
class Part:
    """A part of a model that can be ablated."""

    block: int
    """The block, or the layer of a recurrent network."""
    kind: PartKind
    number: int = 0
    """The number of the head, the unit or the dimension; a feed-forward is 0."""
    of_layer: bool = False
    side: str = ""
    """`encoder` or `decoder`, where a model has both."""
    which: str = ""
    """What comes before a head of another attention than that to its own stream."""

    @property
    def text(self) -> str:
        """What it is called, such as `block 0, head 1`, or `decoder block 0, head 1`."""
        block = f"{'layer' if self.of_layer else 'block'} {self.block}, {self.name}"
        return f"{self.side} {block}" if self.side else block

    @property
    def name(self) -> str:
        """What it is called where there is one block, such as `head 1`."""
        kind = f"{self.which}{self.kind}"
        return kind if self.kind == "feed-forward" else f"{kind} {self.number}"

    def within(self, state: "Tensor") -> "Tensor":
        """The part's own share of the state that it is in, for all strings and positions."""
        if self.kind == "feed-forward":
            return state
        return state[:, self.number] if self.kind == "head" else state[..., self.number]


@dataclass(frozen=True)
class Site:
    """A state of the model: of one part, at every position."""

    name: str
    """`embedding`, `head`, `attention`, `feed-forward` or `block` (its output) of a Transformer;
    `mixer` instead of `attention` where a memory mixes tokens; a decoder's `cross-attention`;
    `layer` (all that a layer keeps), `state` or `cell` (the one or the other of an LSTM's), or
    `unit` (all that one unit keeps) of a recurrent network."""
    block: int | None = None
    head: int | None = None
    unit: int | None = None
    side: str = ""
    """`encoder` or `decoder`, where a model has both."""
    which: str = ""
    """The stream, as `Part.which` names it."""

    @property
    def is_whole(self) -> bool:
        """Whether it is all that a recurrent layer keeps, and so all of what the layer has read."""
        return self.name == "layer"

    @property
    def text(self) -> str:
        """What the site is called, such as `block 0, head 1`, or `decoder block 0, head 1`."""
        return f"{self.side} {self._of_side}" if self.side else self._of_side

    @property
    def _of_side(self) -> str:
        if self.block is None:
            return self.name
        if self.name == "layer":
            return f"layer {self.block}"
        if self.name in ("state", "cell", "unit"):
            number = "" if self.unit is None else f" {self.unit}"
            return f"layer {self.block}, {self.name}{number}"
        if self.name == "block":
            return f"block {self.block}"
        part = self.name if self.head is None else f"{self.which}head {self.head}"
        return f"block {self.block}, {part}"

    def within(self, state: "Tensor") -> "Tensor":
        """The site's own share of one of its states, for all strings and positions."""
        if self.head is not None:
            return state[:, self.head]
        return state if self.unit is None else state[..., self.unit]
