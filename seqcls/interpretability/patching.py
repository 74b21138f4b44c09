"""Activation patching: a state of one string put in the place of another's.

The model reads the *base* string; one state at one place is that which it has for the *source*
string of the same length. Where the answer turns into the source's, that state carried it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from seqcls.errors import ConfigError, InvalidStringError
from seqcls.interpretability.model.readable_model import (
    PAIRS_AT_ONCE,
    Changing,
    ids_of,
    plain_model,
    token_names,
)
from seqcls.interpretability.model.trained_model import TrainedModel
from seqcls.interpretability.states.by_strings import check_length
from seqcls.models.base import Classifier
from seqcls.models.parts import Site
from seqcls.tokens.strings import TokenStrings


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
        return sorted(found, key=lambda place: (self.sites[place[0]].is_whole, -restored[place]))

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


def patch(model: TrainedModel, base: Sequence[int], source: Sequence[int]) -> Patched:
    """Every state of the source at every place, put into the base's computation one at a time.

    Of a recurrent network what a layer keeps after a token is replaced: all of it, which gives the
    answer to the source's tokens so far followed by the base's; each unit alone; and of an LSTM the
    states alone and the cells alone.

    Raises:
        InvalidStringError: the strings have different lengths, or are too long.
        ConfigError: an architecture whose states are not known.
    """
    network, sites = _opened(model, base, source)
    ids, others = ids_of(model, [base]), ids_of(model, [source])
    width = ids.shape[1]
    each = torch.eye(width, dtype=torch.bool)
    # What reads one token after another takes as long for many strings as for one.
    at_once = (
        max(PAIRS_AT_ONCE // max(width * width, 1), 1) if network.attention() else max(width, 1)
    )
    with torch.no_grad():
        kept = network.activations(others)
        margins, rows = _margins(model, base), []
        for site, states in sites.items():
            parts = [
                _replaced(network, ids.expand(len(places), -1), site, states, kept, places)
                for places in each.split(at_once)
            ]
            rows.append(margins(torch.cat(parts)) if parts else np.zeros(0))
        ends = [float(margins(network(row))[0]) for row in (ids, others)]
    tokens = [tuple(token_names(model, row)) for row in (base, source)]
    return Patched(tokens[0], tokens[1], ends[0], ends[1], tuple(sites), np.stack(rows))


def _margins(model: TrainedModel, base: Sequence[int]) -> Callable[[Tensor], np.ndarray]:
    """The one number of each output that patching moves, told by what is right of the base."""
    kind = model.problem.kind
    target = kind.targets(model.task, TokenStrings.of_lists(model.num_letters, [base]))

    def margins(outputs: Tensor) -> np.ndarray:
        return kind.margins(outputs.numpy(), np.repeat(target, len(outputs), axis=0))

    return margins


def _opened(
    model: TrainedModel, base: Sequence[int], source: Sequence[int]
) -> tuple[Classifier, Mapping[Site, tuple[str, ...]]]:
    """The readable model and its sites, where the strings fit each other."""
    _check_pair(model, base, source)
    network = plain_model(model)
    sites = network.sites()
    if not sites:
        raise ConfigError(
            f"architecture={model.config.architecture!r} names no states that could be carried over"
        )
    return network, sites


def _replaced(
    model: Classifier,
    ids: Tensor,
    site: Site,
    states: Sequence[str],
    kept: dict[str, Tensor],
    places: Tensor,
) -> Tensor:
    """The logits with the source's states at the positions of each row that are named.

    What a recurrent layer keeps is replaced before the next token is read.
    """

    def change(name: str, position: int | None, state: Tensor) -> Tensor:
        if name not in states:
            return state
        at = slice(None) if position is None else slice(position, position + 1)
        changed = state.clone()
        target, other = site.within(changed), site.within(kept[name])[:, at]
        here = places[:, at] if target.dim() == 2 else places[:, at, None]
        target[...] = torch.where(here, other, target)
        return changed

    return model.run(ids, Changing(change), None)


def _check_pair(model: TrainedModel, base: Sequence[int], source: Sequence[int]) -> None:
    if len(base) != len(source):
        raise InvalidStringError(
            f"{model.text(base)[:40]!r} has {len(base)} tokens and {model.text(source)[:40]!r} "
            f"{len(source)}: states are carried over place by place, so expected as many"
        )
    check_length(model, base)
