"""Small models of any architecture, where they were asked for before."""

from tests.zoo import LSTM, TWO_BLOCKS, untrained

__all__ = ["LSTM", "TWO_BLOCKS", "untrained"]
