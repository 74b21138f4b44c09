"""Buttons that change nothing but what the visit itself shows."""

READS = {
    *("Add to the list", "Clear filters", "Compare", "Look at it", "Pause", "Play"),
    "What settings mean",
    # The rows of settings of a new sweep.
    "begun",
}


def reads(label: str) -> bool:
    """Return True if a visitor may press a button of this label."""
    return label in READS or label.startswith(("Explain ", "Take {"))
