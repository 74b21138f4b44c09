"""Strings on which a model may fail, and the states that it is seen in meanwhile.

A random string hardly ever repeats a few letters for long, and that is where recurrent networks
drift: so words u v{n} w are tried for all short u, v and w, next to all short strings, random ones,
and random ones of longer words that repeat. Steps are taken in double precision; whoever reports an
error evaluates the model itself.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from itertools import product

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor

from seqcls.cancellation import check
from seqcls.interpretability.readable_model import plain_model
from seqcls.interpretability.trained_model import Letters, TrainedModel
from seqcls.models.forms import map_cached
from seqcls.models.recurrent import Recurrence, Recurrent
from seqcls.proofs.regions import BEGINNING, Refined, Samples
from seqcls.strings.token_strings import TokenStrings
from seqcls.strings.tokenizer import CLS, FIRST_LETTER
from seqcls.tasks.automaton import Automaton

REMEMBERED_LETTERS = 40
"""Last letters that are stored of a sample."""

MAX_SHORT_STRINGS = 2_048
"""Short strings, all of which are tried, at most."""

RANDOM_STRINGS, DRAWN_STRINGS, SEEN_STRINGS, DRAWN_LENGTH = 32, 1_600, 200, 300
"""Random strings, with them those of random words that repeat, the strings whose states are
stored, and letters of each.
"""

LONGEST_WORD, MOST_TIMES = 8, 60
"""Letters of such a word, and how often it is repeated at most."""

REPEATED_LETTERS = 256
"""Letters of the words that repeat."""

SETTLED_LETTERS = 96
"""Letters of the words that repeat after strings that are distinguished."""

NEAR_DISTANCE, MOST_GROUPS = 0.1, 12
"""The distance of states that are the same for good, and the greatest number of groups."""

MOST_STATES = 100
"""States of an automaton that knows what a model remembers."""

MOST_ERRORS = 64
"""Errors that are stored, the shortest."""


@dataclass(frozen=True, eq=False)
class Steps:
    """A recurrent network in double precision, from one prefix to those a letter longer."""

    network: Recurrent
    num_letters: int

    @classmethod
    def from_model(cls, model: TrainedModel) -> "Steps":
        """The steps of a model for which `why_not_proved` has no reason."""
        network = plain_model(model)
        assert isinstance(network, Recurrent)
        return cls(network, model.num_letters)

    @torch.no_grad()
    def step(self, cached: Recurrence, letters: Sequence[int]) -> Recurrence:
        """The cached states of prefixes after one more letter each."""
        return self.network.step(torch.tensor(letters) + FIRST_LETTER, cached)[1]

    @torch.no_grad()
    def logits(self, cached: Recurrence) -> Float[Tensor, " string"]:
        """The answers to prefixes as strings of their own."""
        states = cached.states[-1]
        # The answer is read off the last layer; no further token is read for it.
        if self.network.config.readout == "last_letter":
            return self.network.head(states)
        return self.network.step(torch.full((len(states),), CLS), cached)[0]

    def after(self, letters: Letters) -> Recurrence:
        """The cached states of a prefix."""
        steps = ([letter] for letter in letters)
        return reduce(self.step, steps, self.network.nothing(1))

    def values(self, cached: Recurrence) -> np.ndarray:
        """The states of each prefix, layer by layer: the state, then an LSTM's cell."""
        layers = zip(*(cached if self.network.cell.has_cell else cached[:1]), strict=True)
        return torch.cat([x for layer in layers for x in layer], dim=1).numpy()


@dataclass(frozen=True, eq=False)
class Walker:
    """Steps through strings, beside an automaton that gives the right answers."""

    steps: Steps
    refined: Refined
    asks_empty: bool
    """True if the empty string is tested."""

    def search(self) -> tuple[Samples, list[Letters]]:
        """All short strings, random ones, and short words that repeat; as `run`."""
        letters, length = self.steps.num_letters, self._short_length
        # All strings of a length: their prefixes are all shorter ones.
        short = np.array(list(product(range(letters), repeat=length)))
        most = most_letters(letters)
        repeated = repeat(words(letters, 0, most - 1), words(letters, 1, most), REPEATED_LETTERS)
        # Random strings are long and many: their states fill memory, so those of some are stored.
        runs = [
            self.run(short, 0),
            self.run(repeated, most),
            self.run(draw(letters), 0, SEEN_STRINGS),
        ]
        samples = map(np.concatenate, zip(*(x for x, _ in runs), strict=True))
        return Samples(*samples), _shortest({string for _, some in runs for string in some})

    @property
    def _short_length(self) -> int:
        letters, length = self.steps.num_letters, 1
        # Of one letter there is one string of each length, however long.
        while letters > 1 and letters ** (length + 1) <= MAX_SHORT_STRINGS:
            length += 1
        return length

    def strings(self) -> list[Letters]:
        """Strings for the model itself: all short ones, and random ones."""
        letters = self.steps.num_letters
        short = words(letters, 0, self._short_length)
        return [*short, *map(tuple, draw(letters)[:SEEN_STRINGS].tolist())]

    def run(
        self,
        strings: Int64[np.ndarray, "string position"],
        most_after: int,
        seen: int | None = None,
    ) -> tuple[Samples, list[Letters]]:
        """All prefixes of strings of one length, each held against the automaton.

        Args:
            most_after: each prefix is tried with all words of up to so many letters after it, too.
            seen: the number of strings whose states are stored; None: of all.

        Returns:
            States of prefixes, and strings whose stepped answer is not the automaton's, the
            shortest first.
        """
        cached = map_cached(lambda x: x.expand(len(strings), -1), self.steps.after(()))
        automaton = self.refined.automaton
        states = np.full(len(strings), automaton.start)
        last = np.full((len(strings), REMEMBERED_LETTERS), BEGINNING)
        met, errors = [Samples(self.steps.values(cached), states, last)], set[Letters]()
        for place in range(strings.shape[1] + 1):
            check()
            if place:
                letters = strings[:, place - 1]
                cached = self.steps.step(cached, letters.tolist())
                states = automaton.table[states, letters]
                marked = self.refined.mark(letters, states)
                last = np.concatenate([marked[:, None], last[:, :-1]], axis=1)
                values = self.steps.values(cached)
                met.append(Samples(values[:seen], states[:seen], last[:seen]))
            for row, after in self._wrong(cached, states, most_after):
                if place or after or self.asks_empty:
                    errors.add((*strings[row, :place].tolist(), *after))
            # Prefixes come by length, so further errors would mostly be longer.
            if len(errors) >= MOST_ERRORS:
                break
        return Samples(*map(np.concatenate, zip(*met, strict=True))), _shortest(errors)

    def _wrong(
        self, cached: Recurrence, states: np.ndarray, most_after: int
    ) -> list[tuple[int, Letters]]:
        """Prefixes by their rows, and words after each, where the answers differ."""
        rows, after, wrong = np.arange(len(states)), np.zeros((len(states), 0), dtype=int), []
        letters, automaton = self.steps.num_letters, self.refined.automaton
        for length in range(most_after + 1):
            if length:
                more = np.tile(np.arange(letters), len(rows))
                # A row for each letter that may come next.
                rows, after = rows.repeat(letters), after.repeat(letters, axis=0)
                after = np.concatenate([after, more[:, None]], axis=1)
                states = automaton.table[states.repeat(letters), more]
                cached = map_cached(lambda x: x.repeat_interleave(letters, dim=0), cached)
                cached = self.steps.step(cached, more.tolist())
            logits = self.steps.logits(cached).numpy()
            # NaN is no answer, and so never the right one.
            fails = ((logits > 0) != automaton.accepting[states]) | np.isnan(logits)
            differ = np.flatnonzero(fails)[:MOST_ERRORS].tolist()
            wrong += [(int(rows[n]), tuple(after[n].tolist())) for n in differ]
        return wrong


def refine(steps: Steps, automaton: Automaton) -> Refined:
    """The automaton, its states split by what a model remembers for good.

    Two strings are one where the same state of the automaton and, after each of some long words
    that repeat, nearly the same state of the model follow: where runs of a letter end in a cycle of
    states, a string fixes where on the cycle a run after it is.
    """
    letters = steps.num_letters
    # Words of larger alphabets are too many beyond one letter.
    before = words(letters, 0, 1 + (letters == 2))
    after = repeat(before, words(letters, 1, 1 + (letters <= 3)), SETTLED_LETTERS)
    while True:
        met: list[list[np.ndarray]] = [[] for _ in after]
        found = _classes(steps, automaton, partial(_ends, steps, met, after))
        # A word after which there are many different states distinguishes nothing for good.
        settles = [len(groups) <= MOST_GROUPS for groups in met]
        if found is not None and all(settles):
            return found
        if all(settles):
            return Refined(automaton, np.arange(len(automaton.table)))
        after = after[settles]


def _ends(
    steps: Steps,
    met: list[list[np.ndarray]],
    after: Int64[np.ndarray, "word position"],
    strings: Sequence[Letters],
) -> Int64[np.ndarray, "string word"]:
    """In which of the groups met before, or a new one, each string ends after each word."""
    cached = map_cached(lambda *x: torch.cat(x), *(steps.after(x) for x in strings))
    cached = map_cached(lambda x: x.repeat(len(after), 1), cached)
    for column in np.repeat(after, len(strings), axis=0).T:
        check()
        cached = steps.step(cached, column.tolist())
    # An LSTM's cells may be large, and are compared in proportion then.
    ends = np.arcsinh(steps.values(cached)).reshape(len(after), len(strings), -1)
    groups = np.zeros((len(strings), len(after)), dtype=int)
    for word, known in enumerate(met):
        for string, end in enumerate(ends[word]):
            near = (n for n, group in enumerate(known) if np.abs(group - end).max() < NEAR_DISTANCE)
            groups[string, word] = number = next(near, len(known))
            # A word with more groups is given up by `refine`, whatever they are.
            if number == len(known) <= MOST_GROUPS:
                known.append(end)
    return groups


def _classes(
    steps: Steps,
    automaton: Automaton,
    ends: Callable[[Sequence[Letters]], Int64[np.ndarray, "string word"]],
) -> Refined | None:
    """The machine whose states are strings split by their ends; None where it has too many."""
    numbers: dict[tuple[int, ...], int] = {}
    states, table, strings = list[int](), list[list[int]](), list[Letters]([()])
    owners: list[tuple[int, int]] = []
    while strings:
        reached = automaton.states(TokenStrings.of_lists(steps.num_letters, strings)).tolist()
        following = list[Letters]()
        for row, (state, groups) in enumerate(zip(reached, ends(strings).tolist(), strict=True)):
            # Strings with the same state and groups are one: what they lead to is the same.
            number = numbers.setdefault((state, *groups), len(states))
            if owners:
                before, letter = owners[row]
                table[before][letter] = number
            if number == len(states):
                states.append(state)
                table.append([0] * steps.num_letters)
                following += [(*strings[row], letter) for letter in range(steps.num_letters)]
        if len(states) > MOST_STATES:
            return None
        strings = following
        # The states that were new in this round, each with all letters after it.
        fresh = range(len(states) - len(following) // steps.num_letters, len(states))
        owners = [(number, letter) for number in fresh for letter in range(steps.num_letters)]
    base_states = np.array(states)
    return Refined(Automaton(np.array(table), automaton.accepting[base_states]), base_states)


def most_letters(letters: int) -> int:
    """Letters of the words that are tried: fewer of a large alphabet."""
    return 3 if letters <= 3 else 2 if letters <= 6 else 1


def words(letters: int, least: int, most: int) -> list[Letters]:
    """All words of some lengths, the shortest first."""
    return [x for length in range(least, most + 1) for x in product(range(letters), repeat=length)]


def draw(letters: int) -> Int64[np.ndarray, "string position"]:
    """Random strings, and after them those of random words, each repeated a random number of
    times.
    """
    # A fixed seed: a proof takes the same course each time.
    rng = np.random.default_rng(0)
    rows = rng.integers(letters, size=(DRAWN_STRINGS, DRAWN_LENGTH))
    for row in rows[RANDOM_STRINGS:]:
        filled = 0
        while filled < DRAWN_LENGTH:
            word = rng.integers(letters, size=rng.integers(1, LONGEST_WORD + 1))
            # Evenly on a logarithmic scale, so that few repetitions are as frequent as many.
            times = int(np.exp(rng.uniform(0, np.log(MOST_TIMES))))
            block = np.tile(word, times)[: DRAWN_LENGTH - filled]
            row[filled : filled + len(block)] = block
            filled += len(block)
    return rows


def repeat(
    before: Sequence[Letters], repeated: Sequence[Letters], length: int
) -> Int64[np.ndarray, "string position"]:
    """Strings of a length that repeat a word after another, each once."""
    # One repetition more than fits is cut to the length.
    rows = [(*u, *v * (length // len(v) + 1))[:length] for u, v in product(before, repeated)]
    return np.array(list(dict.fromkeys(rows)))


def _shortest(errors: set[Letters]) -> list[Letters]:
    return sorted(errors, key=lambda x: (len(x), x))[:MOST_ERRORS]
