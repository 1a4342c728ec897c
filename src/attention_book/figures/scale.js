// Chapter 6: d_k from 1 to 1024, plain and scaled dot products side by side.

export default {
  render({ model, el }) {
    const { stops, edges, pairs, ...measured } = model.get("data");
    const sides = [
      ["plain", t("Plain, q·k")],
      ["scaled", t("Scaled, q·k / √d_k")],
    ];
    const keys = measured.plain[0].weights.length;
    const place = () => stops.indexOf(model.get("d_k"));
    const quartered = (i) => measured.plain[i].gradient < measured.scaled[i].gradient / 4;

    const figure = frame(
      { model, el },
      {
        traits: ["d_k"],
        question: t(
          "Each component of a query and of a key has variance 1. When d_k grows from 64 to 1024, what happens to the gradient that passes through the softmax of plain dot products?",
        ),
        answers: [t("it grows"), t("it stays"), t("it shrinks")],
        right: 2,
        because: t(
          "The variance of a plain dot product grows with d_k. One key then takes nearly all the weight, and the softmax hardly responds to its scores. Divided by √d_k, the scores keep their variance.",
        ),
        seen: () => place() === stops.length - 1,
        toSee: t`move d_k to ${stops.at(-1)}`,
        challenge: {
          task: t(
            "find the smallest d_k at which the plain gradient is less than a quarter of the scaled one",
          ),
          met: () => quartered(place()) && !range(place()).some(quartered),
        },
      },
    );
    figure.slider({
      label: "d_k",
      name: "d_k",
      stops,
      text: (d) => (d === 1 ? t("1 feature") : t`${d} features`),
    });

    /** The histogram and the weights of one side; returns what draws them. */
    const side = ([name, title]) => {
      const bounds = edges[name];
      const bins = range(bounds.length - 1);
      const top = Math.ceil(Math.max(...measured[name].flatMap((seen) => seen.shares)) * 10) / 10;
      const x = [bounds[0], bounds.at(-1)];
      const spread = axes({
        title: t`${title}: scores`,
        x,
        y: [0, top],
        xLabel: t("score (no unit)"),
        yLabel: t("share of pairs"),
        xTicks: ticks(x),
        yTicks: ticks([0, top]),
      });
      const width = spread.sx(bounds[1]) - spread.sx(bounds[0]);
      const bars = bins.map((i) =>
        mark(h("svg:rect", { class: "af-bar", x: spread.sx(bounds[i]), width }), 0, i),
      );
      spread.layer.append(...bars);
      const row = axes({
        title: t`${title}: weights of the first query`,
        height: 170,
        x: [0.4, keys + 0.6],
        y: [0, 1],
        xLabel: t("key"),
        yLabel: t("weight (probability)"),
        xTicks: range(keys).map((k) => k + 1),
        yTicks: [0, 0.5, 1],
      });
      const stems = range(keys).map((k) =>
        mark(
          h("svg:rect", { class: "af-bar", x: row.sx(k + 0.65), width: row.sx(1.7) - row.sx(1) }),
          0,
          k,
        ),
      );
      row.layer.append(...stems);
      figure.stage.append(panel(title, spread.node, row.node));
      const edge = (i) => String(bounds[i]).replace("-", "−");
      return () => {
        const { shares, weights } = measured[name][place()];
        shares.forEach((share, i) => {
          put(bars[i], "y", spread.sy(share));
          put(bars[i], "height", spread.sy(0) - spread.sy(share));
          const percent = show(100 * share, 1);
          let reading = t`${title}: ${percent} % of ${pairs} pairs score from ${edge(i)} to ${edge(i + 1)}`;
          if (i === 0) reading = t`${title}: ${percent} % of ${pairs} pairs score below ${edge(1)}`;
          else if (i === bins.length - 1)
            reading = t`${title}: ${percent} % of ${pairs} pairs score ${edge(i)} or more`;
          say(bars[i], `${name} share ${i}`, share, reading);
        });
        weights.forEach((weight, k) => {
          put(stems[k], "y", row.sy(weight));
          put(stems[k], "height", row.sy(0) - row.sy(weight));
          say(
            stems[k],
            `${name} weight ${k}`,
            weight,
            t`${title}: key ${k + 1} gets the weight ${show(weight, 4)}`,
          );
        });
      };
    };

    /** Both sides' curves of one number over d_k, up to the chosen one; returns what draws them. */
    const course = ({ what, title, yLabel, y, yTicks, map, reading }) => {
      const plot = axes({
        title,
        height: 200,
        x: [0, Math.max(1, stops.length - 1)],
        y,
        xLabel: t("d_k (features)"),
        yLabel,
        xTicks: stops.flatMap((d, i) => (i % 2 === 0 ? [[i, String(d)]] : [])),
        yTicks,
      });
      const parts = sides.map(([name, side], row) => {
        const curve = h("svg:path", { class: `af-curve af-${name}` });
        const dots = stops.map((_, i) =>
          mark(h("svg:circle", { class: `af-dot af-${name}`, r: 4 }), row, i),
        );
        plot.layer.append(curve, ...dots);
        return () => {
          const at = measured[name].map((seen, i) => [plot.sx(i), plot.sy(map(seen[what]))]);
          put(curve, "d", line(at.slice(0, place() + 1)));
          dots.forEach((dot, i) => {
            dot.toggleAttribute("hidden", i > place());
            put(dot, "cx", at[i][0]);
            put(dot, "cy", at[i][1]);
            put(dot, "r", i === place() ? 5 : 3);
            const number = measured[name][i][what];
            say(dot, `${name} ${what} ${i}`, number, reading(side, stops[i], show(number, 4)));
          });
        };
      });
      const key = h(
        "div",
        { class: "af-legend" },
        h("span", { class: "af-thick" }),
        t("plain"),
        h("span", { class: "af-dashed" }),
        t("scaled"),
      );
      figure.stage.append(panel(title, plot.node, key));
      return () => parts.forEach((part) => part());
    };

    const numbers = sides.flatMap(([name]) => measured[name]);
    const powers = (values) => [Math.floor(Math.min(...values)), Math.ceil(Math.max(...values))];
    const log = (number) => Math.log2(Math.max(number, 2 ** -10));
    const variance = powers(numbers.map((seen) => log(seen.variance)));
    if (variance[0] === variance[1]) variance[1] += 1;
    const even = range(variance[1] - variance[0] + 1)
      .map((i) => variance[0] + i)
      .filter((power) => power % 2 === 0);
    const gradient = [
      0,
      Math.ceil(Math.max(...numbers.map((seen) => seen.gradient)) * 10) / 10 || 1,
    ];
    const parts = [
      ...sides.map(side),
      course({
        what: "variance",
        title: t("Variance of the scores"),
        yLabel: t("variance, log scale"),
        y: variance,
        yTicks: even.map((power) => [power, String(2 ** power)]),
        map: log,
        reading: (side, d, number) => t`${side}, d_k = ${d}: variance of the scores ${number}`,
      }),
      course({
        what: "gradient",
        title: t("Norm of the softmax's gradient"),
        yLabel: t("norm"),
        y: gradient,
        yTicks: ticks(gradient),
        map: (number) => number,
        reading: (side, d, number) =>
          t`${side}, d_k = ${d}: norm of the softmax's gradient ${number}`,
      }),
    ];

    return figure.open(() => {
      for (const part of parts) part();
      const [plain, scaled] = sides.map(([name]) => measured[name][place()]);
      const d_k = model.get("d_k");
      return t`At d_k = ${d_k}, plain scores have variance ${show(plain.variance, 1)} and the softmax passes a gradient of norm ${show(plain.gradient, 3)}; scaled scores have ${show(scaled.variance, 1)} and ${show(scaled.gradient, 3)}.`;
    });
  },
};
