"""What the browser does by itself: Back leads to the page before, a phone's sidebar closes."""

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
    push(state, title, url);
  };
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
"""
"""Runs before Streamlit, which makes an entry of the history for each parameter that is set."""
