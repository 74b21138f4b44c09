"""Two models side by side, string by string."""

from dashboard.section import Section
from dashboard.words.columns import Column, add_columns
from dashboard.words.sentences import add_sentences, say
from sweeps.api import Store, run_config
from sweeps.api.comparisons import compare_models
from sweeps.api.presentation import display_strings, words_of

MOST_STRINGS = 1_000

add_columns({"wrong_in": Column("Wrong in", width=140)})
add_sentences(
    {
        "two_models": "Of {tested:,} {strings}, {both:,} {both:is|are} wrong in both models, "
        "{first:,} only in model {a}, {second:,} only in model {b}.",
        "two_models_apart": "Their tests have other strings, so that only shares are compared.",
        "two_models_p": "{chance} (exact, two-sided {test}: p {p}).",
    }
)


def two_models(store: Store, first: int, second: int) -> Section:
    """Test strings that only one of two models misclassifies, and whether that is chance.

    Args:
        first: a run's id.
        second: likewise.
    """
    found = compare_models(store, first, second)
    own = [run_config(store, run_id) for run_id in (first, second)]
    wrong, table = found.wrong, found.wrong.table
    chance = "Significant" if wrong.is_decided else "Chance may explain it"
    test = "Fisher's test" if table is None else "McNemar's test"
    # No p-value is zero: this one is below the smallest double.
    p_value = f"= {wrong.p_value:.3g}" if wrong.p_value else "< 1e-300"
    tested = say("two_models_p", chance=chance, test=test, p=p_value)
    fields = "; ".join(f"{name}: {a} and {b}" for name, (a, b) in found.fields.items())
    apart = f"They differ in {fields}." if fields else "All their settings are the same."
    if table is None or found.strings is None:
        return Section("", (say("two_models_apart"), tested, apart))
    words = words_of(*own)
    counts = {"both": table.both, "first": table.only_first, "second": table.only_second}
    strings = words.plural("test")
    sentence = say(
        "two_models",
        tested=sum(counts.values()) + table.none,
        strings=strings,
        a=first,
        b=second,
        **counts,
    )
    shown = display_strings(found.strings.head(MOST_STRINGS), *own)
    wrong_in = shown["wrong_a"].gt(0).map({True: f"model {first}", False: f"model {second}"})
    shown = shown.assign(wrong_in=wrong_in)
    names = ("string", "length", "wrong_in")
    return Section("", (sentence, tested, apart), shown[[*names]], shown=names)
