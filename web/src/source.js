// The Python file at the bottom: which line of it a line of IR comes from, and back.

import { EditorView } from "@codemirror/view";

import { h } from "./dom.js";
import { editor, refresh } from "./editors.js";

const ABOVE = 22; // pixels that a function keeps above it: its decorator

export class Source {
  /**
   * @param {(text: number) => Promise<string>} read
   * @param {Record<string, number>} texts file to the number of its text
   * @param {(place: {file: string, line: number}) => void} onPick a line of Python was picked
   */
  constructor(parent, read, texts, onPick) {
    Object.assign(this, { parent, read, texts, onPick, file: null, line: 0, view: null });
    this.head = h("div.head");
    this.body = h("div.body");
    parent.append(this.head, this.body);
  }

  get files() {
    return Object.keys(this.texts);
  }

  /** Mark a line. */
  async show({ file, line }) {
    this.line = line;
    await this.#go(file, line, { y: "center" });
  }

  /** Show a file from a line on. */
  async open({ file, line }) {
    this.line = 0;
    await this.#go(file, line, { y: "start", yMargin: ABOVE });
  }

  async #go(file, line, where) {
    if (file !== this.file) await this.#open(file);
    if (!this.view) return;
    refresh(this.view);
    if (line > 0 && line <= this.view.state.doc.lines) {
      const at = this.view.state.doc.line(line).from;
      this.view.dispatch({ effects: EditorView.scrollIntoView(at, where) });
    }
  }

  async #open(file) {
    this.file = file;
    this.view?.destroy();
    this.view = null;
    const choice = h(
      "select",
      { "aria-label": "source file", change: () => this.show({ file: choice.value, line: 0 }) },
      ...[...new Set([...this.files, file])].map((name) =>
        h("option", { value: name, title: name, selected: name === file }, short(name)),
      ),
    );
    this.head.replaceChildren(choice, h("span", {}, "click a line to mark what became of it"));
    this.body.replaceChildren();
    const text = this.texts[file];
    if (text === undefined) {
      this.body.append(h("p.none", {}, "This file was not there when the report was made."));
      return;
    }
    const lines = (await this.read(text)).split("\n");
    if (this.file !== file) return; // another one was asked for meanwhile
    this.view = editor(this.body, {
      lines,
      language: "python",
      kind: (line) => (line + 1 === this.line ? "marked" : ""),
      gutters: [{ name: "number", text: (line) => String(line + 1) }],
      pick: (line) => {
        this.line = line + 1;
        refresh(this.view);
        this.onPick({ file, line: line + 1 });
      },
    });
  }
}

function short(name) {
  return name.split("/").slice(-2).join("/");
}
