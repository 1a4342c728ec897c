// What every figure draws with: elements, numbers, marks, matrices, plots, fields. base.py puts this file
// and frame.js before a figure's own module, so that a module needs no import.

const SVG_NAMESPACE = "http://www.w3.org/2000/svg";

/**
 * A text in the language of the page: t("query") or t`key ${k}: ${weight}`, which translators see as
 * "key {0}: {1}". English where there is no translation, as in JupyterLab.
 */
const words = typeof attentionFigures === "undefined" ? {} : attentionFigures.words;
const templates = new Map(); // what was asked for before, taken apart: a drag asks hundreds of times
function t(text, ...values) {
  let parts = templates.get(text);
  if (!parts) {
    const key =
      typeof text === "string" ? text : text.reduce((all, part, i) => `${all}{${i - 1}}${part}`);
    parts = (words[key] ?? key).split(/\{(\d+)\}/); // every second one is the place of a value
    templates.set(text, parts);
  }
  return parts.map((part, i) => (i % 2 ? values[part] : part)).join("");
}

/** Sentences one after another; empty ones are left out. */
function together(...sentences) {
  return sentences.filter(Boolean).reduce((all, next) => (all ? t`${all} ${next}` : next), "");
}

/** A list within a sentence; empty items are left out. */
function inList(items) {
  return items.filter(Boolean).reduce((all, next) => t`${all}, ${next}`);
}

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

/** A field for the reader's words, the line that says what is wrong with them, and its writer. */
function wordField(figure) {
  const field = h("input", {
    type: "text",
    class: "af-word",
    autocomplete: "off",
    autocapitalize: "none",
    spellcheck: "false",
    dir: "auto",
  });
  const problem = h("p", { class: "af-problem" });
  const complain = (text) => {
    write(problem, text);
    put(field, "aria-invalid", text ? "true" : null);
    figure.announce("problem", text);
  };
  return { field, problem, complain };
}

/** A small button with a word, or with what it does to the words. */
function chip(text, change, about = {}) {
  const node = h("button", { type: "button", class: "af-button af-chip", ...about }, text);
  node.addEventListener("click", change);
  return node;
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
  let total = 0;
  for (let i = 0; i < a.length; i++) total += a[i] * b[i];
  return total;
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

function nearest(stops, value) {
  let best = 0;
  stops.forEach((stop, i) => {
    if (Math.abs(stop - value) < Math.abs(stops[best] - value)) best = i;
  });
  return best;
}

/** Make `node` readable by pointer, keyboard and screen reader; `row`, `column` are its place. */
function mark(node, row, column, role = "img") {
  put(node, "data-at", `${row},${column}`);
  put(node, "role", role);
  put(node, "tabindex", -1);
  return node;
}

/** Say what a mark holds: `key` and `value` exactly, `reading` for people. */
function say(node, key, value, reading) {
  put(node, "data-key", key);
  put(node, "data-value", value);
  node.reading = reading; // frame.js shows it next to the mark
  // A name holds what is seen, for those who speak it to reach the cell.
  const seen = node.namespaceURI.endsWith("xhtml") ? node.textContent : "";
  const isSaid = !seen || reading.split(/[^\w.−]+/).includes(seen);
  put(node, "aria-label", isSaid ? reading : t`${seen}: ${reading}`);
}

/** Arrow keys, Home and End walk over the marks of a group, of which one is in the Tab order. */
function walk(event) {
  const from = event.target.closest("[data-at]");
  if (!from) return;
  const place = (node) => node.getAttribute("data-at").split(",").map(Number);
  const [row, column] = place(from);
  const all = [...from.closest("[data-marks]").querySelectorAll("[data-at]")];
  const marks = all.filter((node) => !node.closest("[hidden]"));
  const beside = (rows, columns) =>
    marks.find((node) => `${place(node)}` === `${[row + rows, column + columns]}`);
  const line = event.ctrlKey ? marks : marks.filter((node) => place(node)[0] === row);
  const inOrder = line.sort((a, b) => place(a)[0] - place(b)[0] || place(a)[1] - place(b)[1]);
  const ways = {
    ArrowLeft: () => beside(0, -1),
    ArrowRight: () => beside(0, 1),
    ArrowUp: () => beside(-1, 0),
    ArrowDown: () => beside(1, 0),
    Home: () => inOrder[0],
    End: () => inOrder.at(-1),
  };
  if (!(event.key in ways)) return;
  event.preventDefault();
  const to = ways[event.key]();
  if (!to) return;
  put(from, "tabindex", -1);
  put(to, "tabindex", 0);
  to.focus();
}

/**
 * A matrix as a grid of numbers. `rows` and `columns` are labels, `dims` the names of the two
 * dimensions, null where an axis is none. Returns the node and its cells; `fill(cell, …)` writes one.
 */
function grid({ title, rows, columns, dims, extra = [] }) {
  const all = [...columns, ...extra];
  const heads = all.map((text) => h("span", { class: "af-head", role: "columnheader" }, text));
  const sides = rows.map((text) => h("span", { class: "af-side", role: "rowheader" }, text));
  const cell = (r, c) => {
    const kind = c < columns.length ? "af-cell" : "af-cell af-sum";
    return mark(h("div", { class: kind }), r, c, "gridcell");
  };
  const cells = rows.map((_, r) => all.map((_, c) => cell(r, c)));
  const line = (...parts) => h("div", { class: "af-line", role: "row" }, ...parts);
  const names = dims.filter(Boolean).flatMap((name, i) => [i ? ", " : "", dimension(name)]);
  const node = h(
    "div",
    { class: "af-matrix" },
    h("p", { class: "af-title" }, title, " (", ...names, ")"),
    h(
      "div",
      {
        class: "af-grid",
        "data-marks": "",
        role: "grid",
        "aria-label": title,
        style: `--columns: ${all.length}`,
      },
      line(h("span", { role: "none" }), ...heads),
      ...rows.map((_, r) => line(sides[r], ...cells[r])),
    ),
  );
  return { node, cells, heads, sides };
}

/** Write a number into a cell: `shade` from −1 to 1 tints it, `off` greys it out. */
function fill(cell, { key, value, text, reading, shade = 0, off = false, on = false }) {
  if (!cell.firstElementChild) write(cell, text); // else the reader is typing there
  say(cell, key, value, reading);
  cell.style.setProperty("--shade", Math.min(1, Math.abs(shade)));
  cell.classList.toggle("af-negative", shade < 0);
  cell.classList.toggle("af-off", off);
  cell.classList.toggle("af-on", on);
}

/** The first where there is room, the second on a narrow screen. */
function roomy(wide, narrow) {
  return matchMedia("(max-width: 36rem)").matches ? narrow : wide;
}

/** Whether the reader points with something that can hover, or taps. */
const hovers = matchMedia("(hover: hover)").matches;

/** Three to seven round numbers within an interval. */
function ticks([low, high]) {
  const rough = (high - low) / 5;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough);
  const first = Math.ceil(low / step);
  return range(Math.floor(high / step) - first + 1).map((i) =>
    Number(((first + i) * step).toPrecision(6)),
  );
}

/**
 * Axes to draw on. `sx` and `sy` map numbers to the picture, `at` maps a pointer back to numbers;
 * what is drawn goes into `layer`.
 */
function axes(about) {
  const { title, width = 320, height = 190, x, y, xLabel, yLabel, xTicks, yTicks } = about;
  const { left = 52, foot = 40 } = about; // the room for what stands beside and below the axes
  const { drop = 15 } = about; // from the lower axis to the feet of its numbers
  const box = { left, right: width - 12, top: 12, bottom: height - foot };
  const sx = (value) => box.left + ((value - x[0]) / (x[1] - x[0])) * (box.right - box.left);
  const sy = (value) => box.bottom - ((value - y[0]) / (y[1] - y[0])) * (box.bottom - box.top);
  const text = (at, value, more = {}) =>
    h("svg:text", { x: at[0], y: at[1], "text-anchor": "middle", ...more }, value);
  const pair = (tick) => (Array.isArray(tick) ? tick : [tick, String(tick).replace("-", "−")]);
  const layer = h("svg:g", { "data-marks": "", role: "group", "aria-label": title });
  const middle = (box.top + box.bottom) / 2;
  const node = h(
    "svg:svg",
    {
      viewBox: `0 0 ${width} ${height}`,
      class: "af-plot",
      style: `--plot-width: ${width}px`,
    },
    h(
      "svg:g",
      { class: "af-axes", "aria-hidden": "true" },
      h("svg:path", {
        d:
          yLabel || yTicks.length
            ? `M${box.left},${box.top}V${box.bottom}H${box.right}`
            : `M${box.left},${box.bottom}H${box.right}`,
      }),
      ...xTicks.map(pair).map(([value, shown]) => text([sx(value), box.bottom + drop], shown)),
      ...yTicks
        .map(pair)
        .map(([value, shown]) =>
          text([box.left - 6, sy(value) + 4], shown, { "text-anchor": "end" }),
        ),
      text([(box.left + box.right) / 2, height - 8], xLabel, { class: "af-label" }),
      text([0, 0], yLabel, {
        class: "af-label",
        transform: `translate(10 ${middle}) rotate(-90)`,
      }),
    ),
    layer,
  );
  const at = (event) => {
    const matrix = node.getScreenCTM().inverse();
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(matrix);
    const across = (point.x - box.left) / (box.right - box.left);
    const up = (box.bottom - point.y) / (box.bottom - box.top);
    return [x[0] + across * (x[1] - x[0]), y[0] + up * (y[1] - y[0])];
  };
  return { node, layer, sx, sy, box, at };
}

/**
 * Let `node` be dragged over a plot: `begin` and then `move` get the pointer's place in numbers. Only
 * the node keeps a touch from scrolling the page.
 */
function drag(plot, node, move, begin = move) {
  node.classList.add("af-handle");
  node.addEventListener("pointerdown", (event) => {
    node.setPointerCapture(event.pointerId);
    begin(...plot.at(event));
  });
  node.addEventListener("pointermove", (event) => {
    if (node.hasPointerCapture(event.pointerId)) move(...plot.at(event));
  });
  // Browsers differ in whether `touch-action` holds for a part of a drawing; this holds in all.
  node.addEventListener("touchmove", (event) => event.preventDefault(), { passive: false });
}

/** Let something come to where a plot is clicked; a finger that taps a mark reads it and moves nothing. */
function comes(plot, move) {
  let isFinger = false;
  plot.node.addEventListener("pointerdown", ({ pointerType }) => {
    isFinger = pointerType === "touch";
  });
  plot.node.addEventListener("click", (event) => {
    if (!isFinger || !event.target.closest("[data-at]")) move(...plot.at(event));
  });
}

/**
 * Let `tip` be dragged over a plot, and come to where the plot is clicked. The disc around the tip is
 * wide enough for a finger. Returns what to move.
 */
function handle(plot, tip, move, reach = 28) {
  const disc = h("svg:circle", { class: "af-disc", r: reach });
  const node = h("svg:g", {}, disc, tip);
  drag(plot, node, move);
  comes(plot, move);
  return node;
}

const REACH = 12.5; // units of the picture: so near to a point it is pointed at, and held (24 px on a phone)

/** What is as near to a point as `REACH`, and nearer to it than to all `others`, as a path. */
function around([x, y], others) {
  const gaps = others
    .map(([toX, toY]) => ({ across: toX - x, down: toY - y, far: Math.hypot(toX - x, toY - y) }))
    .filter(({ far }) => far > 0 && far < 2 * REACH);
  const spots = range(36).map((i) => {
    const [right, low] = [Math.cos((i * Math.PI) / 18), Math.sin((i * Math.PI) / 18)];
    const ends = gaps.map(({ across, down, far }) => {
      const ahead = right * across + low * down; // towards the other one
      return ahead > 0 ? far ** 2 / (2 * ahead) : REACH;
    });
    const reach = Math.min(REACH, ...ends);
    return [x + reach * right, y + reach * low];
  });
  return `${line(spots)}Z`;
}

const WIDEST = 9; // units of the picture: the width of a thread of weight 1

/**
 * Attention as threads between things: `tie(i, from, to, weight)` draws the i-th, as wide as its
 * weight, from one point of the picture to another. With `bend` it leaves and arrives upright.
 * `pair(i, name)` links it to the marks of the same `data-pair`.
 */
function threads(number, { bend = 0, widest = WIDEST } = {}) {
  const paths = range(number).map(() => h("svg:path", { class: "af-thread" }));
  const node = h("svg:g", { class: "af-threads", "aria-hidden": "true" }, ...paths);
  const tie = (i, [x, y], [toX, toY], weight) => {
    const reach = bend * (toY - y);
    const at = [x, y, x, y + reach, toX, toY - reach, toX, toY].map((value) => value.toFixed(2));
    put(paths[i], "d", `M${at[0]},${at[1]}C${at.slice(2).join(" ")}`);
    put(paths[i], "stroke-width", (widest * weight).toFixed(3));
  };
  return { node, paths, tie, pair: (i, name) => put(paths[i], "data-pair", name) };
}

/** The path of a curve through points of the picture. */
function line(points) {
  return points.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(2)},${y.toFixed(2)}`).join("");
}

/** A panel with a heading, for figures that set several pictures side by side. */
function panel(title, ...children) {
  return h("div", { class: "af-panel" }, h("p", { class: "af-title" }, title), ...children);
}

/** A line of named numbers, each readable by pointer and keyboard. */
function facts(names) {
  const values = names.map((_, i) => mark(h("span", { class: "af-fact" }), i, 0));
  const node = h(
    "div",
    { class: "af-facts", "data-marks": "", role: "group", "aria-label": t("figures") },
    ...names.map((name, i) => h("div", {}, h("span", {}, name), " ", values[i])),
  );
  return { node, values };
}

/** Call `act` when `node` is first seen, but not where motion is unwelcome. Returns what gives up. */
function whenSeen(node, act) {
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) return () => {};
  node.classList.add("af-waiting"); // until the browser says, so that what is to move does not flash
  const watcher = new IntersectionObserver(
    (entries) => {
      node.classList.remove("af-waiting");
      if (!entries.at(-1).isIntersecting) return;
      watcher.disconnect();
      act();
    },
    { threshold: 0.6 },
  );
  watcher.observe(node);
  return () => watcher.disconnect();
}

const GAP = 8; // pixels between a mark and its explanation
const LARGE = 90; // pixels: of a larger mark the place that is pointed at counts
const HEADER = 56; // pixels that the page's header may cover

/** Put `reading` next to `mark`: on that side of its group that the group's `data-say` asks for, so
 * that it does not cover what the mark belongs to, else above, below, right or left of it, where its
 * area has room and what names its rows and columns stays in sight. */
function beside(reading, mark, spot) {
  reading.style.translate = "none"; // while it is measured it lies within, or a phone zooms out
  const area = reading.parentNode.getBoundingClientRect();
  let { left, right, top, bottom } = mark.getBoundingClientRect();
  if (spot && Math.max(right - left, bottom - top) > LARGE) {
    [left, right, top, bottom] = [spot[0] - 6, spot[0] + 6, spot[1] - 10, spot[1] + 14];
  }
  const { offsetWidth: width, offsetHeight: height } = reading;
  const within = (value, low, high) => Math.max(low, Math.min(value, high));
  const x = within((left + right - width) / 2, area.left, area.right - width);
  const y = within((top + bottom - height) / 2, area.top, area.bottom - height);
  const [above, under] = [top - height - GAP, bottom + GAP];
  const ways = [
    [x, above],
    [x, under],
    [left, under],
    [right - width, under],
    [right + GAP, y],
    [left - width - GAP, y],
  ];
  const isSeen = ([, y]) => y >= HEADER && y + height <= innerHeight;
  const group = mark.closest("[data-say]");
  const around = group?.getBoundingClientRect();
  const side = group && [
    x,
    group.dataset.say === "above" ? around.top - height - GAP : around.bottom + GAP,
  ];
  const fits = ([x, y]) =>
    x >= area.left && x + width <= area.right && y >= area.top && y + height <= area.bottom;
  const titles = [...reading.parentNode.querySelectorAll(":is(.af-title,.af-head,.af-side)")]
    .filter((title) => !title.contains(mark))
    .map((title) => title.getBoundingClientRect());
  const shared = (a, b, c, d) => Math.max(0, Math.min(b, d) - Math.max(a, c));
  const hides = ([x, y]) =>
    sum(
      titles.map(
        (at) => shared(x, x + width, at.left, at.right) * shared(y, y + height, at.top, at.bottom),
      ),
    );
  const best =
    (side && isSeen(side) ? side : null) ??
    ways.filter((way) => fits(way) && isSeen(way)).sort((a, b) => hides(a) - hides(b))[0] ??
    ways.find(fits) ??
    ways.find(isSeen) ??
    ways[1];
  reading.style.translate = `${Math.round(best[0] - area.left)}px ${Math.round(best[1] - area.top)}px`;
}

const LARGEST_TYPED = 1000;

/** Put a field into a cell until Enter or a click elsewhere takes its number, or Escape does not. */
function type(cell, take, complain) {
  const old = cell.textContent;
  const field = h("input", {
    class: "af-field",
    type: "text",
    inputmode: "text", // the decimal keys of a phone may lack the minus sign
    autocomplete: "off",
    "aria-label": t`new number, from −${LARGEST_TYPED} to ${LARGEST_TYPED}`,
    value: String(Number(cell.getAttribute("data-value"))),
  });
  let open = true;
  const close = (keep) => {
    if (!open) return;
    open = false;
    const typed = field.value.trim();
    const back = field === document.activeElement;
    field.remove();
    write(cell, old);
    if (back) cell.focus();
    if (!keep) return;
    const number = Number(typed.replace("−", "-").replace(",", "."));
    if (typed === "" || !(Math.abs(number) <= LARGEST_TYPED)) {
      const shown = typed.length > 20 ? `${typed.slice(0, 20)}…` : typed;
      complain(
        t`“${shown}” is not a number from −${LARGEST_TYPED} to ${LARGEST_TYPED}; the old number stays.`,
      );
    } else take(Math.round(number * 1000) / 1000 + 0);
  };
  field.addEventListener("keydown", (event) => {
    event.stopPropagation(); // arrows move within the field
    if (event.key === "Enter") {
      event.preventDefault();
      close(true);
    } else if (event.key === "Escape") close(false);
  });
  field.addEventListener("focusout", () => close(true)); // it rises to the figure although the field is gone then
  cell.replaceChildren(field);
  field.select();
}
