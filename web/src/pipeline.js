// The list on the left: passes in order, with how much each changed and how long it took.

import { bytes, duration, h } from "./dom.js";
import { NOTHING, none } from "./headline.js";
import { mixed, title, unchanged } from "./model.js";

const BAR = 66; // pixels, of the longest bar
const FIGURE = 7.6; // pixels, of a character in a column of figures
const FEWEST = 9; // characters of that column

export class Pipeline {
  /** @param {(id: string) => void} onPick */
  constructor(parent, onPick) {
    this.list = h("ol.entries", { role: "listbox", "aria-label": "passes", tabindex: 0 });
    this.list.addEventListener("click", (event) => {
      const item = event.target.closest("li[data-id]");
      if (item) onPick(item.dataset.id);
    });
    parent.append(this.list);
  }

  /** @param {import("./model.js").Entry[]} entries */
  fill(entries, kernel) {
    this.entries = entries;
    this.items = new Map();
    this.hits = null;
    const stages = new Map();
    const items = [];
    for (const one of entries) {
      const stage = (one.row ?? one.other)?.stage ?? "";
      if (stage && stage !== this.lastStage) items.push(this.#heading(stages, stage));
      this.lastStage = stage || this.lastStage;
      if (stage) stages.get(stage).entries.push(one);
      const item = this.#item(one, kernel);
      this.items.set(one.id, item);
      items.push(item);
    }
    this.lastStage = undefined;
    for (const { element, entries: own } of stages.values()) {
      const seconds = own.reduce((sum, one) => sum + (one.row?.seconds ?? 0), 0);
      const passes = own.filter((one) => (one.row ?? one.other).counts).length;
      const words = passes ? [`${passes} ${passes === 1 ? "pass" : "passes"}`] : [];
      element.textContent = [...words, ...(seconds ? [duration(seconds)] : [])].join(", ");
    }
    const all = document.createDocumentFragment();
    for (const item of items) all.append(item);
    this.list.replaceChildren(all);
    this.figures = 0;
    for (const one of entries) this.update(one);
  }

  /** Makes the column of figures as wide as the longest of them, so that none lies on a name or a time. */
  #fit(text) {
    if (text.length <= this.figures) return;
    this.figures = Math.max(text.length, FEWEST);
    this.list.style.setProperty("--figures", `${Math.ceil(this.figures * FIGURE)}px`);
  }

  /** Something about an entry is known now. */
  update(one) {
    const item = this.items.get(one.id);
    item.classList.toggle("same", unchanged(one));
    const [bar, counts] = [item.querySelector(".bar"), item.querySelector(".counts")];
    const hits = this.hits?.get(one.id);
    item.classList.toggle("without", Boolean(this.hits) && !(hits && (hits.before || hits.after)));
    if (this.hits) {
      bar.replaceChildren();
      counts.replaceChildren(...told(hits));
    } else if (one.counts) {
      const { removed, added } = one.counts;
      bar.replaceChildren(...segments(removed, added));
      counts.replaceChildren(
        ...(added ? [h("b.added", {}, `+${added}`)] : []),
        ...(removed ? [h("b.removed", {}, `\u2212${removed}`)] : []),
        ...(none(one) ? [h("b.none", { title: NOTHING }, "\u00b10")] : []),
      );
    } else if (one.machine) counts.replaceChildren(bytes(one.second?.[3] ?? one.first[3]));
    this.#fit(counts.textContent);
  }

  /** @param {Map<string, {before: number, after: number}> | null} hits of a search, by entry */
  show(hits) {
    this.hits = hits;
    for (const one of this.entries) this.update(one);
  }

  select(id) {
    this.list.querySelector("[aria-selected=true]")?.setAttribute("aria-selected", "false");
    const item = this.items.get(id);
    item?.setAttribute("aria-selected", "true");
    item?.scrollIntoView({ block: "nearest" });
  }

  mark(id) {
    this.list.querySelector(".parting")?.classList.remove("parting");
    this.items.get(id)?.classList.add("parting");
  }

  hide(unchanged) {
    this.list.classList.toggle("hide", unchanged);
  }

  #heading(stages, stage) {
    const element = stages.get(stage)?.element ?? h("span");
    if (!stages.has(stage)) stages.set(stage, { element, entries: [] });
    return h(
      "li.stage",
      { "data-stage": stage, role: "presentation" },
      h("b", {}, stage),
      element.parentNode ? "" : element,
    );
  }

  #item(one, { failed, function: only }) {
    const row = one.row ?? one.other;
    const item = h(
      "li.entry",
      {
        "data-id": one.id,
        "data-stage": row?.stage,
        role: "option",
        "aria-selected": "false",
        title: hint(one),
      },
      h("span.number", {}, one.row ? one.row.number : one.other ? one.other.number : ""),
      h(
        "span.name",
        {},
        row ? title(row) : "input of the first pass",
        row?.symbol && row.symbol !== only ? h("em", {}, `@${row.symbol}`) : null,
      ),
      h("span.change", {}, h("span.counts"), h("span.bar")),
      h("span.time", {}, duration(one.row?.seconds)),
    );
    if (row && (row.when === "failed" || !row.whole || (failed && failed === row.name)))
      item.classList.add("failed");
    if (mixed(one)) item.classList.add("mixed");
    if (row?.inside) item.classList.add("inside");
    if (!one.first || !one.second) item.classList.add("single");
    return item;
  }
}

function hint(one) {
  const row = one.row ?? one.other;
  if (!row) return "";
  const only = one.row && one.other ? "" : one.other ? "only in the second dump\n" : "";
  return `${only}${row.name}\n${row.pipeline}\n${row.file}`;
}

function segments(removed, added) {
  const all = removed + added;
  if (!all) return [];
  const width = Math.max(4, Math.min(BAR, (BAR * Math.log1p(all)) / Math.log1p(2000)));
  const red = (width * removed) / all;
  return [
    h("i.added", { style: `width:${(width - red).toFixed(1)}px` }),
    h("i.removed", { style: `width:${red.toFixed(1)}px` }),
  ];
}

function told(hits) {
  if (!hits || !(hits.before || hits.after)) return [];
  if (hits.before === hits.after) return [h("b.hits", {}, hits.after)];
  return [h("b.hits", {}, `${hits.before} \u2192 ${hits.after}`)];
}
