"""How much may be asked of a model while its automaton is learned."""

from dataclasses import dataclass, fields

from seqcls.errors import ConfigError
from seqcls.interpretability.model.trained_model import MAX_LENGTH, TrainedModel

MOST_LETTERS = 8
"""Tokens of an alphabet whose automata are learned: of more, too few short strings are tried."""


@dataclass(frozen=True)
class Budget:
    """Bounds, each of which ends the learning."""

    rounds: int = 100
    """Hypotheses that are held against the model."""
    states: int = 40
    """States of a hypothesis."""
    length: int = 0
    """Tokens of the longest string asked; 0 for twice the longest test string."""
    strings: int = 2**16
    """Short strings, all of which are tried, as far as so many go."""
    single: int = 2**20
    """Longer strings that are asked one by one."""
    seconds: float = 60.0

    def __post_init__(self) -> None:
        for name in (field.name for field in fields(self)):
            value = getattr(self, name)
            most = _MOST.get(name)
            if not value > 0 and not (name == "length" and value == 0):
                raise ConfigError(f"{name}={value}: expected more than 0; nothing could be learned")
            if most is not None and value > most:
                raise ConfigError(f"{name}={value}: expected at most {most:,}")


_MOST = {
    "rounds": 10_000,
    "states": 1_000,
    "length": MAX_LENGTH,
    "strings": 2**20,
    "single": 2**24,
}


def refuse(model: TrainedModel) -> None:
    """Refuses a model whose automaton is not learned.

    Raises:
        ConfigError: the task is no language, or has more than `MOST_LETTERS` tokens.
    """
    if reason := obstacle(model):
        raise ConfigError(reason)


def obstacle(model: TrainedModel) -> str | None:
    """Why a model's automaton is not learned; None where it is."""
    if reason := model.problem.no_language:
        return f"an automaton is learned of languages, and {reason}"
    if model.num_letters > MOST_LETTERS:
        return (
            f"the alphabet has {model.num_letters} tokens: automata are learned over at most "
            f"{MOST_LETTERS}; try `seqcls rules` or `seqcls minimal`"
        )
    return None
