"""Alphabets that a configuration names."""

from seqcls.errors import ConfigError


def check_alphabet(alphabet: str, task: str) -> None:
    """Refuses an empty alphabet; what its tokens may be, the configuration has checked.

    Raises:
        ConfigError: it is empty.
    """
    if not alphabet:
        raise ConfigError(
            f"alphabet='': task {task!r} expects its tokens, one character each, such as 'ab'"
        )
