"""The columns and the sentences of results."""

from dashboard.words.columns import Column, add_columns
from dashboard.words.sentences import add_sentences
from seqcls.results import DRAWN
from sweeps.results import BORDER_SHARES

DIFFERENCES = {
    "learned": "Of all seeds, the share that learned",
    "generalizes": "Of the seeds that learned, the share that generalizes",
    "beyond": "Mean accuracy on longer strings, of the seeds that learned,",
}
"""Measures by which configurations are compared, and the quantity that a difference is of."""

MEASURED = {
    "learned": "the share that learned",
    "generalizes": "the share of these that generalizes",
    "beyond": "accuracy on longer strings",
}
"""The same in sentences."""

_TITLES = {"learned": "Learned", "generalizes": "Generalize", "beyond": "Beyond"}

DEFAULT = (
    *("configuration", "learned_of", "generalize_of", "share", "accuracy_beyond", "fails"),
    *("difference learned", "difference generalizes", "difference beyond", "p_of"),
    *("every_length", "shortcut_beyond", "theory"),
)
"""Columns that are shown where they differ, in order."""

SACRIFICED = ("theory", "shortcut_beyond", "fails", "share", "learned_of")
"""Those of them that give way first, where there are more than fit."""

add_columns(
    {
        "learned_of": Column(
            "Learned",
            help="Seeds that are right on nearly all test strings of the trained lengths (from "
            "the share under More), of those of which it is known.",
            width=66,
        ),
        "generalize_of": Column(
            "Generalize",
            help="Of the seeds that learned, those that are right on the longer test strings, too; "
            "with the 95% interval of the share (Wilson 1927).",
            width=142,
        ),
        "share": Column("Share", "share", "Of the seeds that learned, how many generalize.", 58),
        "accuracy_beyond": Column(
            "Median beyond",
            "percent",
            "Accuracy on strings longer than in training: the median over the seeds that learned.",
            112,
        ),
        "fails": Column(
            "Wrong from",
            help="The length of the shortest test string that a seed gets wrong, trained lengths "
            "included: of the seeds that fail beyond, the first and the last.",
            width=84,
        ),
        **{
            f"difference {name}": Column(
                f"{_TITLES[name]} ± baseline",
                help=f"{words} less the baseline's, in percentage points, with the 95% interval.",
                width=150,
            )
            for name, words in DIFFERENCES.items()
        },
        "p_of": Column(
            "p (Holm)",
            help="Exact and two-sided: Fisher's or a permutation test; McNemar's or a paired one "
            "where the same seed starts both from the same weights. In parentheses corrected for "
            "all rows that are compared (Holm 1979).",
            width=116,
        ),
        "shortcut_beyond": Column(
            "Best shortcut",
            "percent",
            "What the best reader that sees only a little of each string, such as its letter "
            "counts, reaches on the same longer strings.",
            98,
        ),
        "theory": Column(
            "Theory",
            help="Whether some weights of this network recognize the language at every length; it "
            "does not say what training finds.",
            width=80,
        ),
    }
)

OTHERS = add_columns(
    {
        "seeds": Column("Seeds", "whole", "Trained and tested.", 60),
        "accuracy_within": Column(
            "Median within",
            "percent",
            "Accuracy on trained lengths: the median over all seeds.",
            110,
        ),
        "selection": Column(
            "Best less mean",
            help="Selection effect: by how much the best of the seeds that learned exceeds their "
            "mean on longer strings, with the 95% interval (bootstrap). A published best, chosen "
            "where it is reported, has that advantage over a mean or a share of seeds.",
            width=130,
        ),
        "num_parameters": Column("Parameters", "whole", "Numbers that the network has.", 90),
        "counting": Column(
            "Counting",
            help="Of how many levels of counts the state of the language's automaton is a function "
            "(level 0: R-trivial); outside: no counting tells two of its states apart.",
            width=90,
        ),
        "false_positives": Column(
            "False positives", "whole", "Negative strings predicted positive; all seeds.", 105
        ),
        "false_negatives": Column(
            "False negatives", "whole", "Positive strings predicted negative; all seeds.", 105
        ),
        "every_length": Column(
            "Every length",
            help="Seeds that stored proofs found right on every string (proved), or wrong on one "
            "(refuted), which need not be among the tested; not decided is neither.",
            width=110,
        ),
        "unfinished": Column("Unfinished", "whole", "Queued or in training.", 85),
        "failed": Column("Training failed", "whole", "In no average.", 105),
        "shortcut_within": Column(
            "Shortcut within", "percent", "The best shortcut on trained lengths.", 110
        ),
        **{
            f"right_{name}": Column(
                f"Right, {name}",
                "percent",
                f"Accuracy on test strings drawn so ({name}): the median over seeds that learned.",
                110,
            )
            for name in DRAWN
        },
        **{
            name: Column(
                words.capitalize(),
                "percent",
                "On random strings, or on pairs at edit distance 1 of which one is in the language:"
                " the median over seeds that learned.",
                150,
            )
            for name, words in BORDER_SHARES.items()
        },
    }
)
"""Those that are chosen in a list, beside settings."""

add_columns(
    {
        "group": Column("Value", width=300),
        "members": Column("Configurations", "whole", "Each weighs the same.", 110),
        "languages": Column("Languages", "whole", "Each weighs the same.", 90),
        "question": Column("Question", width=330),
        "first": Column("First", width=90),
        "second": Column("Second", width=90),
        "apart": Column(
            "Difference", help="In percentage points, with the 95% interval.", width=165
        ),
        "p_value": Column("p", "p", "Exact, two-sided.", 65),
        "chance": Column("More than chance?", width=180),
        "to_decide": Column(
            "Would decide",
            "whole",
            "Seeds of each, or pairs, with which four of five studies decide that draw theirs from "
            "these.",
            100,
        ),
        "wrong_a": Column("First wrong", "whole", "Seeds of the first that get it wrong.", 95),
        "wrong_b": Column("Second wrong", "whole", "Seeds of the second that do.", 105),
        "right_answer": Column("Right is", width=130),
        "field": Column("Setting", width=280),
        "told_worst": Column("Worst value", width=280),
        "told_best": Column("Best value", width=280),
    }
)  # fmt: skip

add_sentences(
    {
        "headline": "{counts}.",
        "begins": "{n:,} {n:fails|fail} beyond, wrong first at {lengths}{trained}.",
        "own_lengths": "They were trained or tested on different lengths: each counts on its own "
        "longer strings, and differences are of those that both have in common.",
        "baseline": "Against {baseline}, by more than chance (Holm, 5%): {told}.",
        "told": "{some} of {of} in {what}",
        "not_all": "{n:,} {n:row is|rows are} not compared by accuracy on longer strings, which "
        "would take minutes for so many models; two that are selected are.",
        "shortcut": "The best shortcut, a reader of {reader}, is right on {share} of the longer "
        "strings.",
        "decided": "The task is decided by {by}: to read nothing else is no shortcut.",
        "reads_all": "A reader of {reader} is right on every test string: to read nothing else is "
        "no shortcut.",
        "theory_cannot": "Theory: no weights of {n:this network|these networks} are right at every "
        "length.",
        "theory_can": "Theory: some weights of {n:this network|each of these networks} are right "
        "at every length.",
        "most_moves": "{field} {n:moves|(changed together) move} {what} most: {worst} with "
        "{at_worst}, {best} with {at_best} (difference {moves}, {interval}).",
        "moves_nothing": "No setting moves {what}: {value} with every value of every setting.",
        "no_setting": "The configurations differ in no setting that all of them read, or in none "
        "by {what}.",
        "chosen_from": "The setting and its two values were chosen from these same models, which "
        "the interval does not take into account{others}.",
        "differ_too": "; configurations with the two differ in other settings, too",
        "two": "The first: {first}; the second: {second}.",
        "tests": "{pairing} Tests: {tests}.",
        "two_fields": "They differ in {fields}.",
        "strings": "{n:,} {strings} are {missed} by more seeds of one than of the other; of {only} "
        "only one has a seed that is wrong.",
        "no_strings": "They were tested on different strings, so no string is compared.",
    }
)

MINUS = "\N{MINUS SIGN}"


def difference_text(value: float, low: float, high: float) -> str:
    """A difference of shares in percentage points, with its interval."""
    digits = 0 if abs(value) >= 0.1 or value == 0 else 1
    written = [f"{100 * x:+.{digits}f}".replace("-", MINUS) for x in (value, low, high)]
    return written[0] if low != low else f"{written[0]} ({written[1]} to {written[2]})"
