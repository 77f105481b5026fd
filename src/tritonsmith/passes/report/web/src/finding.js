// How often a text occurs in each text of a dump. Equal lines are looked at once.

import { pause } from "./dom.js";

const SLICE = 16; // milliseconds

export class Finder {
  constructor(bodies) {
    this.bodies = bodies;
  }

  /**
   * @param {string} term
   * @param {Iterable<number>} texts numbers of them
   * @param {() => boolean} given up
   * @returns {Promise<Map<number, number> | null>} text to how often; null if given up
   */
  async count(term, texts, stopped) {
    const perLine = new Map();
    const found = new Map();
    let since = performance.now();
    for (const text of texts) {
      if (found.has(text)) continue;
      let sum = 0;
      for (const line of await this.bodies.load(text)) {
        let count = perLine.get(line);
        if (count === undefined) perLine.set(line, (count = occurrences(this.bodies.lines[line], term)));
        sum += count;
      }
      found.set(text, sum);
      if (performance.now() - since > SLICE) {
        await pause();
        since = performance.now();
      }
      if (stopped()) return null;
    }
    return found;
  }
}

function occurrences(line, term) {
  let count = 0;
  for (let at = line.indexOf(term); at >= 0; at = line.indexOf(term, at + term.length)) count++;
  return count;
}
