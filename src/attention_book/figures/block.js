// Chapter 8: shuffle the tokens; positions and dropout decide whether the outputs notice.

export default {
  render({ model, el }) {
    const { orders, rates, seen, tokens } = model.get("data");
    const names = Object.keys(orders);
    const places = range(tokens.length);
    const highest = Math.max(1, ...Object.values(seen).flatMap((byRate) => Object.values(byRate).flatMap((byOrder) => Object.values(byOrder).flatMap(({ change }) => change))));

    const map = grid({ title: "Weights after dropout", rows: tokens, columns: tokens, dims: ["queries", "keys"], extra: ["sum"] });
    const top = Math.ceil(highest);
    const plot = axes({ title: "change of the outputs", height: 210, x: [0.4, tokens.length + 0.6], y: [0, top],
      xLabel: "token", yLabel: "change of the output", xTicks: [], yTicks: ticks([0, top]) });
    const bars = places.map((i) => mark(h("svg:rect", { class: "af-bar", x: plot.sx(i + 0.65), width: plot.sx(1.7) - plot.sx(1) }), 0, i));
    const under = places.map((i) => h("svg:text", { x: plot.sx(i + 1), y: plot.sy(0) + 15, "text-anchor": "middle", "aria-hidden": "true" }));
    plot.layer.append(...bars, ...under);

    const figure = frame({ model, el }, {
      traits: ["order", "positions", "dropout"],
      question: "Without positions and without dropout, reverse the tokens. What happens to a token's output?",
      answers: ["it changes", "it stays, in its token's new place", "it becomes 0"],
      right: 1,
      because: "Each output is a sum over all positions, and a sum does not care for order. Positions added to the input make a token's place part of what it is; dropout draws anew on each call and so changes outputs in any order.",
      draw: () => {
        const [order, rate] = [orders[model.get("order")], model.get("dropout")];
        const { weights, change } = seen[model.get("positions") ? "on" : "off"][String(rate)][model.get("order")];
        order.forEach((from, r) => {
          write(map.heads[r], tokens[from]);
          write(map.sides[r], tokens[from]);
          write(under[r], tokens[from]);
          order.forEach((to, c) => fill(map.cells[r][c], { key: `weight ${r} ${c}`, value: weights[r][c], text: show(weights[r][c], 2), shade: weights[r][c],
            off: rate > 0 && weights[r][c] === 0, reading: `${tokens[from]} (${r + 1}) gives ${tokens[to]} (${c + 1}) the weight ${show(weights[r][c], 4)}` }));
          const total = sum(weights[r]);
          fill(map.cells[r][order.length], { key: `sum ${r}`, value: total, text: show(total, 2), reading: `the weights of ${tokens[from]} (${r + 1}) sum to ${show(total, 4)}` });
          put(bars[r], "y", plot.sy(change[r]));
          put(bars[r], "height", plot.sy(0) - plot.sy(change[r]));
          say(bars[r], `change ${r}`, change[r], `${tokens[from]} (${r + 1}): its output moves by ${show(change[r], 4)}`);
        });
      },
    });
    figure.slider({ label: "order", stops: range(names.length), get: () => names.indexOf(model.get("order")),
      change: (i) => figure.set("order", names[i]), text: (i) => names[i] });
    figure.choice({ label: "Positions:", name: "positions", options: [[false, "off"], [true, "added"]] });
    figure.slider({ label: "dropout rate", stops: rates, get: () => model.get("dropout"), change: (rate) => figure.set("dropout", rate),
      text: (rate) => `${show(rate, 1)} (probability)` });
    figure.stage.append(map.node, h("div", { class: "af-panel" }, plot.node));
    return figure.open();
  },
};
