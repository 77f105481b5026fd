// How often a text occurs in each text of a dump. Equal lines are looked at once. Locations are not searched, by the
// rules of tritonsmith/compiler/dump/strip_locations.py: so `passes.find` has the same numbers.

import { pause } from "./dom.js";
import { withoutLocations } from "./forms.js";

const SLICE = 16; // milliseconds
const LLVM_LINE = /^ *(?:#dbg_\w+\(|![\w.]+ = )/;
const LLVM = /,? !dbg !\d+|,? *debug-location [^\n,]*|; [\w./-]+:\d+:\d+/g;

const SEARCHED = {
  mlir: (line) => (line.startsWith("#loc") ? "" : withoutLocations(line)),
  llvm: (line) => (LLVM_LINE.test(line) ? "" : line.replace(LLVM, "")),
};
SEARCHED.mir = SEARCHED.llvm;

export class Finder {
  constructor(bodies) {
    this.bodies = bodies;
  }

  /**
   * @param {string} term
   * @param {Iterable<[number, string]>} texts numbers of them, and languages
   * @param {() => boolean} stopped given up
   * @returns {Promise<Map<number, number> | null>} text to how often; null if given up
   */
  async count(term, texts, stopped) {
    const known = new Map(); // by language
    const found = new Map();
    let since = performance.now();
    for (const [text, language] of texts) {
      if (found.has(text)) continue;
      if (!known.has(language)) known.set(language, new Map());
      const perLine = known.get(language);
      let sum = 0;
      for (const line of await this.bodies.load(text)) {
        let count = perLine.get(line);
        if (count === undefined)
          perLine.set(line, (count = occurrences(this.bodies.lines[line], term, SEARCHED[language])));
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

function occurrences(line, term, searched) {
  if (!line.includes(term)) return 0; // what is left out may join what stood around it; nobody looks for that
  return places(searched ? searched(line) : line, term).length;
}

/** Where a text stands in a line. */
export function places(line, term) {
  const found = [];
  for (let at = line.indexOf(term); at >= 0; at = line.indexOf(term, at + term.length)) found.push(at);
  return found;
}
