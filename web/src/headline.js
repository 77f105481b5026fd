// What stands above the texts: the pass, its options, and what else has to be said of it.

import { duration, h } from "./dom.js";
import { mixed, title } from "./model.js";

/**
 * @param {HTMLElement} head is filled anew
 * @param {import("./model.js").Entry} one
 * @param {{removed: number, added: number}} marked lines that are marked below
 * @param {object} kernel of the first side
 * @param {[string, string] | null} sides what each side is called, where two dumps are compared
 */
export function headline(head, one, marked, kernel, sides) {
  const row = one.row ?? one.other;
  const { removed, added } = one.compared ? marked : (one.counts ?? { removed: 0, added: 0 });
  if (one.machine) return machine(head, one, kernel, sides);
  head.replaceChildren(
    h(
      "div.title",
      {},
      h("b", {}, row ? title(row) : "input of the first pass"),
      row?.symbol ? h("span.symbol", {}, `@${row.symbol}`) : null,
      added ? h("b.added", {}, `+${added}`) : null,
      removed ? h("b.removed", {}, `\u2212${removed}`) : null,
      none(one) ? h("b.none", { title: NOTHING }, "\u00b10") : null,
      h("span.says", {}, remarks(one, row, marked, kernel, Boolean(sides)).join(" \u00b7 ")),
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

/** What the compile ended in: with all numbers of its resources. */
function machine(head, one, { name, binary }, sides) {
  const cell = ([what, count, unit]) =>
    h("span", {}, `${what} `, h("b", {}, String(count)), unit ? ` ${unit}` : "");
  const counted = binary.instructions ?? [];
  head.replaceChildren(
    h("div.title", {}, h("b", {}, title(one.row)), h("span.says", {}, `of ${name}`)),
    ...(sides
      ? [h("div.sides", {}, ...sides.map((side) => h("span", {}, side)))]
      : [
          h("div.takes", {}, ...(binary.table ?? []).map(cell)),
          counted.length ? h("div.takes.instructions", {}, "instructions: ", ...counted.map(cell)) : null,
          ...binary.notes.map((note) => h("div.says", {}, note)),
        ].filter(Boolean)),
  );
  head.title = "";
}

export const NOTHING = "no line came or went: lines moved, or have other operands";

/** A pass that changed its IR, though no line came or went. */
export function none(one) {
  return !one.compared && one.row.changed && one.counts && !one.counts.added && !one.counts.removed;
}

function remarks(one, row, marked, kernel, comparing) {
  const found = [];
  const changes = marked.added + marked.removed;
  if (one.row?.seconds) found.push(duration(one.row.seconds));
  const { added, removed } = one.counts ?? marked;
  if (!comparing && changes && (added !== marked.added || removed !== marked.removed))
    found.push(`highlighted: +${marked.added} \u2212${marked.removed}, including moved lines and changed operands`);
  if (one.first && one.second && !changes)
    found.push(comparing ? "the same on both sides" : "changed nothing");
  if (!one.second) found.push(comparing ? "only in the first dump" : "nothing was printed after it");
  if (!one.first) found.push(comparing ? "only in the second dump" : "nothing was printed before it");
  if (!comparing && row?.inside) found.push("printed by the pass before, while it ran");
  if (mixed(one)) found.push("other passes ran in between");
  if (row && !row.whole) found.push("the dump ends inside this text");
  if (kernel.failed && row?.name === kernel.failed) found.push(kernel.error || "failed");
  return found;
}
