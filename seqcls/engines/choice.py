"""Which engine trains a configuration, and why. Neither PyTorch nor Numba is loaded to know it."""

from dataclasses import dataclass
from typing import Literal

from seqcls.config import RunConfig
from seqcls.errors import EngineError

EngineName = Literal["fused", "torch"]


@dataclass(frozen=True)
class Choice:
    """An engine and the reason for it."""

    name: EngineName
    reason: str

    def __str__(self) -> str:
        return f"{self.name}: {self.reason}"


def choose_engine(config: RunConfig, engine: str = "auto", device: str = "auto") -> Choice:
    """The engine that trains a configuration.

    Args:
        config: what is to be trained.
        engine: `auto`, `fused` or `torch`; the last two force one.
        device: `auto`, `cpu` or `cuda`.

    Raises:
        EngineError: the name is unknown, or the engine that is forced cannot do it.
    """
    if engine not in ("auto", "fused", "torch"):
        raise EngineError(f"engine {engine!r}: expected auto, fused or torch")
    if engine == "torch":
        return Choice("torch", "asked for")
    obstacle = _obstacle(config, device)
    if obstacle is None:
        return Choice("fused", "asked for" if engine == "fused" else "no dropout, on the CPU")
    if engine == "fused":
        raise EngineError(f"engine 'fused' cannot train this: {obstacle}; use engine 'auto'")
    return Choice("torch", obstacle)


def _obstacle(config: RunConfig, device: str) -> str | None:
    """Why the fused engine cannot train a configuration; None where it can."""
    if config.dropout_rate > 0:
        return f"dropout_rate={config.dropout_rate} makes equal letters differ"
    if device == "cuda":
        return "device='cuda' is no CPU"
    return None
