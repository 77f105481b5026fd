// Elements, and how numbers are written. Text goes in as text: nothing on this page is ever read as HTML.

/**
 * @param {string} tag with classes: `span.time`
 * @param {Record<string, unknown>} attributes; a function is a listener
 * @param {...(Node | string | number | null | undefined)} children
 */
export function h(tag, attributes = {}, ...children) {
  const [name, ...classes] = tag.split(".");
  return fill(document.createElement(name), classes, attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  const [name, ...classes] = tag.split(".");
  return fill(document.createElementNS("http://www.w3.org/2000/svg", name), classes, attributes, children);
}

function fill(element, classes, attributes, children) {
  if (classes.length) element.setAttribute("class", classes.join(" "));
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value !== null && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(
    ...children
      .filter((child) => child !== null && child !== undefined)
      .map((child) => (typeof child === "number" ? String(child) : child)),
  );
  return element;
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "";
  if (!seconds) return "0";
  if (seconds >= 1) return `${seconds.toFixed(seconds < 10 ? 2 : 1)} s`;
  const milliseconds = seconds * 1000;
  if (milliseconds >= 1) return `${milliseconds.toFixed(milliseconds < 10 ? 1 : 0)} ms`;
  return `${Math.round(seconds * 1e6)} \u00b5s`;
}

export function bytes(size) {
  for (const unit of ["B", "KB", "MB"]) {
    if (size < 1000) return `${size < 10 && unit !== "B" ? size.toFixed(1) : Math.round(size)} ${unit}`;
    size /= 1000;
  }
  return `${size.toFixed(1)} GB`;
}

/** Lets the browser draw and answer; a timer would wait for 4 ms each time. */
export function pause() {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(null);
  });
}
