// CodeMirror, as this page uses it: a text that cannot be changed, with lines painted by what the page knows of them.

import { syntaxHighlighting } from "@codemirror/language";
import { presentableDiff } from "@codemirror/merge";
import { EditorState, StateEffect, StateField } from "@codemirror/state";
import {
  Decoration,
  EditorView,
  GutterMarker,
  ViewPlugin,
  WidgetType,
  gutter,
  hoverTooltip,
} from "@codemirror/view";
import { classHighlighter } from "@lezer/highlight";

import { places } from "./finding.js";
import { LANGUAGES } from "./languages.js";

const HANGING = 4; // characters that a line goes on further in
const DEEPEST = 24; // characters of an indentation that is kept there
const LONGEST = 2000; // characters of a line in which single words are compared

const repaint = StateEffect.define();
const unfold = StateEffect.define();

/**
 * @param {object} options
 * @param {string[]} options.lines
 * @param {string} options.language
 * @param {(line: number) => string} options.kind class of a line, counted from 0
 * @param {(line: number) => string | undefined} [options.partner] the line opposite, where words are compared
 * @param {() => string} [options.term] what is searched
 * @param {(line: number, from: number) => boolean} [options.current] whether the reader went to this match
 * @param {boolean} [options.wrap] long lines go on below
 * @param {{name: string, text: (line: number) => string, click?: (line: number) => void}[]} options.gutters
 * @param {[number, number][]} [options.folds] ranges of lines
 * @param {(line: number, word: string) => string | undefined} [options.explain] what a word means
 * @param {(line: number) => void} [options.pick] a line was clicked
 * @param {(range: number) => void} [options.opened] a fold was opened
 */
export function editor(parent, options) {
  const state = EditorState.create({
    doc: options.lines.join("\n"),
    extensions: [
      EditorState.readOnly.of(true),
      EditorView.editable.of(false),
      EditorView.contentAttributes.of({ tabindex: "0", "aria-readonly": "true" }),
      LANGUAGES[options.language] ?? [],
      syntaxHighlighting(classHighlighter),
      options.gutters.map(gutterOf),
      options.wrap ? EditorView.lineWrapping : [],
      paint(options),
      options.folds?.length ? folding(options) : [],
      options.explain ? explaining(options.explain) : [],
      options.pick ? picking(options.pick) : [],
    ],
  });
  return new EditorView({ state, parent });
}

export function refresh(view) {
  view.dispatch({ effects: repaint.of(null) });
}

export function open(view, range) {
  view.dispatch({ effects: unfold.of(range) });
}

function gutterOf({ name, text, click }) {
  class Marker extends GutterMarker {
    constructor(content) {
      super();
      this.content = content;
    }
    eq(other) {
      return other.content === this.content;
    }
    toDOM() {
      return document.createTextNode(this.content);
    }
  }
  const marker = (view, block) => {
    const content = text(view.state.doc.lineAt(block.from).number - 1);
    return content ? new Marker(content) : null;
  };
  return gutter({
    class: `gutter-${name}`,
    lineMarker: marker,
    lineMarkerChange: (update) =>
      update.transactions.some((one) => one.effects.some((effect) => effect.is(repaint))),
    domEventHandlers: click
      ? { mousedown: (view, block) => (click(view.state.doc.lineAt(block.from).number - 1), true) }
      : {},
  });
}

/** Decorations of the lines that are on the screen. */
function paint(options) {
  const build = (view) => {
    const found = [];
    const term = options.term?.();
    for (const { from, to } of view.visibleRanges) {
      for (let at = from; at <= to;) {
        const line = view.state.doc.lineAt(at);
        const place = line.number - 1;
        const kind = options.kind(place);
        if (kind) found.push(Decoration.line({ class: kind }).range(line.from));
        if (options.wrap) found.push(hanging(line));
        const partner = options.partner?.(place);
        if (partner !== undefined) found.push(...words(line, partner));
        if (term) found.push(...matches(line, term, (from) => options.current?.(place, from)));
        at = line.to + 1;
      }
    }
    return Decoration.set(found, true);
  };
  return ViewPlugin.fromClass(
    class {
      constructor(view) {
        this.decorations = build(view);
      }
      update(update) {
        const asked = update.transactions.some((one) => one.effects.length);
        if (update.viewportChanged || update.docChanged || asked) this.decorations = build(update.view);
      }
    },
    { decorations: (plugin) => plugin.decorations },
  );
}

function words(line, partner) {
  if (line.length > LONGEST || partner.length > LONGEST) return [];
  const changes = presentableDiff(line.text, partner).filter((change) => change.toA > change.fromA);
  const changed = changes.reduce((sum, change) => sum + change.toA - change.fromA, 0);
  if (changed > 0.7 * line.text.trim().length) return []; // hardly anything is left: the whole line changed
  const mark = Decoration.mark({ class: "word" });
  return changes.map((change) => mark.range(line.from + change.fromA, line.from + change.toA));
}

function matches(line, term, current) {
  return places(line.text, term).map((at) => {
    const mark = Decoration.mark({ class: current(at) ? "match current" : "match" });
    return mark.range(line.from + at, line.from + at + term.length);
  });
}

/** Where a line that is wrapped goes on: further in than it began. */
function hanging(line) {
  const indent = Math.min(line.text.search(/\S|$/), DEEPEST) + HANGING;
  const style = `padding-left:calc(8px + ${indent}ch);text-indent:-${indent}ch`;
  return Decoration.line({ attributes: { style } }).range(line.from);
}

class Fold extends WidgetType {
  constructor(range, count, opened) {
    super();
    Object.assign(this, { range, count, opened });
  }
  eq(other) {
    return other.range === this.range && other.count === this.count;
  }
  toDOM() {
    const element = document.createElement("div");
    element.className = "fold";
    element.textContent = `${this.count} equal lines`;
    element.title = "show them";
    element.onclick = () => this.opened(this.range);
    return element;
  }
  get estimatedHeight() {
    return 22; // as in report.css
  }
}

function folding({ folds, opened }) {
  const build = (doc, ranges) =>
    Decoration.set(
      ranges.map((range) => {
        const [low, high] = folds[range];
        const widget = new Fold(range, high - low, opened);
        return Decoration.replace({ widget, block: true }).range(doc.line(low + 1).from, doc.line(high).to);
      }),
    );
  return StateField.define({
    create: (state) => ({
      ranges: folds.map((_, range) => range),
      made: build(state.doc, [...folds.keys()]),
    }),
    update(value, transaction) {
      const gone = transaction.effects.filter((effect) => effect.is(unfold)).map((effect) => effect.value);
      if (!gone.length) return value;
      const ranges = value.ranges.filter((range) => !gone.includes(range));
      return { ranges, made: build(transaction.state.doc, ranges) };
    },
    provide: (field) => EditorView.decorations.from(field, (value) => value.made),
  });
}

function explaining(explain) {
  return hoverTooltip((view, position) => {
    const line = view.state.doc.lineAt(position);
    for (const found of line.text.matchAll(/#[A-Za-z_]\w*/g)) {
      const [from, to] = [line.from + found.index, line.from + found.index + found[0].length];
      if (position < from || position > to) continue;
      const meaning = explain(line.number - 1, found[0]);
      if (!meaning) return null;
      const dom = document.createElement("div");
      dom.className = "meaning";
      dom.textContent = meaning;
      return { pos: from, end: to, create: () => ({ dom }) };
    }
    return null;
  });
}

function picking(pick) {
  return EditorView.domEventHandlers({
    click(event, view) {
      if (!view.state.selection.main.empty) return;
      const position = view.posAtCoords(event);
      if (position !== null) pick(view.state.doc.lineAt(position).number - 1);
    },
  });
}
