// The page: one kernel of the dump, one of its passes, and what it did.

import { Bodies } from "./bodies.js";
import { counts, differences } from "./comparing.js";
import { DiffView } from "./diffview.js";
import { bytes, h, pause } from "./dom.js";
import { Forms } from "./forms.js";
import { build, reflect } from "./frame.js";
import { headline, label } from "./headline.js";
import { help, listen } from "./keys.js";
import { kernelPlace } from "./kernelplace.js";
import { changed, pairs, parting, passes, substantial, title } from "./model.js";
import { Pipeline } from "./pipeline.js";
import { Search } from "./searching.js";
import { load, save, useTheme } from "./settings.js";
import { Source } from "./source.js";
import { Timeline } from "./timeline.js";

const SLICE = 12; // milliseconds of counting between two looks at what the reader does
const WIDE = 1100; // pixels for two texts, side by side: 75 characters of each

export class App {
  constructor(data) {
    this.data = data;
    [this.side, this.second] = data.sides;
    this.bodies = new Bodies(data.starts);
    this.forms = new Forms(this.bodies);
    this.search = new Search(this);
    this.settings = load();
    this.switchTheme = useTheme(this.settings);
    this.against = Boolean(this.second);
  }

  start() {
    this.#build();
    this.actions = this.#actions();
    this.help = help(this.actions);
    listen(
      this.actions,
      (event) => this.help.open || /^(?:INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName),
    );
    addEventListener("hashchange", () => this.#go());
    this.#go();
  }

  // What the page's address says.

  #go() {
    const [name, id, mode] = location.hash.slice(1).split("/").map(decoded);
    const known = this.side.kernels.findIndex((kernel) => kernel.name === name);
    if (this.second && name) this.against = mode === "against";
    const kernel = this.side.kernels[Math.max(known, 0)];
    const other = this.against ? this.#opposite(kernel) : null;
    if (kernel !== this.kernel || other !== this.other) this.#open(kernel, other);
    const first =
      (other ? null : substantial(this.entries, kernel)) ?? this.entries.find(changed) ?? this.entries[0];
    if (first) this.select(this.entries.find((one) => one.id === id) ?? first);
    else this.view.clear(); // a kernel that was named, and of which nothing was printed
  }

  address(one) {
    const parts = [this.kernel.name, one.id, ...(this.other ? ["against"] : [])];
    return `#${parts.map(encodeURIComponent).join("/")}`;
  }

  #goTo(one) {
    if (!one) return;
    history.replaceState(null, "", this.address(one));
    this.select(one);
  }

  #opposite(kernel) {
    const { kernels } = this.second;
    return (
      kernels.find((one) => one.name === kernel.name) ?? kernels[this.side.kernels.indexOf(kernel)] ?? null
    );
  }

  // What is on the page.

  #build() {
    const frame = build(this.side.kernels, Boolean(this.second), {
      kernel: (name) => (location.hash = encodeURIComponent(name)),
      choose: (name, value) => this.#choose(name, value),
      wrap: () => this.#wrap(),
      toggle: (name) => this.#toggle(name),
      compare: () => this.#compare(),
      theme: () => this.switchTheme(),
      help: () => this.help.showModal(),
      type: (text) => this.search.later(text),
      enter: (direction) => this.search.now(this.input.value, direction),
      escape: () => this.#clear(),
    });
    Object.assign(this, frame);
    const { left, plot, middle, dock } = frame;
    this.pipeline = new Pipeline(left, (id) => this.#goTo(this.entries.find((one) => one.id === id)));
    this.timeline = new Timeline(plot, (id) => this.#goTo(this.entries.find((one) => one.id === id)));
    this.view = new DiffView(middle, (place) => this.#showSource(place));
    this.source = new Source(
      dock,
      (text) => this.bodies.string(text),
      this.data.sources,
      (place) => this.view.goTo(place),
    );
    new ResizeObserver(() => this.#fit()).observe(middle);
  }

  /** The width may call for another view. */
  #fit() {
    const wide = this.middle.clientWidth >= WIDE;
    if (wide === this.wide) return;
    this.wide = wide;
    this.#reflect();
    if (this.selected) this.select(this.selected);
  }

  /** How two texts are shown: as chosen, or as the width says. */
  get #layout() {
    this.wide ??= this.middle.clientWidth >= WIDE;
    const split = this.settings.split ?? this.wide;
    return { split, wrap: this.settings.wrap ?? !this.wide };
  }

  #open(kernel, other) {
    this.kernel = kernel;
    this.other = other;
    this.entries = other ? pairs(kernel, other) : passes(kernel);
    this.choice.value = kernel.name;
    const versions = [this.side, ...(other ? [this.second] : [])].map(
      (side) => side.triton && `Triton ${side.triton}`,
    );
    this.facts.textContent = [...new Set(versions), bytes(this.side.size)].filter(Boolean).join(" \u00b7 ");
    this.facts.title = this.side.command;
    this.pipeline.fill(this.entries, kernel);
    this.timeline.fill(this.entries);
    this.#take();
    this.found.hidden = true;
    this.selected = null;
    this.#reflect();
    this.#openSource();
    this.#countAll(this.entries);
    if (this.search.term) this.search.run(this.search.term);
  }

  #reflect() {
    const { settings } = this;
    const layout = this.#layout;
    reflect(this.tools, { ...settings, ...layout, unified: !layout.split, against: Boolean(this.other) });
    this.filter.checked = settings.hide;
    this.pipeline.hide(settings.hide);
    document.body.classList.toggle("with-source", settings.source);
    const { passes: ran, changed: did, unknown, dumps } = this.kernel.totals;
    const differing = this.entries.filter((one) => one.row && one.other && changed(one)).length;
    const failed =
      this.kernel.failed && h("b.failed", { title: this.kernel.error }, ` failed ${where(this.kernel.failed)}`);
    this.summary.replaceChildren(
      this.other ? `${this.entries.length} pairs, ${differing} differ` : `${ran} passes, ${did} changed; ${dumps} dumps`,
      failed,
    );
    this.summary.title =
      `${ran} passes ran, ${did} changed something` +
      (unknown ? ` (${unknown} may have)` : "") +
      `; ${dumps} dumps were printed`;
  }

  /** What the compiled kernel takes, or why nobody knows. */
  #take() {
    const sides = this.other ? [this.kernel, this.other] : [this.kernel];
    const last = this.entries.findLast((one) => one.machine);
    this.takes.replaceChildren(
      ...sides.map(({ binary }) =>
        binary.gist && last
          ? h("a", { href: this.address(last), title: "the machine code, with all numbers" }, binary.gist)
          : h("span", {}, binary.gist ?? binary.none),
      ),
    );
  }

  // One pass.

  async select(one) {
    this.selected = one;
    this.pipeline.select(one.id);
    this.timeline.select(one.id);
    const { fold, printed } = this.settings;
    const [first, second] = [one.first, one.second];
    await Promise.all([first, second].filter(Boolean).map(([text]) => this.bodies.load(text)));
    if (this.selected !== one) return;
    const found = this.#delta(one, printed);
    const sides = this.other && [label(this.side, this.kernel), label(this.second, this.other)];
    this.head.classList.toggle("unified", !this.#layout.split);
    headline(this.head, one, counts(found.hunks), this.kernel, sides);
    const language = (second ?? first)[1];
    this.view.show({
      ...found,
      language,
      ...this.#layout,
      fold,
      files: this.source.files,
      strings: (form) => Array.from(form.lines, (line) => this.bodies.lines[line]),
    });
    this.search.place();
    document.body.dataset.shown = one.id;
    requestAnimationFrame(() => requestAnimationFrame(() => performance.mark("shown"))); // it is on the screen
  }

  #delta({ first, second }, printed) {
    const [a, b] = [first, second].map((body) => body && this.forms.of(body[0], body[1], printed));
    return { first: a, second: b, hunks: a && b && first[0] !== second[0] ? differences(a, b) : [] };
  }

  /** What every pass changed, bit by bit. */
  async #countAll(entries) {
    let since = performance.now();
    let waiting = [];
    const tell = () => {
      for (const one of waiting) {
        this.pipeline.update(one);
        this.timeline.update(one);
      }
      waiting = [];
      this.#reflect();
      this.#part();
    };
    for (const one of entries) {
      if (!one.compared || one.counts || !one.first || !one.second) continue;
      await this.bodies.load(one.first[0]);
      await this.bodies.load(one.second[0]);
      if (this.entries !== entries) return;
      one.counts = counts(this.#delta(one, false).hunks);
      waiting.push(one);
      if (performance.now() - since < SLICE) continue;
      tell();
      await pause();
      since = performance.now();
    }
    if (this.entries !== entries) return;
    tell();
    performance.mark("counted");
    document.body.dataset.counted = this.kernel.name;
  }

  #part() {
    const one = this.other && parting(this.entries);
    if (!this.other || one === undefined) return;
    this.pipeline.mark(one?.id);
    const words = one?.row
      ? ["they part in ", h("a", { href: this.address(one) }, `${one.row.number} ${title(one.row)}`)]
      : one
        ? ["they begin with other IR"]
        : ["they are the same"];
    this.summary.replaceChildren(...words);
  }

  #step(direction, every) {
    let place = this.entries.indexOf(this.selected) + direction;
    while (this.entries[place] && !every && !changed(this.entries[place])) place += direction;
    this.#goTo(this.entries[place]);
  }

  async #showSource(place) {
    this.source.kernel = this.kernel; // it need not be opened at the kernel
    const shown = this.source.show(place);
    if (!this.settings.source) this.#toggle("source");
    this.view.mark(place);
    await shown;
  }

  #clear() {
    this.input.value = "";
    this.input.blur();
    this.search.run("");
    this.view.mark(null);
  }

  // Settings.

  #set(name, value) {
    this.settings[name] = value;
    save(this.settings);
    this.#reflect();
    if (name === "source") this.#openSource();
    else if (name !== "hide" && this.selected) this.select(this.selected);
  }

  #toggle(name) {
    this.#set(name, !this.settings[name]);
  }

  /** What is chosen again is given back to the width. */
  #choose(name, value) {
    this.#set(name, this.settings[name] === value ? null : value);
  }

  #wrap() {
    this.#set("wrap", !this.#layout.wrap);
  }

  /** The source, where the kernel begins. */
  async #openSource() {
    const { kernel } = this;
    if (!this.settings.source || this.source.kernel === kernel) return;
    this.source.kernel = kernel;
    const place = await kernelPlace(kernel, this.bodies, this.data.sources);
    if (place && this.kernel === kernel) await this.source.open(place);
  }

  #compare() {
    if (!this.second) return;
    this.against = !this.against;
    const parts = [this.kernel.name, this.selected?.id ?? "", ...(this.against ? ["against"] : [])];
    location.hash = parts.map(encodeURIComponent).join("/");
  }

  #actions() {
    const next = ["next pass that changed something", () => this.#step(1)];
    const previous = ["previous one", () => this.#step(-1)];
    const hit = (direction) => () =>
      this.search.term ? this.search.step(direction) : this.view.step(direction);
    return {
      j: next,
      ArrowDown: next,
      k: previous,
      ArrowUp: previous,
      J: ["next pass, changed or not", () => this.#step(1, true)],
      K: ["previous pass, changed or not", () => this.#step(-1, true)],
      n: ["next difference; next match while you search", hit(1)],
      N: ["previous difference, previous match", hit(-1)],
      "/": ["search the IR of all passes", () => this.input.select()],
      s: ["side by side; press again to follow the width", () => this.#choose("split", true)],
      u: ["unified; press again to follow the width", () => this.#choose("split", false)],
      w: ["wrap long lines, or not", () => this.#wrap()],
      f: ["fold what is equal, or show all of it", () => this.#toggle("fold")],
      r: ["as printed, or without locations", () => this.#toggle("printed")],
      h: ["hide passes that changed nothing", () => this.#toggle("hide")],
      p: ["the Python source", () => this.#toggle("source")],
      ...(this.second && {
        c: ["compare with the other dump, or not", () => this.#compare()],
        x: [
          "go to the pass in which the two part",
          () => this.other && this.#goTo(parting(this.entries) ?? null),
        ],
      }),
      t: ["light or dark", () => this.switchTheme()],
      "?": ["this list", () => this.help.showModal()],
      Escape: ["end the search", () => this.#clear()],
    };
  }
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // not an address that this page made
  }
}

/** `in CSEPass`; or `after CSEPass`, where nobody knows what ran. */
function where(failed) {
  return failed.startsWith("after ") ? failed : `in ${failed}`;
}
