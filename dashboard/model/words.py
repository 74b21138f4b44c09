"""What page Model calls things: columns of its tables, and its sentences."""

from dashboard.words.columns import Column, add_columns
from dashboard.words.sentences import add_sentences

OCCURRENCES = "How often the test set has it."

COLUMNS = add_columns(
    {
        "of_lengths": Column("Length", width=130),
        "tn": Column("True negatives", "whole", "Negative strings, predicted negative.", 110),
        "fp": Column("False positives", "whole", "Negative strings, predicted positive.", 115),
        "fn": Column("False negatives", "whole", "Positive strings, predicted negative.", 115),
        "tp": Column("True positives", "whole", "Positive strings, predicted positive.", 110),
        "wrong_strings": Column("Wrong", "whole", width=90),
        "tested_strings": Column("Tested", "whole", "Test strings of these lengths.", 90),
        "right_share": Column("Right", "percent", "Of the test strings.", 90),
        "interval": Column("95 % interval", help="By Wilson.", width=130),
        "drawn": Column(
            "Drawn",
            help="How the string was drawn. Uniform: of all negative strings of its length. "
            "Edited: a positive string with a few tokens changed. Near: a positive string with one "
            "or two tokens replaced or exchanged. Border: one of a pair at edit distance 1, one in "
            "the language and one outside.",
            width=100,
        ),
        "reader": Column("What it reads", help="Fitted on the training strings.", width=330),
        "within": Column("Trained lengths", "percent", width=120),
        "beyond": Column("Other lengths", "percent", width=120),
        "whole": Column("All test strings", "percent", width=120),
        "target": Column("Target", "string", "What is right.", 200),
        "first_wrong": Column(
            "Right before", "whole", "Tokens that are right before the first wrong one.", 100
        ),
        "model_logit": Column(
            "Logit",
            "number",
            "Above 0 the model predicts positive; of other tasks the margin of the right answer, "
            "of outputs the log-probability of the target.",
            90,
        ),
        "occurrences": Column("Occurs", "whole", OCCURRENCES, 75),
        "of_errors": Column("Errors", help="Of the errors that were looked at.", width=110),
        "what": Column("", width=210),
        "is": Column("Is", width=150),
        "predicted": Column("Predicted", width=150),
        "distance": Column("Edits", help="Letters changed from the minimal string.", width=70),
    }
)

add_sentences(
    {
        "none_wrong": "None of {tested:,} {strings} is wrong; they have up to {longest:,} tokens. "
        "Others were not tried here.",
        "some_wrong": "{wrong:,} of {tested:,} {strings} are wrong, the shortest is `{shortest}`.",
        "some_wrong_by_kind": "{wrong:,} of {tested:,} {strings} are wrong: {kinds}; the shortest "
        "is `{shortest}`.",
        "untested": "{left:,} more {left:was|were} not tested: the model has no positions for "
        "{left:it|them}.",
        "by_length_caption": "The share of the {strings} of each length that is wrong; trained "
        "lengths are shaded.",
        "first_wrong_caption": "Right: how many tokens of wrong outputs are right before the first "
        "wrong one, the darker the more.",
        "by_drawn": "It is right least often, {right:.1%}, on {drawn} strings.",
        "no_training_strings": "Shortcut readers are fitted on training strings, which are not "
        "known here.",
        "no_readers": "No shortcut readers have been asked about this test yet. Workers ask them "
        "when there is nothing to train; `seqcls db readers` asks them now.",
        "not_fitted": "Not fitted, since {reason}: {readers}.",
        "better_than_shortcut": "It is better than the best shortcut, {reader}: {accuracy:.2%} "
        "against {reached:.2%}.",
        "decided_by": "This task is decided by {by}: to read nothing else is no shortcut.",
        "right_shortcut": "{reader} is right on every test string, so it is no shortcut.",
        "no_better": "It is no better than {reader}: {accuracy:.2%} against {reached:.2%} of the "
        "test strings.",
        "shortest_listed": "The {listed:,} shortest of {wrong:,}.",
    }
)
