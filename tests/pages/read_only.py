"""Which buttons change nothing but what the visit itself shows."""

READS = {
    *("Add to the list", "Clear filters", "Compare", "Look at it", "Pause", "Play"),
    "What settings mean",
    # The rows of settings of a new sweep.
    "begun",
}


def reads(label: str) -> bool:
    """Whether a button of this label may be pressed by a visitor."""
    return label in READS or label.startswith(("Explain ", "Take {"))
