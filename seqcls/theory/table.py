"""Theorems about a language's class and a network: one row a statement, with its source.

Each row is about the existence of weights for strings of every length, never about the result of
training. Where several rows apply the first decides, so the stronger ones come first.

The readout matters: with `readout = "mean"` the logit is a sum over all tokens, whose number is
unbounded, and not a function of the state at the end. A row for networks read at the end does not
cover these; a row that holds for both gives the reason in `of_mean`.
"""

import sys
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from seqcls.config import NetworkConfig
from seqcls.counts import counts_suffice
from seqcls.theory.classes import LanguageClass, RegularClass, Stated

Verdict = Literal["can", "cannot", "not known"]
NOT_KNOWN: Verdict = "not known"

Condition = Callable[[LanguageClass, NetworkConfig], bool]

FIXED_BITS = "at every length, with a fixed number of bits for each value"

# By how a step makes the state: not linearly, or linearly and each part of it alone.
NONLINEAR = frozenset({"rnn", "gru", "lstm"})
DIAGONAL = frozenset({"mamba", "linear_attention"})
FINITE_STATE = NONLINEAR | DIAGONAL | {"deltanet", "gated_deltanet", "deltaproduct", "slstm"}
"""Recurrent networks, whose memory does not grow with the string."""


@dataclass(frozen=True)
class Statement:
    """One statement."""

    name: str
    verdict: Verdict
    holds: Condition
    because: str
    condition: str
    """The condition under which it holds; empty where it holds without."""
    source: str
    of_mean: str = ""
    """The reason why it also holds for the mean of all states; empty where clear or excluded."""
    reading: str = ""
    """The networks of the theorem, where these are not all of a kind: positions, mask, place of
    the readout."""


def _when(
    kind: type, languages: Callable[[Any], bool] = lambda _: True, **networks: Container[Any]
) -> Condition:
    """The languages of a kind of class with a property; networks by the values of fields."""

    def holds(known: LanguageClass, network: NetworkConfig) -> bool:
        fits = all(getattr(network, name) in values for name, values in networks.items())
        # The property last: it may take long to decide.
        return fits and isinstance(known, kind) and languages(known)

    return holds


_TRANSFORMER = {"transformer"}
_CAUSAL: Mapping[str, Container[Any]] = {
    "architecture": _TRANSFORMER,
    "positions": {"none"},
    "attention_mask": {"causal"},
}
"""Causal attention without positions."""
# Scores of the other scales grow with the length.
_SCALED_AS_USUAL: Mapping[str, Container[Any]] = {**_CAUSAL, "attention_scale": {"sqrt"}}


def _is_counted(known: LanguageClass) -> bool:
    return known.counting is not None and known.counting.level is not None


_COUNTER_BY_LSTM = _when(
    Stated, lambda known: known.hierarchy.counts, architecture={"lstm"}, readout={"last"}
)

_MEAN_IN_TC0 = "the mean of all states is computed in TC0 too"
_SIGN_SETTLES = (
    "read as a mean too: while one string is repeated, states of so many bits run through the same "
    "values again, so each round adds the same to the logit's sum, and its sign settles"
)

# In this order: the first that applies decides, so the stronger come before the weaker.
STATEMENTS = (
    Statement(
        "order_free",
        "cannot",
        lambda known, network: (
            isinstance(known, RegularClass)
            and not known.is_commutative
            # Dropout is no obstacle: it is off when the model is evaluated.
            and counts_suffice(network, training=False) is None
        ),
        "without positions, and with every token attending to all, letter counts determine the "
        "answer, and in this language order matters",
        "",
        "equal tokens have equal states in every block",
    ),
    Statement(
        "transformer_tc0",
        "cannot",
        _when(RegularClass, lambda known: not known.is_solvable, architecture=_TRANSFORMER),
        "a group in its syntactic monoid is not solvable, so it is NC1-complete, and a Transformer "
        "of fixed depth computes in TC0",
        "at every length, with O(log n) bits for each value, unless TC0 = NC1",
        "Barrington 1989; Merrill & Sabharwal 2023, The Parallelism Tradeoff",
        of_mean=_MEAN_IN_TC0,
        reading="any positions, any mask, read anywhere",
    ),
    Statement(
        "mamba_tc0",
        "cannot",
        _when(RegularClass, lambda known: not known.is_solvable, architecture={"mamba"}),
        "a group in its syntactic monoid is not solvable, so it is NC1-complete, and a diagonal "
        "linear recurrence of fixed depth computes in TC0",
        "at every length, with O(log n) bits for each value, unless TC0 = NC1",
        "Barrington 1989; Merrill, Petty & Sabharwal 2024, The Illusion of State",
        of_mean=_MEAN_IN_TC0,
    ),
    Statement(
        "transformer_ac0",
        "cannot",
        _when(
            RegularClass, lambda known: not known.is_quasi_aperiodic, architecture=_TRANSFORMER
        ),
        "it is not in AC0, where a Transformer of fixed depth computes, whatever its positions",
        f"{FIXED_BITS}, rounded after every operation",
        "Barrington, Compton, Straubing & Thérien 1992; Li, Liu, Zhou & Ma 2024, Chain of Thought "
        "Empowers Transformers",
        of_mean="the mean of all states is one such operation more",
        reading="any positions, any mask, read anywhere",
    ),
    Statement(
        "masked_star_free",
        "cannot",
        _when(RegularClass, lambda known: not known.is_star_free, **_SCALED_AS_USUAL),
        "it is not star-free, and causal soft attention without positions recognizes only "
        "star-free languages",
        FIXED_BITS,
        "Li & Cotterell 2025, Characterizing the Expressivity of Fixed-Precision Transformer "
        "Language Models",
        of_mean=_SIGN_SETTLES,
        reading="no positions, strict causal mask, read at the last token",
    ),
    Statement(
        "masked_r_trivial",
        "cannot",
        _when(
            RegularClass,
            lambda known: known.is_star_free and not known.is_r_trivial_before_the_end,
            readout={"last"}, **_SCALED_AS_USUAL,
        ),
        "what comes before the last token leads from one state to another and back, and of that "
        "causal soft attention without positions recognizes only R-trivial languages",
        FIXED_BITS,
        "Li & Cotterell 2025, Characterizing the Expressivity of Fixed-Precision Transformer "
        "Language Models",
        reading="no positions, strict causal mask, read at the last token",
    ),
    Statement(
        "counting_attention",
        "can",
        _when(Stated, lambda known: known.hierarchy.counts, readout={"last"}, **_CAUSAL),
        "a program of C-RASP recognizes it, and causal soft attention without positions runs these",
        "with enough blocks and width, and bits that grow with the length",
        "Yang & Chiang 2024, Counting Like Transformers",
        reading="no positions, causal mask, read at the last token",
    ),
    Statement(
        "state_by_counting",
        "can",
        _when(object, _is_counted, readout={"last", "last_letter"}, **_SCALED_AS_USUAL),
        "the state of its automaton is a function of counts, so a program of C-RASP recognizes it, "
        "and causal soft attention without positions runs these",
        "with enough blocks and width, and bits that grow with the length",
        "Yang & Chiang 2024, Counting Like Transformers; arXiv 2608.13433, Algebraic Decomposition "
        "Theory for Transformer Length Generalization",
        reading="no positions, causal mask, read at the last token or at every token",
    ),
    Statement(
        "state_by_counting_shifted",
        "can",
        _when(
            object, _is_counted,
            architecture=_TRANSFORMER, positions={"learned"}, position_draw={"shifted"},
            # With a readout at every place, the state after each prefix matters.
            attention_mask={"causal"}, readout={"last_letter"},
        ),
        "the state of its automaton is a function of counts, so a program of C-RASP recognizes it, "
        "which an idealized learner with shifted positions generalizes",
        "with enough blocks and width, and bits that grow with the length; up to the longest of "
        "its places",
        "arXiv 2608.13433, Algebraic Decomposition Theory for Transformer Length Generalization; "
        "Huang et al. 2025, A Formal Framework for Understanding Length Generalization in "
        "Transformers",
        reading="learned positions that training shifts, causal mask, the state after each token, "
        "there at a separator that attention does not see",
    ),
    Statement(
        "recurrent_automaton",
        "can",
        _when(RegularClass, architecture=NONLINEAR, readout={"last"}),
        "it is regular, and a recurrent network with gates or tanh can run any finite automaton",
        "with enough hidden units",
        "Merrill 2019, Sequential Neural Networks as Automata",
    ),
    Statement(
        "automaton_by_mean",
        "can",
        _when(RegularClass, architecture=NONLINEAR, readout={"mean"}),
        "it is regular, a recurrent network with gates or tanh can run any finite automaton, and "
        "if each state says by how much the answer changes, their sum is the last answer",
        "with enough hidden units, for strings of one token and more, with a mean whose bits grow "
        "with the length",
        "Merrill 2019, Sequential Neural Networks as Automata, for the automaton; the changes are "
        "a telescoping sum",
    ),
    Statement(
        "share_by_mean",
        "can",
        _when(
            Stated, lambda known: known.hierarchy.share,
            architecture=FINITE_STATE | _TRANSFORMER, readout={"mean"},
        ),
        "a weighted sum of letter counts is above 0 for its strings alone, and so is the mean of "
        "states that are each its token's weight",
        "with a mean whose bits grow with the length",
        "the definition of the mean",
    ),
    Statement(
        "lstm_counter",
        "can",
        _COUNTER_BY_LSTM,
        "one counter recognizes it, and a cell of an LSTM can count",
        "with cells whose bits grow with the length",
        "Weiss, Goldberg & Yahav 2018, On the Practical Computational Power of Finite Precision "
        "RNNs",
    ),
    Statement(
        "finite_memory",
        "cannot",
        lambda known, network: (
            isinstance(known, Stated)
            and network.architecture in FINITE_STATE
            # A mean of finitely many states takes more values the longer the string is.
            and network.readout != "mean"
            and not _COUNTER_BY_LSTM(known, network)
        ),
        "it is not regular, and a recurrent network whose values have a fixed number of bits has "
        "finitely many states",
        FIXED_BITS,
        "Weiss, Goldberg & Yahav 2018; Merrill 2019",
    ),
    Statement(
        "nonnegative_gates",
        "cannot",
        _when(
            RegularClass, lambda known: not known.is_star_free,
            architecture=DIAGONAL, eigenvalue_range={"positive"},
        ),
        "it is not star-free, and a diagonal linear recurrence without negative gates recognizes "
        "no other regular language",
        FIXED_BITS,
        "Sarrof, Veitsman & Hahn 2024, The Expressive Capacity of State Space Models",
        of_mean=_SIGN_SETTLES,
    ),
    Statement(
        "star_free_recurrence",
        "can",
        _when(
            RegularClass, lambda known: known.is_star_free,
            architecture={"mamba"}, eigenvalue_range={"positive"}, readout={"last"},
        ),
        "it is star-free, and a diagonal linear recurrence recognizes every such language",
        "with enough layers and width",
        "Sarrof, Veitsman & Hahn 2024, The Expressive Capacity of State Space Models",
    ),
    Statement(
        "positive_eigenvalues",
        "cannot",
        _when(
            RegularClass,
            lambda known: max(known.token_periods) > 1,
            # The product of three or more steps a token, as in `deltaproduct`, may be a rotation.
            architecture={"deltanet", "gated_deltanet"}, eigenvalue_range={"positive"},
        ),
        "one token repeated has to be counted modulo some number, which a linear recurrence whose "
        "eigenvalues are not negative does not do",
        FIXED_BITS,
        "Grazzi et al. 2024, Unlocking State-Tracking in Linear RNNs Through Negative Eigenvalues",
        of_mean=_SIGN_SETTLES,
    ),
    Statement(
        "real_eigenvalues",
        "cannot",
        _when(
            RegularClass,
            # 0 for powers of two alone.
            lambda known: any(period & (period - 1) for period in known.token_periods),
            architecture={"mamba"}, eigenvalue_range={"signed"},
        ),
        "one token repeated has to be counted modulo a number that is no power of two, which a "
        "diagonal linear recurrence with real eigenvalues does not do",
        FIXED_BITS,
        "Grazzi et al. 2024, Unlocking State-Tracking in Linear RNNs Through Negative Eigenvalues",
        of_mean=_SIGN_SETTLES,
    ),
    Statement(
        "signed_parity",
        "can",
        _when(
            RegularClass,
            # The only group of two elements: counting modulo 2.
            lambda known: known.is_cyclic_group and known.size == 2,
            # One step of DeltaProduct is DeltaNet's, with no strength of the others; Gated DeltaNet
            # fades.
            architecture={"mamba", "deltanet", "deltaproduct"},
            eigenvalue_range={"signed"}, readout={"last"},
        ),
        "it is counted modulo 2, and one eigenvalue of -1 does that",
        "with enough width",
        "Grazzi et al. 2024, Unlocking State-Tracking in Linear RNNs Through Negative Eigenvalues",
    ),
    Statement(
        "signed_counting",
        "can",
        _when(
            RegularClass, lambda known: known.is_cyclic_group,
            architecture={"deltanet", "deltaproduct"}, eigenvalue_range={"signed"},
            num_blocks=range(2, sys.maxsize), readout={"last"},
        ),
        "its syntactic monoid is a cyclic group, whose products two layers of signed DeltaNet give",
        "with enough width",
        "Siems et al. 2025, DeltaProduct: Improving State-Tracking in Linear RNNs via Householder "
        "Products",
    ),
)  # fmt: skip
