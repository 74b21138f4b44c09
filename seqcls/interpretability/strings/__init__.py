"""What holds for any task and any model: strings are tried, states are read and carried over."""
