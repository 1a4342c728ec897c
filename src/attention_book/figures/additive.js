// Chapter 5: the surface of additive scores over (q, k), unit by unit, and a slice through it.

export default {
  render({ model, el }) {
    const { grid: points, scales, W_q, W_k, w_v } = model.get("data");
    const steep = (j, q, k) =>
      Math.tanh(model.get("scale") * (W_q[j][0] * q + W_q[j][1] + W_k[j][0] * k));
    const unitsNow = () => range(model.get("hidden"));
    const score = (q, k) => sum(unitsNow().map((j) => w_v[j] * steep(j, q, k)));
    const highest = () => Math.max(...points.flatMap((q) => points.map((k) => score(q, k))));

    const figure = frame(
      { model, el },
      {
        traits: ["hidden", "scale", "query"],
        question: t(
          "One hidden unit makes a single step. How many do you need at least for a ridge, a score that is high where q = k and low on both sides?",
        ),
        answers: ["1", "2", "6"],
        right: 1,
        because: t(
          "One tanh rises once and stays. A second one, with the opposite sign and shifted a little, cancels the rise: the two make a ridge.",
        ),
        seen: () => model.get("hidden") >= 2,
        toSee: t("add a second hidden unit"),
        challenge: {
          task: t("with two hidden units, lower the top of the ridge to less than 0.5"),
          met: () => model.get("hidden") === 2 && highest() < 0.5,
        },
      },
    );
    figure.slider({
      label: t("hidden units"),
      name: "hidden",
      stops: w_v.map((_, j) => j + 1),
      text: (n) => t`${n} of ${w_v.length} units`,
    });
    figure.slider({
      label: t("scale of W_q, W_k"),
      name: "scale",
      stops: scales,
      text: (s) => `× ${show(s)}`,
    });
    figure.slider({
      label: t("query of the curve"),
      name: "query",
      stops: points,
      text: (q) => show(q, 3),
    });

    const end = 3 + (points[1] - points[0]) / 2;
    const whole = [-3, -2, -1, 0, 1, 2, 3];
    const plot = axes({
      title: t("scores over queries and keys"),
      width: 330,
      height: 320,
      x: [-end, end],
      y: [-end, end],
      xLabel: t("query q (no unit)"),
      yLabel: t("key k (no unit)"),
      xTicks: whole,
      yTicks: whole,
    });
    put(plot.layer, "role", "grid");
    const [width, height] = [
      plot.sx(points[1]) - plot.sx(points[0]),
      plot.sy(points[0]) - plot.sy(points[1]),
    ];
    const last = points.length - 1;
    // One row of squares per key, the largest key on top.
    const squares = range(points.length).map((row) =>
      points.map((q, c) =>
        mark(
          h("svg:rect", {
            x: plot.sx(q) - width / 2,
            y: plot.sy(points[last - row]) - height / 2,
            width,
            height,
          }),
          row,
          c,
          "gridcell",
        ),
      ),
    );
    const cursor = h("svg:rect", {
      class: "af-cursor",
      y: plot.box.top,
      width,
      height: plot.box.bottom - plot.box.top,
    });
    plot.layer.append(...squares.map((row) => h("svg:g", { role: "row" }, ...row)));
    plot.node.append(cursor);
    plot.node.addEventListener("click", (event) =>
      figure.set("query", points[nearest(points, plot.at(event)[0])]),
    );
    const [least, most] = [h("span"), h("span")];
    const legend = h(
      "div",
      { class: "af-legend" },
      t("score"),
      " ",
      least,
      h("span", { class: "af-ramp" }),
      most,
    );

    const top = Math.ceil(10 * sum(w_v.map(Math.abs))) / 10 || 1;
    const slice = axes({
      title: t("scores of one query"),
      width: 330,
      height: 250,
      x: [-3, 3],
      y: [-top, top],
      xLabel: t("key k (no unit)"),
      yLabel: t("score (no unit)"),
      xTicks: whole,
      yTicks: ticks([-top, top]),
    });
    const fine = range(61).map((i) => -3 + i / 10);
    const curves = w_v.map(() => h("svg:path", { class: "af-unit" }));
    const total = h("svg:path", { class: "af-curve" });
    const dots = points.map((k, i) =>
      mark(h("svg:circle", { class: "af-dot", r: 4, cx: slice.sx(k) }), 0, i),
    );
    slice.layer.append(...curves, total, ...dots);
    const key = h(
      "div",
      { class: "af-legend" },
      h("span", { class: "af-thin" }),
      t("one hidden unit"),
      h("span", { class: "af-thick" }),
      t("their sum"),
    );
    const { node, values } = facts([t("lowest score:"), t("highest score:")]);
    figure.stage.append(
      panel(t("All pairs"), plot.node, legend, node),
      panel(t("One query"), slice.node, key),
    );

    return figure.open(() => {
      const [hidden, scale, query] = [model.get("hidden"), model.get("scale"), model.get("query")];
      const units = unitsNow();
      const tallest = sum(units.map((j) => Math.abs(w_v[j]))) || 1;
      // What a unit gets from the query and from the key, each once, not once per pair.
      const fromQuery = points.map((q) => units.map((j) => scale * (W_q[j][0] * q + W_q[j][1])));
      const fromKey = points.map((k) => units.map((j) => scale * W_k[j][0] * k));
      let [low, high] = [Infinity, -Infinity];
      points.forEach((q, c) =>
        points.forEach((k, r) => {
          let number = 0;
          for (const j of units) number += w_v[j] * Math.tanh(fromQuery[c][j] + fromKey[r][j]);
          low = Math.min(low, number);
          high = Math.max(high, number);
          const square = squares[last - r][c];
          put(square, "class", number < 0 ? "af-square af-below" : "af-square");
          put(square, "fill-opacity", Math.abs(number / tallest).toFixed(3));
          say(
            square,
            `score ${c} ${r}`,
            number,
            t`query ${show(q, 3)}, key ${show(k, 3)}: score ${show(number, 4)}`,
          );
        }),
      );
      write(least, show(-tallest, 1));
      write(most, show(tallest, 1));
      put(cursor, "x", plot.sx(query) - width / 2);
      curves.forEach((curve, j) => {
        curve.toggleAttribute("hidden", j >= hidden);
        if (j < hidden)
          put(
            curve,
            "d",
            line(fine.map((k) => [slice.sx(k), slice.sy(w_v[j] * steep(j, query, k))])),
          );
      });
      put(total, "d", line(fine.map((k) => [slice.sx(k), slice.sy(score(query, k))])));
      const row = points.map((k) => score(query, k));
      row.forEach((number, i) => {
        put(dots[i], "cy", slice.sy(number));
        say(
          dots[i],
          `slice ${i}`,
          number,
          t`query ${show(query, 3)}, key ${show(points[i], 3)}: score ${show(number, 4)}`,
        );
      });
      write(values[0], show(low, 3));
      say(values[0], "low", low, t`the lowest score is ${show(low, 6)}`);
      write(values[1], show(high, 3));
      say(values[1], "high", high, t`the highest score is ${show(high, 6)}`);
      const best = points[row.findIndex((number) => number > Math.max(...row) - 1e-9)];
      return hidden === 1
        ? t`With 1 hidden unit at scale ${show(scale)}, scores go from ${show(low)} to ${show(high)}; query ${show(query)} scores highest at key ${show(best)}.`
        : t`With ${hidden} hidden units at scale ${show(scale)}, scores go from ${show(low)} to ${show(high)}; query ${show(query)} scores highest at key ${show(best)}.`;
    });
  },
};
