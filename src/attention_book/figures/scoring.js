// Chapter 2: a query among keys in a plane, coloured by the key that a scoring function prefers.

const END = 3; // of the plane, on each side
const BARE = { xLabel: "", yLabel: "", xTicks: [], yTicks: [] }; // axes
const MORPH = 280; // milliseconds, as figure.css lets other things glide

export default {
  render({ model, el }) {
    const data = model.get("data");
    const { query: across, by: functionsOf } = declared.controls;
    const functions = scorers(data);
    const named = functionsOf.names.map((name, i) => [functionsOf.stops[i], t(name)]);
    const shown = Object.fromEntries(named);
    const figure = scoringFrame({ model, el }, functions, across.stops);
    figure.form.classList.add("af-scoring");
    const snap = (value) => across.stops[nearest(across.stops, value)];
    const move = (x, y) => figure.set("query", [snap(x), snap(y)]);
    const plane = planeOf(data, functions, shown, move);
    const strip = stripOf(data.keys, shown);
    figure.stage.append(plane.node, strip.node);
    figure.choice({ name: "by" });
    figure.form.querySelectorAll(".af-choice>label").forEach((label, i) => {
      label.prepend(plane.thumbs[i].node);
    });
    queryControls(figure, model);
    const tables = tablesOf(data.keys, shown);
    const texts = [
      t("Threads are as wide as the weights, the softmax of the scores."),
      t("Where a key lies in the region of another, a bold name says which key wins there."),
      t("The bilinear function here rotates the query by 90° before comparing it with the keys."),
    ];
    figure.below.append(
      h(
        "details",
        { class: "af-inside" },
        h("summary", {}, t("The numbers: scores and weights")),
        h("div", { class: "af-row" }, tables.scores.node, tables.weights.node),
        h("p", { class: "af-small-print" }, together(...texts)),
      ),
    );

    return figure.open(() => {
      const [query, by] = [model.get("query"), model.get("by")];
      named.forEach(([name], r) => {
        const row = functions[name](query);
        const shares = softmax(row);
        plane.thumbs[r].draw(query, favourites(row).join(" = "));
        tables.draw(name, r, row, shares);
        if (name !== by) return;
        plane.draw(query, by, shares, figure.form.classList.contains("af-eased"));
        strip.draw(by, row, shares);
      });
      return phrase("order", shown[by], placeOf(query), orderOf(functions[by](query)));
    });
  },
};

/** A slider for each feature of the query; where a finger drags it instead, they are folded. */
function queryControls(figure, model) {
  const sliders = h("div", { class: "af-controls" });
  range(2).forEach((axis) =>
    figure.slider({
      name: "query",
      into: sliders,
      label: t(declared.controls.query.label, axis + 1),
      text: (value) => show(value),
      get: () => model.get("query")[axis],
      change: (value) =>
        figure.set("query", Object.assign([...model.get("query")], { [axis]: value })),
    }),
  );
  const summary = h("summary", {}, t("Move it by sliders"));
  if (hovers) figure.control(sliders);
  else figure.below.append(h("details", { class: "af-inside" }, summary, sliders));
}

function placeOf(point) {
  return `(${point.map((x) => show(x)).join(", ")})`;
}

/** The key with the highest score; of those that score the same, the first. */
function winner(scores) {
  const least = Math.max(...scores) - 1e-9;
  return scores.findIndex((s) => s > least);
}

/** The names of the keys with the highest score. */
function favourites(scores) {
  const least = Math.max(...scores) - 1e-9;
  return scores.flatMap((score, k) => (score > least ? [`k${k + 1}`] : []));
}

/** The keys from the highest score to the lowest, and the signs between them. */
function ranksOf(scores) {
  const keys = range(scores.length).sort((a, b) => {
    const by = scores[b] - scores[a];
    return Math.abs(by) < 1e-9 ? a - b : by;
  });
  const isTie = (i) => scores[keys[i]] - scores[keys[i + 1]] < 1e-9;
  return { keys, signs: keys.slice(1).map((_, i) => (isTie(i) ? "=" : ">")) };
}

/** The order of the scores, as in "k2 > k1 = k3". */
function orderOf(scores) {
  const { keys, signs } = ranksOf(scores);
  return keys.map((k, i) => (i ? `${signs[i - 1]} k${k + 1}` : `k${k + 1}`)).join(" ");
}

/** The scores of all keys for a query, by function. What each key contributes is computed once,
 * because the planes ask for thousands of queries. */
function scorers({ keys, W, W_q, W_k, w_v }) {
  const inner = (a, b) => a[0] * b[0] + a[1] * b[1];
  const turned = keys.map((key) => W.map((row) => inner(row, key)));
  const ofKeys = keys.map((key) => W_k.map((row) => inner(row, key)));
  return {
    distance: (q) => keys.map((k) => -((q[0] - k[0]) ** 2 + (q[1] - k[1]) ** 2) / 2),
    dot: (q) => keys.map((k) => inner(q, k)),
    "scaled dot": (q) => keys.map((k) => inner(q, k) / Math.sqrt(2)),
    bilinear: (q) => turned.map((k) => inner(q, k)),
    additive: (q) => {
      const ofQuery = W_q.map((row) => inner(row, q));
      return ofKeys.map((ofKey) => {
        let score = 0;
        for (let j = 0; j < w_v.length; j++) score += w_v[j] * Math.tanh(ofQuery[j] + ofKey[j]);
        return score;
      });
    },
  };
}

/** The frame with its question, which asks for a longer query where the plane has room for twice it. */
function scoringFrame({ model, el }, functions, stops) {
  const start = model.get("query");
  const double = start.map((x) => 2 * x);
  const reachable = double.every((x) => stops.includes(x)) && Math.hypot(...start) > 0;
  let rested = [start]; // where the query was let go of
  /** Whether the query is now a longer one in a direction it had, with another order by distance. */
  const isLonger = (isHeld) => {
    if (isHeld || model.get("by") !== "distance") return false; // then the plane shows it
    const [x, y] = model.get("query");
    const order = (query) => orderOf(functions.distance(query));
    const now = order([x, y]);
    const isShorter = ([a, b]) => a * y === b * x && a * x + b * y > a * a + b * b;
    if (rested.some((old) => isShorter(old) && order(old) !== now)) return true;
    rested.push([x, y]);
    return false;
  };
  return frame(
    { model, el },
    {
      question: t(
        "Make the query longer in the same direction. Under which of these can the order of the keys' scores change?",
      ),
      answers: [t("dot"), t("scaled dot"), t("distance")],
      right: 2,
      because: t(
        "Dot products all grow by the same factor, so their order stays. A distance depends on where the query ends: a longer one may come nearer to another key.",
      ),
      ...(reachable && {
        seen: isLonger,
        forget: () => {
          rested = [start];
        },
        toSee: t`by distance, move the query along the dashed ray to ${placeOf(double)} or beyond`,
      }),
      lines: roomy(1, 2),
      challenge: {
        task: t("find a query for which distance, dot and additive prefer the same key"),
        met: () => {
          const best = ["distance", "dot", "additive"].map((name) =>
            favourites(functions[name](model.get("query"))),
          );
          return best.every((names) => names.length === 1 && names[0] === best[0][0]);
        },
      },
    },
  );
}

/** The part of a polygon where key `k` scores at least as much as key `j`. A corner is a place in the
 * picture and the scores of all keys there, which change evenly between corners. */
function clipped(corners, k, j) {
  const ahead = corners.map(([, , scores]) => {
    const by = scores[k] - scores[j];
    return Math.abs(by) < 1e-9 ? 0 : by;
  });
  if (j < k && ahead.every((by) => by === 0)) return []; // of those that score the same, the first
  return corners.flatMap((corner, i) => {
    const n = (i + 1) % corners.length;
    const kept = ahead[i] >= 0 ? [corner] : [];
    if (ahead[i] * ahead[n] >= 0) return kept;
    const share = ahead[i] / (ahead[i] - ahead[n]);
    const between = (a, b) => a + share * (b - a);
    const [x, y, scores] = corner;
    const [toX, toY, others] = corners[n];
    const middle = scores.map((score, key) => between(score, others[key]));
    return [...kept, [between(x, toX), between(y, toY), middle]];
  });
}

/** What two or more keys share of a triangle: the path of each, and the borders between them. */
function shareOut(triangle, rivals, areas) {
  let edges = "";
  const at = ([x, y]) => `${x.toFixed(2)},${y.toFixed(2)}`;
  for (const k of rivals) {
    const others = rivals.filter((j) => j !== k);
    const part = others.reduce((corners, j) => clipped(corners, k, j), triangle);
    if (part.length < 3) continue;
    areas[k] += `M${part.map(at).join("L")}Z`;
    part.forEach((corner, i) => {
      const next = part[(i + 1) % part.length];
      const isEven = ([, , scores], j) => Math.abs(scores[k] - scores[j]) < 1e-9;
      const isBorder = others.some((j) => k < j && isEven(corner, j) && isEven(next, j));
      if (isBorder && at(corner) !== at(next)) edges += `M${at(corner)}L${at(next)}`;
    });
  }
  return edges;
}

/** The middles of the cells along one side of the plane. */
function middlesOf(cells) {
  return range(cells).map((i) => (2 * END * (i + 0.5)) / cells - END);
}

/** Which key wins where in the plane, as paths and their borders, from the scores in the middles of the
 * cells and along the edges; between those, scores are taken to change evenly. `map` has the winners in
 * the middles. */
function regionsOf(field, { sx, sy }) {
  const [cells, count] = [field.length - 2, field[0][0].length];
  const along = [-END, ...middlesOf(cells), END];
  const corners = field.map((row, r) =>
    row.map((scores, c) => [sx(along[c]), sy(along[r]), scores]),
  );
  const won = corners.map((row) => row.map(([, , scores]) => winner(scores)));
  const areas = range(count).map(() => "");
  let edges = "";
  for (let r = 0; r <= cells; r++) {
    let from = 0; // where a run of squares begins that one key wins whole
    for (let c = 0; c <= cells; c++) {
      const four = [won[r][c], won[r][c + 1], won[r + 1][c + 1], won[r + 1][c]];
      const rivals = [...new Set(four)];
      const [low, high] = [corners[r], corners[r + 1]];
      if (rivals.length > 1) {
        edges += shareOut([low[c], low[c + 1], high[c + 1]], rivals, areas);
        edges += shareOut([low[c], high[c + 1], high[c]], rivals, areas);
        from = c + 1;
        continue;
      }
      const isLast = c === cells || new Set([...rivals, won[r][c + 2], won[r + 1][c + 2]]).size > 1;
      if (!isLast) continue;
      const [[left, bottom], [right], [, top]] = [low[from], low[c + 1], high[c]];
      const sides = [left, bottom, right, top].map((value) => value.toFixed(2));
      areas[rivals[0]] += `M${sides[0]},${sides[1]}H${sides[2]}V${sides[3]}H${sides[0]}Z`;
      from = c + 1;
    }
  }
  const map = won.slice(1, -1).flatMap((row) => row.slice(1, -1));
  const shares = range(count).map((k) => map.filter((key) => key === k).length / map.length);
  return { map, areas, edges, shares };
}

/** Where the region of key `k` is named: in the cell that is farthest from its border and the plane's,
 * clear of the keys' own names. */
function spotOf(map, cells, k, keys) {
  const along = middlesOf(cells);
  const all = range(map.length).filter((at) => map[at] === k);
  const place = (at) => [along[at % cells], along[Math.floor(at / cells)]];
  const isEdge = (at) => [at - 1, at + 1, at - cells, at + cells].some((next) => map[next] !== k);
  const border = all.filter(isEdge).map(place);
  const isClear = ([x, y]) =>
    keys.every(([a, b]) => x - a < -0.5 || x - a > 0.9 || y - b < -0.7 || y - b > 0.8);
  const spots = all.map(place);
  const own = spots.some(isClear) ? spots.filter(isClear) : spots;
  const depth = own.map(([x, y]) => {
    const gaps = border.map(([a, b]) => Math.hypot(x - a, y - b));
    return Math.min(END - Math.abs(x), END - Math.abs(y), ...gaps);
  });
  return own[depth.indexOf(Math.max(...depth))];
}

/** The plane of the chosen function: regions, keys, the query on its ray, and threads from it to the
 * keys; and a small plane of each function. */
function planeOf({ keys, cells }, functions, shown, move) {
  const size = { width: 300, height: 306, left: 12, foot: 18, x: [-END, END], y: [-END, END] };
  const about = { title: t("query and keys in the plane"), ...size, ...BARE };
  const plane = axes({ ...about, xTicks: [-END, 0] });
  const { box, sx, sy } = plane;
  const along = [-END, ...middlesOf(cells), END];
  const maps = Object.entries(functions).map(([name, score]) => {
    const field = along.map((y) => along.map((x) => score([x, y])));
    const most = Math.max(...field.flat(2).map(Math.abs)) || 1;
    return [name, { field, most, ...regionsOf(field, plane) }];
  });
  const drawn = Object.fromEntries(maps);
  const areasOf = () =>
    keys.map((_, k) =>
      h("svg:path", { class: "af-region", style: `--hue: ${(360 * k) / keys.length}` }),
    );
  const regions = areasOf().map((region, k) => mark(region, 1, k));
  const border = h("svg:path", { class: "af-border" });
  const paint = (areas, edges, paths = regions, line = border) => {
    areas.forEach((area, k) => put(paths[k], "d", area));
    put(line, "d", edges);
  };
  const bundle = threads(keys.length, { widest: 14 });
  const arrow = h("svg:path", { class: "af-arrow" });
  const ray = h("svg:path", { class: "af-arrow af-ray" });
  const tip = mark(h("svg:circle", { class: "af-tip", r: 9 }), 0, 0);
  const grip = handle(plane, tip, move, 30);
  const dots = keys.map(([x, y], k) => {
    const near = mark(h("svg:path", { class: "af-near" }), 0, k + 1);
    return { near, dot: h("svg:circle", { class: "af-point", r: 5, cx: sx(x), cy: sy(y) }) };
  });
  const hidden = { "aria-hidden": "true" };
  const names = keys.map(([x, y], k) =>
    h("svg:text", { class: "af-name", x: sx(x) + 7, y: sy(y) - 6, ...hidden }, `k${k + 1}`),
  );
  const winners = keys.map((_, k) =>
    h("svg:text", { class: "af-winner", "text-anchor": "middle", ...hidden }, `k${k + 1}`),
  );
  const q = h("svg:text", { class: "af-name", ...hidden });
  const origin = { class: "af-name", x: sx(0) - 12, y: sy(0) + 14, ...hidden };
  let opened = null; // where the query was at first
  const note = h("svg:text", { x: box.right, y: box.bottom + 15, "text-anchor": "end", ...hidden });
  plane.layer.append(...regions, border, ray, arrow, bundle.node, ...dots.map(({ dot }) => dot));
  plane.layer.append(grip, ...dots.map(({ near }) => near), ...winners, ...names, q, note);
  plane.layer.append(h("svg:text", origin, "0"));
  /** Where the ray of a query meets the edge of the plane. */
  const toEdge = (query) => {
    const far = END / Math.max(...query.map(Math.abs), 1e-9);
    return query.some(Boolean) ? query.map((x) => far * x) : [0, 0];
  };
  const rayOf = ([right, up]) => `M${sx(0)},${sy(0)}L${sx(right)},${sy(up)}`;
  const thumbs = maps.map(([, { areas, edges }]) => {
    const [paths, line] = [areasOf(), h("svg:path", { class: "af-border" })];
    paint(areas, edges, paths, line);
    const dot = h("svg:circle", { class: "af-tip", r: 22 });
    const view = [box.left, box.top, box.right - box.left, box.bottom - box.top];
    const about = { class: "af-thumb", viewBox: view.join(" "), ...hidden };
    const way = h("svg:path", { class: "af-arrow af-ray" });
    const best = h("svg:text", { x: box.left + 14, y: box.bottom - 18 });
    const draw = ([x, y], keyNames) => {
      write(best, keyNames);
      put(dot, "transform", `translate(${sx(x)} ${sy(y)})`);
      put(way, "d", rayOf(toEdge([x, y])));
    };
    return { node: h("svg:svg", about, ...paths, line, way, dot, best), draw };
  });

  let [by, running] = ["", 0];
  /** Draw the regions of the chosen function, after some in between if they `glide`. */
  const change = (name, glide) => {
    const [from, to] = [drawn[by], drawn[name]];
    by = name;
    cancelAnimationFrame(running);
    const begin = performance.now();
    const step = () => {
      const share = (performance.now() - begin) / MORPH;
      if (!glide || share >= 1) return paint(to.areas, to.edges);
      const [old, young] = [(1 - share) / from.most, share / to.most];
      const mix = (scores, r, c) => scores.map((s, k) => old * s + young * to.field[r][c][k]);
      const field = from.field.map((row, r) => row.map((scores, c) => mix(scores, r, c)));
      const { areas, edges } = regionsOf(field, plane);
      paint(areas, edges);
      running = requestAnimationFrame(step);
    };
    step();
    const { map, shares } = to;
    keys.forEach((key, k) => {
      // A region is named where its key lies in another one.
      winners[k].toggleAttribute("hidden", !shares[k] || winner(functions[by](key)) === k);
      const percent = shares[k] < 0.01 ? t("less than 1 %") : `${show(100 * shares[k], 0)} %`;
      const reading = t`k${k + 1} wins by ${shown[by]} on ${percent} of this plane`;
      say(regions[k], `${by} region ${k}`, shares[k], reading);
      regions[k].toggleAttribute("hidden", shares[k] === 0);
      if (!shares[k]) return;
      const [x, y] = spotOf(map, cells, k, keys);
      put(winners[k], "x", sx(x));
      put(winners[k], "y", sy(y) + 5);
    });
    const absent = keys.flatMap((_, k) => (shares[k] ? [] : [`k${k + 1}`]));
    write(note, absent.length ? t`no region for ${inList(absent)}` : String(END));
  };
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const draw = (query, name, weights, isEased) => {
    if (name !== by) change(name, by && isEased && !still);
    const [x, y] = [sx(query[0]), sy(query[1])];
    const [right, up] = toEdge(query);
    put(arrow, "d", `M${sx(0)},${sy(0)}L${x},${y}`);
    put(ray, "d", `M${x},${y}L${sx(right)},${sy(up)}`);
    opened ??= `${query}`;
    write(q, `${query}` === opened ? t("drag q") : "q");
    put(q, "text-anchor", right < 0 ? "end" : "start");
    put(q, "x", x + (right < 0 ? -13 : 13));
    put(q, "y", y + (up < 0 ? 18 : -8));
    put(grip, "transform", `translate(${x} ${y})`);
    const at = t`query at ${placeOf(query)}, length ${show(Math.hypot(...query))}`;
    say(tip, "query", query.join(" "), at);
    const places = keys.map((key) => [sx(key[0]), sy(key[1])]);
    keys.forEach((key, k) => {
      bundle.tie(k, [x, y], places[k], weights[k]);
      bundle.pair(k, `${by} ${k}`);
      put(dots[k].near, "data-pair", `${by} ${k}`);
      const reading = t`k${k + 1} at ${placeOf(key)}, length ${show(Math.hypot(...key))}: weight ${show(weights[k], 4)} by ${shown[by]}`;
      say(dots[k].near, `${by} key ${k}`, weights[k], reading);
      put(dots[k].near, "d", around(places[k], [...places, [x, y]]));
      // A query that lies on the key is held there.
      const isUnder = Math.hypot(places[k][0] - x, places[k][1] - y) < 1;
      put(dots[k].near, "pointer-events", isUnder ? "none" : null);
    });
  };
  put(plane.node, "class", "af-plot af-plane");
  return { node: plane.node, thumbs, draw };
}

/** The keys in the order of their scores, with their weights as bars. */
function stripOf(keys, shown) {
  const size = { width: roomy(230, 336), height: roomy(280, 80), left: 12, foot: 19 };
  const about = { title: t("weights in the order of scores"), ...size, ...BARE };
  const plot = axes({ ...about, x: [-0.5, keys.length - 0.5], y: [0, roomy(1.1, 1.3)] });
  const { sx, sy, box } = plot;
  const pitch = sx(1) - sx(0);
  const text = (x, y, words = "") => h("svg:text", { x, y, "text-anchor": "middle" }, words);
  const columns = keys.map((_, k) => {
    const value = text(0, 0);
    const look = { class: "af-region", style: `--hue: ${(360 * k) / keys.length}` };
    const bar = h("svg:rect", { ...look, x: -0.3 * pitch, width: 0.6 * pitch });
    const near = { class: "af-near", x: -pitch / 2, width: pitch, height: size.height };
    const name = text(0, box.bottom + 15, `k${k + 1}`);
    const parts = [h("svg:rect", near), bar, value, name];
    return { bar, value, node: mark(h("svg:g", {}, ...parts), 0, k) };
  });
  const signs = range(keys.length - 1).map((i) => text(sx(i + 0.5), box.bottom + 15));
  const title = h("svg:text", { x: box.left, y: 11 }, t("weights"));
  plot.layer.append(...columns.map(({ node }) => node));
  plot.node.append(h("svg:g", { "aria-hidden": "true" }, ...signs, title));
  put(plot.node, "class", "af-plot af-strip");
  const draw = (by, scores, weights) => {
    const ranks = ranksOf(scores);
    ranks.signs.forEach((sign, i) => write(signs[i], sign));
    ranks.keys.forEach((k, i) => {
      const { bar, value, node } = columns[k];
      node.style.transform = `translate(${sx(i).toFixed(2)}px, 0)`;
      put(node, "data-pair", `${by} ${k}`);
      put(bar, "y", sy(weights[k]));
      put(bar, "height", box.bottom - sy(weights[k]));
      put(value, "y", sy(weights[k]) - 3);
      write(value, show(weights[k]));
      const reading = t`k${k + 1}: score ${show(scores[k], 4)}, weight ${show(weights[k], 4)} by ${shown[by]}`;
      say(node, `bar ${k}`, weights[k], reading);
    });
  };
  return { node: plot.node, draw };
}

/** The scores and weights of all functions as numbers, linked to the threads. */
function tablesOf(keys, shown) {
  const about = { rows: Object.values(shown), columns: keys.map((_, k) => `k${k + 1}`) };
  const dims = [null, "keys"];
  const scores = grid({ ...about, title: t("Scores"), dims });
  const weights = grid({ ...about, title: t("Weights"), dims, extra: [t("sum")] });
  const as = (value) => ({ value, text: show(value) });
  const draw = (name, r, row, shares) => {
    row.forEach((number, k) => {
      const [score, weight] = [scores.cells[r][k], weights.cells[r][k]];
      const scored = t`${shown[name]}: score of k${k + 1} is ${show(number, 4)}`;
      fill(score, { key: `${name} score ${k}`, ...as(number), reading: scored });
      const reading = t`${shown[name]}: weight of k${k + 1} is ${show(shares[k], 4)}`;
      fill(weight, { key: `${name} weight ${k}`, ...as(shares[k]), shade: shares[k], reading });
      put(weight, "data-pair", `${name} ${k}`);
    });
    const reading = t`${shown[name]}: the weights sum to ${show(sum(shares), 4)}`;
    fill(weights.cells[r][keys.length], { key: `${name} sum`, ...as(sum(shares)), reading });
  };
  return { scores, weights, draw };
}
