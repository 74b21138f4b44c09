"use strict";
// Draws the page's charts where pictures stand until then, and pages through its strings.
{
  const PAGE = 50;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const kept = (name) => JSON.parse(document.getElementById(name).textContent);
  const element = (name, text = "") => {
    const made = document.createElement(name);
    made.textContent = text;
    return made;
  };

  // A model that was clicked on is looked at, here or on the page of its sweep.
  const open = (run) => {
    const place = document.getElementById(`run-${run}`);
    const pages = document.getElementById("pages");
    if (place) {
      place.open = true;
      location.hash = place.id;
    } else if (pages && JSON.parse(pages.textContent)[run]) {
      location.href = `${JSON.parse(pages.textContent)[run]}#run-${run}`;
    }
  };

  const draw = async (figure) => {
    const chart = kept(figure.dataset.chart);
    const spec = { ...chart[dark.matches ? "dark" : "light"], datasets: chart.datasets };
    const many = Object.values(chart.datasets).some((rows) => rows.length > 900);
    const place = element("div");
    figure.replaceChildren(place);
    figure.classList.add("live");
    // Expressions are interpreted: the page allows no program that is made of text.
    const { view } = await vegaEmbed(place, { ...spec, width: "container" }, {
      ast: true, actions: false, defaultStyle: false, renderer: many ? "canvas" : "svg",
      tooltip: { disableDefaultStyle: true },
    });
    view.addEventListener("click", (_, mark) => open(mark?.datum?.run_id));
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

  const figures = [...document.querySelectorAll("figure[data-chart]")];
  const drawn = () => Promise.all(figures.map(draw));
  dark.addEventListener("change", drawn);
  for (const details of document.querySelectorAll("details")) {
    details.addEventListener("toggle", () => unfold(details));
    unfold(details);
  }
  const named = () => {
    if (/^#run-\d+$/.test(location.hash)) open(location.hash.slice(5));
  };
  addEventListener("hashchange", named);
  drawn().then(() => {
    document.body.dataset.drawn = "true";
    named();
  });
}
