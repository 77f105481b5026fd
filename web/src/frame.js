// The parts of the page, and what its buttons do.

import { h } from "./dom.js";

/**
 * @param {{name: string, target: string}[]} kernels
 * @param {boolean} second whether there is another dump to compare with
 * @param {Record<string, Function>} act what to do
 */
export function build(kernels, second, act) {
  const button = (name, words, shows, click) =>
    h("button", { type: "button", title: words, "data-shows": shows, click }, name);
  const choice = h(
    "select.kernel",
    { "aria-label": "kernel", change: () => act.kernel(choice.value) },
    ...kernels.map(({ name, target }) =>
      h("option", { value: name }, target ? `${name} \u00b7 ${target}` : name),
    ),
  );
  const input = h("input.search", {
    type: "search",
    placeholder: "Search the IR of all passes",
    "aria-label": "search",
    spellcheck: "false",
    input: () => act.type(input.value),
    keydown: (event) => {
      if (event.key === "Enter") act.enter(event.shiftKey ? -1 : 1);
      else if (event.key === "Escape") act.escape();
    },
  });
  const matches = h(
    "div.matches",
    { hidden: true },
    h("button", { type: "button", title: "previous match (N, Shift-Enter)", click: () => act.enter(-1) }, "\u2039"),
    h("button", { type: "button", title: "next match (n, Enter)", click: () => act.enter(1) }, "\u203a"),
    h("span"),
  );
  const tools = h(
    "div.tools",
    {},
    h(
      "span.group",
      {},
      button("Split", "side by side (s); press again to follow the width", "split", () => act.choose("split", true)),
      button("Unified", "one below the other (u); press again to follow the width", "unified", () =>
        act.choose("split", false),
      ),
    ),
    button("Wrap", "long lines go on below (w); not side by side", "wrap", () => act.wrap()),
    button("Fold", "show only what is near a change (f)", "fold", () => act.toggle("fold")),
    button("As printed", "with locations and debug information (r)", "printed", () => act.toggle("printed")),
    button("Source", "the Python that the IR comes from (p)", "source", () => act.toggle("source")),
    second ? button("Compare", "with the other dump (c)", "against", act.compare) : null,
    button("Theme", "light or dark (t)", null, act.theme),
    button("?", "keys (?)", null, act.help),
  );
  const filter = h("input", { type: "checkbox", change: () => act.toggle("hide") });
  const facts = h("span.facts");
  const summary = h("span.summary");
  const takes = h("div.takes");
  const found = h("div.found", { hidden: true });
  const head = h("div.head");
  const left = h("nav", {}, h("div.head", {}, summary, h("label", {}, filter, "changed only")), takes, found);
  const plot = h("div.timeline");
  const middle = h("div.texts");
  const dock = h("section.source");
  document
    .getElementById("app")
    .append(
      h("header", {}, choice, facts, input, matches, tools),
      plot,
      left,
      h("section.diff", {}, head, middle),
      dock,
    );
  return { choice, input, matches, tools, filter, facts, summary, takes, found, head, left, plot, middle, dock };
}

/** Which buttons are pressed. */
export function reflect(tools, settings) {
  for (const element of tools.querySelectorAll("[data-shows]")) {
    element.setAttribute("aria-pressed", String(settings[element.dataset.shows]));
  }
}
