"""The choice of the engine that trains a configuration, without loading PyTorch or Numba."""

from dataclasses import dataclass

from seqcls.engines.base import Engine
from seqcls.engines.fused.engine import Fused
from seqcls.engines.lanes.engine import Lanes
from seqcls.engines.pytorch.engine import PyTorchCounts, PyTorchStrings
from seqcls.errors import EngineError
from seqcls.problem import Problem

ENGINES: tuple[Engine, ...] = (Fused(), Lanes(), PyTorchCounts(), PyTorchStrings())
"""All engines, the fastest first: a group is trained by the first without an obstacle."""

PYTORCH = ("counts", "strings")
"""The engines that the name `torch` selects from: the first without an obstacle."""


@dataclass(frozen=True)
class Choice:
    """An engine and the reason for it."""

    name: str
    reason: str

    def __str__(self) -> str:
        return f"{self.name}: {self.reason}"


def choose_engine(
    problem: Problem, engine: str = "auto", device: str = "auto", *, ready: bool = False
) -> Choice:
    """Returns the engine that trains a problem's models.

    Args:
        engine: `auto`, the name of an engine, or `torch` for any that computes with PyTorch.
        device: `auto`, `cpu` or `cuda`.
        ready: with `auto`, skip engines that have to be compiled first.

    Raises:
        EngineError: the name is unknown, or the named engine cannot train the problem.
    """
    names = {candidate.name: (candidate.name,) for candidate in ENGINES}
    candidates = {"auto": tuple(names), "torch": PYTORCH, **names}
    if engine not in candidates:
        raise EngineError(f"engine {engine!r}: expected {', '.join(candidates)}")
    obstacles: list[str] = []
    for name in candidates[engine]:
        candidate = engine_named(name)
        obstacle = candidate.obstacle(problem, device)
        if obstacle is None and ready and engine == "auto" and not candidate.is_ready(problem):
            obstacle = f"engine {name!r} is not compiled yet"
        if obstacle is None:
            return Choice(name, _reason(engine, obstacles))
        obstacles.append(obstacle)
    raise EngineError(
        f"engine {engine!r} cannot train this: {obstacles[-1]}"
        + ("" if engine == "auto" else "; use engine 'auto'")
    )


def engine_named(name: str) -> Engine:
    """Returns the engine of that name, which is one of `ENGINES`."""
    return {engine.name: engine for engine in ENGINES}[name]


def names_one_by_strings(engine: str, problem: Problem) -> bool:
    """Returns True if the named engine reads a problem's strings token by token."""
    return any(one.name == engine and not one.reads_counts(problem) for one in ENGINES)


def _reason(engine: str, obstacles: list[str]) -> str:
    if obstacles:
        # The reason why it is not compiled explains more than why letter counts do not suffice.
        return obstacles[:2][-1]
    return "letter counts suffice, on the CPU" if engine == "auto" else "asked for"
