// What a line says without locations, and which names it mentions: per language. A line keeps its place: nothing is
// rewritten, so what is on the screen is what the compiler printed, less what says nothing.

const NAME = "\0"; // stands for a name in a key

const MLIR = {
  drop: /^#(?:loc\w*|di_\w+) = |^\s*\/\/|^\s*$/,
  shown: withoutLocations,
  names: /"(?:[^"\\]|\\.)*"|%[\w$.-]+|\^[\w$.-]+|#[A-Za-z_][\w$]*(?![.<\w])/g,
  begins: /^\s*"?(?:\w+\.)+func\b/,
};

const LLVM = {
  drop: /^!\d+ = (?:distinct )?!DI|^!llvm\.dbg|^\s*#dbg_|^\s*(?:tail )?call void @llvm\.dbg\.|^\s*;|^\s*$/,
  shown: (line) => line.replace(/(?:,| )? !dbg !\d+/g, "").replace(/\s+; preds = .*$/, ""),
  names: /"(?:[^"\\]|\\.)*"|%[\w$.-]+|^[\w$.-]+(?=:)|#\d+|!\d+/g,
  begins: /^define\b/,
};

const MIR = {
  drop: /^\s*;|^\s*$|^\s*DBG_/,
  shown: (line) =>
    line
      .replace(/,? debug-location !\w+|\s*;.*$/g, "")
      .replace(/^\s*(?:\d+B\s+)?(bb\.|#)?/, (_, head) => head ?? "  "), // 112B is a number of the line
  names: /"(?:[^"\\]|\\.)*"|%[\w$.-]+|bb\.\d+/g,
  begins: /^# Machine code for function/,
};

const PTX = {
  drop: /^\s*\.(?:loc|file)\b|^\s*\/\/|^\$L__tmp\d+:|^\s*$/,
  shown: (line) => line.replace(/\s*\/\/.*$/, ""),
  names: /"(?:[^"\\]|\\.)*"|%[a-z]+\d+|\$L\w+/g,
  begins: /\.(?:entry|func)\b/,
};

const AMDGCN = {
  drop: /^\s*\.(?:loc|file|cfi_\w+)\b|^\s*;|^\.Ltmp\d+:|^\s*$/,
  shown: (line) => line.replace(/\s*;.*$/, ""),
  names: /"(?:[^"\\]|\\.)*"|\.L\w+/g,
  begins: /^\s*\.type\s.*@function/,
};

const SASS = {
  drop: /^\s*\/\/|^\s*\.(?!L)|^\s*$/,
  shown: (line) => line.replace(/\/\*[\da-f]+\*\/ {10}/, ""), // the address
  names: /\.L_x?_?\d+/g,
  begins: /^\w+:$/,
};

const GCN = {
  drop: /^;|^\s*$|^Disassembly of|:\s+file format /,
  shown: (line) => line.replace(/\s*\/\/ [\dA-F]+:[\dA-F ]*/, "  ").trimEnd(), // the address and the code
  names: /<[^>]*>/g,
  begins: /^[\da-f]+ </,
};

const LANGUAGES = { mlir: MLIR, llvm: LLVM, mir: MIR, ptx: PTX, amdgcn: AMDGCN, sass: SASS, gcn: GCN };

/** A text as it is compared and shown: `places` are its lines' places in the file, `keys` say what is equal. */
export class Forms {
  constructor(bodies) {
    this.bodies = bodies;
    this.keys = new Map();
    this.read = Object.fromEntries(Object.keys(LANGUAGES).map((name) => [name, new Map()]));
  }

  /** @param {boolean} printed as the compiler printed it, locations and all */
  of(text, language, printed) {
    const lines = this.bodies.texts[text];
    if (printed) {
      return {
        lines,
        places: lines.map((_, place) => place),
        keys: lines,
        shown: (i) => this.bodies.lines[lines[i]],
      };
    }
    const kept = [];
    for (let place = 0; place < lines.length; place++)
      if (this.line(lines[place], language)) kept.push(place);
    const read = kept.map((place) => this.line(lines[place], language));
    return {
      lines,
      places: Int32Array.from(kept),
      keys: Int32Array.from(read, (line) => line.key),
      read,
      shown: (i) => read[i].shown,
    };
  }

  /** What a line says; null if nothing. */
  line(number, language) {
    const known = this.read[language];
    let line = known.get(number);
    if (line === undefined)
      known.set(number, (line = this.#line(this.bodies.lines[number], LANGUAGES[language])));
    return line;
  }

  #line(text, language) {
    if (language.drop.test(text)) return null;
    const shown = language.shown(text);
    const names = [];
    const defined = [];
    const results = /^\s*[%#!]/.test(shown) ? shown.indexOf(" = ") : -1;
    const key = shown.replace(language.names, (name, place) => {
      if (name[0] === '"') return name;
      const after = shown.slice(place + name.length, place + name.length + 3);
      names.push(name);
      defined.push(place < results || after.startsWith(": ") || after === " = ");
      return NAME;
    });
    return { shown, names, defined, key: this.#key(key), begins: language.begins.test(shown) };
  }

  #key(text) {
    let key = this.keys.get(text);
    if (key === undefined) this.keys.set(text, (key = this.keys.size));
    return key;
  }
}

export function withoutLocations(line) {
  let begin = line.indexOf(" loc(");
  while (begin >= 0) {
    let depth = 0;
    let quoted = false;
    let end = begin + 4;
    for (; end < line.length; end++) {
      const char = line[end];
      if (quoted) {
        if (char === "\\") end++;
        else if (char === '"') quoted = false;
      } else if (char === '"') quoted = true;
      else if (char === "(") depth++;
      else if (char === ")" && --depth === 0) break;
    }
    line = line.slice(0, begin) + line.slice(end + 1);
    begin = line.indexOf(" loc(", begin);
  }
  return line;
}
