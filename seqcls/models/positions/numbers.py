"""Numbers of position schemes that compiled code needs too, without loading PyTorch."""

BUCKETS = 32
"""Of `relative`: ranges of distances that are told apart, each with a row of its table."""

FARTHEST = 128
"""Of `relative`: from this distance on all are in one bucket."""

TRAINING, TESTING = 1, 2
"""Streams of randomized places, apart from each other, and from those that draw strings from the
same seeds."""
