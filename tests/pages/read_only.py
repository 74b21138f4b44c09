"""Which buttons change nothing but what the visit itself shows."""

READS = {
    *("Add a variant", "Clear filters", "Compare", "Compare them", "Dismiss", "Edit as new"),
    *("Pause", "Play"),
    *("Fill the launch panel", "Look at it", "Show new results"),
}


def reads(label: str) -> bool:
    """Whether a button of this label may be pressed by a visitor."""
    return label in READS or label.startswith(("Explain ", "Take {"))
