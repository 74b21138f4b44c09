"""Alphabets that a configuration names."""

from collections.abc import Sequence

from seqcls.errors import ConfigError


def tokens_of(alphabet: Sequence[str]) -> Sequence[str]:
    """Text with spaces names tokens, which are between them; what has none is them already."""
    if isinstance(alphabet, str) and " " in alphabet:
        return tuple(alphabet.split(" "))
    return alphabet


def check_alphabet(alphabet: Sequence[str], task: str) -> None:
    """Refuses an empty alphabet; what its tokens may be, the configuration has checked.

    Raises:
        ConfigError: it is empty.
    """
    if not alphabet:
        raise ConfigError(
            f"alphabet='': task {task!r} expects its tokens, one character each, such as 'ab'"
        )
