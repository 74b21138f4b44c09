"""Names of a model's parts, which can be ablated, and of its states, which can be patched."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from seqcls.config import NetworkConfig

if TYPE_CHECKING:
    from torch import Tensor


PartKind = Literal["head", "feed-forward", "unit", "dimension"]
PART_KINDS: tuple[PartKind, ...] = get_args(PartKind)
"""Kinds of parts that can be ablated; a dimension is one of a Transformer's residual stream."""


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
    """The prefix of a head's name, such as `cross-attention `; empty for self-attention."""

    @property
    def text(self) -> str:
        """Its full name, such as `block 0, head 1` or `decoder block 0, head 1`."""
        if self.kind == "dimension":
            return self.name
        block = f"{'layer' if self.of_layer else 'block'} {self.block}, {self.name}"
        return f"{self.side} {block}" if self.side else block

    @property
    def name(self) -> str:
        """Its name within a block, such as `head 1`."""
        kind = f"{self.which}{self.kind}"
        return kind if self.kind == "feed-forward" else f"{kind} {self.number}"

    def within(self, state: "Tensor") -> "Tensor":
        """Selects the part from the state that holds it, for all strings and positions."""
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
    """The prefix of a head's name, like `Part.which`."""

    @property
    def is_whole(self) -> bool:
        """True if it is the whole memory of a recurrent layer."""
        return self.name == "layer"

    @property
    def text(self) -> str:
        """Its full name, such as `block 0, head 1` or `decoder block 0, head 1`."""
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
        """Selects the site from one of its states, for all strings and positions."""
        if self.head is not None:
            return state[:, self.head]
        return state if self.unit is None else state[..., self.unit]


ONLY_SELF: Mapping[str, str] = {"": "attention"}
"""The attentions of a block, by the prefix of their heads' names."""


def block_parts(
    config: NetworkConfig, side: str = "", attentions: Mapping[str, str] = ONLY_SELF
) -> Mapping[Part, str]:
    """Lists the parts of blocks: heads and feed-forwards, then units of the latter.

    Args:
        side: `encoder` or `decoder`, if a model has both.
        attentions: the names of each block's attentions, by the prefix of their heads' names.
    """
    parts = parts_among(config, block_sites(config, side, attentions))
    for block in range(config.num_blocks):
        activation = f"{inside('blocks', block, side)}feed_forward.activation"
        for unit in range(config.feed_forward_size):
            parts[Part(block, "unit", unit, side=side)] = activation
    return parts


def parts_among(config: NetworkConfig, sites: Mapping[Site, tuple[str, ...]]) -> dict[Part, str]:
    """Lists the parts among sites: heads, units, and feed-forwards, each with its first state."""
    parts = dict[Part, str]()
    for site, (state, *_) in sites.items():
        kind = next((kind for kind in PART_KINDS if kind == site.name), None)
        if site.block is None or kind is None:
            continue
        if kind != "feed-forward" or config.feed_forward_size:
            of_layer = "layers." in state
            number = site.head or site.unit or 0
            parts[Part(site.block, kind, number, of_layer, site.side, site.which)] = state
    return parts


def block_sites(
    config: NetworkConfig, side: str = "", attentions: Mapping[str, str] = ONLY_SELF
) -> Mapping[Site, tuple[str, ...]]:
    """Lists the sites of blocks; the arguments are those of `block_parts`."""
    last = "after_feed_forward" if config.norm_placement == "pre" else "feed_forward_norm"
    sites = dict[Site, tuple[str, ...]]()
    for block in range(config.num_blocks):
        within = inside("blocks", block, side)
        for which, name in attentions.items():
            for head in range(config.num_attention_heads):
                site = Site("head", block, head, side=side, which=which)
                sites[site] = (f"{within}{name}.mixed_value",)
            sites[Site(name.replace("_", "-"), block, side=side)] = (f"{within}{name}.output",)
        sites[Site("feed-forward", block, side=side)] = (f"{within}feed_forward.output",)
        sites[Site("block", block, side=side)] = (f"{within}{last}",)
    return sites


def inside(what: str, number: int, side: str = "") -> str:
    """The prefix of the names of states within one of the `blocks` or `layers`."""
    return f"{side}.{what}.{number}." if side else f"{what}.{number}."
