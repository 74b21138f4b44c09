"""Strings, models and runs as small pictures: the HTML that notebooks draw by `_repr_html_`.

Every text is escaped, since names of tokens and of models may come from foreign files.
"""

from collections.abc import Iterable, Sequence
from html import escape

MOST_ROWS, MOST_PLACES = 12, 100
"""Most rows and places that are drawn; the number of others is given."""

_WRONG, _RIGHT = "#d1495b", "#4c8bb0"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], wrong: Sequence[bool] = ()) -> str:
    """Renders a table of texts; wrong rows are colored."""
    head = "".join(f"<th>{escape(x)}</th>" for x in heads)
    body = ""
    for number, row in enumerate(rows):
        style = f' style="color:{_WRONG}"' if number < len(wrong) and wrong[number] else ""
        body += f"<tr{style}>{''.join(f'<td>{escape(x)}</td>' for x in row)}</tr>"
    return f"<table><tr>{head}</tr>{body}</table>"


def letter_rows(rows: Sequence[Sequence[int]], num_letters: int, total: int) -> str:
    """Renders strings by the numbers of their letters, colored, one string a line.

    Args:
        total: number of strings, with those that are not given.
    """
    lines = []
    for row in rows:
        cells = "".join(
            f'<span style="background:hsl({360 * x // max(num_letters, 1)},60%,82%);'
            f'color:#222;padding:0 3px">{x}</span>'
            for x in row[:MOST_PLACES]
        )
        left = len(row) - MOST_PLACES
        lines.append(f"<div>{cells or '(empty)'}{f' and {left:,} more' if left > 0 else ''}</div>")
    more = f"<div>and {total - len(rows):,} more strings</div>" if total > len(rows) else ""
    return f'<div style="font-family:monospace">{"".join(lines)}{more}</div>'


def bars(shares: Sequence[tuple[int, float]], trained: int | None) -> str:
    """Renders accuracy by length as bars.

    Args:
        shares: lengths, and the share of their strings that is right.
        trained: the longest trained length, beyond which bars have another color; None if unknown.
    """
    if not shares:
        return ""
    longest = max(length for length, _ in shares)
    # All bars together are at most 600 pixels wide, while each has one at least.
    width, height = max(600 // (longest + 1), 1), 60
    drawn = "".join(
        f'<rect x="{length * width}" y="{height * (1 - share):.1f}" width="{width}" '
        f'height="{height * share:.1f}" fill="{color}"><title>length {length}: {share:.1%}</title>'
        "</rect>"
        for length, share in shares
        for color in [_RIGHT if trained is None or length <= trained else "#9cc3d8"]
    )
    where = "" if trained is None else f", trained up to {trained}"
    return (
        f"<div>Accuracy by length, up to {longest}{where}</div>"
        f'<svg width="{(longest + 1) * width}" height="{height}" '
        f'style="border-bottom:1px solid #888;border-left:1px solid #888">{drawn}</svg>'
    )
