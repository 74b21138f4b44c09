"""Groups to time, and what they take."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seqcls.config import RunConfig


@dataclass(frozen=True)
class GroupToTime:
    """A group to time."""

    config: "RunConfig"
    members: int
    verdict: bool = False
    """Whether its models are checked exhaustively too."""


@dataclass(frozen=True)
class GroupTime:
    """What a group takes, in seconds."""

    epoch: float
    """A member's epoch, with its validation."""
    epoch_once: float
    """An epoch's preparation, once for all members of a group."""
    test: float
    """Testing a member, with the exhaustive check where it is asked for."""
    test_once: float
    """The preparation of a test."""
    draw_epoch: float
    """Drawing an epoch's strings, once for all groups that train on them."""
    draw_tests: float
    """Seconds for the strings of validation and test."""

    def seconds(self, members: int, epochs: float) -> float:
        """A group's training and testing, the drawing of strings left out."""
        once = epochs * self.epoch_once + self.test_once
        return once + members * (epochs * self.epoch + self.test)


@dataclass(frozen=True)
class Times:
    """What was timed."""

    start: float = 0.0
    """Seconds until a process is ready to train."""
    groups: Mapping[str, GroupTime] = field(default_factory=dict)
    """By `RunConfig.group_key`; those that were not reached, or cannot be timed, are missing."""
