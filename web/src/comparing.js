// What differs between two texts. Lines that are equal but for their names correspond; then what they define and
// use has to correspond too, each name of one text to one name of the other. So a pass that removes the first of a
// thousand values changes one line, though the compiler numbers all that follow anew.

import { align } from "./alignment.js";

/**
 * @returns {[number, number, number, number][]} from and to in the first, from and to in the second
 */
export function differences(first, second) {
  const hunks = align(first.keys, second.keys);
  return first.read && second.read ? withNames(first, second, hunks) : hunks;
}

export function counts(hunks) {
  let [removed, added] = [0, 0];
  for (const [fromA, toA, fromB, toB] of hunks) {
    removed += toA - fromA;
    added += toB - fromB;
  }
  return { removed, added };
}

function withNames(first, second, hunks) {
  const names = new Names();
  names.takeAttributes(first.read, second.read);
  const found = [];
  let [one, other] = [0, 0];
  for (const hunk of [...hunks, [first.keys.length, 0, 0, 0]]) {
    for (; one < hunk[0]; one++, other++) {
      if (!names.correspond(first.read[one], second.read[other]))
        push(found, [one, one + 1, other, other + 1]);
    }
    if (hunk[1]) push(found, hunk);
    [, one, , other] = hunk;
  }
  return found;
}

function push(found, [fromA, toA, fromB, toB]) {
  const last = found.at(-1);
  if (last && last[1] === fromA && last[3] === fromB) [last[1], last[3]] = [toA, toB];
  else found.push([fromA, toA, fromB, toB]);
}

class Names {
  #there = new Map();
  #back = new Map();
  #global = [new Map(), new Map()];

  /** Layouts and attributes that say the same are the same, whatever their number. */
  takeAttributes(first, second) {
    const meanings = [first, second].map(definitions);
    for (const [name, meaning] of meanings[0].byName) {
      const other = meanings[1].byMeaning.get(meaning);
      if (other !== undefined && meanings[0].byMeaning.get(meaning) === name)
        this.#pair(name, other, this.#global);
    }
  }

  correspond(line, other) {
    if (line.begins) [this.#there, this.#back] = [new Map(), new Map()];
    let same = true;
    for (let i = 0; i < line.names.length; i++) {
      const [name, its] = [line.names[i], other.names[i]];
      const scope = name[0] === "#" || name[0] === "!" ? this.#global : [this.#there, this.#back];
      if (name[0] !== its[0]) same = false;
      else if (line.defined[i] && scope !== this.#global) this.#define(name, its);
      else if (scope[0].has(name) || scope[1].has(its)) same &&= scope[0].get(name) === its;
      else this.#pair(name, its, scope);
    }
    return same;
  }

  #define(name, its) {
    this.#back.delete(this.#there.get(name));
    this.#there.delete(this.#back.get(its));
    this.#pair(name, its, [this.#there, this.#back]);
  }

  #pair(name, its, [there, back]) {
    there.set(name, its);
    back.set(its, name);
  }
}

/** Attributes that have names, with the names in what they mean resolved. */
function definitions(lines) {
  const bodies = new Map();
  for (const line of lines) {
    if (line.shown[0] === "#" && line.defined[0])
      bodies.set(line.names[0], line.shown.slice(line.names[0].length));
  }
  const byName = new Map();
  const byMeaning = new Map();
  for (const [name, body] of bodies) {
    const meaning = body.replace(/#\w+/g, (used) => bodies.get(used) ?? used);
    byName.set(name, meaning);
    if (!byMeaning.has(meaning)) byMeaning.set(meaning, name);
  }
  return { byName, byMeaning };
}
