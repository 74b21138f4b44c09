"""Every string of one length, shuffled anew each epoch."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from seqcls.sampling.strings import Strings
from seqcls.tasks.contains_all import ContainsAll

if TYPE_CHECKING:
    from seqcls.config import RunConfig

MAX_FIXED_LENGTH_STRINGS = 1_000_000


@dataclass(frozen=True)
class FixedLength:
    """All strings of `sequence_length` tokens, `CLS` counted: n^(sequence_length - 1) of them."""

    language: ContainsAll
    sequence_length: int
    batch_size: int
    seed: int

    @classmethod
    def of_part(cls, config: "RunConfig", part: str) -> Self:
        """The sampler of a configuration's part, `train`."""
        return cls(
            config.language,
            config.sequence_length,
            getattr(config, f"{part}_batch_size"),
            getattr(config, f"{part}_seed"),
        )

    def epochs(self) -> Iterator[Strings]:
        """Epochs of all strings, in the order of PyTorch's shuffling data loader."""
        # Imported where it is used: configurations name samplers, and must load fast.
        import torch
        from torch.utils.data import DataLoader

        strings = self._all_strings()
        generator = torch.Generator().manual_seed(self.seed)
        loader: DataLoader[int] = DataLoader(
            range(len(strings)),  # type: ignore[arg-type]  # any sequence will do
            batch_size=self.batch_size,
            shuffle=True,
            generator=generator,
        )
        while True:
            yield strings.take(torch.cat(list(loader)).numpy())

    def _all_strings(self) -> Strings:
        n = self.language.num_letters
        length = self.sequence_length - 1
        numbers = np.arange(n**length)
        place_values = n ** np.arange(length)[::-1]
        return Strings.of_letters(self.language, numbers[:, None] // place_values % n)
