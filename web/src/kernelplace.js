// Where the kernel begins in its Python file.

import { locations } from "./locations.js";

/**
 * @param {object} kernel
 * @param {import("./bodies.js").Bodies} bodies
 * @param {Record<string, number>} sources file to the number of its text
 * @returns {Promise<{file: string, line: number} | null>} null where there is no file at all
 */
export async function kernelPlace(kernel, bodies, sources) {
  const said = await inIr(kernel, bodies);
  if (said && sources[said.file] !== undefined) return said;
  for (const [file, text] of Object.entries(sources)) {
    const lines = (await bodies.string(text)).split("\n");
    const line = lines.findIndex((one) => one.match(/^\s*def\s+(\w+)/)?.[1] === kernel.function);
    if (line >= 0) return { file, line: line + 1 };
  }
  const [file] = Object.keys(sources);
  return file === undefined ? said : { file, line: 1 };
}

/** The place of the kernel's function: MLIR writes it where the function ends. */
async function inIr({ rows, function: name }, bodies) {
  const first = rows[0]?.before;
  if (!name || first?.[1] !== "mlir") return null;
  const lines = (await bodies.string(first[0])).split("\n");
  const head = lines.findIndex((line) => /^\s*(?:tt|func)\.func /.test(line) && line.includes(`@${name}(`));
  if (head < 0) return null;
  const end = `${lines[head].match(/^\s*/)[0]}}`;
  const last = lines.findIndex((line, place) => place > head && line.startsWith(end));
  return last < 0 ? null : locations(lines, "mlir", [])(last);
}
