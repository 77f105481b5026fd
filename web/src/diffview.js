// The middle of the page: what a pass did, side by side or unified.

import { EditorSelection } from "@codemirror/state";
import { EditorView } from "@codemirror/view";

import { editor, open, refresh } from "./editors.js";
import { places } from "./finding.js";
import { foldable, sideBySide, unified } from "./layout.js";
import { locations } from "./locations.js";

const CONTEXT = 6; // lines around a change that are not folded

export class DiffView {
  /**
   * @param {HTMLElement} parent
   * @param {(place: {file: string, line: number}) => void} onPlace a line of IR was picked
   */
  constructor(parent, onPlace) {
    this.parent = parent;
    this.onPlace = onPlace;
    this.views = [];
    this.rows = [];
    this.starts = [];
    this.hits = [];
    this.hit = -1;
    this.term = "";
    this.marked = null;
  }

  /** @param {{first, second, hunks, language: string, split: boolean, wrap: boolean, fold: boolean, strings}} content */
  show(content) {
    this.clear();
    const { first, second, hunks, split } = content;
    this.content = content;
    this.sides = [first, second].map((form) => form && side(form, content));
    if (!first || !second) this.#single(first ? 0 : 1);
    else if (split) this.#split(sideBySide(first, second, hunks));
    else this.#unified(unified(first, second, hunks));
    this.starts = starts(this.rows);
    this.at = -1;
    this.#find();
    requestAnimationFrame(() => this.at < 0 && this.hit < 0 && this.step(1));
    this.#ruler();
  }

  clear() {
    for (const view of this.views) view.destroy();
    this.parent.replaceChildren();
    this.views = [];
    this.rows = [];
    this.starts = [];
    this.hits = [];
    this.hit = -1;
  }

  /** Go to the next difference, or the one before. */
  step(direction) {
    if (!this.starts.length) return;
    this.at = Math.min(Math.max(this.at + direction, 0), this.starts.length - 1);
    this.#reveal(this.starts[this.at]);
  }

  /** Mark a text wherever it is. */
  search(term) {
    this.term = term;
    this.#find();
    for (const view of this.views) refresh(view);
    this.#ruler();
  }

  /** Which match the reader is at, from 1 (0 before any), and how many there are. */
  get position() {
    return [this.hit + 1, this.hits.length];
  }

  /** Go to the next match of the text that is searched, or the one before; false where there is none. */
  stepHit(direction) {
    const next = this.hit < 0 && direction < 0 ? this.hits.length - 1 : this.hit + direction;
    if (next < 0 || next >= this.hits.length) return false;
    this.hit = next;
    for (const view of this.views) refresh(view);
    const { row, view, from } = this.hits[next];
    this.#unfold(row, view, from);
    return true;
  }

  /** All matches, as they are on the screen; a line that is the same on both sides counts once. */
  #find() {
    this.hits = [];
    this.hit = -1;
    if (!this.term) return;
    const two = this.views.length > 1;
    this.rows.forEach((row, place) => {
      for (const view of two ? (row.kind === "same" ? [1] : [0, 1]) : [0]) {
        const text = two ? this.#text(view, row) : (this.#text(1, row) ?? this.#text(0, row));
        for (const from of places(text ?? "", this.term)) this.hits.push({ row: place, view, from });
      }
    });
  }

  /** Mark the lines of IR that come from a line of Python. */
  mark(place) {
    this.marked = place;
    for (const view of this.views) refresh(view);
  }

  /** The same, and go to the first of them. */
  goTo(place) {
    this.mark(place);
    const found = this.rows.findIndex((row) => this.#isMarked(row));
    if (found >= 0) this.#unfold(found);
  }

  #single(number) {
    const side = this.sides[number];
    this.rows = Array.from(side.lines, (_, line) => ({
      a: number ? -1 : line,
      b: number ? line : -1,
      kind: "same",
    }));
    this.folds = [];
    const pane = this.#pane("single");
    this.views = [
      editor(
        pane,
        this.#options(0, side.lines, {
          kind: (line) => this.#class(this.rows[line], ""),
          gutters: [this.#numbers(number), this.#places(number)],
        }),
      ),
    ];
  }

  #split(rows) {
    this.rows = rows;
    this.folds = this.content.fold && this.content.hunks.length ? foldable(rows, CONTEXT) : [];
    this.views = [0, 1].map((number) => {
      const lines = rows.map((row) => this.#text(number, row) ?? "");
      const pane = this.#pane(number ? "after" : "before");
      return editor(
        pane,
        this.#options(number, lines, {
          kind: (line) => this.#class(rows[line], ["removed", "added"][number], number),
          partner: (line) => (rows[line].kind === "changed" ? this.#text(1 - number, rows[line]) : undefined),
          gutters: [this.#numbers(number), this.#places(number)],
        }),
      );
    });
    together(this.views);
  }

  #unified(rows) {
    this.rows = rows;
    this.folds = this.content.fold && this.content.hunks.length ? foldable(rows, CONTEXT) : [];
    const lines = rows.map((row) => this.#text(1, row) ?? this.#text(0, row));
    this.views = [
      editor(
        this.#pane("unified"),
        this.#options(0, lines, {
          kind: (line) => this.#class(rows[line], rows[line].kind),
          partner: (line) => {
            const { kind, partner } = rows[line];
            if (!(partner >= 0)) return undefined;
            return this.sides[kind === "removed" ? 1 : 0].lines[partner];
          },
          gutters: [this.#numbers(0), this.#numbers(1), this.#signs(), this.#places(1)],
        }),
      ),
    ];
  }

  #options(view, lines, more) {
    return {
      lines,
      language: this.content.language,
      wrap: this.content.wrap,
      term: () => this.term,
      current: (line, from) => {
        const at = this.hits[this.hit];
        return at !== undefined && at.row === line && at.view === view && at.from === from;
      },
      folds: this.folds,
      opened: (range) => this.#open(range),
      explain: (line, word) => {
        const row = this.rows[line];
        return this.sides[row.b >= 0 ? 1 : 0].meanings.get(word);
      },
      pick: (line) => this.#pick(this.rows[line]),
      ...more,
    };
  }

  #pane(name) {
    const pane = document.createElement("div");
    pane.className = `pane ${name}`;
    this.parent.append(pane);
    return pane;
  }

  #text(number, row) {
    const line = number ? row.b : row.a;
    return line >= 0 ? this.sides[number].lines[line] : undefined;
  }

  #class(row, own, number) {
    const classes = [];
    if (row.kind !== "same" && own) {
      const there = number === undefined || (number ? row.b : row.a) >= 0;
      classes.push(there ? own : "filler");
    }
    if (this.#isMarked(row)) classes.push("marked");
    return classes.join(" ");
  }

  #isMarked(row) {
    const place = this.marked && this.#place(row);
    return Boolean(place) && place.file === this.marked.file && place.line === this.marked.line;
  }

  #place(row) {
    const number = row.b >= 0 ? 1 : 0;
    const side = this.sides[number];
    return side.place(number ? row.b : row.a);
  }

  #pick(row) {
    const place = this.#place(row);
    if (place) this.onPlace(place);
  }

  #numbers(number) {
    return {
      name: "number",
      text: (line) => {
        const own = number ? this.rows[line].b : this.rows[line].a;
        return own >= 0 ? String(this.sides[number].form.places[own] + 1) : "";
      },
    };
  }

  #signs() {
    return { name: "sign", text: (line) => ({ removed: "\u2212", added: "+" })[this.rows[line].kind] ?? "" };
  }

  #places(number) {
    return {
      name: "place",
      text: (line) => {
        const row = this.rows[line];
        if (this.views.length > 1 && (number ? row.b : row.a) < 0) return "";
        const place = this.#place(row);
        return place ? `:${place.line}` : "";
      },
      click: (line) => this.#pick(this.rows[line]),
    };
  }

  /** Show a row, whatever is folded; in one of the views a match, too, that may stand far to the right. */
  #unfold(place, number, from) {
    this.folds.forEach(([low, high], range) => {
      if (place >= low && place < high) this.#open(range);
    });
    this.#reveal(place);
    if (from === undefined) return;
    const view = this.views[number];
    const at = view.state.doc.line(place + 1).from + from;
    const range = EditorSelection.range(at, at + this.term.length);
    view.dispatch({ effects: EditorView.scrollIntoView(range, { y: "nearest", yMargin: 90, xMargin: 40 }) });
  }

  #reveal(place) {
    for (const view of this.views) {
      const position = view.state.doc.line(place + 1).from;
      view.dispatch({ effects: EditorView.scrollIntoView(position, { y: "start", yMargin: 90 }) });
    }
  }

  #open(range) {
    for (const view of this.views) open(view, range);
    this.#ruler();
  }

  /** A strip at the right edge: where the differences and the matches are in the whole text. */
  #ruler() {
    this.parent.querySelector(".ruler")?.remove();
    if (!this.views.length || (!this.starts.length && !this.hits.length)) return;
    const ruler = document.createElement("div");
    ruler.className = "ruler";
    const view = this.views[0];
    const height = view.contentHeight;
    for (const start of this.starts) {
      let end = start;
      const kinds = new Set();
      while (this.rows[end] && this.rows[end].kind !== "same") kinds.add(this.rows[end++].kind);
      const top = view.lineBlockAt(view.state.doc.line(start + 1).from).top;
      const bottom = view.lineBlockAt(view.state.doc.line(end).from).bottom;
      const mark = document.createElement("i");
      mark.className = kinds.size > 1 || kinds.has("changed") ? "changed" : [...kinds][0];
      mark.style.top = `${(100 * top) / height}%`;
      mark.style.height = `max(3px, ${(100 * (bottom - top)) / height}%)`;
      mark.onclick = () => this.#reveal(start);
      ruler.append(mark);
    }
    let last = -1;
    for (const [number, { row }] of this.hits.entries()) {
      const top = Math.round((1000 * view.lineBlockAt(view.state.doc.line(row + 1).from).top) / height);
      if (top === last) continue; // one mark for all that would lie on each other
      last = top;
      const mark = document.createElement("i");
      mark.className = "hit";
      mark.style.top = `${top / 10}%`;
      mark.onclick = () => this.#unfold(this.hits[number].row);
      ruler.append(mark);
    }
    this.parent.append(ruler);
  }
}

function side(form, { strings, language, files }) {
  const lines = Array.from(form.keys, (_, line) => form.shown(line));
  const all = strings(form);
  let locate;
  return {
    form,
    lines,
    place: (line) => {
      locate ??= locations(all, language, files);
      return locate(form.places[line]);
    },
    meanings: new Map(
      all.flatMap((line) => (line[0] === "#" ? [line.split(" = ", 1)[0]].map((name) => [name, line]) : [])),
    ),
  };
}

function starts(rows) {
  const found = [];
  rows.forEach((row, place) => {
    if (row.kind !== "same" && (place === 0 || rows[place - 1].kind === "same")) found.push(place);
  });
  return found;
}

/** Two editors scroll as one. */
function together(views) {
  let leader = null;
  for (const [number, view] of views.entries()) {
    const other = views[1 - number].scrollDOM;
    view.scrollDOM.addEventListener("scroll", () => {
      if (leader === view.scrollDOM) return void (leader = null);
      if (other.scrollTop === view.scrollDOM.scrollTop && other.scrollLeft === view.scrollDOM.scrollLeft)
        return;
      leader = other;
      other.scrollTop = view.scrollDOM.scrollTop;
      other.scrollLeft = view.scrollDOM.scrollLeft;
    });
  }
}
