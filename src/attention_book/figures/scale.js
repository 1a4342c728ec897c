// Chapter 6: d_k from 1 to 1024, plain and scaled dot products side by side.

export default {
  render({ model, el }) {
    const { stops, edges, pairs, plain, scaled } = model.get("data");
    const bins = range(edges.length - 1);
    const keys = plain[0].weights.length;
    const highest = Math.max(...[...plain, ...scaled].flatMap((seen) => seen.shares));
    const top = Math.ceil(highest * 10) / 10;

    const side = (title, name) => {
      const spread = axes({ title: `${title}: scores`, x: [edges[0], edges.at(-1)], y: [0, top],
        xLabel: "score (no unit)", yLabel: "share of pairs", xTicks: [-60, -40, -20, 0, 20, 40, 60], yTicks: [0, top / 2, top] });
      const width = spread.sx(edges[1]) - spread.sx(edges[0]);
      const bars = bins.map((i) => mark(h("svg:rect", { class: "af-bar", x: spread.sx(edges[i]), width }), 0, i));
      spread.layer.append(...bars);
      const row = axes({ title: `${title}: weights of the first query`, height: 170, x: [0.4, keys + 0.6], y: [0, 1],
        xLabel: "key", yLabel: "weight (probability)", xTicks: range(keys).map((k) => k + 1), yTicks: [0, 0.5, 1] });
      const stems = range(keys).map((k) => mark(h("svg:rect", { class: "af-bar", x: row.sx(k + 0.65), width: row.sx(1.7) - row.sx(1) }), 0, k));
      row.layer.append(...stems);
      const { node, values } = facts(["variance of the scores:", "norm of the softmax's gradient:"]);
      figure.stage.append(panel(title, spread.node, row.node, node));
      return (seen) => {
        seen.shares.forEach((share, i) => {
          put(bars[i], "y", spread.sy(share));
          put(bars[i], "height", spread.sy(0) - spread.sy(share));
          const where = i === 0 ? `below ${show(edges[1], 0)}`
            : i === bins.length - 1 ? `${show(edges[i], 0)} or more` : `from ${show(edges[i], 0)} to ${show(edges[i + 1], 0)}`;
          say(bars[i], `${name} share ${i}`, share, `${title}: ${show(100 * share, 1)} % of ${pairs} pairs score ${where}`);
        });
        seen.weights.forEach((weight, k) => {
          put(stems[k], "y", row.sy(weight));
          put(stems[k], "height", row.sy(0) - row.sy(weight));
          say(stems[k], `${name} weight ${k}`, weight, `${title}: key ${k + 1} gets the weight ${show(weight, 4)}`);
        });
        const d = `at d_k = ${model.get("d_k")}`;
        write(values[0], show(seen.variance, 2));
        say(values[0], `${name} variance`, seen.variance, `${title}: the scores' variance is ${show(seen.variance, 4)} ${d}`);
        write(values[1], show(seen.gradient, 4));
        say(values[1], `${name} gradient`, seen.gradient, `${title}: the mean norm of the softmax's Jacobian is ${show(seen.gradient, 6)} ${d}`);
      };
    };

    const figure = frame({ model, el }, {
      traits: ["d_k"],
      question: "Each component of a query and of a key has variance 1. When d_k grows from 64 to 1024, what happens to the gradient that passes through the softmax of plain dot products?",
      answers: ["it grows", "it stays", "it shrinks"],
      right: 2,
      because: "The variance of a plain dot product grows with d_k. One key then takes nearly all the weight, and the softmax hardly answers to its scores. Divided by √d_k, the scores keep their variance.",
      draw: () => {
        const now = stops.indexOf(model.get("d_k"));
        drawPlain(plain[now]);
        drawScaled(scaled[now]);
      },
    });
    figure.slider({ label: "d_k", stops, get: () => model.get("d_k"), change: (d) => figure.set("d_k", d),
      text: (d) => `${d} ${d === 1 ? "feature" : "features"}` });
    const drawPlain = side("Plain, q·k", "plain");
    const drawScaled = side("Scaled, q·k / √d_k", "scaled");
    return figure.open();
  },
};
