"""Whether a recurrent network is right on every string there is: proved, refuted, or not decided.

Strings on which it may fail are tried first. Then boxes of states are grown around those that were
seen until they are closed: with few last letters told apart, then more, first where it fails. Words
that repeat in a region that does not close are tried in the end.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

import numpy as np

from seqcls.errors import ConfigError
from seqcls.interpretability.automaton import count_of, states
from seqcls.interpretability.automaton_answers import PrefixStates
from seqcls.interpretability.domains import tested_strings
from seqcls.interpretability.minimal import delta_debug
from seqcls.interpretability.trained_model import Letters, TrainedModel
from seqcls.interpretability.wording import sign
from seqcls.proofs import checker
from seqcls.proofs.cells import Cells, why_not_proved
from seqcls.proofs.certificate import make_certificate
from seqcls.proofs.closure import Ended, Growth
from seqcls.proofs.regions import Regions, Samples, Suffix, SuffixTree, widths_of
from seqcls.proofs.search import Walker, most_letters, refine, words
from seqcls.results import ProofOutcome
from seqcls.strings.token_strings import TokenStrings
from seqcls.tasks.automaton import Automaton, language_automaton

WAYS = ((0.5, 24), (0.25, 24), (0.12, 40), (0.06, 40), (0.03, 40))
"""How far apart the states of a region may be at first, and over how many letters these are
carried at most: from little work to much.
"""

SPLIT = 2
"""How often regions are grown: those that do not close are split, before all are narrower."""

CARRIED = 24
"""Forms that are carried further, of each region on average, at most."""

MOST_REPEATED = 32
"""Words that are repeated for long where regions do not close, when nothing else is left."""

LONG = 2_000
"""Letters of the longest repetition that is tried."""


@dataclass(frozen=True)
class ProofBudget:
    """Bounds, each of which ends a proof."""

    seconds: float = 60.0
    """Time that one core computes."""
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

    outcome: ProofOutcome
    automaton: Automaton
    """What its answers were held against."""
    of_language: bool
    """Whether that is the language's own."""
    budget: ProofBudget
    certificate: dict[str, Any] | None = field(default=None, repr=False)
    string: str | None = None
    """One on which the model and the automaton differ; no token of it can be left out."""
    said: bool | None = None
    """Whether the model takes that string for one of the language."""
    attempts: tuple[Attempt, ...] = ()
    """What was tried in vain."""
    seconds: float = 0.0
    """Time that one core computed."""

    @property
    def regions(self) -> int:
        """Regions of the certificate."""
        return 0 if self.certificate is None else len(self.certificate["regions"])

    def record(self) -> dict[str, Any]:
        """The same as JSON has it, the certificate by its digest."""
        made = self.certificate
        return {
            "outcome": self.outcome,
            "states": len(self.automaton.table),
            "of_language": self.of_language,
            "regions": self.regions,
            "weights_sha256": None if made is None else made["weights_sha256"],
            "string": self.string,
            "said": self.said,
            "attempts": list(map(asdict, self.attempts)),
            "seconds": self.seconds,
        }


def proof_text(model: TrainedModel, proof: Proof) -> list[str]:
    """What came out, a sentence each."""
    whose = "the language's automaton" if proof.of_language else "the automaton that was learned"
    whose += f", of {states(len(proof.automaton.table))},"
    if proof.outcome == "proved":
        empty = "" if model.problem.tries_empty else " but the empty one"
        return [
            f"Proved: the model answers as {whose} on every string{empty}, by {proof.regions:,} "
            f"regions of states ({proof.seconds:.1f} s)."
        ]
    if proof.outcome == "refuted":
        assert proof.string is not None
        shown = model.tokenizer.display(proof.string) or "the empty string"
        wanted, said = sign(not proof.said), sign(bool(proof.said))
        return [f"Refuted: on {shown} the model says {said}, and {whose} says {wanted}."]
    budget = f"{proof.budget.seconds:g} seconds and {proof.budget.regions:,} regions"
    if not proof.attempts:
        return [
            f"Not decided within {budget}: states that follow the same tokens are too far apart."
        ]
    last = proof.attempts[-1]
    attempts = count_of(len(proof.attempts), "attempt", "attempts")
    where = f"; the widest, {last.box:.2g}, is that after {last.region}" if last.region else ""
    return [
        f"Not decided within {budget}: no regions are closed ({attempts}).",
        f"The last one, of {last.regions:,} regions, each carried over {last.over} tokens at once: "
        f"{last.ended}{where}.",
    ]


def prove(
    model: TrainedModel,
    automaton: Automaton | None = None,
    budget: ProofBudget | None = None,
    on_progress: Callable[[str], None] | None = None,
) -> Proof:
    """Proves that a model answers as an automaton on every string, or finds one that refutes it.

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
            f"task={model.config.task!r} has no finite automaton; the one that the model has "
            "become can be proved instead"
        )
    prover = _Prover(model, wanted, budget or ProofBudget(), on_progress or (lambda _: None))
    return replace(prover.prove(), of_language=automaton is None)


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
        self._begun = time.thread_time()
        self._model, self._wanted = model, automaton
        self._budget, self._tell = budget, tell
        kind = str(model.config.architecture)
        self._refined = refine(steps, automaton, kind)
        self._empty = model.problem.tries_empty
        self._cells = Cells.of(model)
        self._walker = Walker(steps, self._refined, kind, self._empty, self._cells.cells)
        self._attempts = list[Attempt]()
        self._repeated = dict[tuple[Letters, Letters], None]()

    @property
    def _deadline(self) -> float:
        return self._begun + self._budget.seconds

    def prove(self) -> Proof:
        self._tell("trying strings")
        found = self._walker.search()
        if refuted := self._refutation([*self._tested_wrong(), *found.errors]):
            return refuted
        for width, over in WAYS:
            if proof := self._grow(found.samples, width, over):
                return proof
            if time.thread_time() > self._deadline:
                break
        return self._refutation(self._repeat()) or self._proof("not decided")

    def _grow(self, samples: Samples, width: float, over: int) -> Proof | None:
        """Grows regions, and splits those that do not close; a proof where they do."""
        tree, most = SuffixTree(self._refined), self._budget.regions
        # The empty string has a region of its own: it may be asked, or not.
        tree.split(self._refined.automaton.start, ())
        widest: dict[tuple[int, Suffix], float]
        widest = {(state, ()): width for state in range(len(self._refined.states))}
        for _ in range(SPLIT):
            fits = tree.fit(samples, widest, most)
            regions = Regions.of(self._refined, tree, samples, most) if fits else None
            if regions is None:
                return None
            self._tell(f"{len(regions):,} regions, up to {over} tokens at once")
            growth = Growth(
                self._cells,
                regions,
                self._refined.automaton.accepting,
                self._empty,
                width,
                over,
                CARRIED,
                self._deadline,
            )
            ended = growth.grow()
            if ended.closed:
                certificate = make_certificate(
                    self._model, self._wanted, self._refined, growth.closed_regions()
                )
                return self._proof_by(certificate)
            self._note(width, over, growth.regions, ended)
            if time.thread_time() > self._deadline:
                break
            widest = {}
            for region in ended.growing.tolist():
                key = (int(regions.state[region]), regions.suffixes[region])
                low, high = regions.low[region], regions.high[region]
                seen = widths_of(low, high, samples.cells).max()
                widest[key] = 0.4 * float(seen) if np.isfinite(seen) else 0.0
        return None

    def _proof_by(self, certificate: dict[str, Any]) -> Proof | None:
        """The proof of a certificate; None where the checker, whose bounds are its own, rejects it:
        a product may be as wide as it takes here to be a box, and a trace narrower there.
        """
        try:
            checker.check(certificate)
        except checker.RejectedError:
            return None
        return self._proof("proved", certificate=certificate)

    def _proof(self, outcome: ProofOutcome, **what: Any) -> Proof:
        seconds, attempts = time.thread_time() - self._begun, tuple(self._attempts)
        return Proof(
            outcome, self._wanted, True, self._budget, attempts=attempts, seconds=seconds, **what
        )

    def _note(self, width: float, over: int, regions: Regions, ended: Ended) -> None:
        """Remembers what was tried in vain."""
        where, box = "", 0.0
        if len(ended.growing):
            worst = int(ended.growing[0])
            letters = self._refined.letters(regions.suffixes[worst])
            state = self._refined.states[regions.state[worst]]
            where = f"{self._model.display(letters)} in state {state}"
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
                if after == region:
                    self._repeated.setdefault((access[region], word))

    def _repeat(self) -> list[Letters]:
        """Errors on strings that repeat words for long where regions do not close."""
        pairs = list(self._repeated)[:MOST_REPEATED]
        rows = [(*before, *word * LONG)[:LONG] for before, word in pairs]
        return self._walker.run(np.array(rows), 2).errors if rows else []

    def _tested_wrong(self) -> list[Letters]:
        """Strings of the test on which the model and the automaton differ, the shortest first."""
        strings = tested_strings(self._model.problem).strings
        rows = np.flatnonzero(self._differ(strings)).tolist()
        rows.sort(key=lambda row: int(strings.lengths[row]))
        return [tuple(strings.letters[row, : strings.lengths[row]].tolist()) for row in rows[:1]]

    def _differ(self, strings: TokenStrings) -> np.ndarray:
        """On which strings the model and the automaton differ; the empty one where it is asked."""
        said = np.asarray(self._model.ask(strings).predicted, dtype=bool)
        differ = said != self._wanted.accepting[self._wanted.states(strings)]
        return np.asarray(differ & (self._empty | (strings.lengths > 0)))

    def _refutation(self, errors: Sequence[Letters]) -> Proof | None:
        """One of these strings on which the model itself differs, shortened; None where it does on
        none.
        """

        def differ(strings: Sequence[Letters]) -> list[bool]:
            asked = TokenStrings.of_lists(self._model.num_letters, list(strings))
            differs: list[bool] = self._differ(asked).tolist()
            return differs

        wrong = [
            x for x, fails in zip(errors, differ(errors) if errors else (), strict=True) if fails
        ]
        if not wrong:
            return None
        self._tell("shortening a string")
        string = delta_debug(min(wrong, key=len), differ)
        asked = TokenStrings.of_lists(self._model.num_letters, [string])
        said = not self._wanted.accepting[self._wanted.states(asked)[0]]
        return self._proof("refuted", string=self._model.text(string), said=said)
