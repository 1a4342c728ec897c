// Chapter 5: the surface of additive scores over (q, k), unit by unit.

export default {
  render({ model, el }) {
    const { grid: points, scales, W_q, W_k, w_v } = model.get("data");
    const plot = axes({ title: "scores over queries and keys", width: 360, height: 340, x: [-3.1875, 3.1875], y: [-3.1875, 3.1875],
      xLabel: "query q (no unit)", yLabel: "key k (no unit)", xTicks: [-3, -2, -1, 0, 1, 2, 3], yTicks: [-3, -2, -1, 0, 1, 2, 3] });
    const [width, height] = [plot.sx(0.375) - plot.sx(0), plot.sy(0) - plot.sy(0.375)];
    const squares = points.map((q, c) => points.map((k, r) => mark(h("svg:rect", {
      x: plot.sx(q) - width / 2, y: plot.sy(k) - height / 2, width, height }), points.length - 1 - r, c)));
    plot.layer.append(...squares.flat());
    const { node, values } = facts(["lowest score:", "highest score:"]);

    const figure = frame({ model, el }, {
      traits: ["hidden", "scale"],
      question: "One hidden unit makes a single step. How many do you need at least for a ridge, a score that is high where q = k and low on both sides?",
      answers: ["1", "2", "6"],
      right: 1,
      because: "One tanh rises once and stays. A second one, with the opposite sign and a little further on, takes the rise back: the two make a ridge.",
      draw: () => {
        const [hidden, scale] = [model.get("hidden"), model.get("scale")];
        const units = range(hidden);
        const tallest = sum(units.map((j) => Math.abs(w_v[j]))) || 1;
        // What a unit gets from the query and from the key, each once, not once a pair.
        const fromQuery = points.map((q) => units.map((j) => scale * (W_q[j][0] * q + W_q[j][1])));
        const fromKey = points.map((k) => units.map((j) => scale * W_k[j][0] * k));
        let [low, high] = [Infinity, -Infinity];
        points.forEach((q, c) => points.forEach((k, r) => {
          let score = 0;
          for (const j of units) score += w_v[j] * Math.tanh(fromQuery[c][j] + fromKey[r][j]);
          low = Math.min(low, score);
          high = Math.max(high, score);
          const square = squares[c][r];
          put(square, "class", score < 0 ? "af-square af-below" : "af-square");
          put(square, "fill-opacity", Math.abs(score / tallest).toFixed(3));
          say(square, `score ${c} ${r}`, score, `query ${show(q, 3)}, key ${show(k, 3)}: score ${show(score, 4)}`);
        }));
        write(values[0], show(low, 3));
        say(values[0], "low", low, `the lowest score is ${show(low, 6)}`);
        write(values[1], show(high, 3));
        say(values[1], "high", high, `the highest score is ${show(high, 6)}`);
      },
    });
    figure.slider({ label: "hidden units", stops: w_v.map((_, j) => j + 1), get: () => model.get("hidden"),
      change: (n) => figure.set("hidden", n), text: (n) => `${n} of ${w_v.length} units` });
    figure.slider({ label: "scale of W_q, W_k", stops: scales, get: () => model.get("scale"), change: (s) => figure.set("scale", s), text: (s) => `× ${show(s)}` });
    figure.stage.append(h("div", { class: "af-panel" }, plot.node, node));
    return figure.open();
  },
};
