"""What blocks of attention and feed-forward have: parts to do without, and states to carry over."""

from collections.abc import Mapping

from seqcls.config import NetworkConfig
from seqcls.models.parts import Part, Site

ONLY_SELF: Mapping[str, str] = {"": "attention"}
"""The attentions of a block, by what comes before the names of their heads."""


def block_parts(
    config: NetworkConfig, side: str = "", attentions: Mapping[str, str] = ONLY_SELF
) -> Mapping[Part, str]:
    """The parts of blocks: heads, feed-forwards, and units of these, block by block.

    Args:
        config: of the network.
        side: `encoder` or `decoder`, where a model has both.
        attentions: the names of each block's, by what comes before the names of their heads.
    """
    parts = dict[Part, str]()
    for block in range(config.num_blocks):
        within = inside("blocks", block, side)
        for which, name in attentions.items():
            for head in range(config.num_attention_heads):
                part = Part(block, "head", head, side=side, which=which)
                parts[part] = f"{within}{name}.mixed_value"
        if config.feed_forward_size:
            parts[Part(block, "feed-forward", side=side)] = f"{within}feed_forward.output"
        for unit in range(config.feed_forward_size):
            parts[Part(block, "unit", unit, side=side)] = f"{within}feed_forward.activation"
    return parts


def block_sites(
    config: NetworkConfig, side: str = "", attentions: Mapping[str, str] = ONLY_SELF
) -> Mapping[Site, tuple[str, ...]]:
    """The sites of blocks alone; the arguments as `block_parts` takes them."""
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
    """How the names of states within one of the `blocks` or `layers` begin."""
    return f"{side}.{what}.{number}." if side else f"{what}.{number}."
