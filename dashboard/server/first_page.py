"""The first page that a browser gets: Streamlit's own, with room for what is to come.

By itself it is narrow and has no sidebar until the server has answered; then everything would jump
while the user watches.
"""

from pathlib import Path

import streamlit
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Route

from dashboard.layout import STYLE
from dashboard.server.browser import SCRIPT

STATIC = Path(streamlit.__file__).with_name("static")
FONTS = ("SourceCodeVF-Upright*.woff2", "SourceSansVF-Italic*.woff2")
"""Of strings and of emphasis: lines move where these are loaded late."""


def first_page(_request: Request) -> HTMLResponse:
    """The same for every path."""
    fonts = "".join(
        f'<link rel="preload" href="./{found.relative_to(STATIC).as_posix()}" as="font" '
        'type="font/woff2" crossorigin>'
        for name in FONTS
        for found in STATIC.glob(f"static/media/{name}")
    )
    html = (STATIC / "index.html").read_text(encoding="utf-8")
    html = html.replace("</head>", f"{SCRIPT}{fonts}{STYLE}</head>", 1)
    return HTMLResponse(html, headers={"Cache-Control": "no-cache"})


ROUTES = [
    Route(f"/{path}", first_page)
    for path in ("", "compare_two", "map", "failing", "sweeps", "model", "guide", "launch")
]
"""Of the pages that the navigation names."""
