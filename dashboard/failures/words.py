"""Words of page Failures: causes, columns, sentences."""

from dashboard.words.columns import Column, add_columns
from dashboard.words.sentences import add_sentences
from seqcls.interpretability.mechanisms import SAMPLE

add_columns(
    {
        "cause": Column(
            "Cause",
            help=f"That of most of a seed's errors; up to {SAMPLE} are looked at, evenly from the "
            "shortest to the longest. *Not having learned* and *not seeing the order of letters* "
            "come first, however few errors show them.",
            width=215,
        ),
        "failing": Column(
            "Models", help="Failing seeds with this cause, of all that fail.", width=85
        ),
        "example": Column("For example", width=430, wraps=True),
        "remedy": Column("Remedy", help="What is changed; seeds stay the same.", width=205),
        "mended": Column(
            "Mended",
            help="Seeds that fail by the cause and with the remedy do not, of those that are a "
            "measure of it: that have learned, if that is not what is to be mended.",
            width=75,
        ),
        "broken": Column(
            "Broken", help="Seeds that did not fail, and do with the remedy.", width=65
        ),
        "p_of_remedy": Column(
            "p",
            "p",
            "How likely so large a difference in failing seeds is by chance alone (two-sided).",
            65,
        ),
        "came_of_it": Column(
            "",
            help="Seeds in training; left out, since they are no measure; whose training failed.",
            width=110,
        ),
        "breaks": Column(
            "Models",
            help="Failing models that get it wrong, of those that were tested on it.",
            width=110,
        ),
        "output": Column("Output", "string", "Of one of the worst models.", 300),
        "wrong_token": Column(
            "First wrong token",
            help="Its place, and what stands there for what is right.",
            width=190,
        ),
        "kind": Column("Error", width=130),
        "first_wrong_length": Column(
            "Wrong from",
            "whole",
            "The length of the shortest test string that it gets wrong. Of a model that has not "
            "learned, nothing is said of length.",
            95,
        ),
        "errors": Column("Errors", "whole", "Test strings that it gets wrong.", 85),
        "accuracy_of_all": Column("Right", "percent", "Of all test strings.", 85),
    }
)
add_sentences(
    {
        "none_fails": "None of {tested:,} tested {tested:model|models} fails.",
        "causes": "Of {failing} {listed}.",
        "no_causes": "Cause not known yet for {failing}.",
        "causes_to_come": "The causes of {number:,} more are not known yet.",
        "without_causes": "No cause can be found for {number:,} {number:model|models}: {reason}.",
        "no_remedies": "No change of a setting is known to help against these causes.",
        "mended": "Of {seeds:,} {seeds:seed that fails|seeds that fail} by {cause}, {change} "
        "mends {mended:,}.",
        "untried": "No remedy was tried yet; select one to try it on a model's page.",
        "most_broken": "`{string}` breaks {models:,} of {of:,} failing models that were tested on "
        "it{more}.",
        "some_asked": "Counted in {asked:,} of {number:,} failing models, spread evenly.",
        "check_labels": "{number:,} {number:string is|strings are} wrong in all {models:,} "
        "models: are their labels right?",
        "failing_models": "{number:,} of {tested:,} tested {tested:model|models} "
        "{number:fails|fail}: {how}.",
        "some_learned": "{beyond:,} beyond the trained lengths, and {unlearned:,} "
        "{unlearned:has|have} not learned these",
        "all_learned": "having learned the trained lengths, beyond these",
        "none_learned": "none of them has learned the trained lengths",
        "unknown_models": "{number:,} {number:model makes|models make} errors; "
        "{number:its|their} outcome is unknown because there are no test strings of trained or of "
        "longer lengths.",
    }
)
