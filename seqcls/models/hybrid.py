"""Blocks of several mixers, one a letter: what each is stands in its own file."""

from collections.abc import Mapping, Sequence

from seqcls.config import NetworkConfig
from seqcls.models import MODELS, architecture_of_letter
from seqcls.models.mixing import Mixer, Mixing


class Hybrid(Mixing):
    """A block for each letter of `layers`, the first letter's first."""

    # Forms are not inherited past a class with functions: what it keeps, it keeps block by block.
    begin = Mixing.begin
    step = Mixing.step

    def mixers(self) -> Sequence[type[Mixer]]:
        return mixers_of(self.config)

    def attention(self) -> tuple[str, ...]:
        """Implements `Classifier.attention`, where all blocks attend."""
        blocks = range(len(self.config.layers)) if set(self.config.layers) == {"a"} else ()
        return tuple(f"blocks.{block}.mixer.weights" for block in blocks)

    def units(self) -> tuple[Mapping[str, str], ...]:
        """Implements `Classifier.units`, where all blocks are of one memory: side by side others
        have no common size.
        """
        one = len(set(self.config.layers)) == 1 and "a" not in self.config.layers
        return super().units() if one else ()


def mixers_of(config: NetworkConfig) -> Sequence[type[Mixer]]:
    """The mixer of each letter of `layers`."""
    return [MODELS[architecture_of_letter(x)].load_mixer() for x in config.layers]
