"""Text on the page: what comes from the database or a user is shown as it is."""

import string


def verbatim(text: str) -> str:
    """Text that Markdown shows unchanged."""
    return "".join(f"\\{c}" if c in string.punctuation else c for c in text)
