// Chapter 8: shuffle the tokens; positions and dropout decide whether the outputs change.

export default {
  render({ model, el }) {
    const { orders, rates, seen, tokens } = model.get("data");
    const names = Object.keys(orders);
    const places = range(tokens.length);
    const now = () =>
      seen[model.get("positions") ? "on" : "off"][String(model.get("dropout"))][model.get("order")];
    const all = Object.values(seen).flatMap(Object.values).flatMap(Object.values);
    const top = Math.ceil(Math.max(1, ...all.flatMap(({ change }) => change)));

    const figure = frame(
      { model, el },
      {
        traits: ["order", "positions", "dropout"],
        question:
          "Without positions and without dropout, reverse the tokens. What happens to a token's output?",
        answers: ["it changes", "it stays, in its token's new place", "it becomes 0"],
        right: 1,
        because:
          "Each output is a sum over all positions, and a sum does not depend on their order. Positions added to the input make a token's place part of what it is; dropout draws anew on each call and so changes outputs in any order.",
        seen: () =>
          !model.get("positions") &&
          model.get("dropout") === 0 &&
          model.get("order") === "reversed",
        toSee: "switch the positions off, with no dropout and the tokens reversed",
        challenge: {
          task: "make an output change while the positions are off",
          met: () => !model.get("positions") && Math.max(...now().change) > 0.01,
        },
      },
    );
    figure.choice({ label: "Order:", name: "order", options: names.map((name) => [name, name]) });
    figure.choice({
      label: "Positions:",
      name: "positions",
      options: [
        [false, "off"],
        [true, "added"],
      ],
    });
    figure.slider({
      label: "dropout rate",
      name: "dropout",
      stops: rates,
      text: (rate) => `${show(rate, 1)} (probability)`,
    });

    const map = grid({
      title: "Weights after dropout",
      rows: tokens,
      columns: tokens,
      dims: ["queries", "keys"],
      extra: ["sum"],
    });
    const plot = axes({
      title: "change of the outputs",
      height: 210,
      x: [0.4, tokens.length + 0.6],
      y: [0, top],
      xLabel: "token",
      yLabel: "change of the output",
      xTicks: [],
      yTicks: ticks([0, top]),
    });
    const bars = places.map((i) =>
      mark(
        h("svg:rect", { class: "af-bar", x: plot.sx(i + 0.65), width: plot.sx(1.7) - plot.sx(1) }),
        0,
        i,
      ),
    );
    const text = (i, at) =>
      h("svg:text", { x: plot.sx(i + 1), y: at, "text-anchor": "middle", "aria-hidden": "true" });
    const under = places.map((i) => text(i, plot.sy(0) + 15));
    const over = places.map((i) => text(i, 0));
    plot.layer.append(...bars, ...under, ...over);
    figure.stage.append(map.node, panel("How far each output moves", plot.node));

    return figure.open(() => {
      const [order, rate] = [orders[model.get("order")], model.get("dropout")];
      const { weights, change } = now();
      order.forEach((from, r) => {
        for (const node of [map.heads[r], map.sides[r], under[r]]) write(node, tokens[from]);
        order.forEach((to, c) =>
          fill(map.cells[r][c], {
            key: `weight ${r} ${c}`,
            value: weights[r][c],
            text: show(weights[r][c]),
            shade: weights[r][c],
            off: rate > 0 && weights[r][c] === 0,
            reading: `${tokens[from]} (${r + 1}) gives ${tokens[to]} (${c + 1}) the weight ${show(weights[r][c], 4)}`,
          }),
        );
        const total = sum(weights[r]);
        fill(map.cells[r][order.length], {
          key: `sum ${r}`,
          value: total,
          text: show(total),
          reading: `the weights of ${tokens[from]} (${r + 1}) sum to ${show(total, 4)}`,
        });
        put(bars[r], "y", plot.sy(change[r]));
        put(bars[r], "height", plot.sy(0) - plot.sy(change[r]));
        put(over[r], "y", plot.sy(change[r]) - 4);
        write(over[r], show(change[r]));
        say(
          bars[r],
          `change ${r}`,
          change[r],
          `${tokens[from]} (${r + 1}): its output moves by ${show(change[r], 4)}`,
        );
      });
      const most = change.indexOf(Math.max(...change));
      const outcome =
        change[most] >= 0.005
          ? `the output of “${tokens[order[most]]}” changes most, by ${show(change[most])}`
          : "no output changes";
      const dropout = rate ? `dropout ${show(rate, 1)}` : "no dropout";
      return `With the tokens ${model.get("order")}, positions ${model.get("positions") ? "added" : "off"} and ${dropout}, ${outcome}.`;
    });
  },
};
