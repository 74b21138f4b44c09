"""The first page that a browser gets: Streamlit's own, with room for what is to come.

By itself it is narrow and has no sidebar until the server has answered; then everything would jump
while the user watches.
"""

from pathlib import Path

import streamlit
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Match, Route
from starlette.types import Scope
from streamlit import get_option

from dashboard.layout import FOLDED, STYLE

STATIC = Path(streamlit.__file__).with_name("static")
FONTS = ("SourceCodeVF-Upright*.woff2", "SourceSansVF-Italic*.woff2")
"""Fonts of strings and of emphasis: lines move where these are loaded late."""


def first_page(_request: Request) -> HTMLResponse:
    """The same for every path."""
    fonts = "".join(
        f'<link rel="preload" href="./{file.relative_to(STATIC).as_posix()}" as="font" '
        'type="font/woff2" crossorigin>'
        for name in FONTS
        for file in STATIC.glob(f"static/media/{name}")
    )
    html = (STATIC / "index.html").read_text(encoding="utf-8")
    html = html.replace("</head>", f"{SCRIPT}{fonts}{STYLE}</head>", 1)
    return HTMLResponse(html, headers={"Cache-Control": "no-cache"})


PAGES = ("", "compare_two", "map", "failing", "sweeps", "model", "guide", "launch")
"""Those that the navigation names, by their paths."""


def base_path() -> str:
    """What every address of this server begins with: `/`, or `/models/` behind a reverse proxy."""
    base = (get_option("server.baseUrlPath") or "").strip("/")
    return f"/{base}/" if base else "/"


class BelowBase(Route):
    """An address below the path of a reverse proxy, which is known once the server runs."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        base, path = base_path(), scope["path"]
        if not path.startswith(base):
            return Match.NONE, {}
        return super().matches({**scope, "path": f"/{path.removeprefix(base)}"})


ROUTES = [BelowBase(f"/{path}", first_page) for path in PAGES]


# What the browser does by itself: Back leads to the page before, a phone's sidebar closes.

SCRIPT = """
<script>
(() => {
  const push = history.pushState.bind(history), replace = history.replaceState.bind(history);
  let before = null;
  for (const event of ["pointerdown", "keydown", "popstate"]) {
    addEventListener(event, () => { before = null; }, true);
  }
  history.pushState = (state, title, url) => {
    const here = location.href, to = new URL(url ?? here, here);
    if (to.pathname === location.pathname) {
      // The same page with other parameters: Back would lead to where they are set again.
      before ??= here;
      replace(state, title, url);
      return;
    }
    // A switch names the next page's parameters while the address is still this page's.
    if (before) replace(history.state, "", before);
    before = null;
    // Another page begins at its top, wherever the button was that led to it.
    document.querySelector('[data-testid="stMain"]')?.scrollTo(0, 0);
    push(state, title, url);
  };
  // Streamlit folds the sidebar on a phone alone.
  if (innerWidth > 768 && innerWidth <= FOLDED) {
    const watch = new MutationObserver(() => {
      const fold = document.querySelector('[data-testid="stSidebarCollapseButton"] button');
      if (fold) { watch.disconnect(); fold.click(); }
    });
    watch.observe(document, {childList: true, subtree: true});
  }
  // On a phone the sidebar lies over the page that a choice in it changes.
  addEventListener("click", ({target}) => {
    const close = () => document.querySelector('[data-testid="stSidebarCollapseButton"] button');
    const choice = target.closest?.('[role="option"], [data-testid="stSidebar"] a');
    if (innerWidth <= 768 && choice) {
      setTimeout(() => { document.activeElement?.blur(); close()?.click(); }, 150);
    }
  }, true);
})();
</script>
""".replace("FOLDED", str(FOLDED))
"""Runs before Streamlit, which makes an entry of the history for each parameter that is set."""
