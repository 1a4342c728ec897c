// Helpers that every figure uses. base.py puts this file before a figure's own module, and the
// book's bundle does the same, so that a module needs no import.

const SVG_NAMESPACE = "http://www.w3.org/2000/svg";

/** Make an element; a tag such as "svg:rect" makes SVG. Attributes that are null are left out. */
function h(tag, attributes = {}, ...children) {
  const node = tag.startsWith("svg:")
    ? document.createElementNS(SVG_NAMESPACE, tag.slice(4))
    : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) put(node, name, value);
  node.append(...children.flat());
  return node;
}

/** Set an attribute only where it changes, which keeps a drag cheap. */
function put(node, name, value) {
  if (value === null || value === undefined) node.removeAttribute(name);
  else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
}

function write(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** A number for people: fixed decimals, a true minus sign, no "−0.00". */
function show(number, decimals = 2) {
  const text = number.toFixed(decimals);
  return (Number(text) === 0 ? text.replace("-", "") : text).replace("-", "−");
}

function sum(numbers) {
  return numbers.reduce((total, number) => total + number, 0);
}

function dot(a, b) {
  return sum(a.map((number, i) => number * b[i]));
}

function range(n) {
  return Array.from({ length: n }, (_, i) => i);
}

/** Weights over the allowed keys; zeros where none is allowed, as in masked_softmax. */
function softmax(scores, allowed = null) {
  const kept = allowed ? scores.map((s, i) => (allowed[i] ? s : -Infinity)) : scores;
  const top = Math.max(...kept);
  if (top === -Infinity) return scores.map(() => 0);
  const powers = kept.map((s) => Math.exp(s - top));
  const total = sum(powers);
  return powers.map((p) => p / total);
}

/** A dimension's name over the bar of its colour. */
function dimension(name, text = name) {
  return h("span", { class: "af-dim", style: `--dim: var(--dim-${name})` }, text);
}

/**
 * The frame of a figure: prediction, controls, stage, the line that reads numbers out, reset and
 * caption. `traits` are the values the reader moves; `draw` runs whenever one changes.
 */
function frame({ model, el }, { traits, question, answers, right, because, draw }) {
  const start = JSON.stringify(traits.map((name) => model.get(name)));
  const syncs = [];
  const verdict = h("p", { class: "af-verdict", role: "status" });
  let moved = false;
  const judge = () => {
    const chosen = form.elements.prediction?.value ?? "";
    if (chosen === "") write(verdict, "");
    else if (!moved) write(verdict, "Noted. Now move a control below and see.");
    else write(verdict, `${Number(chosen) === right ? "You saw it coming." : "It comes out otherwise."} ${because}`);
  };
  const predict = h("fieldset", { class: "af-predict" },
    h("legend", {}, "Predict first"),
    h("p", {}, question),
    ...answers.map((answer, i) =>
      h("label", {}, h("input", { type: "radio", name: "prediction", value: i }), answer)),
    verdict);
  const controls = h("div", { class: "af-controls" });
  const alt = model.get("alt");
  const stage = h("div", { class: "af-stage", role: "group", "aria-label": alt });
  const hint = "Point at a number, or reach it with Tab and the arrow keys, to read it here.";
  const reading = h("p", { class: "af-reading", role: "status" }, hint);
  const reset = h("button", { type: "button", class: "af-reset" }, "Reset");
  const form = h("form", { class: "af-form" }, predict, controls, stage,
    h("div", { class: "af-foot" }, reading, reset),
    h("p", { class: "af-caption" }, model.get("caption")));

  const read = (target) => {
    const mark = target.closest?.("[data-at]");
    if (mark) write(reading, mark.getAttribute("aria-label"));
    return mark;
  };
  let last = null;
  const refresh = () => {
    for (const sync of syncs) sync();
    draw();
    // Each group keeps one way in by Tab, also when the mark that was it is hidden now.
    for (const group of stage.querySelectorAll("[data-marks]")) {
      if (!group.querySelector('[tabindex="0"]:not([hidden])')) {
        group.querySelector("[data-at]:not([hidden])")?.setAttribute("tabindex", 0);
      }
    }
    if (last?.isConnected) read(last);
  };
  const put_back = () => {
    const values = JSON.parse(start);
    traits.forEach((name, i) => model.set(name, values[i]));
    model.save_changes();
    for (const radio of predict.querySelectorAll("input")) radio.checked = false;
    moved = false;
    put(stage, "aria-label", alt);
    last = null;
    judge();
    write(reading, hint);
    refresh();
  };

  form.addEventListener("submit", (event) => event.preventDefault());
  // JupyterLab takes arrow keys for itself unless they stay inside the figure.
  form.addEventListener("keydown", (event) => event.stopPropagation());
  predict.addEventListener("change", judge);
  stage.addEventListener("pointerover", (event) => (last = read(event.target) ?? last));
  stage.addEventListener("focusin", (event) => (last = read(event.target) ?? last));
  stage.addEventListener("keydown", (event) => walk(event));
  reset.addEventListener("click", put_back);
  for (const name of traits) model.on(`change:${name}`, refresh);

  const set = (name, value) => {
    model.set(name, value);
    model.save_changes();
    if (!moved) {
      moved = true;
      put(stage, "aria-label", model.get("caption")); // `alt` told how the figure stood at first
      judge();
    }
  };
  return {
    stage,
    set,
    /** A labelled slider over `stops` (or what `stops()` gives now); `text` says a stop and unit. */
    slider({ label, stops, get, change, text = String, hidden = () => false, parent = controls }) {
      const now = () => (typeof stops === "function" ? stops() : stops);
      const input = h("input", { type: "range", min: 0, step: 1 });
      const output = h("output", { class: "af-value" });
      const node = h("label", { class: "af-slider" }, h("span", {}, label), input, output);
      parent.append(node);
      input.addEventListener("input", () => change(now()[Number(input.value)]));
      syncs.push(() => {
        const value = get();
        const index = nearest(now(), value);
        put(input, "max", now().length - 1);
        if (input.value !== String(index)) input.value = index;
        put(input, "aria-valuetext", text(value));
        write(output, text(value));
        node.hidden = hidden();
      });
      return input;
    },
    /** A choice between a few named values of one trait. */
    choice({ label, name, options, get = () => model.get(name), change = (value) => set(name, value) }) {
      const inputs = options.map(([value]) => h("input", { type: "radio", name, value }));
      controls.append(h("fieldset", { class: "af-choice" }, h("legend", {}, label),
        ...options.map(([, text], i) => h("label", {}, inputs[i], text))));
      options.forEach(([value], i) => inputs[i].addEventListener("change", () => change(value)));
      syncs.push(() => options.forEach(([value], i) => (inputs[i].checked = get() === value)));
    },
    /** Put the finished figure on the page; returns what takes it off again. */
    open() {
      refresh();
      el.classList.add("attention-figure");
      el.append(form);
      return () => traits.forEach((name) => model.off(`change:${name}`, refresh));
    },
  };
}

function nearest(stops, value) {
  let best = 0;
  stops.forEach((stop, i) => {
    if (Math.abs(stop - value) < Math.abs(stops[best] - value)) best = i;
  });
  return best;
}

/** Make `node` readable by pointer, keyboard and screen reader; `row`, `column` are its place. */
function mark(node, row, column) {
  put(node, "data-at", `${row},${column}`);
  put(node, "role", "img");
  put(node, "tabindex", -1);
  return node;
}

/** Say what a mark holds: `key` and `value` exactly, `reading` for people. */
function say(node, key, value, reading) {
  put(node, "data-key", key);
  put(node, "data-value", value);
  put(node, "aria-label", reading);
}

/** Arrow keys walk over the marks of a group; only one mark of a group is in the Tab order. */
function walk(event) {
  const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
  const from = event.target.closest("[data-at]");
  if (!step || !from) return;
  event.preventDefault();
  const group = from.closest("[data-marks]");
  const [row, column] = from.getAttribute("data-at").split(",").map(Number);
  const to = group.querySelector(`[data-at="${row + step[0]},${column + step[1]}"]`);
  if (!to || to.hidden) return;
  put(from, "tabindex", -1);
  put(to, "tabindex", 0);
  to.focus();
}

/**
 * A matrix as an HTML table of numbers. `rows` and `columns` are labels, `dims` the names of the
 * two dimensions, null where an axis is none. Returns the node and its cells; `fill(cell, …)` writes one.
 */
function grid({ title, rows, columns, dims, extra = [] }) {
  const all = [...columns, ...extra];
  const heads = all.map((text) => h("span", { class: "af-head" }, text));
  const cells = rows.map((_, r) => all.map((_, c) => mark(h("div", { class: c < columns.length ? "af-cell" : "af-cell af-sum" }), r, c)));
  const sides = rows.map((text) => h("span", { class: "af-side" }, text));
  const node = h("div", { class: "af-matrix" },
    h("p", { class: "af-title" }, title, " (",
      ...dims.filter(Boolean).flatMap((name, i) => [i ? ", " : "", dimension(name)]), ")"),
    h("div", { class: "af-grid", "data-marks": "", role: "group", "aria-label": title, style: `--columns: ${all.length}` },
      h("span"), ...heads, ...rows.flatMap((_, r) => [sides[r], ...cells[r]])));
  return { node, cells, heads, sides };
}

/** Write a number into a cell: `shade` from −1 to 1 tints it, `off` greys it out. */
function fill(cell, { key, value, text, reading, shade = 0, off = false, on = false }) {
  write(cell, text);
  say(cell, key, value, reading);
  cell.style.setProperty("--shade", Math.min(1, Math.abs(shade)));
  cell.classList.toggle("af-negative", shade < 0);
  cell.classList.toggle("af-off", off);
  cell.classList.toggle("af-on", on);
}

/** Three to seven round numbers within an interval. */
function ticks([low, high]) {
  const rough = (high - low) / 5;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough);
  const first = Math.ceil(low / step);
  return range(Math.floor(high / step) - first + 1).map((i) => Number(((first + i) * step).toPrecision(6)));
}

/** Axes to draw on: maps numbers to the picture, with ticks and the labels' units. */
function axes({ title, width = 320, height = 190, x, y, xLabel, yLabel, xTicks, yTicks, left = 46 }) {
  const box = { left, right: width - 12, top: 12, bottom: height - 40 };
  const sx = (value) => box.left + ((value - x[0]) / (x[1] - x[0])) * (box.right - box.left);
  const sy = (value) => box.bottom - ((value - y[0]) / (y[1] - y[0])) * (box.bottom - box.top);
  const text = (at, value, more = {}) => h("svg:text", { x: at[0], y: at[1], "text-anchor": "middle", ...more }, value);
  const number = (value) => String(value).replace("-", "−");
  const layer = h("svg:g", { "data-marks": "", role: "group", "aria-label": title });
  const node = h("svg:svg", { viewBox: `0 0 ${width} ${height}`, class: "af-plot", style: `--plot-width: ${width}px` },
    h("svg:g", { class: "af-axes", "aria-hidden": "true" },
      h("svg:path", { d: `M${box.left},${box.top}V${box.bottom}H${box.right}` }),
      ...xTicks.map((value) => text([sx(value), box.bottom + 15], number(value))),
      ...yTicks.map((value) => text([box.left - 6, sy(value) + 4], number(value), { "text-anchor": "end" })),
      text([(box.left + box.right) / 2, height - 8], xLabel, { class: "af-label" }),
      text([0, 0], yLabel, { class: "af-label", transform: `translate(12 ${(box.top + box.bottom) / 2}) rotate(-90)` })),
    layer);
  return { node, layer, sx, sy, box };
}

/** A panel with a heading, for figures that set several pictures side by side. */
function panel(title, ...children) {
  return h("section", { class: "af-panel" }, h("p", { class: "af-title" }, title), ...children);
}

/** A line of named numbers, each readable by pointer and keyboard. */
function facts(names) {
  const values = names.map((_, i) => mark(h("span", { class: "af-fact" }), i, 0));
  const node = h("div", { class: "af-facts", "data-marks": "", role: "group", "aria-label": "figures" },
    ...names.map((name, i) => h("div", {}, h("span", {}, name), " ", values[i])));
  return { node, values };
}
