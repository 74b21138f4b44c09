"""Small models of any architecture with random weights: those of the zoo."""

from tests.zoo import LSTM, TWO_BLOCKS, untrained

__all__ = ["LSTM", "TWO_BLOCKS", "untrained"]
