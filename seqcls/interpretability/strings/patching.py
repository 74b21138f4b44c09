"""Activation patching: a state of one string put in the place of another's.

The model reads the *base* string; one state at one place is that which it has for the *source*
string of the same length. Where the answer turns into the source's, that state carried it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from seqcls.errors import ConfigError, InvalidStringError
from seqcls.interpretability.strings.asked import AskedModel
from seqcls.interpretability.strings.plain import (
    PAIRS_AT_ONCE,
    Changing,
    ids_of,
    plain_model,
    token_names,
)
from seqcls.interpretability.strings.states import check_length
from seqcls.models.base import Recorder
from seqcls.models.recurrent import Cell, Recurrent
from seqcls.models.transformer import Block, Transformer, read_states


@dataclass(frozen=True)
class Site:
    """A state of the model: of one part, at every place."""

    name: str
    """`embedding`, `head`, `attention`, `feed-forward` or `block` (its output) of a Transformer;
    `layer` (all that a layer keeps), `state` or `cell` (the one or the other of an LSTM's), or
    `unit` (all that one unit keeps) of a recurrent network."""
    block: int | None = None
    head: int | None = None
    unit: int | None = None

    @property
    def is_whole(self) -> bool:
        """Whether it is all that a recurrent layer has read, which trivially carries everything."""
        return self.name == "layer"

    @property
    def text(self) -> str:
        """What the site is called, such as `block 0, head 1`."""
        if self.block is None:
            return self.name
        if self.name == "layer":
            return f"layer {self.block}"
        if self.name in ("state", "cell", "unit"):
            number = "" if self.unit is None else f" {self.unit}"
            return f"layer {self.block}, {self.name}{number}"
        if self.name == "block":
            return f"block {self.block}"
        part = f"head {self.head}" if self.head is not None else self.name
        return f"block {self.block}, {part}"


@dataclass(frozen=True, eq=False)
class Patched:
    """The base string's logit with each state of the source's in its place."""

    base_tokens: tuple[str, ...]
    source_tokens: tuple[str, ...]
    base_logit: float
    source_logit: float
    sites: tuple[Site, ...]
    logits: Float[np.ndarray, "site position"]

    @property
    def flips(self) -> np.ndarray:
        """Which patches give the source's answer, where the base's is another."""
        base, source = self.base_logit > 0, self.source_logit > 0
        return np.asarray(((self.logits > 0) == source) & (base != source))

    @property
    def ranked(self) -> list[tuple[int, int]]:
        """Site and place of the patches that flip the answer, most of the way restored first.

        All that a recurrent layer keeps comes behind its parts, since it restores the most.
        """
        restored = np.abs(self.restored)
        found = [(int(site), int(place)) for site, place in np.argwhere(self.flips)]
        return sorted(found, key=lambda own: (self.sites[own[0]].is_whole, -restored[own]))

    def most_restoring_units(self, most: int) -> list[int]:
        """The sites of so many units at most, those that restore most at any place, in order."""
        units = [row for row, site in enumerate(self.sites) if site.name == "unit"]
        reach = np.nan_to_num(np.abs(self.restored)).max(axis=1, initial=0.0)
        return sorted(sorted(units, key=lambda row: -reach[row])[:most])

    @property
    def restored(self) -> Float[np.ndarray, "site position"]:
        """The share of the way from the base's logit to the source's: 0 at the one, 1 at the other.

        NaN where the two logits are the same.
        """
        way = self.source_logit - self.base_logit
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(way == 0, np.nan, (self.logits - self.base_logit) / way)


def patch(model: AskedModel, base: Sequence[int], source: Sequence[int]) -> Patched:
    """Every state of the source at every place, put into the base's computation one at a time.

    Of a recurrent network what a layer keeps after a token is replaced: all of it, which gives the
    answer to the source's tokens so far followed by the base's; each unit alone; and of an LSTM the
    states alone and the cells alone.

    Raises:
        InvalidStringError: the strings have different lengths, or are too long.
        ConfigError: an architecture whose states are not known.
    """
    _check_pair(model, base, source)
    own = plain_model(model)
    with torch.no_grad():
        if isinstance(own, Transformer):
            sites, logits = _transformer(own, ids_of(model, [base]), ids_of(model, [source]))
        elif isinstance(own, Recurrent):
            sites, logits = _recurrent(own, ids_of(model, [base]), ids_of(model, [source]))
        else:
            raise _unknown_states(model)
        ends = [float(own(ids_of(model, [row]))) for row in (base, source)]
    tokens = [tuple(token_names(model, row)) for row in (base, source)]
    return Patched(tokens[0], tokens[1], ends[0], ends[1], sites, logits)


def patch_everywhere(
    model: AskedModel, base: Sequence[int], source: Sequence[int], site: Site
) -> float:
    """The base string's logit with one state at all places at once.

    Raises:
        InvalidStringError: as `patch`.
        ConfigError: as `patch`.
    """
    _check_pair(model, base, source)
    own = plain_model(model)
    with torch.no_grad():
        ids, others = ids_of(model, [base]), ids_of(model, [source])
        everywhere = torch.ones(1, ids.shape[1], dtype=torch.bool)
        if isinstance(own, Transformer):
            return float(_replaced(own, ids, site, own.activations(others), everywhere))
        if isinstance(own, Recurrent):
            return float(_stepped(own, ids, site, own.activations(others), everywhere))
    raise _unknown_states(model)


def transformer_sites(model: Transformer) -> tuple[Site, ...]:
    """The states that are carried over, in the order of the computation."""
    heads = model.config.num_attention_heads
    sites = [Site("embedding")]
    for block in range(model.config.num_blocks):
        sites += [Site("head", block, head) for head in range(heads)]
        sites += [Site("attention", block), Site("feed-forward", block), Site("block", block)]
    return tuple(sites)


def _transformer(
    model: Transformer, base: Tensor, source: Tensor
) -> tuple[tuple[Site, ...], Float[np.ndarray, "site position"]]:
    sites, width = transformer_sites(model), base.shape[1]
    kept = model.activations(source)
    each = torch.eye(width, dtype=torch.bool)
    at_once = max(PAIRS_AT_ONCE // max(width * width, 1), 1)
    rows = []
    for site in sites:
        parts = [
            _replaced(model, base.expand(len(where), -1), site, kept, where)
            for where in each.split(at_once)
        ]
        rows.append(torch.cat(parts) if parts else torch.zeros(0))
    return sites, torch.stack(rows).numpy()


def _replaced(
    model: Transformer, ids: Tensor, site: Site, kept: dict[str, Tensor], where: Tensor
) -> Tensor:
    """The logits with the source's states at the places of each row that are meant."""
    name = _state_name(site, model)

    def change(own: str, state: Tensor) -> Tensor:
        if own != name:
            return state
        if site.head is None:
            return torch.where(where.unsqueeze(2), kept[name], state)
        changed = state.clone()
        head = site.head
        changed[:, head] = torch.where(where.unsqueeze(2), kept[name][:, head], state[:, head])
        return changed

    return model.run(ids, Changing(change), None)


def _state_name(site: Site, model: Transformer) -> str:
    if site.block is None:
        return "embedding"
    block: Block = list(model.blocks)[site.block]
    last = "after_feed_forward" if block.norms_first else "feed_forward_norm"
    part = {
        "head": "attention.mixed_value",
        "attention": "attention.output",
        "feed-forward": "feed_forward.output",
        "block": last,
    }[site.name]
    return f"blocks.{site.block}.{part}"


def recurrent_sites(model: Recurrent) -> tuple[Site, ...]:
    """The states that are carried over, layer by layer: all of them, then parts."""
    sites = []
    for number, layer in enumerate(model.layers):
        sites.append(Site("layer", number))
        if layer.has_cell:
            sites += [Site("state", number), Site("cell", number)]
        sites += [Site("unit", number, unit=unit) for unit in range(model.config.hidden_size)]
    return tuple(sites)


def _recurrent(
    model: Recurrent, base: Tensor, source: Tensor
) -> tuple[tuple[Site, ...], Float[np.ndarray, "site position"]]:
    sites, width = recurrent_sites(model), base.shape[1]
    kept, each = model.activations(source), torch.eye(width, dtype=torch.bool)
    rows = [_stepped(model, base.expand(width, -1), site, kept, each) for site in sites]
    return sites, torch.stack(rows).numpy()


def _stepped(
    model: Recurrent, ids: Tensor, site: Site, kept: dict[str, Tensor], where: Tensor
) -> Tensor:
    """The logits with the source's states after the tokens that are meant, all later ones anew."""
    states = model.embedding(ids)
    for number, layer in enumerate(model.layers):
        if number == site.block and ids.shape[1]:
            steps = _replaced_steps(layer, f"layers.{number}.", states, site, kept, where)
            states = torch.stack(list(steps), dim=1)
        else:
            states = layer(states, Recorder())
    logits: Tensor = model.classifier(read_states(model.config, states, ids)).squeeze(-1)
    return logits


def _replaced_steps(
    layer: Cell, inside: str, states: Tensor, site: Site, kept: dict[str, Tensor], where: Tensor
) -> Iterator[Tensor]:
    """A layer's state after every token, replaced where it is meant before the next is read."""
    given = layer.from_input(states)
    state = cell = states.new_zeros(len(states), states.shape[2])
    meant = torch.ones(states.shape[2], dtype=torch.bool)
    if site.unit is not None:
        meant = torch.arange(states.shape[2]) == site.unit
    for place in range(states.shape[1]):
        step = layer.step(given[:, place], state, cell)
        state, cell = step.state, step.cell
        here = where[:, place, None] & meant
        if site.name != "cell":
            state = torch.where(here, kept[f"{inside}state"][:, place], state)
        if layer.has_cell and site.name != "state":
            cell = torch.where(here, kept[f"{inside}cell"][:, place], cell)
        yield state


def _unknown_states(model: AskedModel) -> ConfigError:
    return ConfigError(
        f"architecture={model.config.architecture!r}: its states are not known by name, so none is "
        "carried over; expected a transformer, rnn, gru or lstm"
    )


def _check_pair(model: AskedModel, base: Sequence[int], source: Sequence[int]) -> None:
    if len(base) != len(source):
        raise InvalidStringError(
            f"{model.text(base)[:40]!r} has {len(base)} tokens and {model.text(source)[:40]!r} "
            f"{len(source)}: states are carried over place by place, so expected as many"
        )
    check_length(model, base)
