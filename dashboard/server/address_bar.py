"""What the browser's Back leads to: the page before as it was, in one press."""

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
})();
</script>
"""
"""Runs before Streamlit, which makes an entry of the history for each parameter that is set."""
