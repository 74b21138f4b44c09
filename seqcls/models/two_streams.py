"""The two streams of `CLS x SEP y`: an encoder reads `CLS x`, a decoder `SEP y`."""

from abc import abstractmethod
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int64, Integer
from torch import Tensor

from seqcls.config import NetworkConfig
from seqcls.kinds.transduction import separator_id
from seqcls.models.base import BodyAndHead, Hidden, Ids, Outputs, Places, Recorder
from seqcls.strings.tokenizer import PAD

OutputStates = Float[Tensor, "string output_position hidden"]


class Streams(NamedTuple):
    """Both streams, each as wide as its longest string, with `PAD` after every string."""

    inputs: Ids
    """`CLS` and the input."""
    outputs: Ids
    """`SEP` and as much of the output as is read."""
    columns: Int64[Tensor, "string output_position"]
    """The outputs' positions in the ids that were split."""
    width: int
    """The width of these ids."""

    @property
    def written(self) -> Bool[Tensor, "string output_position"]:
        """A mask of the outputs' positions that hold a token."""
        return self.outputs != PAD

    def positions_of(
        self, places: Places | None, stream: Integer[Tensor, "string stream_position"]
    ) -> Integer[Tensor, "#string stream_position"]:
        """Positions of a stream's tokens: the string's first ones, the same in both streams."""
        width = stream.shape[1]
        if places is None:
            return torch.arange(width, device=stream.device).unsqueeze(0)
        return places[:, :width]

    def spread(
        self, values: Float[Tensor, "string output_position size"]
    ) -> Float[Tensor, "string position size"]:
        """Spreads the outputs' values over the positions of the split ids; zeros elsewhere."""
        rows, places = self.written.nonzero(as_tuple=True)
        shifted = values.new_zeros(len(values), self.width, values.shape[2])
        shifted[rows, self.columns[rows, places]] = values[rows, places]
        return shifted


def split(config: NetworkConfig, ids: Ids) -> Streams:
    """Splits token ids into streams at the first `SEP`."""
    read = ids != PAD
    is_output = (ids == separator_id(config)).cumsum(dim=1) > 0
    lengths = (~is_output & read).sum(dim=1)
    # `max` refuses a batch without strings.
    input_width = int(lengths.max()) if len(ids) else 0
    output_width = int((is_output & read).sum(dim=1).max()) if len(ids) else 0
    inputs = ids[:, :input_width].masked_fill(is_output[:, :input_width], PAD)
    columns = lengths.unsqueeze(1) + torch.arange(output_width, device=ids.device)
    beyond = columns >= ids.shape[1]
    # `gather` reads every column, so those beyond the ids point to a valid one and become PAD.
    columns = columns.masked_fill(beyond, 0)
    outputs = ids.gather(1, columns).masked_fill(beyond, PAD)
    return Streams(inputs, outputs, columns, ids.shape[1])


class TwoStreams(BodyAndHead):
    """A model whose encoder reads the input, and whose decoder reads and predicts the output.

    Its outputs are at the positions of the ids from `SEP` on, and zeros elsewhere.
    """

    @abstractmethod
    def decode_states(
        self, streams: Streams, record: Recorder, places: Places | None
    ) -> OutputStates:
        """Computes the decoder's last states, at the positions of the outputs."""

    def tokens_of(self, ids: Ids, state: str) -> Bool[Tensor, "string state_position"]:
        """Implements `Classifier.tokens_of`, for the stream of the state."""
        streams = split(self.config, ids)
        return streams.written if state.startswith("decoder.") else streams.inputs != PAD

    def states(self, ids: Ids, record: Recorder, places: Places | None) -> Hidden:
        streams = split(self.config, ids)
        return streams.spread(self.decode_states(streams, record, places))

    def run(self, ids: Ids, record: Recorder, places: Places | None) -> Outputs:
        streams = split(self.config, ids)
        outputs = record("decoder.logits", self.head(self.decode_states(streams, record, places)))
        return record("logits", streams.spread(outputs))
