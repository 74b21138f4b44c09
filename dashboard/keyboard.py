"""Keys of every page: `/` finds a model, `?` lists the keys. Nothing happens while one types."""

import streamlit as st

KEYS_HTML = """
<p hidden>Keys: <kbd>/</kbd> finds a model, <kbd>?</kbd> lists all keys.</p>
<div id="keys" popover role="dialog" aria-label="Keys">
<h2>Keys</h2>
<dl>
<dt><kbd>/</kbd></dt><dd>Find a model</dd>
<dt><kbd>?</kbd></dt><dd>Show or hide this list</dd>
<dt><kbd>Esc</kbd></dt><dd>Close it</dd>
<dt><kbd>Tab</kbd></dt><dd>Go to the next control</dd>
</dl>
</div>
"""

KEYS_CSS = """
p { margin: 0; font-size: 0.75rem; opacity: 0.7; }
kbd { font-family: var(--st-code-font); padding: 0 0.3rem; border-radius: 0.2rem;
  border: 1px solid var(--st-border-color); }
#keys { border: 1px solid var(--st-border-color); border-radius: 0.5rem; padding: 1rem 1.5rem;
  background: var(--st-background-color); color: var(--st-text-color); margin: auto; }
h2 { font-size: 1rem; margin: 0 0 0.5rem; }
dl { display: grid; grid-template-columns: auto 1fr; gap: 0.4rem 1rem; margin: 0; }
dd { margin: 0; }
@media (hover: none) { p { display: none; } }
@media print { p { display: none; } }
"""

KEYS_JS = """
const FIND = "seqcls find";
const typing = (event) => event.composedPath().some(
  (x) => x.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(x.tagName));
const focus = (tries) => {
  const box = document.querySelector(".st-key-model_run input");
  if (box) { sessionStorage.removeItem(FIND); box.focus(); box.select(); }
  else if (tries > 0) setTimeout(() => focus(tries - 1), 200);
};
const find = () => {
  if (document.querySelector(".st-key-model_run input")) { focus(0); return; }
  const link = [...document.querySelectorAll('a[href]')].find(
    (x) => new URL(x.href).pathname.endsWith("/model"));
  if (link) { sessionStorage.setItem(FIND, "1"); link.click(); focus(50); }
};
export default function ({ parentElement }) {
  const list = parentElement.querySelector("#keys");
  const pressed = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || typing(event)) return;
    if (event.key === "/") { event.preventDefault(); find(); }
    if (event.key === "?") { event.preventDefault(); list.togglePopover(); }
  };
  document.addEventListener("keydown", pressed);
  // What stands on the page before this runs would promise keys that do nothing yet.
  parentElement.querySelector("p").hidden = false;
  if (sessionStorage.getItem(FIND)) focus(50);
  return () => document.removeEventListener("keydown", pressed);
}
"""

_keys = st.components.v2.component("seqcls_keys", html=KEYS_HTML, css=KEYS_CSS, js=KEYS_JS)


def add_keyboard() -> None:
    """Has the page listen, and says at its end that it does."""
    _keys(key="keys")
