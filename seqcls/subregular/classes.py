"""The subregular classes, memberships in them, and strings that exclude them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from seqcls.strings.tokenizer import Tokenizer

Letters = tuple[int, ...]


class SubregularClass(NamedTuple):
    """One class of languages."""

    words: str
    """Its name in a sentence."""
    within: tuple[str, ...]
    """The next larger classes."""
    definition: str
    """The definition of its languages: those in which ..."""
    test: str
    """A property of the minimal automaton, or the syntactic semigroup, equivalent to it."""
    source: str


def _on_tier(
    base: str, words: str, within: tuple[str, ...], source: str = "Lambert & Rogers 2020"
) -> SubregularClass:
    """The class of languages that are in a base class after removing letters outside a tier."""
    return SubregularClass(
        f"{words} on a tier",
        within,
        f"without the letters outside the tier it is {words}",
        f"letters outside the tier change no state; without them it is {base}",
        f"{source}; Lambert 2023",
    )


CLASSES: Mapping[str, SubregularClass] = {
    "finite": SubregularClass(
        "finite", ("definite",), "finitely many strings are in it",
        "no circle passes through a state from which an accepting one is reached", "by definition",
    ),
    "cofinite": SubregularClass(
        "cofinite", ("definite",), "all strings but finitely many are in it",
        "its complement is finite", "by definition",
    ),
    "definite": SubregularClass(
        "definite", ("SL", "coSL"), "the last k letters decide",
        "all strings of k letters lead from every state to one", "Perles, Rabin & Shamir 1963",
    ),
    "SL": SubregularClass(
        "strictly local", ("LT", "TSL"), "every factor of width k is an allowed one",
        "after any k - 1 letters there is one state from which an accepting one is reached",
        "McNaughton & Papert 1971; Rogers & Pullum 2011",
    ),
    "coSL": SubregularClass(
        "the complement of strictly local", ("LT", "TcoSL"),
        "one of some factors of width k occurs",
        "its complement is strictly local", "McNaughton & Papert 1971; van der Poel et al. 2024",
    ),
    "SP": SubregularClass(
        "strictly piecewise", ("PT",), "none of some subsequences of up to k letters occurs",
        "leaving out any letter of a string in it leaves one in it",
        "Rogers et al. 2010; Fu, Heinz & Tanner 2011",
    ),
    "coSP": SubregularClass(
        "the complement of strictly piecewise", ("PT",),
        "one of some subsequences of up to k letters occurs",
        "its complement is strictly piecewise", "Haines 1969; van der Poel et al. 2024",
    ),
    "LT": SubregularClass(
        "locally testable", ("LTT", "TLT"), "which factors of width k occur decides",
        "eSe is idempotent and commutative for every idempotent e",
        "Brzozowski & Simon 1973; McNaughton 1974",
    ),
    "PT": SubregularClass(
        "piecewise testable", ("PLT",), "which subsequences of up to k letters occur decides",
        "the syntactic monoid is J-trivial", "Simon 1975",
    ),
    "LTT": SubregularClass(
        "locally threshold testable", ("PLT", "TLTT"),
        "how often each factor of width k occurs, counted up to t, decides",
        "aperiodic, and eafuebf = ebfueaf for all idempotents e and f",
        "Thérien & Weiss 1985; Beauquier & Pin 1989",
    ),
    "PLT": SubregularClass(
        "piecewise locally testable", ("TPLT",),
        "which sequences of factors occur, one after the other, decides: dot-depth one",
        "(eafb)ⁿ eafde (cfde)ⁿ = (eafb)ⁿ e (cfde)ⁿ for all idempotents e and f and large n",
        "Knast 1983",
    ),
    "TSL": _on_tier("SL", "strictly local", ("TLT",), "Heinz, Rawal & Tanner 2011"),
    "TcoSL": _on_tier(
        "coSL", "the complement of strictly local", ("TLT",), "van der Poel et al. 2024"
    ),
    "TLT": _on_tier("LT", "locally testable", ("TLTT",)),
    "TLTT": _on_tier("LTT", "locally threshold testable", ("TPLT",)),
    "TPLT": _on_tier("PLT", "piecewise locally testable", ("SF",)),
    "SF": SubregularClass(
        "star-free", ("quasi-aperiodic",),
        "it is made of letters by unions, complements and concatenation",
        "no element of the syntactic monoid has powers that turn in a circle",
        "Schützenberger 1965",
    ),
    "quasi-aperiodic": SubregularClass(
        "quasi-aperiodic", ("solvable",), "it is in AC0",
        "strings of no one length make a group in the syntactic monoid",
        "Barrington, Compton, Straubing & Thérien 1992",
    ),
    "Zp": SubregularClass(
        "counting modulo a prime", ("solvable",),
        "a weighted sum of letter counts modulo the prime k decides",
        "the syntactic monoid is the cyclic group of k elements", "by definition",
    ),
    "solvable": SubregularClass(
        "solvable groups", ("Reg",), "it is in ACC0",
        "every group in the syntactic monoid is solvable", "Barrington & Thérien 1988",
    ),
    "Reg": SubregularClass(
        "regular", (), "a finite automaton recognizes it", "the automaton is finite", "Kleene 1956"
    ),
}  # fmt: skip
"""Classes by their names in MLRegTest (van der Poel et al. 2024), smaller before larger."""


def larger_classes(name: str) -> Iterator[str]:
    """All classes that include another."""
    for above in CLASSES[name].within:
        yield above
        yield from larger_classes(above)


class Membership(NamedTuple):
    """A language's membership in a class."""

    name: str
    k: int | None = None
    """The least width or length of subsequences, or the prime; None where the class has none, or
    finding it takes too long."""
    t: int | None = None
    """The least threshold up to which occurrences are counted, at that width."""
    tier: Letters | None = None
    """The letters of the tier."""

    def describe(self, alphabet: Sequence[str]) -> str:
        """The class in words, such as: strictly local (k = 2) on the tier a b."""
        numbers = [f"{name} = {x}" for name, x in (("k", self.k), ("t", self.t)) if x is not None]
        words = CLASSES[self.name].words.removesuffix(" on a tier")
        words += f" ({', '.join(numbers)})" if numbers else ""
        if self.tier is None:
            return words
        return f"{words} on the tier {' '.join(alphabet[x] for x in self.tier)}"


class Witness(NamedTuple):
    """Strings that show that a language is not in a class of some width; of `Zp`, of that prime."""

    name: str
    k: int
    inside: tuple[Letters, ...]
    """Strings in the language."""
    outside: tuple[Letters, ...]
    """Strings not in it; a language in the class of that width would label some string
    differently."""

    def describe(self, alphabet: Sequence[str]) -> str:
        """The strings and the reason why they exclude the class, in one sentence."""
        spell = Tokenizer(alphabet).spell
        outside = "not" if self.inside else "not in it"
        clauses = [
            f"{' and '.join(spell(word) or 'the empty string' for word in words)} "
            f"{'is' if len(words) == 1 else 'are'} {where}"
            for words, where in ((self.inside, "in it"), (self.outside, outside))
            if words
        ]
        return (
            f"not {CLASSES[self.name].words}: {', '.join(clauses)}, "
            f"and {ALIKE[self.name.removeprefix('T')].format(k=self.k)}"
        )


ALIKE = {
    "finite": "from one to the other letters are repeated once more, as they can be without end",
    "cofinite": "from one to the other letters are repeated once more, as they can be without end",
    "definite": "both have the same last {k} letters",
    "SL": "every factor of width {k} of the last is one of the first two",
    "coSL": "every factor of width {k} of the first is one of the others",
    "SP": "letters left out of the first make the second",
    "coSP": "letters left out of the second make the first",
    "LT": "both have the same factors of width {k}",
    "PT": "both have the same subsequences of up to {k} letters",
    "LTT": "both have every factor of width {k} as often",
    "PLT": "both have the same sequences of up to {k} factors of width {k}",
    "quasi-aperiodic": "both are {k} blocks of one length, between the same ends, that differ in "
    "the last; how often each occurs has to be counted modulo a number",
    "Zp": "both have every letter as often, modulo {k}",
    "SF": "one repeats the same letters once more, which star-free ones do not tell from some "
    "number on",
}
"""The property that strings share and that the class reads, on the tier if it has one."""
