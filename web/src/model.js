// What can be picked: passes of one dump, or pairs of passes of two.

import { align } from "./alignment.js";

/**
 * @typedef {object} Entry
 * @property {string} id unique in its list; part of the page's address
 * @property {boolean} compared it is of two dumps
 * @property {boolean} [machine] it is no pass, but what the compile ended in
 * @property {object | null} row a pass of the first dump
 * @property {object | null} other a pass of the second dump, where two are compared
 * @property {[number, string, number, number] | null} first text, language, lines, bytes
 * @property {[number, string, number, number] | null} second
 * @property {{removed: number, added: number} | null} counts lines that went and came: of a pass as `passes.list` has
 *     them; of two dumps what differs, null until somebody looked
 */

const LANGUAGE = { gcnasm: "gcn" }; // of a stage, where it is not its name
const SPELLED = { ptx: "PTX", amdgcn: "AMDGCN", sass: "SASS", gcnasm: "GCN" };
const SUBSTANTIAL = 0.1; // of the lines that a pass was given

/** @returns {Entry[]} what each pass of a kernel did, and what the compiler made in the end */
export function passes(kernel) {
  const found = kernel.rows.map((row) => ({
    ...entry(String(row.number), row, null, row.before, row.after),
    compared: false,
    counts: row.lines && { added: row.lines[0], removed: row.lines[1] },
  }));
  const texts = machine(kernel).map((text) => ({
    ...entry(text[0], ending(text), null, null, body(text)),
    compared: false,
    machine: true,
  }));
  return [...found, ...texts];
}

/** The first pass that changed much of the kernel itself: a page that opens at a trivial one says nothing. */
export function substantial(entries, kernel) {
  const much = ({ row, counts, first }) =>
    row.counts &&
    row.changed &&
    (!row.symbol || row.symbol === kernel.function) &&
    counts.added + counts.removed >= SUBSTANTIAL * first[2];
  return entries.find((one) => !one.machine && one.first && one.counts && much(one));
}

/** Texts of the compiled kernel: stage, number, lines, bytes. PTX that was dumped stands with the passes. */
function machine({ binary, rows }) {
  const dumped = new Set(rows.map((row) => row.name));
  return (binary.texts ?? []).filter(([stage]) => !dumped.has(stage));
}

function body([stage, text, lines, size]) {
  return [text, LANGUAGE[stage] ?? stage, lines, size];
}

/** What stands for a pass where there is none. */
function ending([stage]) {
  const absent = { argument: "", pipeline: "", symbol: "", changed: null, seconds: null, inside: false };
  return { ...absent, number: "", stage: "compiled", name: SPELLED[stage], when: "after", whole: true, counts: false, file: "" };
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
  const there = new Map(machine(other).map((text) => [text[0], text]));
  for (const text of machine(kernel).filter(([stage]) => there.has(stage))) {
    const its = there.get(text[0]);
    found.push({ ...entry(text[0], ending(text), ending(its), body(text), body(its)), machine: true });
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
  return !one.compared && one.row.changed === null && Boolean(one.first && one.second);
}

/** Whether it is known that nothing changed. */
export function unchanged(one) {
  if (!one.compared) return one.row.changed === false;
  if (one.counts) return !differs(one);
  return Boolean(one.first && one.second) && one.first[0] === one.second[0];
}

/** Whether there is something to see that this pass did, or that nobody can compare. */
export function changed(one) {
  return !mixed(one) && !unchanged(one);
}

export function title(row) {
  return row.argument || row.name;
}

function made(row) {
  return row.after ?? row.before;
}

function entry(id, row, other, first, second) {
  const same = first && second && first[0] === second[0];
  return { id, row, other, first, second, compared: true, counts: same ? { removed: 0, added: 0 } : null };
}
