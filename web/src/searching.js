// A search in the IR of all passes: what is told of it, and the way from match to match.

import { h } from "./dom.js";
import { Finder } from "./finding.js";

const TYPING = 150; // milliseconds without a key until a search begins

export class Search {
  /** @param {import("./app.js").App} app */
  constructor(app) {
    this.app = app;
    this.finder = new Finder(app.bodies);
    this.term = "";
  }

  /** A key was pressed; more may follow. */
  later(term) {
    clearTimeout(this.typing);
    this.typing = setTimeout(() => this.run(term), TYPING);
  }

  now(term, direction) {
    clearTimeout(this.typing);
    if (term !== this.term) this.run(term);
    this.step(direction);
  }

  async run(term) {
    const { app } = this;
    this.term = term;
    this.hits = null;
    app.view.search(term);
    this.place();
    if (!term) {
      app.pipeline.show(null);
      app.found.hidden = true;
      return;
    }
    const { entries } = app;
    const stopped = () => this.term !== term || app.entries !== entries;
    const texts = entries.flatMap((one) => [one.first, one.second]).filter(Boolean);
    const counted = await this.finder.count(term, texts, stopped);
    if (!counted) return;
    const of = (body) => (body ? counted.get(body[0]) : 0);
    this.hits = new Map(
      entries.map((one) => [one.id, { before: of(one.first), after: of(one.second ?? one.first) }]),
    );
    app.pipeline.show(this.hits);
    this.#tell(entries, counted);
    await this.#elsewhere(term, stopped);
    if (!stopped()) document.body.dataset.searched = term;
  }

  /** To the next match: in this pass, or in the next one that has any. */
  async step(direction) {
    const { app } = this;
    if (!this.term) return;
    if (app.view.stepHit(direction)) return this.place();
    let place = app.entries.indexOf(app.selected) + direction;
    while (app.entries[place] && !this.#has(app.entries[place])) place += direction;
    const one = app.entries[place];
    if (!one) return;
    history.replaceState(null, "", app.address(one));
    await app.select(one);
    app.view.stepHit(direction);
    this.place();
  }

  /** Say which match the reader is at. */
  place() {
    const { matches, view } = this.app;
    const [at, all] = view.position;
    matches.hidden = !this.term;
    matches.querySelector("span").textContent = all ? `${at || "\u2013"} of ${all} here` : "none here";
  }

  #has(one) {
    const { before, after } = this.hits?.get(one.id) ?? { before: 0, after: 0 };
    return before > 0 || after > 0;
  }

  #tell(entries, counted) {
    const { app, hits } = this;
    const link = (words, one) => one && h("a", { href: app.address(one) }, `${words} ${one.id}`);
    const having = entries.filter((one) => this.#has(one));
    const born = having.find((one) => one.first && !hits.get(one.id).before);
    const died = having.findLast((one) => one.first && one.second && !hits.get(one.id).after);
    let most = having[0];
    for (const one of having) if (hits.get(one.id).after > hits.get(most.id).after) most = one;
    app.found.hidden = false;
    const words = app.other ? this.#pairs(having, entries) : this.#dumps(counted);
    app.found.replaceChildren(h("span", {}, words));
    if (app.other || !most) return;
    const links = [
      link("born in", born),
      link(`most (${hits.get(most.id).after}) in`, most),
      link("gone after", died),
    ];
    app.found.append(...links.filter(Boolean));
  }

  #pairs(having, entries) {
    return having.length ? `in ${having.length} of ${entries.length} passes` : "in no pass";
  }

  /** As `passes.find` says it. */
  #dumps(counted) {
    const { dumps } = this.app.kernel;
    const having = dumps.filter((text) => counted.get(text)).length;
    return `in ${having || "none"} of ${dumps.length} dumps`;
  }

  /** In how many dumps of the other kernels it is. */
  async #elsewhere(term, stopped) {
    const { app } = this;
    for (const kernel of app.side.kernels) {
      if (kernel === app.kernel) continue;
      const bodies = kernel.rows.flatMap((row) => [row.before, row.after]).filter(Boolean);
      const counted = await this.finder.count(term, bodies, stopped);
      if (!counted) return;
      const having = kernel.dumps.filter((text) => counted.get(text)).length;
      if (having) {
        const words = `${kernel.name}: ${having} of ${kernel.dumps.length} dumps`;
        app.found.append(h("a", { href: `#${encodeURIComponent(kernel.name)}` }, words));
      }
    }
  }
}
