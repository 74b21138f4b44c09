"""What came out of runs: plain values, their digests, what they come to."""
