// The keyboard, and the page that explains it.

import { h } from "./dom.js";

/**
 * @param {Record<string, [string, () => void]>} actions key to what it does, in words and in code
 * @param {(event: KeyboardEvent) => boolean} taken the key belongs to somebody else
 */
export function listen(actions, taken) {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || taken(event)) return;
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    action[1]();
  });
}

export function help(actions) {
  const names = new Map(); // what it does, to its keys
  for (const [key, [words]] of Object.entries(actions)) names.set(words, [...(names.get(words) ?? []), key]);
  const rows = [...names].map(([words, keys]) =>
    h("tr", {}, h("td", {}, ...keys.map((key) => h("kbd", {}, SPELLED[key] ?? key))), h("td", {}, words)),
  );
  const licenses = h(
    "details",
    {},
    h("summary", {}, "Libraries in this page"),
    h("pre", {}, text("licenses")),
  );
  const dialog = h(
    "dialog.help",
    {},
    h("h2", { tabindex: -1, autofocus: true }, "Keys"),
    h("table", {}, ...rows),
    licenses,
  );
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  document.body.append(dialog);
  return dialog;
}

function text(id) {
  return document.getElementById(id).textContent;
}

const SPELLED = { ArrowDown: "\u2193", ArrowUp: "\u2191", Escape: "Esc" };
