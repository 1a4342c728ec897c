// Chapter 1: a query among points on a line; the width decides who is heard.

export default {
  render({ model, el }) {
    const { keys, values, queries, widths } = model.get("data");
    const weigh = (query, width) => softmax(keys.map((key) => -(((query - key) / width) ** 2) / 2));
    const predict = (query, width) => dot(weigh(query, width), values);

    const low = Math.min(...values);
    const high = Math.max(...values);
    const margin = 0.12 * (high - low) || 1;
    const x = [queries[0], queries.at(-1)];
    const y = [low - margin, high + margin];
    const above = axes({ title: "points and prediction", width: 400, height: 220, x, y,
      xLabel: "key and query (no unit)", yLabel: "value (no unit)", xTicks: ticks(x), yTicks: ticks(y) });
    const below = axes({ title: "weights", width: 400, height: 150, x, y: [0, 1],
      xLabel: "key (no unit)", yLabel: "weight (probability)", xTicks: ticks(x), yTicks: [0, 0.5, 1] });
    const fine = range(241).map((i) => x[0] + (i * (x[1] - x[0])) / 240);
    const order = range(keys.length).sort((a, b) => keys[a] - keys[b]);
    const points = [];
    const stems = [];
    order.forEach((k, place) => {
      points[k] = mark(h("svg:circle", { class: "af-point", r: 5, cx: above.sx(keys[k]), cy: above.sy(values[k]) }), 0, place);
      stems[k] = mark(h("svg:rect", { class: "af-bar", x: below.sx(keys[k]) - 3, width: 6 }), 0, place);
    });
    const curve = h("svg:path", { class: "af-curve" });
    const lines = [above, below].map(({ box }) => h("svg:path", { class: "af-guide", d: `M0,${box.top}V${box.bottom}` }));
    const guess = mark(h("svg:path", { class: "af-guess", d: "M0,-8L8,0L0,8L-8,0Z" }), 1, 0);
    above.layer.append(lines[0], curve, ...order.map((k) => points[k]), guess);
    below.layer.append(lines[1], ...order.map((k) => stems[k]));
    const names = facts(["prediction:", "largest weight:"]);

    const figure = frame({ model, el }, {
      traits: ["query", "width"],
      question: "Make the width very large. What does the prediction become?",
      answers: ["the nearest key's value", "the mean of all values", "0"],
      right: 1,
      because: "A large width finds all keys equally near, so every weight is the same and the prediction is the plain mean. A small one hears the nearest key alone.",
      draw: () => {
        const [query, width] = [model.get("query"), model.get("width")];
        const weights = weigh(query, width);
        const prediction = dot(weights, values);
        const largest = Math.max(...weights);
        keys.forEach((key, k) => {
          put(points[k], "fill-opacity", 0.25 + 0.75 * (weights[k] / largest));
          put(stems[k], "y", below.sy(weights[k]));
          put(stems[k], "height", below.sy(0) - below.sy(weights[k]));
          say(points[k], `value ${k}`, values[k], `key ${show(key)}: value ${show(values[k])}, weight ${show(weights[k], 4)}`);
          say(stems[k], `weight ${k}`, weights[k], `key ${show(key)}: weight ${show(weights[k], 4)}, value ${show(values[k])}`);
        });
        put(curve, "d", fine.map((q, i) => `${i ? "L" : "M"}${above.sx(q).toFixed(2)},${above.sy(predict(q, width)).toFixed(2)}`).join(""));
        put(lines[0], "transform", `translate(${above.sx(query)})`);
        put(lines[1], "transform", `translate(${below.sx(query)})`);
        put(guess, "transform", `translate(${above.sx(query)} ${above.sy(prediction)})`);
        say(guess, "guess", prediction, `query ${show(query)}: prediction ${show(prediction, 4)}`);
        write(names.values[0], show(prediction, 3));
        say(names.values[0], "prediction", prediction, `prediction ${show(prediction, 6)} at query ${show(query)}`);
        write(names.values[1], show(largest, 3));
        say(names.values[1], "largest", largest, `the largest weight is ${show(largest, 6)}, a probability`);
      },
    });
    figure.slider({ label: "query", stops: queries, get: () => model.get("query"), change: (q) => figure.set("query", q), text: (q) => show(q) });
    figure.slider({ label: "width w", stops: widths, get: () => model.get("width"), change: (w) => figure.set("width", w), text: (w) => show(w) });
    figure.stage.append(h("div", { class: "af-panel" }, above.node, below.node, names.node));
    return figure.open();
  },
};
