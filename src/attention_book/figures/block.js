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
        question: t(
          "Without positions and without dropout, reverse the tokens. What happens to a token's output?",
        ),
        answers: [t("it changes"), t("it stays, in its token's new place"), t("it becomes 0")],
        right: 1,
        because: t(
          "Each output is a sum over all positions, and a sum does not depend on their order. Positions added to the input make a token's place part of what it is; dropout draws anew on each call and so changes outputs in any order.",
        ),
        seen: () =>
          !model.get("positions") &&
          model.get("dropout") === 0 &&
          model.get("order") === "reversed",
        toSee: t("switch the positions off, with no dropout and the tokens reversed"),
        challenge: {
          task: t("make an output change while the positions are off"),
          met: () => !model.get("positions") && Math.max(...now().change) > 0.01,
        },
      },
    );
    figure.choice({
      label: t("Order:"),
      name: "order",
      options: names.map((name) => [name, t(name)]),
    });
    figure.choice({
      label: t("Positions:"),
      name: "positions",
      options: [
        [false, t("off")],
        [true, t("added")],
      ],
    });
    figure.slider({
      label: t("dropout rate"),
      name: "dropout",
      stops: rates,
      text: (rate) => t`${show(rate, 1)} (probability)`,
    });

    const map = grid({
      title: t("Weights after dropout"),
      rows: tokens,
      columns: tokens,
      dims: ["queries", "keys"],
      extra: [t("sum")],
    });
    const plot = axes({
      title: t("change of the outputs"),
      height: 210,
      x: [0.4, tokens.length + 0.6],
      y: [0, top],
      xLabel: t("token"),
      yLabel: t("change of the output"),
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
    figure.stage.append(map.node, panel(t("How far each output moves"), plot.node));

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
            reading: t`${tokens[from]} (${r + 1}) gives ${tokens[to]} (${c + 1}) the weight ${show(weights[r][c], 4)}`,
          }),
        );
        const total = sum(weights[r]);
        fill(map.cells[r][order.length], {
          key: `sum ${r}`,
          value: total,
          text: show(total),
          reading: t`the weights of ${tokens[from]} (${r + 1}) sum to ${show(total, 4)}`,
        });
        put(bars[r], "y", plot.sy(change[r]));
        put(bars[r], "height", plot.sy(0) - plot.sy(change[r]));
        put(over[r], "y", plot.sy(change[r]) - 4);
        write(over[r], show(change[r]));
        say(
          bars[r],
          `change ${r}`,
          change[r],
          t`${tokens[from]} (${r + 1}): its output moves by ${show(change[r], 4)}`,
        );
      });
      const most = change.indexOf(Math.max(...change));
      const name = t(model.get("order"));
      const positions = model.get("positions") ? t("added") : t("off");
      const dropout = rate ? t`dropout ${show(rate, 1)}` : t("no dropout");
      return change[most] >= 0.005
        ? t`With the tokens ${name}, positions ${positions} and ${dropout}, the output of “${tokens[order[most]]}” changes most, by ${show(change[most])}.`
        : t`With the tokens ${name}, positions ${positions} and ${dropout}, no output changes.`;
    });
  },
};
