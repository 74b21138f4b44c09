"""The vocabulary of causes of failure, each with a sentence; `docs/why.md` says what shows each.

Causes are found by `seqcls.interpretability.causes`, and named so in the database, by commands, on
pages and in reports.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from seqcls.text import count

if TYPE_CHECKING:
    # A command names causes, and begins without NumPy.
    from seqcls.kinds.base import Words
    from seqcls.results import ErrorKind, RangeCounts

SAMPLE = 50
"""Errors of a model for which causes are sought by default."""

EXPLAINS = 0.9
"""A statement about errors together holds of at least such a share of them."""

NOT_LEARNED = "not learned"
ROUNDING = "rounding"
ORDER = "order not seen"
DILUTION = "dilution"
ONE_LETTER = "two heads on one letter"
CONSTANT = "constant answer"
RULE = "simple rule"
FORM = "answers by form"
BEYOND = "errors beyond a bound"
LONGER = "longer than in training"
NOT_FOUND = "no cause found"
FIRST_RIGHT = "first tokens right"
FORGETS = "forgets while one token repeats"
FORGETS_WORD = "forgets while a word repeats"


class CauseEntry(NamedTuple):
    """One cause in the vocabulary."""

    phrase: str
    """The cause as a noun, after "models fail by"."""
    sentence: str
    """The meaning, with `{about}` for the details of a model's cause."""
    beside_not_learned: bool = False
    """True if it is also given for errors of a model that has not learned, as the rule it follows
    instead. It depends on no length, nor on a feature that grows with the length."""


_ERROR_KINDS: dict["ErrorKind", tuple[str, str]] = {
    "stopped early": ("stopping early", "Its outputs stop early"),
    "went on": ("going on after the end", "Its outputs go on after the end"),
    "repeats": ("repeating themselves", "Its outputs repeat themselves"),
    "wrong token": ("writing wrong tokens", "Its outputs have a wrong token"),
    "too much": ("answering more than is right", "It answers more than is right at a place"),
    "too little": ("answering less than is right", "It answers less than is right at a place"),
    "wrong answer": ("wrong answers at places", "It answers wrongly at a place"),
}

CAUSES: Mapping[str, CauseEntry] = {
    NOT_LEARNED: CauseEntry(
        "not having learned", "It has not learned the trained lengths: {about}"
    ),
    ROUNDING: CauseEntry(
        "rounding", "In double precision the answer is right", beside_not_learned=True
    ),
    ORDER: CauseEntry(
        "not seeing the order of letters",
        "It sees how often letters occur, not their order, which decides: {about}",
        beside_not_learned=True,
    ),
    DILUTION: CauseEntry(
        "dilution",
        "Its attention is diluted ({about}): others outnumber the tokens that it attends to",
    ),
    ONE_LETTER: CauseEntry(
        "two heads on one letter",
        "All its heads look for one letter: {about}",
        beside_not_learned=True,
    ),
    CONSTANT: CauseEntry(
        "a constant answer",
        "It gives every string the same answer: {about}",
        beside_not_learned=True,
    ),
    RULE: CauseEntry(
        "a simple rule of their own",
        "It follows a rule of its own: {about}",
        beside_not_learned=True,
    ),
    FORM: CauseEntry(
        "answering by form",
        "It answers by form, not by the language: {about}",
        beside_not_learned=True,
    ),
    BEYOND: CauseEntry("a bound that they do not hold beyond", "It errs beyond a bound: {about}"),
    LONGER: CauseEntry("length alone", "It errs only on strings longer than in training: {about}"),
    NOT_FOUND: CauseEntry(
        "no cause that was found", "Nothing that was tried accounts for its errors: {about}"
    ),
    FIRST_RIGHT: CauseEntry(
        "getting only the first tokens right", "Its outputs go wrong from some token on: {about}"
    ),
    **{x: CauseEntry(phrase, f"{says}: {{about}}") for x, (phrase, says) in _ERROR_KINDS.items()},
    **{
        name: CauseEntry(name.replace("forgets", "forgetting"), f"It {name}: {{about}}")
        for name in (FORGETS, FORGETS_WORD)
    },
}
"""Every cause by its name, in the order in which they are tried."""

OUTPUT_MECHANISMS = (FIRST_RIGHT, *_ERROR_KINDS)
"""Causes of wrong outputs alone."""

BESIDE_NOT_LEARNED = frozenset(name for name, entry in CAUSES.items() if entry.beside_not_learned)


def sentence_of(mechanism: str, about: str) -> str:
    """A cause in a clause, with its details.

    Args:
        mechanism: one that is not in the vocabulary is called by its name.
        about: the details that are stored beside it; may be empty.
    """
    entry = CAUSES.get(mechanism)
    sentence = f"{mechanism[:1].upper()}{mechanism[1:]}: {{about}}" if entry is None else entry[1]
    return (
        # Without a subject the sentence ends before the place for it.
        sentence.format(about=about) if about else sentence.partition("{about}")[0].rstrip(" ,:(")
    )


class AttributedError(NamedTuple):
    """One error and its cause."""

    string: str
    mechanism: str
    head: int | None = None
    tokens: str = ""
    agreement: float | None = None


def spread_evenly(number: int, most: int) -> list[int]:
    """At most `most` places, spread evenly over a number of them, the first among them."""
    if number <= most:
        return list(range(number))
    return [number * place // most for place in range(most)]


def forgetting_text(stored: Mapping[str, Any], display: Callable[[str], str]) -> str:
    """Describes in a sentence what a model forgets.

    Args:
        stored: as `seqcls.proofs.forgetting.Forgetting.record` has it.
        display: shows a string.
    """
    after = f" after {display(stored['before'])}" if stored["before"] else ""
    moved = ", ".join(
        f"{name} of layer {layer} by {float(f'{by:.2g}'):,g}" for layer, name, by in stored["units"]
    )
    return (
        f"It {stored['mechanism']}: as {display(stored['word'])} repeats{after}, its state moves "
        f"away ({moved}); from {count(stored['repetitions'], 'repetition')} on it is wrong, as on "
        f"{display(stored['string'])}."
    )


STILL_FALLS = 0.98
"""A loss still falls at the end if its last quarter sums to less than this share of the third."""


def not_learned_text(
    counts: "RangeCounts", words: "Words", train_losses: Sequence[float], kept_epoch: int | None
) -> str:
    """Describes the errors on trained lengths, the end of the training and the saved epoch.

    Args:
        counts: strings of trained lengths, and which of them it gets wrong.
        train_losses: one for each epoch; none where they are not known.
        kept_epoch: counted from 1.
    """
    strings = words.plural(counts.within_from)
    parts = [
        f"wrong on {counts.wrong_within:,} of {counts.tested_within:,} {strings} of trained lengths"
    ]
    epochs = len(train_losses)
    if epochs > 1:
        # Sums over quarters, as the losses of single epochs jump.
        quarter = max(epochs // 4, 1)
        last, before = train_losses[-quarter:], train_losses[-2 * quarter : -quarter]
        falls = "was still" if sum(last) < STILL_FALLS * sum(before) else "was no longer"
        parts.append(f"training loss {falls} falling at the end")
    if epochs:
        saved = "" if kept_epoch is None else f", epoch {kept_epoch:,} kept"
        parts.append(f"{epochs:,} epoch{'s' * (epochs > 1)}{saved}")
    return "; ".join(parts)
