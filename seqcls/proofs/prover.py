"""Whether a recurrent network is right on every string there is: proved, refuted, or not decided.

Strings on which it may fail are tried first. Then boxes of states are grown around those that were
seen until they are closed: with few last letters told apart, then more; letter by letter, then over
several letters at once, which keeps what boxes lose where one letter or a short word repeats. Words
that repeat in a region that does not close are tried as well.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from itertools import chain
from typing import Any, Literal

import numpy as np

from seqcls.errors import ConfigError
from seqcls.interpretability.automaton_answers import PrefixStates
from seqcls.interpretability.minimal import delta_debug
from seqcls.interpretability.trained_model import Letters, TrainedModel
from seqcls.proofs import checker
from seqcls.proofs.cells import Cells, why_not_proved
from seqcls.proofs.certificate import make_certificate
from seqcls.proofs.closure import Ended, Growth
from seqcls.proofs.regions import BEGINNING, widths_of, Refined, Regions, Samples, SuffixTree
from seqcls.proofs.search import Walker, most_letters, refined, words
from seqcls.strings.token_strings import TokenStrings
from seqcls.tasks.automaton import Automaton, language_automaton

Outcome = Literal["proved", "refuted", "not decided"]

WAYS = (
    *((width, (1, 8)) for width in (0.5, 0.25, 0.12)),
    *((width, (2, 4, 32)) for width in (0.5, 0.25)),
    *((width, (1, 8, 2, 4)) for width in (0.06, 0.03, 0.015)),
)
"""How far apart the states of a region may be at first, and over how many letters these are carried:
from few regions to many."""

COARSE = 1.0
MOST_SPLITS = 150

FEW = 6
"""Attempts after which words are repeated for long where regions do not close, as in the end."""

MOST_REPEATED = 32
"""Such words."""

LONG = 2_000
"""Letters of the longest repetition that is tried."""


@dataclass(frozen=True)
class ProofBudget:
    """Bounds, each of which ends a proof."""

    seconds: float = 60.0
    regions: int = 3_000
    """Regions of states at most."""

    def __post_init__(self) -> None:
        for each in fields(self):
            if not (value := getattr(self, each.name)) > 0:
                raise ConfigError(f"{each.name}={value}: expected more than 0")


@dataclass(frozen=True)
class Attempt:
    """Regions that were grown."""

    width: float
    """How far apart the states of one region were at first, at most."""
    over: int
    """Letters that a form is carried over before it is boxed."""
    regions: int
    ended: str
    """Why they are not closed; empty where they are."""
    region: str
    """One that does not close: the last letters, and the automaton's state."""
    box: float
    """How wide its box was in the end."""


@dataclass(frozen=True, eq=False)
class Proof:
    """What came out of trying to prove a model right on every string."""

    outcome: Outcome
    automaton: Automaton
    """What its answers were held against."""
    certificate: dict[str, Any] | None = field(default=None, repr=False)
    string: Letters | None = None
    """One on which the model and the automaton differ."""
    attempts: tuple[Attempt, ...] = ()
    seconds: float = 0.0


def prove(
    model: TrainedModel,
    automaton: Automaton | None = None,
    budget: ProofBudget | None = None,
    on_progress: Callable[[str], None] = lambda said: None,
) -> Proof:
    """Proves that a model answers as an automaton on every string, or finds a string that refutes it.

    Args:
        automaton: the minimal one of the language where none is given.
        on_progress: told what is tried.

    Raises:
        ConfigError: nothing can be proved of such a model, or the language has no automaton.
    """
    if reason := why_not_proved(model.problem):
        raise ConfigError(reason)
    wanted = language_automaton(model.task) if automaton is None else automaton
    if wanted is None:
        raise ConfigError(
            f"task={model.config.task!r} has no finite automaton; the one that the model has become "
            "can be proved instead"
        )
    return _Prover(model, wanted, budget or ProofBudget(), on_progress).prove()


class _Prover:
    """One proof in the making."""

    def __init__(
        self,
        model: TrainedModel,
        automaton: Automaton,
        budget: ProofBudget,
        tell: Callable[[str], None],
    ) -> None:
        steps = PrefixStates.of(model)
        assert steps is not None
        self._begun = time.monotonic()
        self._model, self._wanted = model, automaton
        self._budget, self._tell = budget, tell
        kind = str(model.config.architecture)
        self._refined = refined(steps, automaton, kind)
        self._empty = model.problem.tries_empty
        self._walker = Walker(steps, self._refined, kind, self._empty)
        self._cells = Cells.of(model)
        self._attempts = list[Attempt]()
        self._repeated = dict[tuple[Letters, Letters], None]()

    @property
    def _deadline(self) -> float:
        return self._begun + self._budget.seconds

    def prove(self) -> Proof:
        self._tell("trying strings")
        found = self._walker.search()
        if string := self._refutation(found.errors):
            return self._proof("refuted", string=string)
        for width, over, regions in chain(self._split(found.samples), self._regions(found.samples)):
            self._tell(f"{len(regions):,} regions, {over} tokens at once")
            accepting = self._refined.automaton.accepting
            growth = Growth(self._cells, regions, accepting, self._empty, self._deadline)
            ended = growth.grow()
            if ended.closed:
                certificate = make_certificate(self._model, self._wanted, self._refined, regions)
                checker.check(certificate)
                return self._proof("proved", certificate=certificate)
            self._note(width, over, regions, ended)
            self._open = ended.growing.tolist()
            if len(self._attempts) == FEW and (string := self._refutation(self._repeat())):
                return self._proof("refuted", string=string)
            if time.monotonic() > self._deadline:
                break
        if string := self._refutation(self._repeat()):
            return self._proof("refuted", string=string)
        return self._proof("not decided")

    def _proof(self, outcome: Outcome, **what: Any) -> Proof:
        seconds = time.monotonic() - self._begun
        return Proof(outcome, self._wanted, attempts=tuple(self._attempts), seconds=seconds, **what)

    def _regions(self, samples: Samples) -> Iterator[tuple[float, int, Regions]]:
        """Regions to grow, what is cheap first; how wide they are at most, over how many letters."""
        most = self._budget.regions
        for width, ways in WAYS:
            tree = SuffixTree(self._refined)
            if not tree.fit(samples, width, most):
                break
            for over in ways:
                leaves = Regions.of(self._refined, tree, samples, most)
                if leaves is None:
                    break
                everywhere = dict.fromkeys(range(len(leaves)), 0)
                # A few letters are carried everywhere, many where short words repeat.
                within = everywhere if over < 5 else leaves.cycles(3)
                carried = {region: (number, over) for region, number in within.items()}
                regions = leaves.unrolled(carried if over > 1 else {})
                if len(regions) <= most:
                    yield width, over, regions

    def _split(self, samples: Samples) -> Iterator[tuple[float, int, Regions]]:
        """Regions to grow, from few of them: those that did not close are split."""
        tree = SuffixTree(self._refined)
        tree.fit(samples, COARSE, self._budget.regions)
        for number in range(MOST_SPLITS):
            leaves = Regions.of(self._refined, tree, samples, self._budget.regions)
            if leaves is None:
                return
            over = 8
            carried = {x: (cycle, over) for x, cycle in leaves.cycles(3).items()}
            regions = leaves.unrolled(carried)
            before = widths_of(regions.low, regions.high).max(axis=1)
            yield COARSE, over, regions
            after = widths_of(regions.low, regions.high).max(axis=1)
            grown = np.nan_to_num((after - before) * regions.boxed, nan=0, posinf=0, neginf=0)
            chosen = [*self._open[:3], *np.argsort(-grown)[: 3 + len(leaves) // 20].tolist()]
            count = 0
            for region in chosen:
                leaf = int(regions.origin[region])
                suffix = leaves.suffixes[leaf]
                if BEGINNING not in suffix and len(suffix) < samples.most_letters - 1 and before[leaf] > 1e-3:
                    tree.split(int(leaves.state[leaf]), suffix)
                    count += 1
            if not count:
                return

    def _note(self, width: float, over: int, regions: Regions, ended: Ended) -> None:
        """Remembers what was tried in vain."""
        where, box = "", 0.0
        if len(ended.growing):
            worst = int(ended.growing[0])
            letters = self._refined.letters(regions.suffixes[worst])
            where = f"{self._model.display(letters)} in state {self._refined.states[regions.state[worst]]}"
            box = float((regions.high[worst] - regions.low[worst]).max())
            self._open_words(regions, ended)
        self._attempts.append(Attempt(width, over, len(regions), ended.why, where, box))

    def _open_words(self, regions: Regions, ended: Ended) -> None:
        """Remembers words that lead to regions that do not close, and repeat there."""
        access, letters = regions.access(), self._walker.steps.num_letters
        for region in ended.growing[:2].tolist():
            for word in words(letters, 1, most_letters(letters)):
                after = region
                for letter in word:
                    after = int(regions.next[after, letter])
                if regions.origin[after] == regions.origin[region]:
                    self._repeated.setdefault((access[region], word))

    def _repeat(self) -> list[Letters]:
        """Errors on strings that repeat words for long where regions do not close."""
        pairs = list(self._repeated)[:MOST_REPEATED]
        rows = [(*before, *word * LONG)[:LONG] for before, word in pairs]
        return self._walker.run(np.array(rows), 2).errors if rows else []

    def _refutation(self, errors: Sequence[Letters]) -> Letters | None:
        """A short string on which the model itself differs; None where it does on none of these."""

        def differ(strings: Sequence[Letters]) -> list[bool]:
            asked = TokenStrings.of_lists(self._model.num_letters, list(strings))
            said = np.asarray(self._model.ask(asked).predicted, dtype=bool)
            wrong = said != self._wanted.accepting[self._wanted.states(asked)]
            return [bool(x) and (self._empty or len(s) > 0) for x, s in zip(wrong, strings, strict=True)]

        if not errors:
            return None
        wrong = (string for string, fails in zip(errors, differ(errors), strict=True) if fails)
        first = next(wrong, None)
        return None if first is None else delta_debug(first, differ)
