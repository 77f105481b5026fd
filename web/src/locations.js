// Which line of Python a line of IR comes from. The same rules as in tritonsmith/inspect/show/source_lines.py.

const DEEPEST = 50; // aliases of aliases; a broken file may have a ring of them
const MLIR_ALIAS = /^(#loc\d*) = loc\((.*)\)\s*$/;
const MLIR_FILE = /"((?:[^"\\]|\\.)*)":(\d+):\d+/;
const MLIR_USE = /\bloc\((#loc\d*|".*":\d+:\d+)\)\s*\{?\s*$/;
const LLVM_NODE = /^(!\d+) = (?:distinct )?!DI(\w+)\((.*)\)\s*$/;

/**
 * @param {string[]} lines of one text
 * @param {string[]} files that are known: machine IR names them without their folder
 * @returns {(line: number) => {file: string, line: number} | null} lines of IR are counted from 0, of Python from 1
 */
export function locations(lines, language, files) {
  if (language === "mlir") return mlir(lines);
  if (language === "llvm") return llvm(lines);
  if (language === "mir") return machine(lines, files);
  if (language === "sass" || language === "gcn") return marked(lines);
  return assembly(lines);
}

function mlir(lines) {
  const aliases = new Map();
  for (const line of lines) {
    const found = line.startsWith("#loc") && line.match(MLIR_ALIAS);
    if (found) aliases.set(found[1], found[2]);
  }
  return (place) => {
    let text = lines[place].startsWith("#loc") ? "" : (lines[place].match(MLIR_USE)?.[1] ?? "");
    for (let depth = 0; depth < DEEPEST; depth++) {
      // Of `callsite(callee at caller)` the callee, which is named first.
      const alias = text.match(/#loc\d*/);
      const file = text.match(MLIR_FILE);
      if (file && (!alias || file.index < alias.index)) return { file: file[1], line: Number(file[2]) };
      if (!alias) return null;
      text = aliases.get(alias[0]) ?? "";
    }
    return null;
  };
}

function llvm(lines) {
  const nodes = new Map();
  for (const line of lines) {
    const found = line[0] === "!" && line.match(LLVM_NODE);
    if (found) nodes.set(found[1], { kind: found[2], fields: found[3] });
  }
  const fileOf = (fields) => {
    for (let depth = 0; depth < DEEPEST; depth++) {
      const next = fields.match(/\bfile: (!\d+)/) ?? fields.match(/\bscope: (!\d+)/);
      const node = next && nodes.get(next[1]);
      if (!node) return null;
      if (node.kind === "File") {
        const name = node.fields.match(/filename: "(.*?)"/)?.[1] ?? "";
        const folder = node.fields.match(/directory: "(.*?)"/)?.[1];
        return folder && name[0] !== "/" ? `${folder}/${name}` : name;
      }
      fields = node.fields;
    }
    return null;
  };
  return (place) => {
    const node = nodes.get(lines[place].match(/!dbg (!\d+)/)?.[1]);
    const line = Number(node?.fields.match(/\bline: (\d+)/)?.[1] ?? 0);
    const file = line && fileOf(node.fields);
    return file ? { file, line } : null;
  };
}

function machine(lines, files) {
  return (place) => {
    const found = lines[place].match(/; ([^\s;:]+):(\d+):\d+/);
    const file = found && files.find((name) => name === found[1] || name.endsWith(`/${found[1]}`));
    return file ? { file, line: Number(found[2]) } : null;
  };
}

/** Disassemblers write the place on a line of its own. */
function marked(lines) {
  let now = null;
  const found = lines.map((line) => {
    const place = line.match(/^\s*\/\/## File "(.*?)", line (\d+)/) ?? line.match(/^; (\/.*):(\d+)\b/);
    if (place) now = { file: place[1], line: Number(place[2]) };
    return !place && /^\s+\S/.test(line) ? now : null;
  });
  return (place) => found[place];
}

function assembly(lines) {
  const files = new Map();
  const found = [];
  for (const line of lines) {
    const file = line.match(/^\s*\.file\s+(\d+)\s+"((?:[^"\\]|\\.)*)"(?:\s+"((?:[^"\\]|\\.)*)")?/);
    if (file) files.set(file[1], file[3] ? `${file[2]}/${file[3]}` : file[2]);
  }
  let now = null;
  for (const line of lines) {
    const place = line.match(/^\s*\.loc\s+(\d+)\s+(\d+)/);
    if (place)
      now =
        files.has(place[1]) && place[2] !== "0"
          ? { file: files.get(place[1]), line: Number(place[2]) }
          : null;
    const code = /\S/.test(line) && !/^\s*(?:\.|\/\/|;|\$|\})|:\s*$/.test(line);
    found.push(code ? now : null);
  }
  return (place) => found[place];
}
