"""Strings on which a model may fail, and the states that it is seen in meanwhile.

A random string hardly ever repeats a few letters for long, and that is where recurrent networks
drift: so words u v{n} w are tried for all short u, v and w, next to all short strings and to random
ones. Steps are taken in double precision; whoever reports an error asks the model itself.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import torch
from jaxtyping import Int64

from seqcls.cancellation import check
from seqcls.interpretability.automaton_answers import PrefixStates
from seqcls.interpretability.trained_model import Letters
from seqcls.models.forms import Kept, map_kept
from seqcls.models.recurrent import Recurrence
from seqcls.proofs.regions import BEGINNING, Counting, Samples

REMEMBERED = 40
"""Last letters that are kept of a sample."""

SHORT = 2_048
"""Short strings, all of which are tried, at most."""

RANDOM, RANDOM_LENGTH = 16, 400
"""Random strings, and letters of each."""

REPEATED = 256
"""Letters of the words that repeat."""

SETTLED, MOST_PERIOD, SAME = 160, 12, 1e-3
"""Letters of a run before its states are compared, how far back, and what is the same state."""

MOST_ERRORS = 64
"""Errors that are kept, the shortest."""


@dataclass(frozen=True, eq=False)
class Found:
    """What stepping has found."""

    samples: Samples
    errors: list[Letters]
    """Strings whose stepped answer is not the automaton's, the shortest first."""


@dataclass(frozen=True, eq=False)
class Walker:
    """Steps through strings, beside an automaton that says what is right."""

    steps: PrefixStates
    counting: Counting
    kind: str
    """The architecture: says what of a state is a sample's."""
    asks_empty: bool
    """Whether the empty string is asked."""

    def search(self) -> Found:
        """All short strings, random ones, and short words that repeat."""
        letters = self.steps.num_letters
        length = 1
        while letters ** (length + 1) <= SHORT:
            length += 1
        # All strings of a length: their prefixes are all shorter ones.
        short = np.array(list(product(range(letters), repeat=length)))
        drawn = np.random.default_rng(0).integers(letters, size=(RANDOM, RANDOM_LENGTH))
        most = most_letters(letters)
        repeated = repeat(words(letters, 0, most - 1), words(letters, 1, most), REPEATED)
        runs = [self.run(short, 0), self.run(drawn, 0), self.run(repeated, most)]
        parts = zip(*((x.samples.values, x.samples.states, x.samples.last) for x in runs), strict=True)
        errors = {string for x in runs for string in x.errors}
        return Found(Samples(*map(np.concatenate, parts)), _shortest(errors))

    def run(self, strings: Int64[np.ndarray, "string position"], most_after: int) -> Found:
        """All prefixes of strings of one length, each held against the automaton.

        Args:
            most_after: each prefix is tried with all words of up to so many letters after it, too.
        """
        kept = map_kept(lambda x: x.expand(len(strings), *x.shape[1:]), self.steps.start)
        automaton = self.counting.automaton
        states = np.full(len(strings), automaton.start)
        last = np.full((len(strings), REMEMBERED), BEGINNING)
        values, reached, lasts, errors = [flat(kept, self.kind)], [states], [last], set[Letters]()
        for place in range(strings.shape[1] + 1):
            check()
            if place:
                letters = strings[:, place - 1]
                kept = self.steps.step(kept, letters.tolist())
                states = automaton.table[states, letters]
                marked = self.counting.marked(letters, states)
                last = np.concatenate([marked[:, None], last[:, :-1]], axis=1)
                values.append(flat(kept, self.kind))
                reached.append(states)
                lasts.append(last)
            for row, after in self._wrong(kept, states, most_after):
                if place or after or self.asks_empty:
                    errors.add((*strings[row, :place].tolist(), *after))
            if len(errors) >= MOST_ERRORS:
                break
        samples = Samples(np.concatenate(values), np.concatenate(reached), np.concatenate(lasts))
        return Found(samples, _shortest(errors))

    def _wrong(self, kept: Kept, states: np.ndarray, most_after: int) -> list[tuple[int, Letters]]:
        """Prefixes by their rows, and words after each, where the answers differ."""
        rows, after, wrong = np.arange(len(states)), np.zeros((len(states), 0), dtype=int), []
        letters, automaton = self.steps.num_letters, self.counting.automaton
        for length in range(most_after + 1):
            if length:
                more = np.tile(np.arange(letters), len(rows))
                rows, after = rows.repeat(letters), after.repeat(letters, axis=0)
                after = np.concatenate([after, more[:, None]], axis=1)
                states = automaton.table[states.repeat(letters), more]
                kept = map_kept(lambda x: x.repeat_interleave(letters, dim=0), kept)
                kept = self.steps.step(kept, more.tolist())
            said = self.steps.logits(kept, len(rows)).numpy() > 0
            for n in np.flatnonzero(said != automaton.accepting[states])[:MOST_ERRORS].tolist():
                wrong.append((int(rows[n]), tuple(after[n].tolist())))
        return wrong


def run_periods(steps: PrefixStates, kind: str) -> list[int]:
    """Of each letter, after how many of it a long run of it is in the same state again; else 1."""
    letters = steps.num_letters
    before = words(letters, 0, most_letters(letters) + 1)
    started = map_kept(lambda *x: torch.cat(x), *(steps.after(x) for x in before))
    periods = []
    for letter in range(letters):
        kept, seen, period = started, [], 1
        for place in range(SETTLED + MOST_PERIOD + 1):
            kept = steps.step(kept, [letter] * len(before))
            if place >= SETTLED:
                seen.append(flat(kept, kind))
        far = np.abs(np.array(seen[-2::-1]) - seen[-1]).max(axis=2)
        for row in (far < SAME).T:
            again = math.lcm(period, int(row.argmax()) + 1)
            if row.any() and again <= MOST_PERIOD:
                period = again
        periods.append(period)
    return periods


def flat(kept: Kept, kind: str) -> np.ndarray:
    """What recurrent layers keep, layer by layer: the state, then an LSTM's cell."""
    assert isinstance(kept, Recurrence)
    layers = zip(*kept, strict=True)
    parts = [x for state, cell in layers for x in ([state, cell] if kind == "lstm" else [state])]
    return torch.cat(parts, dim=1).numpy()


def most_letters(letters: int) -> int:
    """Letters of the words that are tried: fewer of a large alphabet."""
    return 3 if letters <= 3 else 2 if letters <= 6 else 1


def words(letters: int, least: int, most: int) -> list[Letters]:
    """All words of some lengths, the shortest first."""
    return [x for length in range(least, most + 1) for x in product(range(letters), repeat=length)]


def repeat(
    before: Sequence[Letters], repeated: Sequence[Letters], length: int
) -> Int64[np.ndarray, "string position"]:
    """Strings of a length that repeat a word after another, each once."""
    rows = [(*u, *v * (length // len(v) + 1))[:length] for u, v in product(before, repeated)]
    return np.array(list(dict.fromkeys(rows)))


def _shortest(errors: set[Letters]) -> list[Letters]:
    return sorted(errors, key=lambda x: (len(x), x))[:MOST_ERRORS]
