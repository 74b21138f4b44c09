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
from seqcls.interpretability.strings.plain import Changing, ids_of, plain_model, token_names
from seqcls.interpretability.strings.states import check_length
from seqcls.models.base import Recorder
from seqcls.models.recurrent import Recurrent
from seqcls.models.transformer import Block, Transformer, read_states

PAIRS_AT_ONCE = 2**22


@dataclass(frozen=True)
class Site:
    """A state of the model: of one part, at every place."""

    name: str
    """`embedding`, `head`, `attention`, `feed-forward`, `block` (its output) or `layer`."""
    block: int | None = None
    head: int | None = None

    @property
    def text(self) -> str:
        """What the site is called, such as `block 0, head 1`."""
        if self.block is None:
            return self.name
        if self.name == "layer":
            return f"layer {self.block}"
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
    def restored(self) -> Float[np.ndarray, "site position"]:
        """The share of the way from the base's logit to the source's: 0 at the one, 1 at the other.

        NaN where the two logits are the same.
        """
        way = self.source_logit - self.base_logit
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(way == 0, np.nan, (self.logits - self.base_logit) / way)


def patch(model: AskedModel, base: Sequence[int], source: Sequence[int]) -> Patched:
    """Every state of the source at every place, put into the base's computation one at a time.

    Of a recurrent network a layer's state after a token is replaced, an LSTM's cell with it.

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
            raise ConfigError(
                f"architecture={model.config.architecture!r}: its states are not known by name, so "
                "none is carried over; expected a transformer, rnn, gru or lstm"
            )
        ends = [float(own(ids_of(model, [row]))) for row in (base, source)]
    tokens = [tuple(token_names(model, row)) for row in (base, source)]
    return Patched(tokens[0], tokens[1], ends[0], ends[1], sites, logits)


def patch_everywhere(
    model: AskedModel, base: Sequence[int], source: Sequence[int], site: Site
) -> float:
    """The base string's logit with a Transformer's state at all places at once.

    Raises:
        InvalidStringError: as `patch`.
        ConfigError: the model is no Transformer.
    """
    _check_pair(model, base, source)
    own = plain_model(model)
    if not isinstance(own, Transformer):
        raise ConfigError(f"architecture={model.config.architecture!r}: expected a transformer")
    with torch.no_grad():
        kept = own.activations(ids_of(model, [source]))
        ids = ids_of(model, [base])
        everywhere = torch.ones(1, ids.shape[1], dtype=torch.bool)
        return float(_replaced(own, ids, site, kept, everywhere))


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


def _recurrent(
    model: Recurrent, base: Tensor, source: Tensor
) -> tuple[tuple[Site, ...], Float[np.ndarray, "site position"]]:
    """One layer's state after one token replaced, and everything after it computed anew."""
    width, layers = base.shape[1], list(model.layers)
    kept = model.activations(source)
    where = torch.eye(width, dtype=torch.bool)
    rows = []
    for patched in range(len(layers)):
        states = model.embedding(base.expand(width, -1))
        for number, layer in enumerate(layers):
            if number == patched:
                steps = _stepped(model, number, states, kept, where)
                states = torch.stack(list(steps), dim=1) if width else states
            else:
                states = layer(states, Recorder())
        read = read_states(model.config, states, base.expand(width, -1))
        rows.append(model.classifier(read).squeeze(-1))
    return tuple(Site("layer", number) for number in range(len(layers))), torch.stack(rows).numpy()


def _stepped(
    model: Recurrent, number: int, states: Tensor, kept: dict[str, Tensor], where: Tensor
) -> Iterator[Tensor]:
    """A layer's state after every token, replaced where it is meant before the next is read."""
    layer = list(model.layers)[number]
    given = layer.from_input(states)
    state = cell = states.new_zeros(len(states), states.shape[2])
    for place in range(states.shape[1]):
        step = layer.step(given[:, place], state, cell)
        here = where[:, place, None]
        state = torch.where(here, kept[f"layers.{number}.state"][:, place], step.state)
        cell = step.cell
        if layer.has_cell:
            cell = torch.where(here, kept[f"layers.{number}.cell"][:, place], cell)
        yield state


def _check_pair(model: AskedModel, base: Sequence[int], source: Sequence[int]) -> None:
    if len(base) != len(source):
        raise InvalidStringError(
            f"{model.text(base)[:40]!r} has {len(base)} tokens and {model.text(source)[:40]!r} "
            f"{len(source)}: states are carried over place by place, so expected as many"
        )
    check_length(model, base)
