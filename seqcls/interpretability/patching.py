"""Activation patching: a state of one string put in the place of another's.

The model reads the *base* string; one state at one place is that which it has for the *source*
string of the same length. Where the answer turns into the source's, that state carried it.

Of a model that writes, states of the input and of `SEP` are carried over (an encoder's and a
decoder's), and what they move is the log-probability of the base's target; where the model writes
something else for the base, that of the target minus that of what it writes. Both are teacher
forced, whatever the states.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from seqcls.errors import ConfigError, InvalidStringError
from seqcls.interpretability import readable_model
from seqcls.interpretability.readable_model import (
    PAIRS_AT_ONCE,
    Batch,
    Output,
    check_length,
    log_probabilities,
    name_tokens,
    plain_model,
    target,
    token_ids,
    write_output,
)
from seqcls.interpretability.rows import record
from seqcls.interpretability.trained_model import Answer, TrainedModel
from seqcls.interpretability.wording import Table, percent
from seqcls.kinds.transduction import writable
from seqcls.models.base import Classifier
from seqcls.models.parts import Site

NUMBERS_AT_ONCE = 2**24
"""In the widest state of one token, where attention is additive: keeps it within 128 MiB."""

LOGIT = "logit"
"""The number that patching changes of a model that answers at once, margins included."""

STATES_LISTED = 12
"""States that turn the answer of which a table shows no more."""


class Patched(NamedTuple):
    """The base string's logit with each state of the source's in its place."""

    base: Answer
    source: Answer
    """The answers to both strings, unpatched."""
    base_tokens: tuple[str, ...]
    source_tokens: tuple[str, ...]
    base_logit: float
    source_logit: float
    sites: tuple[Site, ...]
    logits: Float[np.ndarray, "site position"]
    """NaN where the site has no such place."""
    flips: Bool[np.ndarray, "site position"]
    """Patches that give the source's answer, where the base's is another. The answer is the sign
    of the logit; of a log-probability, whether every token of the target is the likeliest."""
    is_place: Bool[np.ndarray, "site position"]
    """The places of a site: an encoder's are `CLS` and the input, a decoder's `SEP`."""
    number: str
    """The name of the logits."""

    @property
    def of_output(self) -> bool:
        """True if an output is measured, which is read after the string."""
        return self.number != LOGIT

    @property
    def unit(self) -> str:
        """The unit of the logits and of their differences."""
        return "log-probability" if self.of_output else self.number

    @property
    def ranked(self) -> list[tuple[int, int]]:
        """Site and place of the patches that flip the answer, most of the way restored first.

        All that a recurrent layer keeps comes behind its parts, which it contains.
        """
        restored = np.abs(self.restored)
        flipping = [(int(site), int(place)) for site, place in np.argwhere(self.flips)]
        return sorted(flipping, key=lambda place: (self.sites[place[0]].is_whole, -restored[place]))

    def most_restoring_units(self, most: int) -> list[int]:
        """The sites of at most `most` units, those that restore most at any place, in order."""
        units = [row for row, site in enumerate(self.sites) if site.name == "unit"]
        # NaN marks places that the site does not have.
        reach = np.nan_to_num(np.abs(self.restored)).max(axis=1, initial=0.0)
        return sorted(sorted(units, key=lambda row: -reach[row])[:most])

    @property
    def restored(self) -> Float[np.ndarray, "site position"]:
        """The share of the way from the base's logit to the source's: 0 at the one, 1 at the other.

        NaN where the two logits are the same, and where the site has no such place.
        """
        distance = self.source_logit - self.base_logit
        # 0 / 0 is NaN, which is meant: two equal logits have no way between them.
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(distance == 0, np.nan, (self.logits - self.base_logit) / distance)

    def record(self) -> dict[str, Any]:
        """The result as programs read it."""
        number = {} if self.number == self.unit else {"number": self.number}
        return {
            **number,
            "base": self.base.record(),
            "source": self.source.record(),
            "tokens": {"base": self.base_tokens, "source": self.source_tokens},
            "sites": [site.text for site in self.sites],
            "logits": record(self.logits),
            "flips": record(self.flips),
        }

    def describe(self, _: TrainedModel) -> Iterator[str | Table]:
        """Both answers, and the states that flip the prediction."""
        yield f"base: {self.base.text}"
        yield f"source: {self.source.text}"
        if not (ranked := self.ranked):
            yield "no single state, patched in, flips the prediction"
            return
        rows = [
            {
                "state": self.sites[site].text,
                "place": place,
                "base token": self.base_tokens[place],
                "source token": self.source_tokens[place],
                self.unit: round(float(self.logits[site, place]), 4),
                "restored": percent(self.restored[site, place], 0),
            }
            for site, place in ranked[:STATES_LISTED]
        ]
        more = f"; the first {len(rows)} of {len(ranked)}" if len(ranked) > len(rows) else ""
        what = "" if self.number == self.unit else f": {self.number}"
        yield Table(f"states that flip the prediction when patched{more}{what}", rows)


class _Measure(NamedTuple):
    """The quantity that patching changes, and the way to compute it."""

    number: str
    outputs: Sequence[Output | None]
    """The outputs that base and source are read with; None of a model that answers at once."""
    places: int | None
    """The first places, at which states are carried over; None for all."""
    measure: Callable[[Sequence[Tensor]], tuple[np.ndarray, np.ndarray]]
    """Computes the number and the answer of strings from the head's outputs, one each of these."""


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
    sites, plain = sites_of(model), plain_model(model)
    if len(base) != len(source):
        raise InvalidStringError(
            f"{model.display(base)[:40]!r} has {len(base)} tokens and "
            f"{model.display(source)[:40]!r} {len(source)}: states are carried over place "
            "by place, so expected as many"
        )
    check_length(model, base)
    # An output has as many answers as tokens, of which one is measured.
    measure = (_measure_output if model.problem.writes else _measure_answer)(model, base)
    bases, sources = (
        [readable_model.read(model, [letters], output and [output]) for output in measure.outputs]
        for letters in (base, source)
    )
    # The source is run once; its states are put into many runs of the base.
    carried = [readable_model.states(model, batch) for batch in sources]
    (base_logit,), (base_answer,) = measure.measure([readable_model.run(model, x) for x in bases])
    (source_logit,), (source_answer,) = measure.measure(
        [readable_model.run(model, x) for x in sources]
    )
    base_tokens, source_tokens = (
        name_tokens(model, read[0].ids[0].tolist())[: measure.places] for read in (bases, sources)
    )
    shape = len(sites), len(base_tokens)
    logits, is_place, flips = np.full(shape, np.nan), *np.zeros((2, *shape), dtype=bool)
    for row, (site, names) in enumerate(sites.items()):
        stream = _stream(plain, bases[0].ids, names[0])
        is_place[row, stream] = True
        outputs = []
        for batch, states in zip(bases, carried, strict=True):
            width = batch.ids.shape[1]
            # A row for each patch, in which one place comes from the source.
            every = torch.eye(width, dtype=torch.bool)[: measure.places][stream]
            parts = [
                carry_over(model, Batch(batch.ids.expand(len(places), -1)), site, states, places)
                for places in every.split(_rows_at_once(plain, width))
                if len(places)
            ]
            # A site without places still needs outputs of the right shape.
            outputs.append(torch.cat(parts) if parts else readable_model.run(model, batch)[:0])
        logits[row, stream], answers = measure.measure(outputs)
        flips[row, stream] = (answers == source_answer) & (source_answer != base_answer)
    return Patched(
        model.answer(base),
        model.answer(source),
        base_tokens,
        source_tokens,
        float(base_logit),
        float(source_logit),
        tuple(sites),
        logits,
        flips,
        is_place,
        measure.number,
    )


def carry_over(
    model: TrainedModel,
    batch: Batch,
    site: Site,
    states: Mapping[str, Tensor],
    places: Bool[Tensor, "string position"],
) -> Tensor:
    """The head's outputs with another string's states of one site at the given places.

    What a recurrent layer keeps is replaced before the next token is read.

    Args:
        batch: strings of one length.
        states: those of a string as long, by their names.
        places: of each string.
    """
    plain, names = plain_model(model), plain_model(model).sites()[site]

    def change(name: str, position: int | None, state: Tensor) -> Tensor:
        if name not in names:
            return state
        at = slice(None) if position is None else slice(position, position + 1)
        changed = state.clone()
        own, other = site.within(changed), site.within(states[name])[:, at]
        here = places[:, _stream(plain, batch.ids, name)][:, at]
        # A single unit has no hidden axis.
        own[...] = torch.where(here if own.dim() == 2 else here[..., None], other, own)
        return changed

    return readable_model.run(model, batch, change)


def sites_of(model: TrainedModel) -> Mapping[Site, tuple[str, ...]]:
    """The states that can be carried over.

    Raises:
        ConfigError: there are none.
    """
    plain = plain_model(model)
    if sites := plain.sites():
        return sites
    with_pictures = " with pictures" if plain.config.picture else ""
    raise ConfigError(
        f"architecture={model.config.architecture!r}{with_pictures} names no states that could "
        "be carried over"
    )


def _measure_answer(model: TrainedModel, base: Sequence[int]) -> _Measure:
    """The one number of each answer, against the target of the base."""
    kind = model.problem.kind
    # Where a file has no target, against the prediction.
    right = model.ask_all([base]).targets

    def measure(outputs: Sequence[Tensor]) -> tuple[np.ndarray, np.ndarray]:
        (given,) = outputs
        targets = np.repeat(right, len(given), axis=0)
        # Every place of a string is as that of others, which are as long.
        given = given.flatten(0, 1) if model.problem.at_places else given
        margins = kind.margins(given.numpy(), targets)
        return margins, margins > 0

    return _Measure(LOGIT, [None], None, measure)


def _measure_output(model: TrainedModel, base: Sequence[int]) -> _Measure:
    """The log-probability of the base's target, against that of the output written for the base."""
    written = write_output(model, tuple(base))
    right = target(model, base) if model.is_input(base) else written
    check_length(model, base, right)
    start = len(base) + 1

    outputs = [right] if written == right else [right, written]

    def measure(given: Sequence[Tensor]) -> tuple[np.ndarray, np.ndarray]:
        right_scores, *written_scores = (
            log_probabilities(model, x, start, output).numpy()
            for x, output in zip(given, outputs, strict=True)
        )
        if written_scores:
            margins = right_scores - written_scores[0]
            return margins, margins > 0
        ids = torch.tensor(token_ids(model, right))
        # Greedy decoding would write the target where each of its tokens is the likeliest.
        likeliest = writable(given[0][:, start : start + len(ids)]).argmax(dim=-1)
        return right_scores, (likeliest == ids).all(dim=1).numpy()

    number = "log-probability of the target" + " minus that of the output" * (written != right)
    return _Measure(number, outputs, start + 1, measure)


def _rows_at_once(plain: Classifier, width: int) -> int:
    """The number of strings of a width that are run at once."""
    # A step takes as long for many strings as for one, so memory is the only bound.
    if plain.steps_through:
        return max(min(width, NUMBERS_AT_ONCE // (width * plain.config.hidden_size)), 1)
    return max(PAIRS_AT_ONCE // max(width * width, 1) if plain.attention() else width, 1)


def _stream(plain: Classifier, ids: Tensor, name: str) -> slice:
    """The places of a state by its name: of all that is read, or of one stream.

    `ids` are of strings of one length.
    """
    end, width = ids.shape[1], plain.tokens_of(ids, name).shape[1]
    return slice(end - width, end) if name.startswith("decoder.") else slice(width)
