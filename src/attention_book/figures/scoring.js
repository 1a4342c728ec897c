// Chapter 2: drag the query in the plane; five scoring functions answer at once.

export default {
  render({ model, el }) {
    const { keys, W, W_q, W_k, w_v } = model.get("data");
    const end = 3; // of the plane, on each side
    const stops = range(8 * end + 1).map((i) => -end + i / 4);
    const functions = {
      distance: (q, k) => -sum(q.map((x, i) => (x - k[i]) ** 2)) / 2,
      dot: dot,
      "scaled dot": (q, k) => dot(q, k) / Math.sqrt(2),
      bilinear: (q, k) =>
        dot(
          q,
          W.map((row) => dot(row, k)),
        ),
      additive: (q, k) =>
        dot(
          w_v,
          W_q.map((row, j) => Math.tanh(dot(row, q) + dot(W_k[j], k))),
        ),
    };
    const names = Object.keys(functions);
    const score = (name, query) => keys.map((key) => functions[name](query, key));
    const favourite = (scores) => `k${scores.findIndex((s) => s > Math.max(...scores) - 1e-9) + 1}`;
    const point = (query) => `(${query.map((x) => show(x)).join(", ")})`;

    const start = model.get("query");
    const double = start.map((x) => 2 * x);
    const reachable = double.every((x) => stops.includes(x)) && Math.hypot(...start) > 0;
    const figure = frame(
      { model, el },
      {
        traits: ["query"],
        question:
          "Make the query twice as long in the same direction. Under which function can the order of the keys' scores change?",
        answers: ["dot product", "scaled dot product", "distance"],
        right: 2,
        because:
          "A dot product doubles with the query, so the order of its scores does not change. A distance depends on where the query ends: a longer query may come nearer to another key.",
        ...(reachable && {
          seen: () => model.get("query").every((x, i) => x === double[i]),
          toSee: `move the query from ${point(start)} to ${point(double)}`,
        }),
        challenge: {
          task: "find a query for which distance, dot and additive prefer the same key",
          met: () =>
            new Set(
              ["distance", "dot", "additive"].map((name) =>
                favourite(score(name, model.get("query"))),
              ),
            ).size === 1,
        },
      },
    );
    figure.accept(
      "query",
      (query) =>
        Array.isArray(query) &&
        query.length === 2 &&
        query.every((x) => Number.isFinite(x) && Math.abs(x) <= end),
    );
    range(2).forEach((axis) =>
      figure.slider({
        label: `query, feature ${axis + 1}`,
        stops,
        text: (value) => show(value),
        get: () => model.get("query")[axis],
        change: (value) =>
          figure.set(
            "query",
            model.get("query").map((old, i) => (i === axis ? value : old)),
          ),
      }),
    );

    const whole = range(2 * end + 1).map((i) => i - end);
    const plane = axes({
      title: "query and keys in the plane",
      width: 320,
      height: 320,
      x: [-end, end],
      y: [-end, end],
      xLabel: "feature 1 (no unit)",
      yLabel: "feature 2 (no unit)",
      xTicks: whole,
      yTicks: whole,
    });
    const arrow = h("svg:path", { class: "af-arrow" });
    const tip = mark(h("svg:circle", { class: "af-tip", r: 9 }), 0, 0);
    const snap = (value) => stops[nearest(stops, value)];
    const grip = handle(plane, tip, (x, y) => figure.set("query", [snap(x), snap(y)]));
    const dots = keys.map((key, k) =>
      mark(
        h("svg:circle", { class: "af-point", r: 6, cx: plane.sx(key[0]), cy: plane.sy(key[1]) }),
        0,
        k + 1,
      ),
    );
    plane.layer.append(
      h("svg:path", {
        class: "af-guide",
        d: `M${plane.sx(-end)},${plane.sy(0)}H${plane.sx(end)}M${plane.sx(0)},${plane.sy(-end)}V${plane.sy(end)}`,
      }),
      arrow,
      ...dots,
      ...keys.map((key, k) =>
        h(
          "svg:text",
          {
            class: "af-name",
            x: plane.sx(key[0]) + 8,
            y: plane.sy(key[1]) - 8,
            "aria-hidden": "true",
          },
          `k${k + 1}`,
        ),
      ),
      grip,
    );
    const columns = keys.map((_, k) => `k${k + 1}`);
    const scores = grid({ title: "Scores", rows: names, columns, dims: [null, "keys"] });
    const weights = grid({
      title: "Weights",
      rows: names,
      columns,
      dims: [null, "keys"],
      extra: ["sum"],
    });
    figure.stage.append(
      panel("Drag the blue point", plane.node),
      h("div", { class: "af-panel" }, scores.node, weights.node),
    );

    return figure.open(() => {
      const query = model.get("query");
      const [x, y] = [plane.sx(query[0]), plane.sy(query[1])];
      put(arrow, "d", `M${plane.sx(0)},${plane.sy(0)}L${x},${y}`);
      put(grip, "transform", `translate(${x} ${y})`);
      say(
        tip,
        "query",
        query.join(" "),
        `query at ${point(query)}, length ${show(Math.hypot(...query))}`,
      );
      keys.forEach((key, k) =>
        say(
          dots[k],
          `key ${k}`,
          key.join(" "),
          `k${k + 1} at ${point(key)}, length ${show(Math.hypot(...key))}`,
        ),
      );
      const favourites = names.map((name, r) => {
        const row = score(name, query);
        const shares = softmax(row);
        row.forEach((number, k) => {
          fill(scores.cells[r][k], {
            key: `${name} score ${k}`,
            value: number,
            text: show(number),
            reading: `${name}: score of k${k + 1} is ${show(number, 4)}`,
          });
          fill(weights.cells[r][k], {
            key: `${name} weight ${k}`,
            value: shares[k],
            text: show(shares[k]),
            shade: shares[k],
            reading: `${name}: weight of k${k + 1} is ${show(shares[k], 4)}`,
          });
        });
        fill(weights.cells[r][keys.length], {
          key: `${name} sum`,
          value: sum(shares),
          text: show(sum(shares)),
          reading: `${name}: the weights sum to ${show(sum(shares), 4)}`,
        });
        return `${favourite(row)} by ${name}`;
      });
      return `The query at ${point(query)} prefers ${favourites.join(", ")}.`;
    });
  },
};
