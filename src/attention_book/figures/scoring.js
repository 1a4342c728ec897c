// Chapter 2: drag the query in the plane; five scoring functions answer at once.

export default {
  render({ model, el }) {
    const { keys, W, W_q, W_k, w_v } = model.get("data");
    const stops = range(25).map((i) => -3 + i / 4);
    const functions = {
      distance: (q, k) => -sum(q.map((x, i) => (x - k[i]) ** 2)) / 2,
      dot: dot,
      "scaled dot": (q, k) => dot(q, k) / Math.sqrt(2),
      bilinear: (q, k) => dot(q, W.map((row) => dot(row, k))),
      additive: (q, k) => dot(w_v, W_q.map((row, j) => Math.tanh(dot(row, q) + dot(W_k[j], k)))),
    };
    const names = Object.keys(functions);

    const plane = axes({ title: "query and keys in the plane", width: 320, height: 320, x: [-3, 3], y: [-3, 3],
      xLabel: "feature 1 (no unit)", yLabel: "feature 2 (no unit)", xTicks: [-3, -2, -1, 0, 1, 2, 3], yTicks: [-3, -2, -1, 0, 1, 2, 3] });
    put(plane.node, "class", "af-plot af-drag");
    const arrow = h("svg:path", { class: "af-arrow" });
    const tip = mark(h("svg:circle", { class: "af-tip", r: 9 }), 0, 0);
    const dots = keys.map((key, k) => mark(h("svg:circle", { class: "af-point", r: 6, cx: plane.sx(key[0]), cy: plane.sy(key[1]) }), 0, k + 1));
    plane.layer.append(
      h("svg:path", { class: "af-guide", d: `M${plane.sx(-3)},${plane.sy(0)}H${plane.sx(3)}M${plane.sx(0)},${plane.sy(-3)}V${plane.sy(3)}` }),
      arrow, ...dots,
      ...keys.map((key, k) => h("svg:text", { class: "af-name", x: plane.sx(key[0]) + 8, y: plane.sy(key[1]) - 8, "aria-hidden": "true" }, `k${k + 1}`)),
      tip);
    const columns = keys.map((_, k) => `k${k + 1}`);
    const scores = grid({ title: "Scores", rows: names, columns, dims: [null, "keys"] });
    const weights = grid({ title: "Weights", rows: names, columns, dims: [null, "keys"], extra: ["sum"] });

    const figure = frame({ model, el }, {
      traits: ["query"],
      question: "Take the query twice as long in the same direction. Under which function can the order of the keys' scores change?",
      answers: ["dot product", "scaled dot product", "distance"],
      right: 2,
      because: "A dot product doubles with the query, so the order of its scores stays. A distance depends on where the query ends: a longer query may come nearer to another key.",
      draw: () => {
        const query = model.get("query");
        const [x, y] = [plane.sx(query[0]), plane.sy(query[1])];
        put(arrow, "d", `M${plane.sx(0)},${plane.sy(0)}L${x},${y}`);
        put(tip, "cx", x);
        put(tip, "cy", y);
        say(tip, "query", query.join(" "), `query at (${show(query[0])}, ${show(query[1])}), length ${show(Math.hypot(...query))}`);
        names.forEach((name, r) => {
          const row = keys.map((key) => functions[name](query, key));
          const shares = softmax(row);
          row.forEach((score, k) => {
            fill(scores.cells[r][k], { key: `${name} score ${k}`, value: score, text: show(score, 2),
              reading: `${name}: score of k${k + 1} is ${show(score, 4)}` });
            fill(weights.cells[r][k], { key: `${name} weight ${k}`, value: shares[k], text: show(shares[k], 2), shade: shares[k],
              reading: `${name}: weight of k${k + 1} is ${show(shares[k], 4)}` });
          });
          fill(weights.cells[r][keys.length], { key: `${name} sum`, value: sum(shares), text: show(sum(shares), 2),
            reading: `${name}: the weights sum to ${show(sum(shares), 4)}` });
        });
        keys.forEach((key, k) => say(dots[k], `key ${k}`, key.join(" "), `k${k + 1} at (${show(key[0])}, ${show(key[1])}), length ${show(Math.hypot(...key))}`));
      },
    });

    const drag = (event) => {
      const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(plane.node.getScreenCTM().inverse());
      const snap = (value) => Math.max(-3, Math.min(3, Math.round(value * 4) / 4));
      const { left, right, top, bottom } = plane.box;
      figure.set("query", [snap(-3 + (6 * (at.x - left)) / (right - left)), snap(3 - (6 * (at.y - top)) / (bottom - top))]);
    };
    plane.node.addEventListener("pointerdown", (event) => {
      plane.node.setPointerCapture(event.pointerId);
      drag(event);
    });
    plane.node.addEventListener("pointermove", (event) => {
      if (plane.node.hasPointerCapture(event.pointerId)) drag(event);
    });
    [0, 1].forEach((axis) => figure.slider({ label: `query, feature ${axis + 1}`, stops, get: () => model.get("query")[axis],
      change: (value) => figure.set("query", model.get("query").map((old, i) => (i === axis ? value : old))), text: (value) => show(value) }));
    figure.stage.append(h("div", { class: "af-panel" }, plane.node), h("div", { class: "af-panel" }, scores.node, weights.node));
    return figure.open();
  },
};
