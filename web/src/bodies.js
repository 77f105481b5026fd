// The packed texts. Lines are known by number: equal lines have the same one, in whatever text they stand,
// so texts are compared and searched as lists of numbers.

export class Bodies {
  /** @param {number[]} starts number of the first text of each chunk */
  constructor(starts) {
    this.lines = []; // by number
    this.texts = []; // by number: Int32Array of numbers of lines, once it is loaded
    this.starts = starts;
    this.numbers = new Map();
    this.loading = [];
  }

  /** The lines of a text, as numbers. */
  async load(text) {
    if (!this.texts[text]) {
      let chunk = this.starts.length - 1;
      while (this.starts[chunk] > text) chunk--;
      this.loading[chunk] ??= this.#unpack(chunk);
      await this.loading[chunk];
    }
    return this.texts[text];
  }

  async string(text) {
    return Array.from(await this.load(text), (line) => this.lines[line]).join("\n");
  }

  async #unpack(chunk) {
    const element = document.getElementById(`chunk-${chunk}`);
    const packed = new Blob([fromBase64(element.textContent)]).stream();
    element.remove(); // its text would only take memory from now on
    const content = await new Response(packed.pipeThrough(new DecompressionStream("deflate"))).arrayBuffer();
    const view = new DataView(content);
    const size = view.getUint32(0, true);
    const lines = new TextDecoder().decode(new Uint8Array(content, 4, size)).split("\n");
    const numbers = Int32Array.from(lines, (line) => this.#number(line));
    let place = 4 + size;
    let last = -1;
    for (let text = this.starts[chunk]; place < content.byteLength; text++) {
      const made = new Int32Array(view.getInt32(place, true));
      place += 4;
      for (let i = 0; i < made.length; i++, place += 4) {
        last += 1 + view.getInt32(place, true);
        made[i] = numbers[last];
      }
      this.texts[text] = made;
    }
  }

  #number(line) {
    let number = this.numbers.get(line);
    if (number === undefined) {
      number = this.lines.length;
      this.numbers.set(line, number);
      this.lines.push(line);
    }
    return number;
  }
}

function fromBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const binary = atob(text);
  return Uint8Array.from(binary, (char) => char.charCodeAt(0));
}
