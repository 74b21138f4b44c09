"""A model's states at every token of drawn strings, beside those of an automaton."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int64

from seqcls.cancellation import checked
from seqcls.errors import ConfigError
from seqcls.interpretability.model.readable_model import ids_of, plain_model
from seqcls.interpretability.model.trained_model import Letters, TrainedModel
from seqcls.models.positions import longest_readable
from seqcls.tasks.automata.automaton import Automaton
from seqcls.tokens.tokenizer import FIRST_LETTER

STRINGS = 160
"""To fit, and as many held out of the lengths of training, and as many longer ones."""

LONGEST = 200
"""Tokens of the longest string whose states are looked at."""

AT_ONCE = 32
"""Strings, whose states of all positions are kept at once."""

LAYERS = {"block", "layer"}


@dataclass(frozen=True, eq=False)
class Places:
    """Tokens of some strings: the states of a model there, and the automaton's after them."""

    layers: dict[str, Float[np.ndarray, "place hidden"]]
    """By the name of the block or layer."""
    states: Int64[np.ndarray, " place"]
    positions: Int64[np.ndarray, " place"]
    """The position of the token in its string, from 1."""
    beyond: Bool[np.ndarray, " place"]
    """Whether it stands in a string longer than those of training."""


def layer_names(model: TrainedModel) -> dict[str, tuple[str, ...]]:
    """The recorded states of each block's residual stream, or of all that a layer keeps."""
    sites = plain_model(model).sites()
    return {site.text: names for site, names in sites.items() if site.name in LAYERS}


def drawn_places(model: TrainedModel, automaton: Automaton) -> tuple[Places, Places]:
    """The tokens of strings to fit a probe on, and of those held out, of which half are longer.

    Half of the strings are accepted by the automaton, as far as it accepts any.

    Raises:
        ConfigError: the model names no states of its blocks or layers, or there is one string only.
    """
    if not layer_names(model):
        raise ConfigError(
            f"architecture={model.config.architecture!r} names no states of blocks or layers"
        )
    trained = model.problem.train.lengths[-1]
    places = longest_readable(model.problem.network) or LONGEST
    longest = min(model.problem.test.lengths[-1], LONGEST, places)
    rng = np.random.default_rng(0)
    short = min(trained, longest)
    first = drawn_strings(automaton, rng, rng.integers(1, short + 1, size=2 * STRINGS))
    fitted = first[::2]
    seen = set(fitted)
    held_out = [string for string in first[1::2] if string not in seen]
    if not held_out:
        # There are so few strings that both halves have all of them: every other one is held out.
        held_out = sorted(seen)[1::2]
        fitted = [string for string in fitted if string not in held_out]
    if not held_out:
        raise ConfigError(
            f"train_max_length={trained}, test_max_length={longest}: there is one string only, so "
            "that none can be held out; train on longer ones"
        )
    if trained < longest:
        lengths = rng.integers(trained + 1, longest + 1, size=STRINGS)
        held_out += drawn_strings(automaton, rng, lengths)
    return _places(model, automaton, fitted), _places(model, automaton, held_out)


def drawn_strings(
    automaton: Automaton, rng: np.random.Generator, lengths: Int64[np.ndarray, " string"]
) -> list[Letters]:
    """Uniform strings of some lengths, in turn rejected and accepted where there are both."""
    drawn: list[Letters] = []
    for place, length in enumerate(lengths.tolist()):
        wanted = bool(place // 2 % 2)
        positive = wanted if automaton.has(length, wanted) else not wanted
        (row,) = automaton.draw(rng, np.array([length]), positive)
        drawn.append(tuple(row.tolist()))
    return drawn


def _places(model: TrainedModel, automaton: Automaton, strings: list[Letters]) -> Places:
    names = layer_names(model)
    parts: dict[str, list[np.ndarray]] = {name: [] for name in names}
    for start in checked(range(0, len(strings), AT_ONCE)):
        ids = ids_of(model, strings[start : start + AT_ONCE])
        with torch.no_grad():
            kept = plain_model(model).activations(ids)
        read = ids >= FIRST_LETTER
        for name, recorded in names.items():
            beside = torch.cat([kept[each][read] for each in recorded], dim=-1)
            parts[name].append(beside.numpy())
    lengths = [len(string) for string in strings]
    trained = model.problem.train.lengths[-1]
    return Places(
        {name: np.concatenate(rows) for name, rows in parts.items()},
        np.concatenate([_path(automaton, string) for string in strings]),
        np.concatenate([np.arange(1, length + 1) for length in lengths]),
        np.repeat(np.array(lengths) > trained, lengths),
    )


def _path(automaton: Automaton, letters: Letters) -> Int64[np.ndarray, " position"]:
    state, states = automaton.start, []
    for letter in letters:
        state = int(automaton.table[state, letter])
        states.append(state)
    return np.array(states, dtype=np.int64)
