"""Names of a model's parts, which can be ablated, and of its states, which can be patched."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seqcls.config import NetworkConfig

if TYPE_CHECKING:
    from torch import Tensor


PART_KINDS = ("head", "feed-forward", "unit", "dimension")
"""Names of sites that can be ablated; a dimension is one of a Transformer's residual stream."""


@dataclass(frozen=True)
class Site:
    """A state of the model: of one part, at every position."""

    name: str
    """`embedding`, `head`, `attention`, `feed-forward` or `block` (its output) of a Transformer;
    `mixer` instead of `attention` where a memory mixes tokens; a decoder's `cross-attention`;
    `layer` (all that a layer keeps), `state` or `cell` (the one or the other of an LSTM's), or
    `unit` (all that one unit keeps) of a recurrent network; a `unit` of a feed-forward; a
    `dimension` of the residual stream."""
    block: int | None = None
    """The block, or the layer of a recurrent network."""
    number: int | None = None
    """The number of the head, the unit or the dimension."""
    side: str = ""
    """`encoder` or `decoder`, where a model has both."""
    which: str = ""
    """The prefix of a head's name, such as `cross-attention `; empty for self-attention."""
    in_block: bool = False
    """True for a unit that its text counts within a block, not within a layer."""

    @property
    def is_whole(self) -> bool:
        """True if it is the whole memory of a recurrent layer."""
        return self.name == "layer"

    @property
    def text(self) -> str:
        """Its full name, such as `block 0, head 1` or `decoder block 0, head 1`."""
        name = self.name if self.number is None else f"{self.which}{self.name} {self.number}"
        if self.block is not None:
            of_layer = self.name in ("layer", "state", "cell", "unit") and not self.in_block
            within = f"{'layer' if of_layer else 'block'} {self.block}"
            name = within if self.name in ("layer", "block") else f"{within}, {name}"
        return f"{self.side} {name}".strip()

    def within(self, state: "Tensor") -> "Tensor":
        """Selects the site from one of its states, for all strings and positions."""
        if self.number is None:
            return state
        return state[:, self.number] if self.name == "head" else state[..., self.number]


ONLY_SELF: Mapping[str, str] = {"": "attention"}
"""The attentions of a block, by the prefix of their heads' names."""


def block_parts(
    config: NetworkConfig, side: str = "", attentions: Mapping[str, str] = ONLY_SELF
) -> Mapping[Site, str]:
    """Lists the parts of blocks: heads and feed-forwards, then units of the latter.

    Args:
        side: `encoder` or `decoder`, if a model has both.
        attentions: the names of each block's attentions, by the prefix of their heads' names.
    """
    parts = parts_among(config, block_sites(config, side, attentions))
    for block in range(config.num_blocks):
        activation = f"{inside('blocks', block, side)}feed_forward.activation"
        for unit in range(config.feed_forward_size):
            parts[Site("unit", block, unit, side, in_block=True)] = activation
    return parts


def parts_among(config: NetworkConfig, sites: Mapping[Site, tuple[str, ...]]) -> dict[Site, str]:
    """Lists the parts among sites: heads, units, and feed-forwards, each with its first state."""
    return {
        site: state
        for site, (state, *_) in sites.items()
        if site.name in PART_KINDS and (site.name != "feed-forward" or config.feed_forward_size)
    }


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
