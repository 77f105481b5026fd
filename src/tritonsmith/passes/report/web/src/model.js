// What can be picked: passes of one dump, or pairs of passes of two.

import { align } from "./alignment.js";

/**
 * @typedef {object} Entry
 * @property {string} id unique in its list; part of the page's address
 * @property {object | null} row a pass of the first dump
 * @property {object | null} other a pass of the second dump, where two are compared
 * @property {[number, string, number, number] | null} first text, language, lines, bytes
 * @property {[number, string, number, number] | null} second
 * @property {{removed: number, added: number} | null} counts what differs; null until somebody looked
 */

/** @returns {Entry[]} what each pass of a kernel did */
export function passes(kernel) {
  return kernel.rows.map((row) => entry(String(row.number), row, null, row.before, row.after));
}

/** @returns {Entry[]} what each pass of one kernel made beside what the same pass of another one made */
export function pairs(kernel, other) {
  const names = new Map();
  const spelled = (rows) =>
    Int32Array.from(rows, (row) => {
      const name = `${row.argument || row.name} ${row.symbol}`;
      if (!names.has(name)) names.set(name, names.size);
      return names.get(name);
    });
  const found = [];
  const [first] = kernel.rows;
  const [its] = other.rows;
  if (first?.before && its?.before) found.push(entry("input", null, null, first.before, its.before));
  const both = (row, there) => found.push(entry(String(row.number), row, there, made(row), made(there)));
  const [rows, theirs] = [kernel.rows, other.rows];
  let [a, b] = [0, 0];
  for (const [fromA, toA, fromB, toB] of [
    ...align(spelled(rows), spelled(theirs)),
    [rows.length, rows.length, theirs.length, theirs.length],
  ]) {
    while (a < fromA) both(rows[a++], theirs[b++]);
    for (; a < toA; a++) found.push(entry(String(rows[a].number), rows[a], null, made(rows[a]), null));
    for (; b < toB; b++) found.push(entry(`b${theirs[b].number}`, null, theirs[b], null, made(theirs[b])));
  }
  return found;
}

/** The first entry whose sides differ; undefined until it is known. */
export function parting(entries) {
  for (const one of entries) {
    if (!one.first || !one.second) continue;
    if (!one.counts) return undefined;
    if (differs(one)) return one;
  }
  return null;
}

export function differs(one) {
  return Boolean(one.counts && one.counts.removed + one.counts.added);
}

/** Whether other passes lie between the two texts, so that nobody can tell what this one did. */
export function mixed(one) {
  return !one.other && one.row?.changed === null && Boolean(one.first && one.second);
}

/** Whether there is something to see: known, or said by the index as long as it is not. */
export function changed(one) {
  if (mixed(one)) return false;
  if (one.counts) return differs(one);
  if (!one.first || !one.second) return true;
  return one.first[0] !== one.second[0] && (one.other !== null || one.row?.changed !== false);
}

export function title(row) {
  return row.argument || row.name;
}

function made(row) {
  return row.after ?? row.before;
}

function entry(id, row, other, first, second) {
  const same = first && second && first[0] === second[0];
  return { id, row, other, first, second, counts: same ? { removed: 0, added: 0 } : null };
}
