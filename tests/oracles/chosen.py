"""The runs that a page, a command or a file is about, by its filters."""

from dataclasses import dataclass
from typing import Any

from tests.oracles.facts import Facts, Row, fails, is_among


@dataclass(frozen=True)
class Chosen:
    """Filters of runs, as a link or as options."""

    sweeps: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    failing: bool = False
    """The option `--failing`, which only commands have."""
    below: float = 1.0
    learned_at: float = 0.99
    outcomes: tuple[str, ...] = ()
    width: int | None = None

    @property
    def query(self) -> dict[str, Any]:
        """The parameters of a link to a page."""
        given: dict[str, Any] = {"sweep": list(self.sweeps), "seed": list(map(str, self.seeds))}
        given |= {"below": f"{100 * self.below:g}"} if self.below < 1 else {}
        given |= {"outcome": list(self.outcomes)} if self.outcomes else {}
        given |= {"learned": f"{100 * self.learned_at:g}"} if self.learned_at != 0.99 else {}
        given |= {"hidden_size": str(self.width)} if self.width else {}
        return {name: value for name, value in given.items() if value}

    @property
    def options(self) -> list[str]:
        """Options of commands, but for the sweeps."""
        given = [*(f"--seed={x}" for x in self.seeds), *(f"--outcome={x}" for x in self.outcomes)]
        given += ["--failing"] if self.failing else []
        given += [f"--where=hidden_size={self.width}"] if self.width else []
        return [*given, f"--learned-at={self.learned_at}", f"--below={self.below}"]

    def scope(self, facts: Facts) -> list[Row]:
        """The runs of the chosen sweeps, seeds and width."""
        runs = facts.scope(self.sweeps, self.seeds)
        if self.width is None:
            return runs
        return [x for x in runs if facts.configs[x["config_id"]]["hidden_size"] == self.width]

    def picks(self, run: Row) -> bool:
        """True if a run is listed and drawn."""
        if self.failing and not fails(run, self.below):
            return False
        judged = (self.learned_at, self.below)
        return not self.outcomes or any(is_among(run, x, *judged) for x in self.outcomes)
