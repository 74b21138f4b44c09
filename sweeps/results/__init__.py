"""The results of runs: plain values, their digests, and summaries."""
