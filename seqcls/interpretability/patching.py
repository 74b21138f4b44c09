"""Activation patching: a state of one string put in the place of another's.

The model reads the *base* string; one state at one place is that which it has for the *source*
string of the same length. Where the answer turns into the source's, that state carried it.

Of a model that writes, states of the input and of `SEP` are carried over (an encoder's and a
decoder's), and what they move is the log-probability of the base's target; where the model writes
something else for the base, that of the target minus that of what it writes. Both are teacher
forced, whatever the states.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from seqcls.errors import ConfigError, InvalidStringError
from seqcls.interpretability.readable_model import (
    PAIRS_AT_ONCE,
    Changing,
    Output,
    ids_of,
    log_probabilities,
    plain_model,
    target,
    token_ids,
    token_names,
    write_output,
)
from seqcls.interpretability.states_by_strings import check_length
from seqcls.interpretability.trained_model import TrainedModel
from seqcls.interpretability.wording import percent
from seqcls.kinds.transduction import writable
from seqcls.models.base import Classifier
from seqcls.models.initialization import make_model
from seqcls.models.parts import Site
from seqcls.problem import Problem

NUMBERS_AT_ONCE = 2**24
"""In the widest state of one token, where attention is additive: keeps it within 128 MiB."""

LOGIT = "logit"
"""What patching moves of a model that answers at once; margins of other kinds are called so too."""


@dataclass(frozen=True, eq=False)
class Patched:
    """The base string's logit with each state of the source's in its place."""

    base_tokens: tuple[str, ...]
    source_tokens: tuple[str, ...]
    base_logit: float
    source_logit: float
    sites: tuple[Site, ...]
    logits: Float[np.ndarray, "site position"]
    """NaN where the site has no such place."""
    answers: Bool[np.ndarray, "site position"]
    """The answer with each patch: whether the logit is positive; of a log-probability, whether
    every token of the target is the likeliest. The base's where the site has no such place."""
    is_place: Bool[np.ndarray, "site position"]
    """Which places a site has: of two streams an encoder's are `CLS` and the input, a decoder's
    `SEP`."""
    base_answer: bool
    source_answer: bool
    number: str
    """What the logits are."""

    @property
    def of_output(self) -> bool:
        """Whether an output is measured, which is read after the string."""
        return self.number != LOGIT

    @property
    def unit(self) -> str:
        """What the logits, and their differences, are measured as."""
        return "log-probability" if self.of_output else self.number

    @property
    def flips(self) -> np.ndarray:
        """Which patches give the source's answer, where the base's is another."""
        differ = self.base_answer != self.source_answer
        return np.asarray((self.answers == self.source_answer) & differ)

    @property
    def ranked(self) -> list[tuple[int, int]]:
        """Site and place of the patches that flip the answer, most of the way restored first.

        All that a recurrent layer keeps comes behind its parts, which it contains.
        """
        restored = np.abs(self.restored)
        flipping = [(int(site), int(place)) for site, place in np.argwhere(self.flips)]
        return sorted(flipping, key=lambda place: (self.sites[place[0]].is_whole, -restored[place]))

    def flip_rows(self) -> list[dict[str, Any]]:
        """The states that turn the answer, ranked, as a table has them."""
        return [
            {
                "state": self.sites[site].text,
                "place": place,
                "base token": self.base_tokens[place],
                "source token": self.source_tokens[place],
                self.unit: round(float(self.logits[site, place]), 4),
                "restored": percent(self.restored[site, place], 0),
            }
            for site, place in self.ranked
        ]

    def most_restoring_units(self, most: int) -> list[int]:
        """The sites of so many units at most, those that restore most at any place, in order."""
        units = [row for row, site in enumerate(self.sites) if site.name == "unit"]
        reach = np.nan_to_num(np.abs(self.restored)).max(axis=1, initial=0.0)
        return sorted(sorted(units, key=lambda row: -reach[row])[:most])

    @property
    def restored(self) -> Float[np.ndarray, "site position"]:
        """The share of the way from the base's logit to the source's: 0 at the one, 1 at the other.

        NaN where the two logits are the same, and where the site has no such place.
        """
        distance = self.source_logit - self.base_logit
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(distance == 0, np.nan, (self.logits - self.base_logit) / distance)


def patch(model: TrainedModel, base: Sequence[int], source: Sequence[int]) -> Patched:
    """Every state of the source at every place, put into the base's computation one at a time.

    Of a recurrent network what a layer keeps after a token is replaced: all of it, each unit alone,
    and of an LSTM the states alone and the cells alone. All of it, in a network of one layer and
    one stream, gives the answer to the source's tokens so far followed by the base's. Of two
    streams an encoder's states are replaced at `CLS` and the input, a decoder's at `SEP`.

    Raises:
        InvalidStringError: the strings have different lengths, or are too long.
        ConfigError: an architecture whose states are not known, or one that reads pictures.
    """
    network, sites = _open(model, base, source)
    # An output has as many answers as tokens, of which one is measured.
    measured = (_of_output if model.problem.writes else _of_answer)(model, base)
    ids, others = (
        [ids_of(model, [letters], read and [read]) for read in measured.read]
        for letters in (base, source)
    )
    width = max(each.shape[1] for each in ids)
    at_once = _rows_at_once(network, width)
    with torch.no_grad():
        kept = [network.activations(each) for each in others]
        of_base, of_source = (
            measured.measure([network(each) for each in both]) for both in (ids, others)
        )
        shape = len(sites), len(measured.tokens(model, base))
        logits, answers = np.full(shape, np.nan), np.full(shape, of_base.answers[0])
        is_place = np.zeros(shape, dtype=bool)
        for row, (site, states) in enumerate(sites.items()):
            stream = _stream(network, ids[0], states[0])
            is_place[row, stream] = True
            outputs = []
            for each, states_of_source in zip(ids, kept, strict=True):
                every = torch.eye(each.shape[1], dtype=torch.bool)[: measured.places][stream]
                parts = [
                    _patch(
                        network,
                        each.expand(len(places), -1),
                        site,
                        states,
                        states_of_source,
                        places,
                    )
                    for places in every.split(at_once)
                ]
                outputs.append(torch.cat(parts) if parts else network(each)[:0])
            logits[row, stream], answers[row, stream] = measured.measure(outputs)
    return Patched(
        base_tokens=measured.tokens(model, base),
        source_tokens=measured.tokens(model, source),
        base_logit=float(of_base.numbers[0]),
        source_logit=float(of_source.numbers[0]),
        sites=tuple(sites),
        logits=logits,
        answers=answers,
        is_place=is_place,
        base_answer=bool(of_base.answers[0]),
        source_answer=bool(of_source.answers[0]),
        number=measured.number,
    )


class _Measured(NamedTuple):
    numbers: Float[np.ndarray, " string"]
    answers: Bool[np.ndarray, " string"]


class _Asked(NamedTuple):
    """What patching moves."""

    number: str
    read: Sequence[Output | None]
    """The outputs that base and source are read with; None of a model that answers at once."""
    places: int | None
    """How many places states are carried over at, from the first on; None for all."""
    measure: Callable[[Sequence[Tensor]], _Measured]
    """The number and the answer of strings, by what the head gives with each of these outputs."""

    def tokens(self, model: TrainedModel, letters: Sequence[int]) -> tuple[str, ...]:
        """What the model reads of a string, as far as states are carried over."""
        return tuple(token_names(model, letters, self.read[0])[: self.places])


def _of_answer(model: TrainedModel, base: Sequence[int]) -> _Asked:
    """The one number of each answer, told by what is right of the base."""
    kind = model.problem.kind
    # Where a file does not say what is right, against what is predicted.
    right = model.ask_all([base]).targets

    def measure(outputs: Sequence[Tensor]) -> _Measured:
        (given,) = outputs
        targets = np.repeat(right, len(given), axis=0)
        # Every place of a string is as that of others, which are as long.
        given = given.flatten(0, 1) if model.problem.at_places else given
        margins = kind.margins(given.numpy(), targets)
        return _Measured(margins, margins > 0)

    return _Asked(LOGIT, [None], None, measure)


def _of_output(model: TrainedModel, base: Sequence[int]) -> _Asked:
    """How likely the base's target is, against what is written for the base."""
    said = write_output(model, tuple(base))
    right = target(model, base) if model.is_input(base) else said
    check_length(model, base, right)
    start = len(base) + 1

    def alone(outputs: Sequence[Tensor]) -> _Measured:
        (given,) = outputs
        ids = torch.tensor(token_ids(model, right))
        likeliest = writable(given[:, start : start + len(ids)]).argmax(dim=-1)
        numbers = log_probabilities(model, given, start, right)
        return _Measured(numbers.numpy(), (likeliest == ids).all(dim=1).numpy())

    def against_said(outputs: Sequence[Tensor]) -> _Measured:
        ours, theirs = (
            log_probabilities(model, given, start, output)
            for given, output in zip(outputs, (right, said), strict=True)
        )
        margins = (ours - theirs).numpy()
        return _Measured(margins, margins > 0)

    if said == right:
        return _Asked("log-probability of the target", [right], start + 1, alone)
    number = "log-probability of the target minus that of the output"
    return _Asked(number, [right, said], start + 1, against_said)


def can_be_patched(problem: Problem) -> bool:
    """Whether its models name states that could be carried over."""
    return bool(make_model(problem.network).sites())


def _open(
    model: TrainedModel, base: Sequence[int], source: Sequence[int]
) -> tuple[Classifier, Mapping[Site, tuple[str, ...]]]:
    """The readable model and its sites, where the strings fit each other."""
    _check_pair(model, base, source)
    network = plain_model(model)
    sites = network.sites()
    if not sites:
        with_pictures = " with pictures" if network.config.picture else ""
        raise ConfigError(
            f"architecture={model.config.architecture!r}{with_pictures} names no states that could "
            "be carried over"
        )
    return network, sites


def _rows_at_once(network: Classifier, width: int) -> int:
    """How many strings of a width are run at once."""
    if network.steps_through:
        return max(min(width, NUMBERS_AT_ONCE // (width * network.config.hidden_size)), 1)
    return max(PAIRS_AT_ONCE // max(width * width, 1) if network.attention() else width, 1)


def _patch(
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
        own = places[:, _stream(model, ids, name)]
        here = own[:, at] if target.dim() == 2 else own[:, at, None]
        target[...] = torch.where(here, other, target)
        return changed

    return model.run(ids, Changing(change), None)


def _stream(model: Classifier, ids: Tensor, name: str) -> slice:
    """The places of a state that is so called: of all that is read, or of one stream.

    `ids` are of strings of one length.
    """
    end, width = ids.shape[1], model.tokens_of(ids, name).shape[1]
    return slice(end - width, end) if name.startswith("decoder.") else slice(width)


def _check_pair(model: TrainedModel, base: Sequence[int], source: Sequence[int]) -> None:
    if len(base) != len(source):
        raise InvalidStringError(
            f"{model.display(base)[:40]!r} has {len(base)} tokens and "
            f"{model.display(source)[:40]!r} {len(source)}: states are carried over place "
            "by place, so expected as many"
        )
    check_length(model, base)
