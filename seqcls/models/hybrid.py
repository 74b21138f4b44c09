"""Blocks of several mixers, one for each letter of `layers`; each mixer has a file."""

from collections.abc import Mapping, Sequence

from seqcls.models import MODELS, architecture_of_letter
from seqcls.models.mixing import Mixer, Mixing


class Hybrid(Mixing):
    """A block for each letter of `layers`, in their order."""

    # Repeated, because forms are not inherited past a class that defines functions.
    begin = Mixing.begin
    step = Mixing.step

    def mixers(self) -> Sequence[type[Mixer]]:
        """Implements `Mixing.mixers`: those of the letters of `layers`."""
        return [MODELS[architecture_of_letter(x)].load_mixer() for x in self.config.layers]

    def attention(self) -> tuple[str, ...]:
        """Implements `Classifier.attention`, for the blocks that attend."""
        return tuple(f"blocks.{x}.mixer.weights" for x in blocks_of(self.config.layers, True))

    def units(self) -> tuple[Mapping[str, str], ...]:
        """Implements `Classifier.units`, for the blocks with a memory, if all are of one kind:
        memories of several kinds have no common size.
        """
        every, memories = super().units(), blocks_of(self.config.layers, False)
        is_one = len({self.config.layers[block] for block in memories}) == 1
        return tuple(every[block] for block in memories) if is_one else ()


def blocks_of(layers: str, attending: bool) -> tuple[int, ...]:
    """The numbers of the blocks that attend, or of those with a memory of a fixed size."""
    # `a` is attention, the one mixer whose memory grows with the string.
    return tuple(block for block, x in enumerate(layers) if (x == "a") == attending)
