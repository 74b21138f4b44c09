"""The sentences, captions and columns of the tab *Limits*."""

import dashboard.model.words  # noqa: F401  Columns that the page's other tabs have, too.
from dashboard.words.columns import Column, add_columns
from dashboard.words.sentences import add_sentences

FAMILY = "From which count on is it wrong?"
OUTPUTS_UP_TO = "Up to which count are its outputs right?"
SHORTEST = "Which is the shortest string that it gets wrong?"
EVERY = "Which of all strings does it get wrong?"
LONGER = "What is proved of all longer strings?"
IS_PROVED = "Is it right on every string there is?"

ALONG = "The logit of `{family}` as its count grows; above 0 it is predicted positive."
MAP = (
    "The strings of `{family}`, the fainter the nearer the logit is to 0. Dots: between this "
    "string and one with one less, the answer changes."
)
OUTPUTS = "`{family}`: tokens before the first wrong one, and how the output differs."
MULTISETS = (
    "The stronger the color, the larger the part of such multisets that is wrong; left of 0 and "
    "below 0 are strings without the letter."
)
INPUTS = "The share of all inputs of each length whose output is wrong, by how it differs."
PROPORTIONS = (
    "Shares are of all proportions of these letters, each equally likely. Bounds are certified by "
    "interval arithmetic over regions of attention, allowing for rounding."
)
MOVES = "Its state moves away"
MOVED = (
    "How far the state is from the first one after which the rest of the string should be answered "
    "the same; color: the answer to the whole string."
)

FAMILY_HELP = (
    "One or two counts are left free, as n or m: `ab{n}`, `<ab>{n}c`, `a{m}b{n}`. It begins with "
    "what is left of the string above that still fails."
)

add_sentences(
    {
        "more_changes": "The answer changes {n:,} more {n:time|times}, as drawn.",
        "every_multiset_right": "It is right on all {tried:,} multisets of up to {longest} "
        "letters; the order of letters does not matter.",
        "every_multiset": "It is wrong on {wrong:,} of all {tried:,} multisets of up to {longest} "
        "letters ({share}): {fp:,} false {fp:positive|positives}, {fn:,} false "
        "{fn:negative|negatives}; the shortest is `{shortest}`.",
        "lie": "Where they lie: {a} and {b}",
        "not_beyond": "Nothing is proved of longer strings: {reason}.",
        "try_longer": "`seqcls model prove {run} --seconds 600` tries longer, and keeps the "
        "answer.",
        "how_proved": "Regions of the network's states are looked for that every token leads into "
        "each other, with the right answer in each; or a string on which the model is wrong.",
        "how_tried": "Every string up to the greatest length at which all can be tried takes "
        "seconds.",
    }
)

add_columns(
    {
        "output_is": Column("Output is", width=120),
        "right_tokens": Column(
            "Right tokens", "whole", "Before the first in which output and target differ.", 95
        ),
        "target_tokens": Column("Target tokens", "whole", width=100),
        "row_of": Column("Count", width=120),
        "wrong_in_row": Column(
            "Wrong", help="Of the strings with that count that were tried.", width=120
        ),
        "first_in_row": Column("First wrong", width=260),
        "m": Column("m", "whole", width=60),
        "n": Column("n", "whole", width=60),
        "letters": Column("Letters", help="Strings of exactly these letters.", width=90),
        "claim": Column("Claim", width=190),
        "proved_right": Column("Right", "percent", "Of all proportions, at least.", 90),
        "proved_wrong": Column("Wrong", "percent", "Of all proportions, at least.", 90),
        "not_proved": Column("Not proved", "percent", "Of all proportions, at most.", 95),
        "least_logit": Column("Least logit", "number", "Its distance from 0, at least.", 95),
        "safe_share": Column(
            "Safe share", "percent", "Right wherever each required letter has more than this.", 95
        ),
        "width": Column("Width", "number", "How far apart states of a region were at first.", 80),
        "at_once": Column("Tokens at once", "whole", width=105),
        "regions": Column("Regions", "whole", width=80),
        "ended": Column("Ended", width=250),
        "region": Column("Widest region", "string", width=150),
        "box": Column("Its width", "number", width=90),
    }
)
