"""The life of runs: submitted, claimed, recorded, deleted."""
