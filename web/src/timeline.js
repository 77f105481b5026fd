// The plot at the top: where the time went, and how long the IR was.

import { duration, svg } from "./dom.js";
import { title, unchanged } from "./model.js";

const HEIGHT = 56;
const AXIS = 14;
const NARROW = 2; // pixels that a pass gets at least, so that it can be hit
const CHARACTER = 5.8; // width of one in a label
const TICKS = [1, 2, 5];

export class Timeline {
  /** @param {(id: string) => void} onPick */
  constructor(parent, onPick) {
    this.parent = parent;
    this.entries = [];
    parent.addEventListener("click", (event) => {
      const id = event.target.closest("[data-id]")?.getAttribute("data-id");
      if (id) onPick(id);
    });
    new ResizeObserver(() => this.draw()).observe(parent);
  }

  fill(entries) {
    this.entries = entries.filter((one) => one.row && !one.machine);
    this.draw();
  }

  select(id) {
    this.selected = id;
    this.parent.querySelector(".selected")?.classList.remove("selected");
    this.bars?.get(id)?.classList.add("selected");
  }

  update(one) {
    this.bars?.get(one.id)?.classList.toggle("same", unchanged(one));
  }

  draw() {
    const width = this.parent.clientWidth;
    if (!width || !this.entries.length) return;
    const measured = this.entries.some((one) => one.row.seconds);
    const all = measured
      ? this.entries.reduce((sum, one) => sum + (one.row.seconds ?? 0), 0)
      : this.entries.length;
    const least = Math.min(NARROW, width / 2 / this.entries.length);
    const free = width - least * this.entries.length;
    const lines = (one) => (one.row.after ?? one.row.before)[2];
    const longest = this.entries.reduce((most, one) => Math.max(most, lines(one)), 1);
    this.bars = new Map();
    const drawn = [];
    const ends = []; // time at the end of each bar, for the ticks
    let [x, time] = [0, 0];
    for (const one of this.entries) {
      const share = measured ? (one.row.seconds ?? 0) / all : 1 / all;
      const wide = least + free * share;
      const high = 6 + (HEIGHT - AXIS - 8) * (Math.log1p(lines(one)) / Math.log1p(longest)) ** 3;
      const bar = svg("g.bar", { "data-id": one.id, "data-stage": one.row.stage });
      const text = title(one.row);
      bar.append(
        svg(
          "title",
          {},
          `${one.row.number} ${text}\n${measured ? `${duration(one.row.seconds)}, ` : ""}${lines(one)} lines`,
        ),
        svg("rect.hit", { x, y: 0, width: wide, height: HEIGHT - AXIS }),
        svg("rect.fill", { x, y: HEIGHT - AXIS - high, width: Math.max(wide - 0.6, wide / 2), height: high }),
      );
      if (text.length * CHARACTER < wide - 6)
        bar.append(svg("text", { x: x + 4, y: HEIGHT - AXIS - 5 }, text));
      if (unchanged(one)) bar.classList.add("same");
      this.bars.set(one.id, bar);
      drawn.push(bar);
      x += wide;
      time += one.row.seconds ?? 0;
      ends.push([time, x, wide]);
    }
    const axis = measured
      ? ticks(ends, all, width)
      : [svg("text.tick", { x: 2, y: HEIGHT - 3 }, "no times were measured")];
    const top = svg(
      "text.tick",
      { x: width - 4, y: 10, "text-anchor": "end" },
      `bar height: lines of IR (max ${longest})`,
    );
    this.parent.replaceChildren(
      svg(
        "svg",
        { width, height: HEIGHT, role: "img", "aria-label": "time of each pass" },
        ...drawn,
        ...axis,
        top,
      ),
    );
    this.select(this.selected);
  }
}

function ticks(ends, all, width) {
  const least = (all * 70) / width; // seconds between ticks, at least
  const power = 10 ** Math.floor(Math.log10(least));
  const step = power * (TICKS.find((one) => one * power >= least) ?? 10);
  const found = [];
  let place = 0;
  let free = -Infinity; // where the last label ends
  for (let time = 0; time < all; time += step) {
    while (place < ends.length - 1 && ends[place][0] < time) place++;
    const [end, right, wide] = ends[place];
    const before = place ? ends[place - 1][0] : 0;
    const x = right - (end > before ? (wide * (end - time)) / (end - before) : 0);
    found.push(svg("line.tick", { x1: x, x2: x, y1: HEIGHT - AXIS, y2: HEIGHT - AXIS + 4 }));
    const label = time ? duration(time) : "0";
    if (x < free || x + 3 + label.length * CHARACTER > width) continue;
    found.push(svg("text.tick", { x: x + 3, y: HEIGHT - 3 }, label));
    free = x + 6 + label.length * CHARACTER;
  }
  return found;
}
