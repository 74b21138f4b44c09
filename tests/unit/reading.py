"""What other processes do in a test of streams; they load nothing else, such as PyTorch."""

from seqcls.sampling import Sampler
from seqcls.sampling.streams import Stream


def read_all(sampler: Sampler) -> bytes:
    """The letters of a few epochs, read from the folder or drawn."""
    return b"".join(Stream(sampler).epoch(index).strings.letters.tobytes() for index in range(6))
