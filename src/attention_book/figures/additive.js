// Chapter 5: hidden units as maps of their own over (q, k), whose sum is the score; and a slice.

export default {
  render({ model, el }) {
    const data = model.get("data");
    const { grid: points, w_v } = data;
    const steep = (j, q, k) => Math.tanh(argument(data, model.get("scale"), j, q, k));
    const unitsNow = () => range(model.get("hidden"));
    const score = (q, k) => sum(unitsNow().map((j) => w_v[j] * steep(j, q, k)));
    const rowOf = (query) => points.map((k) => score(query, k));
    const reaches = reachesOf(data);
    const figure = additiveFrame({ model, el }, () => rowOf(model.get("query")));
    figure.slider({
      name: "hidden",
      text: (n) => t`${n} of ${w_v.length} units`,
    });
    figure.slider({ name: "scale", text: (s) => `× ${show(s)}` });
    figure.slider({ name: "query", text: exactly });
    figure.form.classList.add("af-summing");
    const add = () => {
      figure.set("hidden", model.get("hidden") + 1);
      // The button of the last unit is gone; the slider of the same number keeps the focus.
      if (units.more.hidden) [...figure.form.elements].find(({ type }) => type === "range").focus();
    };
    const ofUnits = Math.max(reaches[0], ...w_v.map(Math.abs));
    const units = unitMaps(data, ofUnits, add);
    const whole = sumMap(data, ofUnits, (query) => {
      if (query !== model.get("query")) figure.set("query", query);
    });
    const slice = sliceOf(data);
    const { node, values } = facts([t("lowest score:"), t("highest score:")]);
    node.classList.add("af-inline");
    const curves = panel(t("One query"), slice.node);
    const map = panel(t("Their sum, all pairs"), whole.node);
    const legends = h("div", { class: "af-row" }, whole.legend);
    legends.append(slice.legend);
    figure.stage.append(units.node, map, curves, legends);
    roomy(legends, figure.below).append(node);

    return figure.open(() => {
      const [hidden, scale, query] = [model.get("hidden"), model.get("scale"), model.get("query")];
      units.draw(hidden, scale);
      const [low, high] = whole.draw(unitsNow(), scale, query, reaches[hidden - 1]);
      const row = rowOf(query);
      slice.draw(hidden, query, row, steep, score, reaches[hidden - 1]);
      write(values[0], show(low, 3));
      say(values[0], "low", low, t`the lowest score is ${show(low, 6)}`);
      write(values[1], show(high, 3));
      say(values[1], "high", high, t`the highest score is ${show(high, 6)}`);
      const best = points.filter((_, i) => row[i] > Math.max(...row) - SAME);
      const ends = [scale, low, high].map((number) => show(number));
      const scores = hidden === 1 ? phrase("one unit", ...ends) : phrase("units", hidden, ...ends);
      return together(scores, highestAt(query, best));
    });
  },
};

const SAME = 1e-9; // scores that differ by less are named as equal

/** A query or key: two decimals, and a third where it has one. */
const exactly = (number) =>
  show(number, Math.abs(number - Number(number.toFixed(2))) < SAME ? 2 : 3);

/** At which keys a query scores highest. */
function highestAt(query, best) {
  const [at, first, last] = [query, best[0], best.at(-1)].map(exactly);
  if (best.length === 1) return phrase("one key", at, first);
  if (best.length === 2) return phrase("two keys", at, first, last);
  return phrase("keys", at, best.length, first, last);
}

/** For each number of units the end of the colours and curves: the largest score, either sign, that
 * they reach at any scale. One unit has the end of two, so that the question's step changes no colour. */
function reachesOf({ grid: points, scales, w_v, ...parameters }) {
  const largest = w_v.map(() => 0);
  for (const scale of scales)
    for (const q of points)
      for (const k of points) {
        let score = 0;
        w_v.forEach((weight, j) => {
          score += weight * Math.tanh(argument(parameters, scale, j, q, k));
          largest[j] = Math.max(largest[j], Math.abs(score));
        });
      }
  const upTo = (j) => Math.max(largest[j], ...w_v.slice(0, j + 1).map(Math.abs));
  const last = (j) => Math.min(Math.max(j, 1), w_v.length - 1);
  return w_v.map((_, j) => Math.ceil(10 * upTo(last(j)) - SAME) / 10 || 1);
}

/** A unit's colour, unlike the blue of the sum. */
const hueOf = (j, count) => 280 + (290 * j) / count;

/** What unit `j` takes the tanh of. */
function argument({ W_q, W_k }, scale, j, q, k) {
  return scale * (W_q[j][0] * q + W_q[j][1] + W_k[j][0] * k);
}

function additiveFrame({ model, el }, row) {
  return frame(
    { model, el },
    {
      question: t(
        "One hidden unit makes a single step. How many does a ridge need at least: high where q = k, low on both sides?",
      ),
      answers: ["1", "2", "6"],
      right: 1,
      because: t(
        "One tanh rises once and stays. A second one, with the opposite sign and shifted a little, cancels the rise: the two make a ridge.",
      ),
      seen: () => model.get("hidden") >= 2,
      toSee: t("add a second hidden unit"),
      challenge: {
        task: t(
          "with two hidden units, make the ridge flat on top: three keys of the query score 0.99 or more",
        ),
        met: () => model.get("hidden") === 2 && row().filter((score) => score >= 0.99).length >= 3,
      },
    },
  );
}

const EDGE = 3; // of the plane of queries and keys
const WHOLE = [-3, -2, -1, 0, 1, 2, 3];
const TALL = roomy(280, 220); // units of the picture
/** Where the map ends: half a square beyond its last key. */
const endOf = (points) => EDGE + (points[1] - points[0]) / 2;
const SIDE = 60; // units of the picture: a unit's map
const SHARP = 3; // where tanh is within 0.005 of its end
let gradientsMade = 0;

/** A number that is added: with its sign apart. */
const plus = (number) => {
  const text = show(number);
  return text.startsWith("−") ? `− ${text.slice(1)}` : `+ ${text}`;
};

/** Each unit as a small map. A tanh of a sum changes along one direction only, so its map is a
 * gradient along that direction: from −1 to 1, times the unit's w_v, of the colours up to `reach`. */
function unitMaps({ W_q, W_k, w_v }, reach, add) {
  const spots = range(25).map((i) => (SHARP * (i - 12)) / 12);
  const maps = w_v.map((weight, j) => {
    const id = `af-gradient-${++gradientsMade}`;
    const stops = spots.map((at, i) => {
      const value = weight * Math.tanh(at);
      const colour = value < 0 ? "var(--af-warm)" : "var(--af-strong)";
      return h("svg:stop", {
        offset: i / (spots.length - 1),
        style: `stop-color: ${colour}; stop-opacity: ${Math.abs(value / reach).toFixed(3)}`,
      });
    });
    const gradient = h("svg:linearGradient", { id, gradientUnits: "userSpaceOnUse" }, ...stops);
    const square = mark(
      h("svg:rect", { class: "af-map", width: SIDE, height: SIDE, fill: `url(#${id})` }),
      0,
      j,
    );
    put(square, "data-pair", `unit-${j}`);
    const drawing = h("svg:svg", { viewBox: `0 0 ${SIDE} ${SIDE}` }, gradient, square);
    const sign = h("span", { class: "af-plus", "aria-hidden": "true" }, j ? "+" : "");
    const style = `--hue: ${hueOf(j, w_v.length)}`;
    const name = h("span", { class: "af-unit-name", style }, h("span"), t`unit ${j + 1}`);
    const node = h("div", { class: "af-tile" }, sign, h("div", {}, name, drawing));
    return { node, gradient, square };
  });
  const more = h(
    "button",
    { type: "button", class: "af-button af-more", "aria-label": t("Add a unit") },
    roomy(t("+ add a unit"), t("+ unit")),
  );
  more.addEventListener("click", add);
  const node = h(
    "div",
    {
      class: "af-tiles",
      "data-marks": "",
      "data-say": "above",
      role: "group",
      "aria-label": t("hidden units"),
    },
    ...maps.map((map) => map.node),
    more,
  );
  const draw = (hidden, scale) => {
    more.hidden = hidden >= w_v.length;
    maps.forEach((map, j) => {
      map.node.hidden = j >= hidden;
      map.square.toggleAttribute("hidden", j >= hidden);
      const [a, b, c] = [W_q[j][0], W_q[j][1], W_k[j][0]].map((number) => number * scale);
      const length = a * a + c * c || 1e-9;
      [-SHARP, SHARP].forEach((at, end) => {
        // The nearest place to the origin where the unit's argument is `at`.
        const [q, k] = [(a * (at - b)) / length, (c * (at - b)) / length];
        put(map.gradient, `x${end + 1}`, ((SIDE * (q + EDGE)) / (2 * EDGE)).toFixed(2));
        put(map.gradient, `y${end + 1}`, ((SIDE * (EDGE - k)) / (2 * EDGE)).toFixed(2));
      });
      const inner = `${show(a)} q ${plus(c)} k ${plus(b)}`;
      const reading = t`unit ${j + 1}: ${show(w_v[j])} · tanh(${inner})`;
      say(map.square, `unit ${j}`, w_v[j], reading);
    });
  };
  return { node, more, draw };
}

const FINGER = 1.5; // columns: so near to the frame a finger drags it
const STILL = 4; // pixels: what moves less is a tap or a click

/** Let `move` follow a pointer that goes down on a square where `isHeld` and then moves. Until it
 * moves, the square is read; a finger that moves upright scrolls the page. */
function dragSquares(plot, move, isHeld) {
  let start = null;
  const way = ({ clientX, clientY }) => [clientX - start.x, clientY - start.y].map(Math.abs);
  plot.layer.addEventListener("pointerdown", (event) => {
    const { clientX: x, clientY: y, isPrimary, pointerType } = event;
    const isTaken = isPrimary && isHeld(plot.at(event)[0], pointerType === "touch");
    start = isTaken ? { x, y, isDrag: false } : null;
  });
  plot.layer.addEventListener("pointermove", (event) => {
    if (!start) return;
    if (!start.isDrag && way(event)[0] > STILL) {
      plot.layer.setPointerCapture(event.pointerId);
      start.isDrag = true;
    }
    if (start.isDrag) move(plot.at(event)[0]);
  });
  for (const type of ["pointerup", "pointercancel"])
    plot.layer.addEventListener(type, () => {
      start = null;
    });
  const stay = (event) => {
    if (!start) return;
    const [across, along] = way(event.touches[0]);
    if (start.isDrag || across >= along) event.preventDefault();
    else start = null;
  };
  plot.layer.addEventListener("touchmove", stay, { passive: false });
}

/** What drags a frame, besides the squares within it: above it a knob with room for a finger. */
function knobOver(width, top) {
  const middle = width / 2;
  const reach = { x: middle - 22, y: top - 32, width: 44, height: 32 };
  return h(
    "svg:g",
    { class: "af-slides" },
    h("svg:rect", { class: "af-slider-reach", ...reach }),
    h("svg:path", { class: "af-slider-knob", d: `M${middle - 8},${top - 11}h16l-8,10z` }),
  );
}

/** Which colour stands for which score of the sum, and how far the maps of units go. */
function legendOf(ofUnits) {
  const shades = range(21).map((i) => {
    const share = (i - 10) / 10;
    const colour = share < 0 ? "var(--af-warm)" : "var(--af-strong)";
    return `color-mix(in srgb, ${colour} ${(100 * Math.abs(share)).toFixed(0)}%, transparent)`;
  });
  const background = `background: linear-gradient(to right, ${shades.join()})`;
  const ramp = h("span", { class: "af-ramp", style: background });
  const [least, most] = [h("span", {}), h("span", {})];
  const units = h("span", { class: "af-of-units" }, t`units: ±${show(ofUnits, 1)}`);
  const node = h("div", { class: "af-legend" }, t("score"), " ", least, ramp, most, units);
  const draw = (reach) => {
    write(least, show(-reach, 1));
    write(most, show(reach, 1));
  };
  return { node, draw };
}

/** The sum of the units for all pairs, as squares that can be read. */
function sumMap({ grid: points, W_q, W_k, w_v }, ofUnits, choose) {
  const end = endOf(points);
  const plot = axes({
    title: t("scores over queries and keys"),
    ...roomy({ width: 400, height: TALL, left: 40 }, { width: 230, height: TALL, left: 34 }),
    x: [-end, end],
    y: [-end, end],
    xLabel: t("query q"),
    yLabel: t("key k"),
    xTicks: WHOLE,
    yTicks: WHOLE,
  });
  put(plot.layer, "role", "grid");
  plot.layer.classList.add("af-still"); // hundreds of squares: their colours change at once
  const width = plot.sx(points[1]) - plot.sx(points[0]);
  const height = plot.sy(points[0]) - plot.sy(points[1]);
  const last = points.length - 1;
  const squareAt = (q, k) => {
    const [x, y] = [plot.sx(q) - width / 2, plot.sy(k) - height / 2];
    return h("svg:rect", { x, y, width, height });
  };
  // One row of squares per key, the largest key on top.
  const squares = range(points.length).map((row) =>
    points.map((q, c) => mark(squareAt(q, points[last - row]), row, c, "gridcell")),
  );
  const [top, tall] = [plot.box.top, plot.box.bottom - plot.box.top];
  const upright = { y: top, width, height: tall };
  const cursor = h("svg:rect", { class: "af-cursor", ...upright });
  const slider = knobOver(width, top);
  plot.layer.append(...squares.map((row) => h("svg:g", { role: "row" }, ...row)));
  plot.node.append(cursor, slider);
  const chooseAt = (q) => choose(points[nearest(points, q)]);
  let now = 0; // the query of the frame
  drag(plot, slider, chooseAt);
  dragSquares(plot, chooseAt, (q, isFinger) => {
    const room = isFinger ? FINGER * (points[1] - points[0]) : (points[1] - points[0]) / 2;
    return Math.abs(q - now) <= room;
  });
  comes(plot, chooseAt);

  const legend = legendOf(ofUnits);
  const draw = (units, scale, query, reach) => {
    legend.draw(reach);
    // What a unit gets from the query and from the key, each once, not once per pair.
    const fromQuery = points.map((q) => units.map((j) => scale * (W_q[j][0] * q + W_q[j][1])));
    const fromKey = points.map((k) => units.map((j) => scale * W_k[j][0] * k));
    let [low, high] = [Infinity, -Infinity];
    points.forEach((q, c) =>
      points.forEach((k, r) => {
        let number = 0;
        for (const j of units) number += w_v[j] * Math.tanh(fromQuery[c][j] + fromKey[r][j]);
        low = Math.min(low, number);
        high = Math.max(high, number);
        const square = squares[last - r][c];
        put(square, "class", number < 0 ? "af-square af-below" : "af-square");
        square.classList.toggle("af-framed", q === query);
        put(square, "fill-opacity", Math.abs(number / reach).toFixed(3));
        const reading = t`query ${exactly(q)}, key ${exactly(k)}: score ${show(number, 4)}`;
        say(square, `score ${c} ${r}`, number, reading);
      }),
    );
    now = query;
    const left = plot.sx(query) - width / 2;
    put(cursor, "x", left);
    put(slider, "transform", `translate(${left} 0)`);
    return [low, high];
  };
  return { node: plot.node, legend: legend.node, draw };
}

/** The scores of one query, with its units as thin curves. The plot stands on its side, so that its
 * keys are level with those of the map beside it, and its scores go as far as the colours. */
function sliceOf({ grid: points, w_v }) {
  const end = endOf(points);
  const plot = axes({
    title: t("scores of one query"),
    ...roomy({ width: 200, left: 12 }, { width: 96, left: 8 }),
    ...{ height: TALL, x: [-1, 1], y: [-end, end], xTicks: [-1, 0, 1], yTicks: [] },
    ...{ xLabel: t("score"), yLabel: "" },
  });
  const [least, , most] = plot.node.querySelector(".af-axes").querySelectorAll("text");
  let reach = 1;
  const at = (key, score) => [plot.sx(score / reach), plot.sy(key)];
  const fine = range(61).map((i) => -3 + i / 10);
  const curves = w_v.map((_, j) =>
    h("svg:path", {
      class: "af-unit",
      style: `--hue: ${hueOf(j, w_v.length)}`,
      "data-pair": `unit-${j}`,
    }),
  );
  const total = h("svg:path", { class: "af-curve" });
  const dots = points.map((_, i) =>
    mark(h("svg:circle", { class: "af-dot", r: roomy(4, 3) }), 0, i),
  );
  plot.layer.append(...curves, total, ...dots);
  const legend = h(
    "div",
    { class: "af-legend" },
    h("span", { class: "af-thin" }),
    t("one hidden unit"),
    h("span", { class: "af-thick" }),
    t("their sum"),
  );
  const draw = (hidden, query, row, steep, score, farthest) => {
    reach = farthest;
    write(least, show(-reach, 1));
    write(most, show(reach, 1));
    curves.forEach((curve, j) => {
      curve.toggleAttribute("hidden", j >= hidden);
      const heights = j < hidden && fine.map((k) => at(k, w_v[j] * steep(j, query, k)));
      if (heights) put(curve, "d", line(heights));
    });
    put(total, "d", line(fine.map((k) => at(k, score(query, k)))));
    row.forEach((number, i) => {
      ["cx", "cy"].forEach((name, axis) => put(dots[i], name, at(points[i], number)[axis]));
      const reading = t`query ${exactly(query)}, key ${exactly(points[i])}: score ${show(number, 4)}`;
      say(dots[i], `slice ${i}`, number, reading);
    });
  };
  return { node: plot.node, legend, draw };
}
