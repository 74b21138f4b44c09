"""Does a regular expression match the whole string?"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Bool, Int64, UInt8

from seqcls.caching.remembered import remembered
from seqcls.errors import ConfigError
from seqcls.tasks.automata.automaton import Automaton
from seqcls.tasks.automata.expression import minimal_automaton
from seqcls.tasks.language import DrawnInBulk
from seqcls.tasks.letters import DEFECT
from seqcls.tokens.alphabets import check_alphabet
from seqcls.tokens.strings import TokenStrings


@dataclass(frozen=True)
class Regular(DrawnInBulk):
    """Strings that a regular expression matches as a whole are positive.

    With the pattern `(ab)*`: `abab` and the empty string are positive; `aba` and `ba` are
    negative.
    """

    alphabet: str
    pattern: str

    order_sensitive: ClassVar[bool] = True
    reads: ClassVar[frozenset[str]] = frozenset({"alphabet", "pattern"})

    def __post_init__(self) -> None:
        check_alphabet(self.alphabet, "regular")
        if " " in self.alphabet:
            raise ConfigError(
                f"alphabet={self.alphabet!r}: task 'regular' reads patterns one character a token, "
                "so its tokens have no names; expected such as 'ab'"
            )
        if not self.pattern:
            raise ConfigError(
                "pattern='': task 'regular' expects a regular expression over the alphabet "
                f"{self.alphabet!r}, such as '({self.alphabet[0]}{self.alphabet[-1]})*'"
            )
        assert self.automaton

    @property
    def automaton(self) -> Automaton:
        """The minimal automaton of the pattern."""
        return _automaton(self.alphabet, self.pattern)

    def labels(self, strings: TokenStrings) -> Bool[np.ndarray, " string"]:
        """Which of the strings are in the language."""
        return np.asarray(self.automaton.accepting[self.automaton.states(strings)])

    def has(self, length: int, positive: bool) -> bool:
        """Whether any string of that many tokens is in the language, or is not."""
        return self.automaton.has(length, positive)

    def draw_many(
        self, rng: np.random.Generator, lengths: Int64[np.ndarray, " string"], positive: bool
    ) -> UInt8[np.ndarray, "string position"]:
        return self.automaton.draw(rng, lengths, positive)

    def features(self, strings: TokenStrings) -> Mapping[str, np.ndarray]:
        """How often each token occurs, and the place of the first defect."""
        sound = self.automaton.sound_lengths(strings)
        return {**super().features(strings), DEFECT: sound}

    def describe(self) -> str:
        """The language in one sentence."""
        return f"Strings of {self.alphabet} that match {self.pattern} as a whole are positive."


@remembered
def _automaton(alphabet: str, pattern: str) -> Automaton:
    return minimal_automaton(pattern, alphabet)
