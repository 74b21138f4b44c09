"""When a member's training ends, and which epoch's model is kept."""

from dataclasses import dataclass, field

from seqcls.problem import Problem


@dataclass
class EarlyStopping:
    """One member's validation losses so far; epochs are counted from 1.

    The model kept is that of the lowest loss of all epochs, the first on a tie. Patience looks
    only at the losses from `min_num_epochs` on, and so may run out beside an earlier, lower one.
    """

    problem: Problem
    losses: list[float] = field(default_factory=list)
    best_epoch: int = 1
    """The epoch of the lowest loss so far."""
    _lowest_since_minimum: float = float("inf")
    _patience: int = 0

    def __post_init__(self) -> None:
        self._patience = self.problem.config.patience

    def stops_after(self, loss: float, *, right: bool = False) -> bool:
        """Takes the next epoch's validation loss; True where training ends with it.

        Where all is `right` it ends, and that epoch's model is kept.
        """
        config = self.problem.config
        self.losses.append(loss)
        epoch = len(self.losses)
        if right:
            self.best_epoch = epoch
            return True
        if loss < self.losses[self.best_epoch - 1]:
            self.best_epoch = epoch
        if epoch >= config.max_num_epochs:
            return True
        if epoch < config.min_num_epochs:
            return False
        if loss < config.min_validation_loss:
            return True
        if loss < self._lowest_since_minimum:
            self._lowest_since_minimum = loss
            self._patience = config.patience
        else:
            self._patience -= 1
        return self._patience <= 0
