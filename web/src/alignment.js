// Which items of two lists correspond. Patience diff: items that are unique in both lists are anchors, the longest
// rising chain of them holds, and what lies between two anchors is taken the same way. Where nothing is unique, the diff
// of @codemirror/merge decides, with each item as one character.

import { diff } from "@codemirror/merge";

const FIRST_CHARACTER = 0x100;
const CHARACTERS = 0xd700; // below the surrogates
const SCAN = 500; // of @codemirror/merge: how far it looks before it takes a shorter way

/**
 * @param {Int32Array} a
 * @param {Int32Array} b
 * @returns {[number, number, number, number][]} what differs: from and to in `a`, from and to in `b`
 */
export function align(a, b) {
  const matched = new Int32Array(a.length).fill(-1);
  const work = [[0, a.length, 0, b.length]];
  while (work.length) {
    let [low, high, below, above] = work.pop();
    while (low < high && below < above && a[low] === b[below]) matched[low++] = below++;
    while (low < high && below < above && a[high - 1] === b[above - 1]) matched[--high] = --above;
    if (low === high || below === above) continue;
    const anchors = chain(unique(a, b, low, high, below, above));
    if (!anchors.length) {
      for (const [one, other] of rest(a.subarray(low, high), b.subarray(below, above))) {
        matched[low + one] = below + other;
      }
      continue;
    }
    for (const [one, other] of anchors) {
      work.push([low, one, below, other]);
      matched[one] = other;
      [low, below] = [one + 1, other + 1];
    }
    work.push([low, high, below, above]);
  }
  return gaps(matched, b.length);
}

function gaps(matched, length) {
  const found = [];
  let [one, other] = [0, 0];
  for (let i = 0; i <= matched.length; i++) {
    const to = i < matched.length ? matched[i] : length;
    if (to < 0) continue;
    if (i > one || to > other) found.push([one, i, other, to]);
    [one, other] = [i + 1, to + 1];
  }
  return found;
}

/** Items that come once in each, as pairs, in the order of the first list. */
function unique(a, b, low, high, below, above) {
  const MANY = -2;
  const there = new Map();
  for (let i = below; i < above; i++) there.set(b[i], there.has(b[i]) ? MANY : i);
  const here = new Map();
  for (let i = low; i < high; i++) here.set(a[i], here.has(a[i]) ? MANY : i);
  const found = [];
  for (const [item, place] of here) {
    const other = there.get(item);
    if (place !== MANY && other !== undefined && other !== MANY) found.push([place, other]);
  }
  return found;
}

/** The longest chain of pairs whose second parts rise. */
function chain(pairs) {
  const ends = []; // ends[n]: the pair with the least second part that ends a chain of n + 1
  const before = new Array(pairs.length);
  for (let i = 0; i < pairs.length; i++) {
    let [low, high] = [0, ends.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (pairs[ends[middle]][1] < pairs[i][1]) low = middle + 1;
      else high = middle;
    }
    before[i] = low ? ends[low - 1] : -1;
    ends[low] = i;
  }
  const found = [];
  for (let i = ends.at(-1) ?? -1; i >= 0; i = before[i]) found.push(pairs[i]);
  return found.reverse();
}

function rest(a, b) {
  const characters = new Map();
  const spelled = (items) => {
    const made = [];
    for (const item of items) {
      if (!characters.has(item)) characters.set(item, String.fromCharCode(FIRST_CHARACTER + characters.size));
      made.push(characters.get(item));
    }
    return made.join("");
  };
  const [one, other] = [spelled(a), spelled(b)];
  if (characters.size > CHARACTERS) return [];
  const found = [];
  let [place, there] = [0, 0];
  const ending = { fromA: a.length, toA: a.length, fromB: b.length, toB: b.length };
  for (const change of [...diff(one, other, { scanLimit: SCAN }), ending]) {
    while (place < change.fromA && there < change.fromB) found.push([place++, there++]);
    [place, there] = [change.toA, change.toB];
  }
  return found;
}
