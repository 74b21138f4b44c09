"""The figures of one model: its states as data frames, and which chart draws them."""
