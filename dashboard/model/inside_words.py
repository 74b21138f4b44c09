"""The sentences, captions and columns of the tab *Inside*."""

from dashboard.words.columns import Column, add_columns
from dashboard.words.sentences import add_sentences

WHERE = "Where along the string is the answer made?"
ADDED_BY_PARTS = "What does each part add to the logit?"
ATTENTION = "What is attended to?"
UNITS = "What do the units hold?"

RUNNING = (
    "The logit after each token, each beginning classified as a string of its own; above 0 it is "
    "predicted positive."
)
RUNNING_MARGIN = "The margin of the correct answer at each token; below 0 another is preferred."
SUMS = (
    "The residual stream, read out after each part (direct logit attribution). Norms after a sum "
    "are held at their scale for this string, so that the parts sum to the logit exactly."
)
ROWS = "A row is a token that attends, a column what it attends to; each row sums to 100%."
BY_LETTER = (
    "The weight of all tokens of a kind together, from the token at which the answer is read."
)
READ = {
    "first": "The weight that CLS, at which the answer is read, gives to each token.",
    "last": "The weight that END, at which the answer is read, gives to each token.",
    "last_letter": "The weight that the last letter, at which the answer is read, gives to each.",
    "mean": "The weight that each token is given, on average over the tokens that are read.",
}
UNIT_MAP = "Each unit after every token; the path shows the states in two principal components."

LOOKS = "What does each head look for?"
WRITES = "What does attending to a token write?"
ORDERS = "Does the order of the letters matter?"
SCORES = (
    "The score that a token (row) gives to a token (column), from the embeddings without "
    "positions: the key-query circuit."
)
DIRECT = (
    "What the value-output circuit adds to the logit where all attention is on one token, past "
    "all later parts."
)

CARRIES = "Which state carries the answer?"
RESTORED = (
    "The share of the way to the other string's {number} that one state of it carries over; a dot "
    "marks a state that turns the answer."
)
FORCED = (
    " Outputs are teacher forced: the number is the target's log-probability, less that of what "
    "the model writes where that is another."
)

NEEDS = "Which parts does it need?"
COSTS = "How many more {strings} are wrong without each part."
LEFT = "How many {strings} are wrong as parts are removed from the top, the cheapest first."
BY_LENGTH = "Accuracy by length, of the model as trained and without {part}."

WRITTEN = "Token by token"
WHILE = "What is attended to while it writes?"
LIKELIEST = "What else might it have written?"
TREE = (
    "Outputs that beam search finds, with the probability of each at the left. Outputs share the "
    "tokens with which they begin, and where they part the probability of each branch stands above "
    "it; the stronger a cell, the likelier its token."
)
MARKED = "Marked is the first wrong token; dimmed what follows it. END is where a string ends."
LOOKED_AT = "Where in the picture does it look?"
HEAT = "Orange is where the model looks as it writes the character above, the strongest the most."

add_sentences(
    {
        "wrong_beginning": "Of its beginnings, the first that is wrong has {tokens} "
        "{tokens:token|tokens}.",
        "no_wrong_beginning": "Every beginning of the string is answered rightly.",
        "most_adds": "{part} adds the most, {adds:+.3g}; the logit is {logit:.4g}.",
        "too_long": "Maps are drawn of up to {drawn} tokens; this string has more.",
        "units": "The {state} of {layer} has {units} {units:unit|units}.",
        "ranks": "rank {rank} of {size}",
        "order_matters": "In other orders of the same letters the {number} differs by up to "
        "{spread:.3g}.",
        "one_order": "The tokens of this string have one order; choose another string.",
        "order_is_nothing": "In any order of the letters the {number} is the same; the largest "
        "difference, {spread:.1g}, is rounding.",
        "turns": "{turns} of {states} states of `{source}` turn the answer to `{base}` where they "
        "stand in place of its own.",
        "carries": "Most of the way is carried by {site} at token {place}, `{token}`: {share:.0%}.",
        "side": "{side}, `{string}`, {verdict}.",
        "needs": "Without {part} it is wrong on {wrong} of {tested}, with all parts on {whole}.",
        "needs_none": "Without any one of its {number} parts it is wrong on no more than with all: "
        "{whole} of {tested}.",
        "needless": "It does as well without {parts}.",
        "needs_all": "Without any of its {number} parts it is wrong on more.",
        "prunes": "It does as well without {removed} of its {number} parts: {parts}.",
        "prunes_none": "No part can go: without the cheapest, {part}, it is wrong on {wrong} of "
        "{tested}, with all on {whole}.",
        "judged_exactly": "Judged by {tested}, exactly, by letter counts.",
        "judged_by_running": "Judged by {strings:,} distinct test strings, each of which is run.",
        "output_right": "The output is right.",
        "output_wrong": "The first wrong token is number {place}: `{given}` for `{right}`.",
        "output_unknown": "The target of this string is not known.",
        "strongest": "The strongest color stands for {reach:.3g}.",
        "least_sure": "It is least sure of `{token}`: {share}, then `{other}` with {other_share}.",
        "cut_off": "The output was cut off: END was not written.",
        "no_heads": "It has no attention heads.",
        "likeliest": "The likeliest output has a probability of {share}, the next one of {other}.",
        "one_output": "The likeliest output has a probability of {share}.",
        "part_of_tree": "Tokens {first} to {last} are drawn; some outputs have more.",
        "picture": "The picture as the model reads it; nothing of this model attends to it.",
    }
)

add_columns(
    {
        "state": Column("State", width=240),
        "place": Column("Token", "whole", "Counted from 0, which stands before the string.", 70),
        "base_token": Column("Here", help="The token whose state is replaced.", width=70),
        "source_token": Column("There", help="The token whose state it is.", width=70),
        "restored": Column(
            "Of the way", "percent", "From this string's number to the other's.", 100
        ),
        "part": Column("Part", width=240),
        "wrong_without": Column("Wrong", "whole", "Without it; below all parts.", 90),
        "right_without": Column("Right", "percent", width=90),
        "loss_without": Column("Loss", "number", "Mean over the strings, in nats.", 90),
        "moved": Column("Moved", "number", "Mean change of the number, up or down.", 90),
        "token": Column("Written", width=90),
        "probability": Column("Probability", "percent", "After the tokens before it.", 110),
        "runner_up": Column("Runner-up", help="The likeliest other token.", width=110),
        "runner_up_probability": Column("Its probability", "percent", width=120),
        "output_of_beam": Column("Output", "string", width=320),
        "of_beam": Column("Is", help="Whether the whole output is right.", width=110),
        "whole_probability": Column("Probability", "percent", "Of the whole output.", 110),
        "log_probability": Column("Log-probability", "number", "In nats.", 120),
        "shuffled": Column("Order", "string", width=220),
        "score": Column("Number", "number", "The logit, or the margin.", 100),
    }
)
