"""Words of page Model: columns of its tables, and its sentences."""

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
        "model_output": Column("Output", "string", "What the model writes.", 200),
        "kind": Column("Error", width=130),
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
        "distance": Column(
            "Edits", help="Letters that differ from the string it is near to.", width=70
        ),
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

add_columns(
    {
        "about": Column("About", width=420),
        "remedy_in_words": Column("Remedy", width=520),
        "came_of_remedy": Column("What came of it", width=520),
    }
)

add_sentences(
    {
        "no_error": "It gets no test string wrong.",
        "cause_to_come": "The cause of its errors is being looked for: some ten seconds.",
        "no_cause": "No cause can be found: {reason}.",
        "cause_unknown": "The cause of its errors is not known yet; `seqcls causes {run}` finds "
        "it.",
        "cause_of_kept": "The cause of its errors is known of the kept epoch, {kept}.",
        "kept_in_words": "What it came to is of the kept epoch, {kept}; what is asked below is of "
        "epoch {epoch}.",
        "has_not_learned": "It has not learned the trained lengths: it is {how}.",
        "instead": "What it does instead is below; nothing follows about longer strings.",
        "cause_of_most": "{cause} ({strings:,} of {of:,} errors looked at).",
        "why_string": "Why `{string}`?",
        "minimal": "What is left of it that still fails: `{minimal}` ({letters:,} {unit}s"
        "{within}); with any single {unit} less it is right.",
        "minimal_short": "What is left of it that still fails: `{minimal}`.",
        "as_in_training": ", as short as in training",
        "nearest": "The nearest string that is right, {edits} {edits:edit|edits} from "
        "{near_to}: `{nearest}`.",
        "near_to_this": "it",
        "near_to_part": "that part",
        "no_known_remedy": "No known remedy changes a setting of this configuration.",
        "in_training": "In training: {seeds:,} {seeds:seed|seeds}.",
        "handout_title": "Why does a small network answer {string} as it does?",
        "handout_footer": "Made by seqcls of run {run}.",
    }
)
