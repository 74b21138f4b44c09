"""Examples of a task: its shortest strings, and a family of them."""

import itertools
from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from seqcls.errors import InvalidStringError
from seqcls.strings.token_strings import TokenStrings
from seqcls.strings.tokenizer import FIRST_LETTER, Tokenizer
from seqcls.tasks import InputTask, LanguageTask, Task
from seqcls.tasks.base import PartlyKnown

MOST_LOOKED_AT = 4_000
"""Strings that are tried, from the shortest, to find some of either label."""

LONGEST_LOOKED_AT = 200
"""Tokens of the longest of them, where one letter makes only one string of each length."""

LONGEST_DRAWN = 60
"""Where none so short is found, one up to this length is drawn."""

OF_EITHER = 6
"""The shortest strings of either label."""


def first_strings(task: Task, number: int) -> list[str]:
    """Short strings to ask a model about, none of them empty; of a language some of either label.

    Args:
        task: any task.
        number: how many at most of either label, or in all where there are no labels.
    """
    if isinstance(task, LanguageTask):
        positive, negative = shortest_strings(task)
        return [*filter(None, (*positive[:number], *negative[:number]))]
    assert isinstance(task, InputTask)
    # A fixed seed, so that a page that is drawn again offers the same strings.
    rng, tokenizer = np.random.default_rng(0), Tokenizer(task.alphabet)
    there = (length for length in range(1, LONGEST_DRAWN + 1) if task.has_input(length))
    rows = [task.draw_input(rng, length).tolist() for length in itertools.islice(there, number)]
    return [tokenizer.spell(row) for row in rows]


@lru_cache(maxsize=256)
def shortest_strings(task: LanguageTask) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The shortest strings of a language, and the shortest of its alphabet that are not in it.

    Returns:
        A few positive and a few negative strings, spelled out; the empty one is "".
    """
    tokenizer = Tokenizer(task.alphabet)
    by_label: dict[bool, list[str]] = {True: [], False: []}
    for strings in _by_length(task):
        rows = zip(strings.letters.tolist(), strings.lengths.tolist(), strict=True)
        for (row, length), label in zip(
            rows, task.labels(strings.with_a_place()).tolist(), strict=True
        ):
            by_label[label].append(tokenizer.spell(row[:length]))
        if all(len(strings) >= OF_EITHER for strings in by_label.values()):
            break
    for positive, strings_found in by_label.items():
        if not strings_found:
            strings_found.extend(_draw(task, positive))
    return tuple(by_label[True][:OF_EITHER]), tuple(by_label[False][:OF_EITHER])


def _by_length(task: LanguageTask) -> Iterator[TokenStrings]:
    """All strings of length 0, of length 1, and so on; of a file those that are in it."""
    if isinstance(task, PartlyKnown):
        strings = task.known_strings()
        yield strings.take(np.argsort(strings.lengths, kind="stable")[:MOST_LOOKED_AT])
        return
    num_letters, looked_at = len(task.alphabet), 0
    for length in range(LONGEST_LOOKED_AT + 1):
        looked_at += num_letters**length
        if looked_at > MOST_LOOKED_AT:
            return
        rows = list(itertools.product(range(num_letters), repeat=length))
        yield TokenStrings.of_lists(num_letters, rows)


def _draw(task: LanguageTask, positive: bool) -> list[str]:
    rng = np.random.default_rng(0)
    for length in range(LONGEST_DRAWN + 1):
        if task.has(length, positive):
            row = task.draw(rng, length, positive)
            return [Tokenizer(task.alphabet).spell(row.tolist())]
    return []


def family_example(task: Task) -> str:
    """A family of which several strings are inputs, such as `a{n}`, or `1{n}+1=`; else `a{n}`."""
    assert isinstance(task, InputTask)
    tokenizer = Tokenizer(task.alphabet)
    tokens = list(task.alphabet)
    rng = np.random.default_rng(0)
    drawn = (task.draw_input(rng, length) for length in range(1, 9) if task.has_input(length))
    families = [[f"{token}{{n}}"] for token in tokens]
    for row in drawn:
        names = [tokens[letter] for letter in row.tolist()]
        families += [
            [*names[:place], f"{name}{{n}}", *names[place + 1 :]]
            for place, name in enumerate(names)
        ]
        # Instructions, or keys and values, that come in pairs.
        families += [
            [*names[:place], f"<{tokenizer.separator.join(pair)}>{{n}}", *names[place + 2 :]]
            for place, pair in enumerate(itertools.pairwise(names))
        ]
    for family in families:
        text = tokenizer.separator.join(family)
        # One count alone may make an input by chance.
        strings = [text.replace("{n}", f"{{{n}}}") for n in (2, 3, 4)]
        if all(_is_input(task, tokenizer, string) for string in strings):
            return text
    return families[0][0]


def _is_input(task: InputTask, tokenizer: Tokenizer, text: str) -> bool:
    letters = [token - FIRST_LETTER for token in tokenizer.encode(text)[1:]]
    try:
        task.targets(TokenStrings.of_lists(len(task.alphabet), [letters]))
    except InvalidStringError:
        return False
    return True
