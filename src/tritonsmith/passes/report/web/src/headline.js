// What stands above the texts: the pass, its options, and what else has to be said of it.

import { h } from "./dom.js";
import { mixed, title } from "./model.js";

/**
 * @param {HTMLElement} head is filled anew
 * @param {import("./model.js").Entry} one
 * @param {{removed: number, added: number}} counts
 * @param {{failed: string, error: string}} kernel
 * @param {[string, string] | null} sides what each side is called, where two dumps are compared
 */
export function headline(head, one, { removed, added }, kernel, sides) {
  const row = one.row ?? one.other;
  head.replaceChildren(
    h(
      "div.title",
      {},
      h("b", {}, row ? title(row) : "input of the first pass"),
      row?.symbol ? h("span.symbol", {}, `@${row.symbol}`) : null,
      added ? h("b.added", {}, `+${added}`) : null,
      removed ? h("b.removed", {}, `\u2212${removed}`) : null,
      h("span.says", {}, remarks(one, row, added + removed, kernel, Boolean(sides)).join(" \u00b7 ")),
    ),
    h("div.options", {}, row ? `${row.name}  ${row.pipeline}` : ""),
    ...(sides ? [h("div.sides", {}, ...sides.map((side) => h("span", {}, side)))] : []),
  );
  head.title = row ? `${row.name}\n${row.pipeline}\n${row.file}` : "";
}

/** A dump and a kernel of it, in a few words. */
export function label(side, kernel) {
  return [side.folder, side.triton && `Triton ${side.triton}`, kernel.target]
    .filter(Boolean)
    .join(" \u00b7 ");
}

function remarks(one, row, changes, kernel, comparing) {
  const found = [];
  if (one.first && one.second && !changes)
    found.push(comparing ? "the same on both sides" : "changed nothing");
  if (!one.second) found.push(comparing ? "only in the first dump" : "nothing was printed after it");
  if (!one.first) found.push(comparing ? "only in the second dump" : "nothing was printed before it");
  if (!comparing && row?.inside) found.push("printed by the pass before, while it ran");
  if (mixed(one)) found.push("what other passes did lies between");
  if (row && !row.whole) found.push("the dump ends inside this text");
  if (kernel.failed && row?.name === kernel.failed) found.push(kernel.error || "failed");
  return found;
}
