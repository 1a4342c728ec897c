// Chapter 2: one query in five planes, each coloured by the key that its scoring function prefers.

const END = 3; // of the plane, on each side

export default {
  render({ model, el }) {
    const data = model.get("data");
    const { keys } = data;
    const { stops } = declared.controls.query;
    const functions = scorers(data);
    const shown = {
      distance: t("distance"),
      dot: t("dot"),
      "scaled dot": t("scaled dot"),
      bilinear: t("bilinear"),
      additive: t("additive"),
    };
    const names = Object.keys(shown);
    const figure = scoringFrame({ model, el }, functions, stops);
    range(2).forEach((axis) =>
      figure.slider({
        name: "query",
        label: t(declared.controls.query.label, axis + 1),
        text: (value) => show(value),
        get: () => model.get("query")[axis],
        change: (value) =>
          figure.set(
            "query",
            model.get("query").map((old, i) => (i === axis ? value : old)),
          ),
      }),
    );
    const snap = (value) => stops[nearest(stops, value)];
    const move = (x, y) => figure.set("query", [snap(x), snap(y)]);
    const planes = names.map((name) =>
      planeOf(data, { name, shown: shown[name], score: functions[name], move }),
    );
    const tables = tablesOf(keys, shown);
    const legend = h(
      "div",
      { class: "af-panel af-key" },
      h("p", {}, h("span", { class: "af-swatch af-query" }), t("the query, the same in all five")),
      h("p", {}, h("span", { class: "af-swatch af-keys" }), t("the keys")),
      h(
        "p",
        {},
        h("span", { class: "af-swatch af-strand" }),
        t("a thread, as wide as the key's weight"),
      ),
      h("p", {}, t("A place has the colour of the key that would get the largest weight there.")),
      h("p", {}, t("Where that key lies elsewhere, a bold name says which it is.")),
    );
    figure.stage.append(
      h("div", { class: "af-planes" }, ...planes.map(({ node }) => node), legend),
    );
    figure.below.append(
      h(
        "details",
        { class: "af-inside" },
        h("summary", {}, t("The numbers: scores and weights")),
        h("div", { class: "af-row" }, tables.scores.node, tables.weights.node),
      ),
    );

    return figure.open(() => {
      const query = model.get("query");
      const preferred = names.map((name, r) => {
        const row = functions[name](query);
        const shares = softmax(row);
        planes[r].draw(query, shares, orderOf(row));
        tables.draw(name, r, row, shares);
        const best = favourites(row);
        if (best.length === keys.length && best.length > 1) return phrase("no key", shown[name]);
        const tied = best.reduce((all, key) => t`${all} and ${key}`);
        return phrase("by", tied, shown[name]);
      });
      return phrase("prefers", placeOf(query), inList(preferred));
    });
  },
};

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

/** The keys from the highest score to the lowest, as in "k2 > k1 = k3". */
function orderOf(scores) {
  const keys = range(scores.length).sort((a, b) => {
    const by = scores[b] - scores[a];
    return Math.abs(by) < 1e-9 ? a - b : by;
  });
  return keys.reduce((all, k, i) => {
    const sign = i && scores[keys[i - 1]] - scores[k] < 1e-9 ? "=" : ">";
    return i ? `${all} ${sign} k${k + 1}` : `k${k + 1}`;
  }, "");
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

/** The frame with its question, which asks for the doubled query where the sliders can reach it. */
function scoringFrame({ model, el }, functions, stops) {
  const start = model.get("query");
  const double = start.map((x) => 2 * x);
  const reachable = double.every((x) => stops.includes(x)) && Math.hypot(...start) > 0;
  let rested = [start]; // where the query was let go of
  /** Whether the query is now twice one that it was, and that changed the order by distance. */
  const isDoubled = (isHeld) => {
    if (isHeld) return false;
    const now = model.get("query");
    const order = (query) => orderOf(functions.distance(query));
    const from = rested.find((old) => old.every((x, i) => 2 * x === now[i]));
    if (from && order(from) !== order(now)) return true;
    rested.push(now);
    return false;
  };
  return frame(
    { model, el },
    {
      question: t(
        "Make the query twice as long in the same direction. Under which function can the order of the keys' scores change?",
      ),
      answers: [t("dot product"), t("scaled dot product"), t("distance")],
      right: 2,
      because: t(
        "A dot product doubles with the query, so the order of its scores does not change. A distance depends on where the query ends: a longer query may come nearer to another key.",
      ),
      ...(reachable && {
        seen: isDoubled,
        forget: () => {
          rested = [start];
        },
        toSee: t`move the query from ${placeOf(start)} to ${placeOf(double)}`,
      }),
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

/** Which key wins where in the plane, as paths and their borders, from the scores in the middles of the
 * cells; between those, scores are taken to change evenly. `map` has the winners in the middles. */
function regionsOf(cells, count, score, { sx, sy }) {
  const middles = range(cells).map((i) => (2 * END * (i + 0.5)) / cells - END);
  const along = [-END, ...middles, END];
  const corners = along.map((y) => along.map((x) => [sx(x), sy(y), score([x, y])]));
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
  const all = range(map.length).filter((at) => map[at] === k);
  const place = (at) => [at % cells, Math.floor(at / cells)];
  const isEdge = (at) => [at - 1, at + 1, at - cells, at + cells].some((next) => map[next] !== k);
  const border = all.filter(isEdge).map(place);
  const inPlane = (cell) => (2 * END * (cell + 0.5)) / cells - END;
  const isClear = ([column, row]) =>
    keys.every(([x, y]) => {
      const [right, up] = [inPlane(column) - x, inPlane(row) - y];
      return right < -0.5 || right > 0.9 || up < -0.7 || up > 0.8;
    });
  const spots = all.map(place);
  const own = spots.some(isClear) ? spots.filter(isClear) : spots;
  const depth = own.map(([column, row]) => {
    const sides = [column, row, cells - 1 - column, cells - 1 - row];
    return Math.min(...sides, ...border.map(([c, r]) => Math.hypot(column - c, row - r)));
  });
  return own[depth.indexOf(Math.max(...depth))];
}

/** One plane: regions, keys, the query, and threads from it to the keys. */
function planeOf({ keys, cells }, { name, shown, score, move }) {
  const plane = axes({
    title: t`query and keys in the plane, by ${shown}`,
    width: 216,
    height: 216,
    left: 16,
    foot: 18,
    x: [-END, END],
    y: [-END, END],
    xLabel: "",
    yLabel: "",
    xTicks: [-END, 0, END],
    yTicks: [],
  });
  const { box, sx, sy } = plane;
  const regions = keys.map((_, k) =>
    mark(h("svg:path", { class: "af-region", style: `--hue: ${(360 * k) / keys.length}` }), 1, k),
  );
  const left = (column) => (box.left + (column * (box.right - box.left)) / cells).toFixed(2);
  const bottom = (row) => (box.bottom - (row * (box.bottom - box.top)) / cells).toFixed(2);
  const drawn = regionsOf(cells, keys.length, score, { sx, sy });
  const { map, areas, edges, shares } = drawn;
  regions.forEach((region, k) => {
    put(region, "d", areas[k]);
    region.toggleAttribute("hidden", shares[k] === 0);
    const percent = shares[k] < 0.01 ? t("less than 1 %") : `${show(100 * shares[k], 0)} %`;
    const reading = t`k${k + 1} wins by ${shown} on ${percent} of this plane`;
    say(region, `${name} region ${k}`, shares[k], reading);
  });
  const bundle = threads(keys.length, { widest: 12 });
  const arrow = h("svg:path", { class: "af-arrow" });
  const tip = mark(h("svg:circle", { class: "af-tip", r: 8 }), 0, 0);
  const grip = handle(plane, tip, move, 34);
  const dots = keys.map(([x, y], k) => {
    bundle.pair(k, `${name} ${k}`);
    const near = mark(h("svg:path", { class: "af-near" }), 0, k + 1);
    put(near, "data-pair", `${name} ${k}`);
    return { near, dot: h("svg:circle", { class: "af-point", r: 5, cx: sx(x), cy: sy(y) }) };
  });
  const names = keys.map(([x, y], k) =>
    h(
      "svg:text",
      { class: "af-name", x: sx(x) + 7, y: sy(y) - 6, "aria-hidden": "true" },
      `k${k + 1}`,
    ),
  );
  const ranking = h("p", { class: "af-ranking" });
  const border = h("svg:path", { class: "af-border", d: edges });
  // A region is named where its key lies in another one.
  const winners = keys.flatMap((key, k) => {
    if (!shares[k] || winner(score(key)) === k) return [];
    const [column, row] = spotOf(map, cells, k, keys);
    const at = { x: left(column + 0.5), y: Number(bottom(row + 0.5)) + 5 };
    return h("svg:text", { class: "af-winner", "text-anchor": "middle", ...at }, `k${k + 1}`);
  });
  plane.layer.append(...regions, border, arrow, bundle.node, ...dots.map(({ dot }) => dot));
  plane.layer.append(grip, ...dots.map(({ near }) => near), ...winners, ...names);
  const absent = keys.flatMap((_, k) => (shares[k] ? [] : [`k${k + 1}`]));
  const note = absent.length
    ? [shown, h("small", {}, " ", t`no region for ${inList(absent)}`)]
    : [shown];

  const draw = (query, weights, order) => {
    write(ranking, order);
    const [x, y] = [sx(query[0]), sy(query[1])];
    put(arrow, "d", `M${sx(0)},${sy(0)}L${x},${y}`);
    put(grip, "transform", `translate(${x} ${y})`);
    const at = t`query at ${placeOf(query)}, length ${show(Math.hypot(...query))}`;
    say(tip, `${name} query`, query.join(" "), at);
    const places = keys.map((key) => [sx(key[0]), sy(key[1])]);
    keys.forEach((key, k) => {
      bundle.tie(k, [x, y], places[k], weights[k]);
      const reading = t`k${k + 1} at ${placeOf(key)}, length ${show(Math.hypot(...key))}: weight ${show(weights[k], 4)} by ${shown}`;
      say(dots[k].near, `${name} key ${k}`, weights[k], reading);
      put(dots[k].near, "d", around(places[k], [...places, [x, y]]));
      // A query that lies on the key is held there.
      const isUnder = Math.hypot(places[k][0] - x, places[k][1] - y) < 1;
      put(dots[k].near, "pointer-events", isUnder ? "none" : null);
    });
  };
  return { node: panel(note, ranking, plane.node), draw };
}

/** The scores and weights of all functions as numbers, linked to the threads. */
function tablesOf(keys, shown) {
  const about = { rows: Object.values(shown), columns: keys.map((_, k) => `k${k + 1}`) };
  const dims = [null, "keys"];
  const scores = grid({ ...about, title: t("Scores"), dims });
  const weights = grid({ ...about, title: t("Weights"), dims, extra: [t("sum")] });
  const draw = (name, r, row, shares) => {
    row.forEach((number, k) => {
      fill(scores.cells[r][k], {
        key: `${name} score ${k}`,
        value: number,
        text: show(number),
        reading: t`${shown[name]}: score of k${k + 1} is ${show(number, 4)}`,
      });
      fill(weights.cells[r][k], {
        key: `${name} weight ${k}`,
        value: shares[k],
        text: show(shares[k]),
        shade: shares[k],
        reading: t`${shown[name]}: weight of k${k + 1} is ${show(shares[k], 4)}`,
      });
      put(weights.cells[r][k], "data-pair", `${name} ${k}`);
    });
    fill(weights.cells[r][keys.length], {
      key: `${name} sum`,
      value: sum(shares),
      text: show(sum(shares)),
      reading: t`${shown[name]}: the weights sum to ${show(sum(shares), 4)}`,
    });
  };
  return { scores, weights, draw };
}
