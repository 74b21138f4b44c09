"""Theorems about a language's class and a network: one row a statement, with its source.

Each row is about the existence of weights for strings of every length, never about the result of
training. Where several rows apply the first decides, so the stronger ones come first.

The readout matters: with `readout = "mean"` the logit is a sum over all tokens, whose number is
unbounded, and not a function of the state at the end. A row for networks read at the end does not
cover these; a row that holds for both gives the reason in `of_mean`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from seqcls.config import NetworkConfig
from seqcls.counts import counts_suffice
from seqcls.theory.classes import LanguageClass, RegularClass, Stated

Verdict = Literal["can", "cannot", "not known"]
NOT_KNOWN: Verdict = "not known"

FIXED_BITS = "at every length, with a fixed number of bits for each value"

# By what a step makes of the state: a bounded one, another nonlinear one, a linear one.
SATURATED = frozenset({"rnn", "gru"})
NONLINEAR = SATURATED | {"lstm"}
DIAGONAL = frozenset({"mamba", "linear_attention"})
LINEAR = DIAGONAL | {"deltanet", "gated_deltanet", "deltaproduct"}
FINITE_STATE = NONLINEAR | LINEAR | {"slstm"}
"""Recurrent networks, whose memory does not grow with the string."""


@dataclass(frozen=True)
class Statement:
    """One statement."""

    name: str
    verdict: Verdict
    holds: Callable[[LanguageClass, NetworkConfig], bool]
    because: str
    condition: str
    """The condition under which it holds; empty where it holds without."""
    source: str
    of_mean: str = ""
    """The reason why it also holds for the mean of all states; empty where that is excluded."""
    reading: str = ""
    """The networks of the theorem, where these are not all of a kind: positions, mask, place of
    the readout."""


def _order_free(known: LanguageClass, network: NetworkConfig) -> bool:
    return (
        isinstance(known, RegularClass)
        and not known.is_commutative
        # Dropout is no obstacle: it is off when the model answers.
        and counts_suffice(network, training=False) is None
    )


def _transformer_beyond_tc0(known: LanguageClass, network: NetworkConfig) -> bool:
    is_transformer = network.architecture == "transformer"
    return is_transformer and isinstance(known, RegularClass) and not known.is_solvable


def _mamba_beyond_tc0(known: LanguageClass, network: NetworkConfig) -> bool:
    return (
        network.architecture == "mamba"
        and isinstance(known, RegularClass)
        and not known.is_solvable
    )


def _transformer_beyond_ac0(known: LanguageClass, network: NetworkConfig) -> bool:
    is_transformer = network.architecture == "transformer"
    return is_transformer and isinstance(known, RegularClass) and not known.is_quasi_aperiodic


def _causal_without_positions(network: NetworkConfig) -> bool:
    settings = (network.positions, network.attention_mask)
    return network.architecture == "transformer" and settings == ("none", "causal")


def _masked_beyond_star_free(known: LanguageClass, network: NetworkConfig) -> bool:
    star_free = not isinstance(known, RegularClass) or known.is_star_free
    # Their scores do not grow with the length.
    usual = network.attention_scale == "sqrt"
    return not star_free and usual and _causal_without_positions(network)


def _masked_beyond_r_trivial(known: LanguageClass, network: NetworkConfig) -> bool:
    usual = (network.attention_scale, network.readout) == ("sqrt", "last")
    if not usual or not _causal_without_positions(network) or not isinstance(known, RegularClass):
        return False
    return known.is_star_free and not known.is_r_trivial_before_the_end


def _counting_by_attention(known: LanguageClass, network: NetworkConfig) -> bool:
    counts = isinstance(known, Stated) and known.hierarchy.counts
    return counts and network.readout == "last" and _causal_without_positions(network)


def _state_by_counting(known: LanguageClass, network: NetworkConfig) -> bool:
    read = network.readout in ("last", "last_letter") and network.attention_scale == "sqrt"
    return read and _is_counted(known) and _causal_without_positions(network)


def _state_by_counting_shifted(known: LanguageClass, network: NetworkConfig) -> bool:
    settings = (network.positions, network.position_draw, network.attention_mask)
    shifted = network.architecture == "transformer" and settings == ("learned", "shifted", "causal")
    # With a readout at every place, the state after each prefix matters.
    return shifted and network.readout == "last_letter" and _is_counted(known)


def _is_counted(known: LanguageClass) -> bool:
    return known.counting is not None and known.counting.level is not None


def _automaton_by_recurrence(known: LanguageClass, network: NetworkConfig) -> bool:
    reads_last_state = network.architecture in NONLINEAR and network.readout == "last"
    return reads_last_state and isinstance(known, RegularClass)


def _automaton_by_mean(known: LanguageClass, network: NetworkConfig) -> bool:
    reads_mean = network.architecture in NONLINEAR and network.readout == "mean"
    return reads_mean and isinstance(known, RegularClass)


def _share_by_mean(known: LanguageClass, network: NetworkConfig) -> bool:
    has_states = network.architecture == "transformer" or network.architecture in FINITE_STATE
    by_share = isinstance(known, Stated) and known.hierarchy.share
    return by_share and has_states and network.readout == "mean"


def _counter_by_lstm(known: LanguageClass, network: NetworkConfig) -> bool:
    counts = isinstance(known, Stated) and known.hierarchy.counts
    return counts and (network.architecture, network.readout) == ("lstm", "last")


def _finite_memory(known: LanguageClass, network: NetworkConfig) -> bool:
    # A mean of finitely many states takes more values the longer the string is.
    reads_state = network.architecture in FINITE_STATE and network.readout != "mean"
    return reads_state and isinstance(known, Stated) and not _counter_by_lstm(known, network)


def _positive_diagonal_beyond_star_free(known: LanguageClass, network: NetworkConfig) -> bool:
    diagonal = network.architecture in DIAGONAL and eigenvalue_range(network) == "positive"
    return diagonal and isinstance(known, RegularClass) and not known.is_star_free


def _star_free_by_mamba(known: LanguageClass, network: NetworkConfig) -> bool:
    reads = (network.architecture, network.readout, eigenvalue_range(network))
    star_free = isinstance(known, RegularClass) and known.is_star_free
    return star_free and reads == ("mamba", "last", "positive")


def _positive_beyond_counting(known: LanguageClass, network: NetworkConfig) -> bool:
    # The product of three or more steps a token, as in `deltaproduct`, may be a rotation.
    fades = network.architecture in {"deltanet", "gated_deltanet"}
    positive = fades and eigenvalue_range(network) == "positive"
    return positive and isinstance(known, RegularClass) and max(known.token_periods) > 1


def _signed_diagonal_beyond_twos(known: LanguageClass, network: NetworkConfig) -> bool:
    signed = network.architecture == "mamba" and eigenvalue_range(network) == "signed"
    if not signed or not isinstance(known, RegularClass):
        return False
    # 0 for powers of two alone.
    return any(period & (period - 1) for period in known.token_periods)


def _signed_parity(known: LanguageClass, network: NetworkConfig) -> bool:
    # One step of DeltaProduct is DeltaNet's, with no strength of the others; Gated DeltaNet fades.
    turns = network.architecture in {"mamba", "deltanet", "deltaproduct"}
    signed = turns and network.readout == "last"
    if not signed or eigenvalue_range(network) != "signed" or not isinstance(known, RegularClass):
        return False
    # The only group of two elements: counting modulo 2.
    return known.is_cyclic_group and known.size == 2


def _signed_counting(known: LanguageClass, network: NetworkConfig) -> bool:
    turns = network.architecture in {"deltanet", "deltaproduct"}
    signed = turns and eigenvalue_range(network) == "signed"
    deep = network.num_blocks >= 2 and network.readout == "last"
    return signed and deep and isinstance(known, RegularClass) and known.is_cyclic_group


def eigenvalue_range(network: NetworkConfig) -> str:
    """The eigenvalues of a linear recurrence's state-transition matrices: `positive`, or
    `signed` ([-1, 1]).
    """
    return network.eigenvalue_range


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
        _order_free,
        "without positions, and with every token attending to all, letter counts determine the "
        "answer, and in this language order matters",
        "",
        "equal tokens have equal states in every block",
    ),
    Statement(
        "transformer_tc0",
        "cannot",
        _transformer_beyond_tc0,
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
        _mamba_beyond_tc0,
        "a group in its syntactic monoid is not solvable, so it is NC1-complete, and a diagonal "
        "linear recurrence of fixed depth computes in TC0",
        "at every length, with O(log n) bits for each value, unless TC0 = NC1",
        "Barrington 1989; Merrill, Petty & Sabharwal 2024, The Illusion of State",
        of_mean=_MEAN_IN_TC0,
    ),
    Statement(
        "transformer_ac0",
        "cannot",
        _transformer_beyond_ac0,
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
        _masked_beyond_star_free,
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
        _masked_beyond_r_trivial,
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
        _counting_by_attention,
        "a program of C-RASP recognizes it, and causal soft attention without positions runs these",
        "with enough blocks and width, and bits that grow with the length",
        "Yang & Chiang 2024, Counting Like Transformers",
        reading="no positions, causal mask, read at the last token",
    ),
    Statement(
        "state_by_counting",
        "can",
        _state_by_counting,
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
        _state_by_counting_shifted,
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
        _automaton_by_recurrence,
        "it is regular, and a recurrent network with gates or tanh can run any finite automaton",
        "with enough hidden units",
        "Merrill 2019, Sequential Neural Networks as Automata",
    ),
    Statement(
        "automaton_by_mean",
        "can",
        _automaton_by_mean,
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
        _share_by_mean,
        "a weighted sum of letter counts is above 0 for its strings alone, and so is the mean of "
        "states that are each its token's weight",
        "with a mean whose bits grow with the length",
        "the definition of the mean",
    ),
    Statement(
        "lstm_counter",
        "can",
        _counter_by_lstm,
        "one counter recognizes it, and a cell of an LSTM can count",
        "with cells whose bits grow with the length",
        "Weiss, Goldberg & Yahav 2018, On the Practical Computational Power of Finite Precision "
        "RNNs",
    ),
    Statement(
        "finite_memory",
        "cannot",
        _finite_memory,
        "it is not regular, and a recurrent network whose values have a fixed number of bits has "
        "finitely many states",
        FIXED_BITS,
        "Weiss, Goldberg & Yahav 2018; Merrill 2019",
    ),
    Statement(
        "nonnegative_gates",
        "cannot",
        _positive_diagonal_beyond_star_free,
        "it is not star-free, and a diagonal linear recurrence without negative gates recognizes "
        "no other regular language",
        FIXED_BITS,
        "Sarrof, Veitsman & Hahn 2024, The Expressive Capacity of State Space Models",
        of_mean=_SIGN_SETTLES,
    ),
    Statement(
        "star_free_recurrence",
        "can",
        _star_free_by_mamba,
        "it is star-free, and a diagonal linear recurrence recognizes every such language",
        "with enough layers and width",
        "Sarrof, Veitsman & Hahn 2024, The Expressive Capacity of State Space Models",
    ),
    Statement(
        "positive_eigenvalues",
        "cannot",
        _positive_beyond_counting,
        "one token repeated has to be counted modulo some number, which a linear recurrence whose "
        "eigenvalues are not negative does not do",
        FIXED_BITS,
        "Grazzi et al. 2024, Unlocking State-Tracking in Linear RNNs Through Negative Eigenvalues",
        of_mean=_SIGN_SETTLES,
    ),
    Statement(
        "real_eigenvalues",
        "cannot",
        _signed_diagonal_beyond_twos,
        "one token repeated has to be counted modulo a number that is no power of two, which a "
        "diagonal linear recurrence with real eigenvalues does not do",
        FIXED_BITS,
        "Grazzi et al. 2024, Unlocking State-Tracking in Linear RNNs Through Negative Eigenvalues",
        of_mean=_SIGN_SETTLES,
    ),
    Statement(
        "signed_parity",
        "can",
        _signed_parity,
        "it is counted modulo 2, and one eigenvalue of -1 does that",
        "with enough width",
        "Grazzi et al. 2024, Unlocking State-Tracking in Linear RNNs Through Negative Eigenvalues",
    ),
    Statement(
        "signed_counting",
        "can",
        _signed_counting,
        "its syntactic monoid is a cyclic group, whose products two layers of signed DeltaNet give",
        "with enough width",
        "Siems et al. 2025, DeltaProduct: Improving State-Tracking in Linear RNNs via Householder "
        "Products",
    ),
)  # fmt: skip
