"""Sentences of sections, as templates: each is written once, whoever shows it."""

import string
from typing import Any

from sweeps.access import is_read_only

SENTENCES = {
    "no_models": "No trained model matches the filters.",
    "none_trained": "No model is trained yet. The page Sweeps says how far training is.",
    "no_sweep": "No sweep yet. New sweep, in the sidebar, trains the first.",
    "no_sweep_to_read": "No sweep yet.",
}
"""By key; `{n:model|models}` chooses by the number. `add_sentences` adds a subject's own."""


def add_sentences(sentences: dict[str, str]) -> None:
    """Declares the sentences of a subject, beside the sections that show them.

    Raises:
        ValueError: a key is taken.
    """
    if taken := {x for x in sentences if SENTENCES.get(x, sentences[x]) != sentences[x]}:
        raise ValueError(f"sentences {sorted(taken)}: expected keys that no other subject has")
    SENTENCES.update(sentences)


LOOKS_ALIKE = "\N{MODIFIER LETTER GRAVE ACCENT}"


def as_code(text: str) -> str:
    """A string of letters between backquotes, as sentences have it."""
    return f"`{text.replace('`', LOOKS_ALIKE)}`"


class _Sentence(string.Formatter):
    def format_field(self, value: Any, format_spec: str) -> str:
        if "|" in format_spec:
            # Not one of Python's formats: `{n:model|models}` chooses a word by the number.
            return format_spec.split("|")[bool(value != 1)]
        # A backquote begins a string of letters, which no value may do.
        return str(super().format_field(value, format_spec)).replace("`", LOOKS_ALIKE)


def say(key: str, **values: Any) -> str:
    """Fills values into a sentence; strings of letters are written between backquotes."""
    sentence = _Sentence().format(SENTENCES[key], **values)
    return sentence[0].upper() + sentence[1:]


def no_sweep() -> str:
    """States that there is no sweep, and how to train the first unless read-only."""
    return say("no_sweep_to_read" if is_read_only() else "no_sweep")
