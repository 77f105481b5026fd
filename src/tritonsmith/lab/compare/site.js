// The page of `farm --site`: a table of kernels over many Tritons, filtered and sorted by what the address says.
// Names and messages are those of strangers: they are only ever set as text, never as HTML.
"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const block = (id) => JSON.parse($(id).textContent);
  const index = block("index");
  const tritons = index.tritons;
  const count = tritons.length;
  const CPU = "compile CPU, s";
  const SHOW = { all: "all", changed: "changed", findings: "findings", unsure: "not sure" };
  const SORT = { worst: "worst finding", change: "largest change", value: "value", list: "order of the list", name: "name" };
  const CHUNK = 100; // rows: two thousand at once take a second, and nobody reads so many
  const loaded = new Map();
  let view; // what is chosen, as in the address
  let data; // of the target
  let rows = []; // numbers of the rows that are shown
  let shown = 0;

  // A block is parsed when its target is looked at first.
  function load(target) {
    const number = index.targets.indexOf(target);
    if (!loaded.has(number)) loaded.set(number, prepared(block(`data-${number}`)));
    return loaded.get(number);
  }

  function prepared(raw) {
    raw.names = [...raw.metrics.map(([name]) => name), CPU];
    raw.titles = [...raw.metrics.map(([, title]) => title), "compile, CPU seconds"];
    raw.better = [...raw.metrics.map(([, , better]) => better), "lower"];
    raw.pairs = raw.found.map((list) => {
      const pairs = new Map();
      for (const [a, b, kind, what] of list) {
        const key = `${a} ${b}`;
        if (!pairs.has(key)) pairs.set(key, []);
        pairs.get(key).push({ kind: raw.kinds[kind][0], rank: kind, sure: raw.kinds[kind][1] === 1, what: raw.texts[what] });
      }
      return pairs;
    });
    raw.search = raw.kernel.map((name, row) => `${name} ${raw.texts[raw.point[row]]} ${raw.texts[raw.package[row]]}`.toLowerCase());
    return raw;
  }

  const fails = (state) => state.length === 1;
  const stateAt = (row, triton) => (data.at[row][triton] < 0 ? null : data.states[row][data.at[row][triton]]);

  // A number; null if it is not known, undefined if there was no compile, or one that failed.
  function valueAt(row, triton, metric) {
    const state = stateAt(row, triton);
    if (!state || fails(state)) return undefined;
    return metric === data.metrics.length ? data.cpu[row][triton] : state[metric + 1];
  }

  function findingsOf(row, a, b) {
    const [from, to] = [data.at[row][a], data.at[row][b]];
    if (from < 0 || to < 0) return [{ kind: "not compiled", rank: Infinity, sure: false, what: `by ${tritons[from < 0 ? a : b].label}` }];
    return data.pairs[row].get(`${from} ${to}`) || [];
  }

  // The metrics that differ, but for times, which differ always.
  function changesOf(row, a, b) {
    const [from, to] = [stateAt(row, a), stateAt(row, b)];
    if (!from || !to || from === to || fails(from) || fails(to)) return [];
    return data.metrics.flatMap(([name], metric) => (from[metric + 1] === to[metric + 1] ? [] : [{ metric, name, from: from[metric + 1], to: to[metric + 1] }]));
  }

  const growth = (from, to) => (from === to ? 0 : from === 0 ? Infinity : (to - from) / from);
  const isNumber = (value) => typeof value === "number";

  function verdictOf(metric, from, to) {
    if (!isNumber(from) || !isNumber(to) || from === to || !data.better[metric]) return "";
    return to < from === (data.better[metric] === "lower") ? "better" : "worse";
  }

  function text(value) {
    if (value === undefined) return "";
    if (value === null) return "?";
    return isNumber(value) ? String(Math.round(value * 1000) / 1000) : String(value);
  }

  function textAt(row, triton, metric) {
    const state = stateAt(row, triton);
    return !state ? "–" : fails(state) ? "×" : text(valueAt(row, triton, metric));
  }

  function percent(from, to) {
    const share = growth(from, to);
    return isNumber(from) && isNumber(to) && Number.isFinite(share) && share ? ` (${share > 0 ? "+" : "−"}${Math.abs(Math.round(share * 100))} %)` : "";
  }

  // Elements.

  function element(tag, options = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(options)) {
      if (name === "text") made.textContent = value;
      else if (name === "class") made.className = value;
      else made.setAttribute(name, value);
    }
    made.append(...children);
    return made;
  }

  function drawn(tag, options, content = "") {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(options)) made.setAttribute(name, value);
    made.textContent = content;
    return made;
  }

  // The step from one known value to the next that is the largest, by its share.
  function largest(values) {
    let best = null;
    let before = -1;
    values.forEach((value, place) => {
      if (!isNumber(value)) return;
      if (before >= 0) {
        const size = Math.abs(growth(values[before], value));
        if (size > 0 && (!best || size > best.size)) best = { size, place, from: values[before], to: value };
      }
      before = place;
    });
    return best;
  }

  const WIDTH = 170;
  const HEIGHT = 30;
  const EDGE = 5;
  function line(row, metric) {
    const values = tritons.map((_, triton) => valueAt(row, triton, metric));
    const most = Math.max(...values.filter(isNumber), 0) || 1;
    const step = (WIDTH - 2 * EDGE) / Math.max(1, count - 1);
    const x = (place) => (EDGE + place * step).toFixed(1);
    // From zero: on an axis that begins at the least value, noise looks like a cliff.
    const y = (value) => (HEIGHT - EDGE - ((HEIGHT - 2 * EDGE) * value) / most).toFixed(1);
    const label = tritons.map((triton, place) => `${triton.label}: ${textAt(row, place, metric)}`).join(", ");
    const made = drawn("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "xMinYMid", class: "line", role: "img", "aria-label": label });
    made.append(drawn("title", {}, label.replaceAll(", ", "\n")));
    const left = Math.min(view.a, view.b);
    const right = Math.max(view.a, view.b);
    made.append(drawn("rect", { class: "ends", x: x(left) - 3, y: 0, width: (right - left) * step + 6, height: HEIGHT }));
    made.append(drawn("path", { class: "zero", d: `M0 ${HEIGHT - EDGE}H${WIDTH}` }));
    let path = "";
    let open = false;
    values.forEach((value, place) => {
      if (isNumber(value)) path += `${open ? "L" : "M"}${x(place)} ${y(value)}`;
      open = isNumber(value);
      const state = stateAt(row, place);
      if (state && fails(state)) made.append(drawn("path", { class: "cross", d: `M${x(place) - 3} 12l6 6m0 -6l-6 6` }));
      // A point between two gaps has no line.
      if (isNumber(value) && !isNumber(values[place - 1]) && !isNumber(values[place + 1])) made.append(drawn("circle", { cx: x(place), cy: y(value), r: 1.6 }));
    });
    made.append(drawn("path", { d: path }));
    const step_ = metric === data.metrics.length ? null : largest(values); // times differ always
    if (step_) made.append(drawn("circle", { class: verdictOf(metric, step_.from, step_.to), cx: x(step_.place), cy: y(step_.to), r: 2.8 }));
    return made;
  }

  function changes(row) {
    const found = findingsOf(row, view.a, view.b);
    const parts = found.map(({ kind, sure, what }) =>
      element("div", {}, element("span", { class: `kind ${sure ? "worse" : "unsure"}`, text: kind }), what ? `: ${what}` : ""));
    const rest = changesOf(row, view.a, view.b).filter(({ name }) => !found.some(({ what }) => what.startsWith(`${name} `)));
    if (rest.length) {
      const items = rest.flatMap(({ metric, name, from, to }, place) => [
        place ? ", " : "",
        element("span", { class: verdictOf(metric, from, to), text: `${name} ${text(from)} → ${text(to)}` }),
      ]);
      parts.push(element("div", { class: found.length ? "soft" : "" }, ...items));
    }
    const after = stateAt(row, view.b);
    const before = stateAt(row, view.a);
    if (before && after && fails(before) && !fails(after)) parts.push(element("div", { class: "better", text: "compiles now" }));
    if (after && !fails(after) && after[0]) parts.push(element("div", { class: "soft", text: data.texts[after[0]] }));
    return parts;
  }

  function rowOf(row) {
    const opened = view.open === key(row);
    const toggle = element("button", { type: "button", text: data.kernel[row], "aria-expanded": opened });
    const soft = [data.texts[data.point[row]], data.texts[data.package[row]]].filter(Boolean).join(" · ");
    const [from, to] = [view.a, view.b].map((triton) => textAt(row, triton, view.metric));
    const verdict = verdictOf(view.metric, valueAt(row, view.a, view.metric), valueAt(row, view.b, view.metric));
    const made = element("tr", { class: opened ? "open" : "" },
      element("td", { class: "name" }, toggle, ...(soft ? [element("div", { class: "soft", text: soft })] : [])),
      element("td", {}, line(row, view.metric)),
      element("td", { class: view.a === view.b ? "number" : "number before", text: view.a === view.b ? "" : from }),
      element("td", { class: "number" }, element("b", { class: verdict, text: to })),
      element("td", { class: "changes" }, ...changes(row)));
    toggle.addEventListener("click", () => {
      const before = view.open;
      view.open = before === key(row) ? "" : key(row);
      remember();
      for (const other of document.querySelectorAll("tr.details")) {
        other.previousSibling.classList.remove("open");
        other.previousSibling.querySelector("button").setAttribute("aria-expanded", "false");
        other.remove();
      }
      if (view.open) {
        made.classList.add("open");
        toggle.setAttribute("aria-expanded", "true");
        made.after(details(row));
      }
    });
    return opened ? [made, details(row)] : [made];
  }

  const key = (row) => `${data.kernel[row]} ${data.texts[data.point[row]]}`.trim();

  // Every value of a row, and the commands that go on.
  function details(row) {
    const head = element("tr", {}, ...["Triton", ...data.names].map((name, place) => element("th", { scope: "col", class: place ? "number" : "", text: name })), element("th", { scope: "col", text: "since the one before" }));
    const body = tritons.map((triton, place) => {
      const state = stateAt(row, place);
      const chosen = place === view.a || place === view.b ? "chosen" : "";
      const first = element("th", { scope: "row", text: triton.label });
      if (!state) return element("tr", { class: chosen }, first, element("td", { class: "soft", colspan: data.names.length + 1, text: "not compiled" }));
      const since = place && data.at[row][place - 1] >= 0 ? findingsOf(row, place - 1, place) : [];
      const told = since.map(({ kind, what }) => (what ? `${kind}: ${what}` : kind)).join("; ");
      if (fails(state)) return element("tr", { class: chosen }, first, element("td", { class: "message worse", colspan: data.names.length, text: data.texts[state[0]] }), element("td", { class: "message", text: told }));
      const cells = data.names.map((_, metric) => {
        const [before, now] = [place ? valueAt(row, place - 1, metric) : undefined, valueAt(row, place, metric)];
        const verdict = metric < data.metrics.length ? verdictOf(metric, before, now) : "";
        return element("td", { class: `number ${verdict}`, text: text(now) });
      });
      return element("tr", { class: chosen }, first, ...cells, element("td", { class: "message", text: [told, data.texts[state[0]]].filter(Boolean).join("; ") }));
    });
    const table = element("div", { class: "scroll", tabindex: 0 }, element("table", {}, element("thead", {}, head), element("tbody", {}, ...body)));
    const next = view.a === view.b ? [] : [element("div", { class: "soft", text: "what got worse, and the command that finds the commit:" }), element("pre", { text: command(row) })];
    return element("tr", { class: "details" }, element("td", { colspan: 5 }, table, ...next));
  }

  const quoted = (word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\"'\"'")}'`);

  function command(row) {
    const [from, to] = [tritons[view.a], tritons[view.b]];
    const kernel = `${index.file}:${data.kernel[row]}`;
    // `compare` takes no commits, and `farm` takes both.
    const flags = from.built || to.built ? ["farm", "--base", "--head"] : ["compare", "--from", "--to"];
    return ["invoke", flags[0], kernel, flags[1], from.word, flags[2], to.word, "--target", view.target].map(quoted).join(" ");
  }

  // The rows of a view.

  function chosenRows() {
    const words = view.q.toLowerCase().split(/\s+/).filter(Boolean);
    const { a, b, metric } = view;
    const totals = { findings: 0, worse: 0, changed: 0, unsure: 0, kinds: new Map() };
    const list = [];
    data.kernel.forEach((_, row) => {
      if (!words.every((word) => data.search[row].includes(word))) return;
      const found = findingsOf(row, a, b);
      const sure = found.filter((finding) => finding.sure);
      const unsure = found.length > sure.length;
      const [from, to] = [stateAt(row, a), stateAt(row, b)];
      const changed = sure.length > 0 || changesOf(row, a, b).length > 0 || Boolean(from && to && fails(from) !== fails(to));
      totals.findings += sure.length;
      totals.worse += sure.length > 0;
      totals.changed += changed;
      totals.unsure += unsure;
      for (const { kind, rank } of sure) totals.kinds.set(kind, [rank, (totals.kinds.get(kind) || [0, 0])[1] + 1]);
      if (view.show === "changed" && !changed) return;
      if (view.show === "findings" && !sure.length) return;
      if (view.show === "unsure" && !unsure) return;
      const [before, now] = [valueAt(row, a, metric), valueAt(row, b, metric)];
      const change = isNumber(before) && isNumber(now) ? growth(before, now) : 0;
      list.push({ row, rank: found.length ? found[0].rank : Infinity, change, size: Math.abs(change), value: isNumber(now) ? now : -1 });
    });
    const order = {
      worst: (p, q) => p.rank - q.rank || q.size - p.size || p.row - q.row,
      change: (p, q) => q.size - p.size || p.row - q.row,
      value: (p, q) => q.value - p.value || p.row - q.row,
      list: (p, q) => p.row - q.row,
      name: (p, q) => (data.kernel[p.row] < data.kernel[q.row] ? -1 : data.kernel[p.row] > data.kernel[q.row] ? 1 : p.row - q.row),
    };
    // Infinity less Infinity is no number: two ranks, or two growths from zero, that are alike.
    const by = order[view.sort];
    list.sort((p, q) => by(capped(p), capped(q)));
    return [list.map(({ row }) => row), totals];
  }

  const capped = (row) => ({ ...row, rank: Math.min(row.rank, 1e9), size: Math.min(row.size, 1e9) });
  const counted = (number, what) => `${number.toLocaleString("en")} ${what}${number === 1 ? "" : "s"}`;

  function render() {
    data = load(view.target);
    const [list, totals] = chosenRows();
    rows = list;
    $("over").textContent = data.names[view.metric];
    $("over").title = `${data.titles[view.metric]}, by ${tritons.map(({ label }) => label).join(", ")}`;
    $("a").textContent = view.a === view.b ? "" : tritons[view.a].label;
    $("b").textContent = tritons[view.b].label;
    const kinds = [...totals.kinds].sort((p, q) => p[1][0] - q[1][0]).map(([kind, [, number]]) => `${kind} ${number}`);
    const parts = [
      kinds.length ? `${counted(totals.findings, "finding")} in ${counted(totals.worse, "compile")} (${kinds.join(", ")})` : "no finding",
      `${totals.changed.toLocaleString("en")} changed`,
      ...(totals.unsure ? [`${totals.unsure.toLocaleString("en")} not sure`] : []),
      `${rows.length.toLocaleString("en")} of ${data.kernel.length.toLocaleString("en")} shown`,
    ];
    const lead = `${tritons[view.a].label} → ${tritons[view.b].label}: `;
    $("summary").textContent = view.a === view.b ? parts.at(-1) : lead + parts.join("; ");
    document.querySelector("#rows tbody").replaceChildren();
    shown = 0;
    more(Math.max(CHUNK, rows.findIndex((row) => key(row) === view.open) + 1));
  }

  function more(number) {
    const next = rows.slice(shown, shown + number);
    shown += next.length;
    document.querySelector("#rows tbody").append(...next.flatMap(rowOf));
    $("rest").hidden = shown === rows.length;
    $("more").textContent = `${Math.min(CHUNK, rows.length - shown)} more of ${(rows.length - shown).toLocaleString("en")}`;
  }

  // The address: only what is not the default, so that a link stays short and readable.

  const byLabel = (label, other) => {
    const place = tritons.findIndex((triton) => triton.label === label);
    return place < 0 ? other : place;
  };

  function read() {
    const said = new URLSearchParams(location.hash.slice(1));
    const target = index.targets.includes(said.get("target")) ? said.get("target") : index.targets[0];
    const names = load(target).names;
    view = {
      target,
      metric: Math.max(0, names.indexOf(said.get("metric") || "")),
      a: byLabel(said.get("from"), 0),
      b: byLabel(said.get("to"), count - 1),
      show: Object.hasOwn(SHOW, said.get("show")) ? said.get("show") : "all",
      sort: Object.hasOwn(SORT, said.get("sort")) ? said.get("sort") : "worst",
      q: said.get("q") || "",
      open: said.get("open") || "",
    };
    // What was judged is what came later against what came before.
    if (view.a > view.b) [view.a, view.b] = [view.b, view.a];
  }

  function remember() {
    const said = new URLSearchParams();
    if (view.target !== index.targets[0]) said.set("target", view.target);
    if (view.metric) said.set("metric", load(view.target).names[view.metric]);
    if (view.a) said.set("from", tritons[view.a].label);
    if (view.b !== count - 1) said.set("to", tritons[view.b].label);
    if (view.show !== "all") said.set("show", view.show);
    if (view.sort !== "worst") said.set("sort", view.sort);
    if (view.q) said.set("q", view.q);
    if (view.open) said.set("open", view.open);
    // `replaceState`, not `location.hash`: a letter that is typed is no step to go back.
    history.replaceState(null, "", `${location.pathname}${location.search}${String(said) ? `#${said}` : ""}`);
  }

  const fill = (id, options) => $(id).replaceChildren(...options.map(([value, label]) => element("option", { value, text: label })));

  function choose() {
    const names = load(view.target).names;
    fill("target", index.targets.map((name) => [name, name]));
    fill("metric", names.map((name, place) => [place, name]));
    for (const id of ["from", "to"]) fill(id, tritons.map(({ label }, place) => [place, label]));
    fill("show", Object.entries(SHOW));
    fill("sort", Object.entries(SORT));
    for (const [id, value] of [["target", view.target], ["metric", view.metric], ["from", view.a], ["to", view.b], ["show", view.show], ["sort", view.sort]]) $(id).value = value;
  }

  function changed() {
    const name = load(view.target).names[view.metric];
    view = { ...view, target: $("target").value, a: Number($("from").value), b: Number($("to").value), show: $("show").value, sort: $("sort").value, q: $("search").value.trim() };
    // A vendor may lack the metric that was looked at.
    const names = load(view.target).names;
    const picked = load(view.target) === data ? names[Number($("metric").value)] : name;
    view.metric = Math.max(0, names.indexOf(picked));
    if (view.a > view.b) [view.a, view.b] = [view.b, view.a];
    choose();
    remember();
    render();
  }

  function start() {
    read();
    choose();
    $("search").value = view.q; // only here: whoever types a blank goes on typing
    // Of one Triton there are no two to choose.
    for (const id of ["from", "to", "show"]) $(id).parentElement.hidden = count === 1;
    $("choices").hidden = false;
    $("rows").hidden = false;
    render();
    document.body.dataset.shown = "";
  }

  $("choices").addEventListener("change", changed);
  $("search").addEventListener("input", changed);
  $("choices").addEventListener("submit", (event) => event.preventDefault());
  $("more").addEventListener("click", () => more(CHUNK));
  $("all").addEventListener("click", () => more(rows.length));
  // Whoever prints a list wants all of it.
  addEventListener("beforeprint", () => more(rows.length));
  addEventListener("hashchange", start);
  addEventListener("keydown", (event) => {
    if (event.key === "/" && !/INPUT|SELECT|TEXTAREA/.test(event.target.tagName)) {
      event.preventDefault();
      $("search").focus();
    }
  });
  start();
})();
