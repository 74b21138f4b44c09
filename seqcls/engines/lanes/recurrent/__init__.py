"""RNN, GRU and LSTM, all groups of a batch side by side."""
