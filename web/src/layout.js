// Two texts and their differences as rows of the screen.

import { align } from "./alignment.js";

// Of `%x = arith.addi ...`, `#a = #ttg.blocked<...>`, `scf.for ...`, `@%p1 bra ...`: what it is, not what it is called.
const OPERATION = /^\s*(?:[%#!][^=]* = |@!?%\w+\s+)?["#!]?([A-Za-z_][\w.]*)/;

/**
 * @typedef {object} Row
 * @property {number} a line of the first text; -1 for none
 * @property {number} b line of the second text; -1 for none
 * @property {"same" | "changed" | "removed" | "added"} kind `changed`: both sides are there, and alike
 */

/** Side by side: one row has a line of each text, or of one. */
export function sideBySide(first, second, hunks) {
  const rows = [];
  let [a, b] = [0, 0];
  for (const [fromA, toA, fromB, toB] of [...hunks, ending(first, second)]) {
    for (; a < fromA; a++, b++) rows.push({ a, b, kind: "same" });
    for (const row of paired(first, second, fromA, toA, fromB, toB)) rows.push(row);
    [a, b] = [toA, toB];
  }
  return rows;
}

/** One below the other: what went, then what came. A row that has a partner names it. */
export function unified(first, second, hunks) {
  const rows = [];
  let [a, b] = [0, 0];
  for (const [fromA, toA, fromB, toB] of [...hunks, ending(first, second)]) {
    for (; a < fromA; a++, b++) rows.push({ a, b, kind: "same" });
    const pairs = paired(first, second, fromA, toA, fromB, toB);
    for (const { a: one, b: other } of pairs) {
      if (one >= 0) rows.push({ a: one, b: -1, kind: "removed", partner: other });
    }
    for (const { a: one, b: other } of pairs) {
      if (other >= 0) rows.push({ a: -1, b: other, kind: "added", partner: one });
    }
    [a, b] = [toA, toB];
  }
  return rows;
}

/** Ranges of rows that are far from any change. */
export function foldable(rows, context) {
  const found = [];
  let from = 0;
  for (let place = 0; place <= rows.length; place++) {
    if (place < rows.length && rows[place].kind === "same") continue;
    const low = from === 0 ? 0 : from + context;
    const high = place === rows.length ? place : place - context;
    if (high - low > context) found.push([low, high]);
    from = place + 1;
  }
  return found;
}

function ending(first, second) {
  return [first.keys.length, first.keys.length, second.keys.length, second.keys.length];
}

/** Lines of one operation stand opposite each other; the others have nothing opposite. */
function paired(first, second, fromA, toA, fromB, toB) {
  const known = new Map();
  const heads = (form, from, to) =>
    Int32Array.from({ length: to - from }, (_, place) => {
      const head = form.shown(from + place).match(OPERATION)?.[1] ?? "";
      if (!known.has(head)) known.set(head, known.size);
      return known.get(head);
    });
  const rows = [];
  let [a, b] = [fromA, fromB];
  for (const [lowA, highA, lowB, highB] of [
    ...align(heads(first, fromA, toA), heads(second, fromB, toB)),
    [toA - fromA, toA - fromA, toB - fromB, toB - fromB],
  ]) {
    for (; a < fromA + lowA; a++, b++) rows.push({ a, b, kind: "changed" });
    for (; a < fromA + highA; a++) rows.push({ a, b: -1, kind: "removed" });
    for (; b < fromB + highB; b++) rows.push({ a: -1, b, kind: "added" });
  }
  return rows;
}
