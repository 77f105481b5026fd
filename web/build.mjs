// `npm ci && npm run build`: makes the package's inspect/report/built/ from src/ and the locked libraries.

import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const HERE = dirname(fileURLToPath(import.meta.url));
const BUILT = join(HERE, "../src/tritonsmith/inspect/report/built");
const inputs = ["build.mjs", "package-lock.json", "package.json", ...sources()].map((name) =>
  join(HERE, name),
);

// tests/unit/inspect/report/test_built.py computes the same sum, so it needs no node.
const sum = createHash("sha256");
for (const path of inputs) sum.update(readFileSync(path));
const banner = `/*! sources: ${sum.digest("hex")} */`;

const made = await build({
  entryPoints: [join(HERE, "src/main.js"), join(HERE, "src/report.css")],
  entryNames: "report",
  outdir: BUILT,
  bundle: true,
  minify: true,
  format: "iife",
  target: ["chrome111", "firefox113", "safari16.4"], // DecompressionStream, color-mix()
  charset: "utf8",
  legalComments: "none",
  banner: { js: banner, css: banner },
  metafile: true,
});
writeFileSync(join(BUILT, "LICENSES.txt"), licenses(made.metafile));

function sources() {
  return readdirSync(join(HERE, "src"))
    .sort()
    .map((name) => `src/${name}`);
}

/** The licence of each library of which something is in the bundle. */
function licenses({ inputs }) {
  const folders = new Set();
  for (const path of Object.keys(inputs)) {
    const found = path.match(/^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//);
    if (found) folders.add(found[1]);
  }
  const texts = [...folders].map((folder) => {
    const { name, version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    return `${name} ${version}\n\n${readFileSync(join(folder, "LICENSE"), "utf8").trim()}\n`;
  });
  return texts.sort().join(`\n${"-".repeat(80)}\n\n`);
}
