"use strict";
// Unfolds the model that a link names, and pages through its strings.
{
  const PAGE = 50;
  const kept = (name) => JSON.parse(document.getElementById(name).textContent);
  const element = (name, text = "") => {
    const made = document.createElement(name);
    made.textContent = text;
    return made;
  };

  // A model that was clicked on unfolds.
  const open = (id) => {
    const place = document.getElementById(id);
    if (place && place.tagName === "DETAILS") place.open = true;
  };

  // The tokens of a string with its repetitions written out, each at most so often; null of what is
  // none. Texts of fewer tokens are found in it just where they are in all of it.
  const written = (text, named, most) => {
    const token = named ? /(?:[^<>{}\s]|\{[<>{}]\})+/uy : /[^<>{}]|\{[<>{}]\}/suy;
    const count = /\{(\d+)\}/y;
    const groups = [[]];
    for (let at = 0; at < text.length;) {
      token.lastIndex = at;
      const found = token.exec(text);
      let what = found && [found[0]];
      at = found ? token.lastIndex : at + 1;
      if (!found) {
        const sign = text[at - 1];
        if (named && /\s/.test(sign)) continue;
        if (sign === "<") groups.push([]);
        if (sign === "<") continue;
        if (sign !== ">" || groups.length === 1) return null;
        what = groups.pop();
      }
      count.lastIndex = at;
      const times = count.exec(text);
      if (times) at = count.lastIndex;
      for (let n = Math.min(times ? Number(times[1]) : 1, most); n > 0; n--) {
        for (const one of what) groups.at(-1).push(one);
      }
    }
    return groups.length === 1 ? groups[0] : null;
  };
  const MOST = 10000;
  const finder = (given, named) => {
    const text = given.normalize("NFC").trim();
    const tokens = written(text, named, MOST);
    const inOne = (some) => `\n${some.join("\n")}\n`;
    return (string) => {
      if (string.includes(text)) return true;
      if (!tokens || tokens.length >= MOST || !string.includes("{")) return false;
      return inOne(written(string, named, tokens.length + 1) ?? []).includes(inOne(tokens));
    };
  };

  const page = (place, { columns, rows, left, named }) => {
    let first = 0;
    const find = element("input");
    find.type = "search";
    find.placeholder = "Find strings that contain";
    find.setAttribute("aria-label", find.placeholder);
    const [back, on, said] = [element("button", "Back"), element("button", "Next"), element("span")];
    const bar = element("div");
    bar.className = "pages";
    bar.append(find, back, on, said);
    const wide = element("div");
    wide.className = "wide strings";
    const show = () => {
      const contains = finder(find.value, named);
      const found = rows.filter((row) => contains(row[0]));
      const some = found.slice(first, first + PAGE);
      const table = element("table");
      const lines = [[columns, "th"], ...some.map((row) => [row, "td"])].map(([cells, name]) => {
        const line = element("tr");
        line.append(...cells.map((cell, at) =>
          element(name, cell === "" && at === 0 ? "the empty string" : String(cell ?? ""))));
        return line;
      });
      table.append(...lines);
      wide.replaceChildren(table);
      said.textContent = found.length
        ? `${first + 1} to ${first + some.length} of ${found.length.toLocaleString("en")}`
          + (left ? `; ${left.toLocaleString("en")} longer ones are not on this page` : "")
        : "None contains this.";
      back.disabled = first === 0;
      on.disabled = first + PAGE >= found.length;
    };
    const turn = (pages) => () => { first += pages * PAGE; show(); };
    back.addEventListener("click", turn(-1));
    on.addEventListener("click", turn(1));
    find.addEventListener("input", () => { first = 0; show(); });
    place.replaceChildren(bar, wide);
    show();
  };

  const unfold = (details) => {
    const place = details.querySelector("[data-strings]");
    if (place && details.open && !place.firstElementChild) page(place, kept(place.dataset.strings));
  };

  for (const details of document.querySelectorAll("details")) {
    details.addEventListener("toggle", () => unfold(details));
    unfold(details);
  }
  const named = () => open(location.hash.slice(1));
  addEventListener("hashchange", named);
  named();
  document.body.dataset.ready = "true";
}
