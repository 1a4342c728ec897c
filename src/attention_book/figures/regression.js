// Chapter 1: a query among points on a line; the width decides which keys count. Points can be moved.

export default {
  render({ model, el }) {
    const { keys, given, queries, widths, heights } = model.get("data");
    const weigh = (query, width) => softmax(keys.map((key) => -(((query - key) / width) ** 2) / 2));
    // From left to right; `point` counts in this order.
    const order = range(keys.length).sort((a, b) => keys[a] - keys[b]);
    /** The heights that a point can have: the axis in steps, and the one that it was given. */
    const stopsOf = (k) => [...new Set([...heights, given[k]])].sort((a, b) => a - b);
    const chosen = () => order[model.get("point")];
    const largestNow = () => Math.max(...weigh(model.get("query"), model.get("width")));

    const figure = frame(
      { model, el },
      {
        traits: ["query", "width", "point", "values"],
        question: t("Make the width very large. What does the prediction become?"),
        answers: [t("the nearest key's value"), t("the mean of all values"), "0"],
        right: 1,
        because: t(
          "With a large width all keys count as equally near, so every weight is the same and the prediction is the plain mean. With a small width the nearest key gets nearly all the weight.",
        ),
        seen: () => model.get("width") >= widths.at(-1),
        toSee: t("move the width to its largest value"),
        challenge: {
          task: t("give one key more than 0.99 of the weight"),
          met: () => largestNow() > 0.99,
        },
      },
    );
    figure.slider({ label: t("query"), name: "query", stops: queries, text: (q) => show(q) });
    figure.slider({ label: t("width w"), name: "width", stops: widths, text: (w) => show(w) });
    figure.slider({
      label: t("point"),
      name: "point",
      stops: range(keys.length),
      text: (place) => t`key ${show(keys[order[place]])}`,
    });
    const lift = (k, value) =>
      figure.set(
        "values",
        model.get("values").map((old, i) => (i === k ? value : old)),
      );
    figure.slider({
      label: t("value of this point"),
      stops: () => stopsOf(chosen()),
      get: () => model.get("values")[chosen()],
      change: (value) => lift(chosen(), value),
      text: (value) => show(value),
    });
    figure.accept(
      "values",
      (values) =>
        Array.isArray(values) &&
        values.length === keys.length &&
        values.every((v) => Number.isFinite(v) && v >= heights[0] && v <= heights.at(-1)),
    );

    const x = [queries[0], queries.at(-1)];
    const y = [heights[0], heights.at(-1)];
    const above = axes({
      title: t("points and prediction"),
      width: 400,
      height: 220,
      x,
      y,
      xLabel: t("key and query (no unit)"),
      yLabel: t("value (no unit)"),
      xTicks: ticks(x),
      yTicks: ticks(y),
    });
    const below = axes({
      title: t("weights"),
      width: 400,
      height: 150,
      x,
      y: [0, 1],
      xLabel: t("key (no unit)"),
      yLabel: t("weight (probability)"),
      xTicks: ticks(x),
      yTicks: [0, 0.5, 1],
    });
    const fine = range(241).map((i) => x[0] + (i * (x[1] - x[0])) / 240);
    const [points, grips, stems] = [[], [], []];
    order.forEach((k, place) => {
      points[k] = mark(
        h("svg:circle", {
          class: "af-point",
          r: 5,
        }),
        0,
        place,
      );
      const disc = h("svg:circle", { class: "af-grip", r: 12 });
      grips[k] = h("svg:g", {}, disc, points[k]);
      let held = [0, 0]; // the point's value and the pointer's when the drag began
      drag(
        above,
        grips[k],
        (_, at) => {
          const stops = [held[0], ...stopsOf(k)];
          lift(k, stops[nearest(stops, held[0] + at - held[1])]);
        },
        (_, at) => {
          held = [model.get("values")[k], at];
          figure.set("point", place);
        },
      );
      grips[k].addEventListener("click", (event) => event.stopPropagation());
      stems[k] = mark(
        h("svg:rect", { class: "af-bar", x: below.sx(keys[k]) - 3, width: 6 }),
        0,
        place,
      );
    });
    const curve = h("svg:path", { class: "af-curve" });
    const former = h("svg:path", { class: "af-unit" });
    const ring = h("svg:circle", { class: "af-cursor", r: 8 });
    const lines = [above, below].map(({ box }) =>
      h("svg:path", { class: "af-guide", d: `M0,${box.top}V${box.bottom}` }),
    );
    const tip = h("svg:path", { class: "af-tip", d: "M0,-9L9,0L0,9L-9,0Z" });
    const guess = mark(tip, 1, 0);
    const diamond = handle(above, guess, (at) =>
      figure.set("query", queries[nearest(queries, at)]),
    );
    above.layer.append(lines[0], former, curve, ...order.map((k) => grips[k]), ring, diamond);
    below.layer.append(lines[1], ...order.map((k) => stems[k]));
    const names = facts([t("prediction:"), t("largest weight:")]);
    figure.stage.append(h("div", { class: "af-panel" }, above.node, below.node, names.node));

    return figure.open(() => {
      const [query, width, values] = [model.get("query"), model.get("width"), model.get("values")];
      const weights = weigh(query, width);
      const moved = order.filter((k) => values[k] !== given[k]);
      const prediction = dot(weights, values);
      const largest = Math.max(...weights);
      keys.forEach((key, k) => {
        put(grips[k], "transform", `translate(${above.sx(key)} ${above.sy(values[k])})`);
        put(points[k], "fill-opacity", 0.25 + 0.75 * (weights[k] / largest));
        put(stems[k], "y", below.sy(weights[k]));
        put(stems[k], "height", below.sy(0) - below.sy(weights[k]));
        say(
          points[k],
          `value ${k}`,
          values[k],
          t`key ${show(key)}: value ${show(values[k])}, weight ${show(weights[k], 4)}`,
        );
        say(
          stems[k],
          `weight ${k}`,
          weights[k],
          t`key ${show(key)}: weight ${show(weights[k], 4)}, value ${show(values[k])}`,
        );
      });
      put(ring, "cx", above.sx(keys[chosen()]));
      put(ring, "cy", above.sy(values[chosen()]));
      const [now, then] = [[], []];
      for (const q of fine) {
        const shares = weigh(q, width);
        now.push([above.sx(q), above.sy(dot(shares, values))]);
        if (moved.length) then.push([above.sx(q), above.sy(dot(shares, given))]);
      }
      put(curve, "d", line(now));
      const paths = moved.map(
        (k) => `M${above.sx(keys[k])},${above.sy(given[k])}V${above.sy(values[k])}`,
      );
      put(former, "d", line(then) + paths.join(""));
      put(lines[0], "transform", `translate(${above.sx(query)})`);
      put(lines[1], "transform", `translate(${below.sx(query)})`);
      put(diamond, "transform", `translate(${above.sx(query)} ${above.sy(prediction)})`);
      say(guess, "guess", prediction, t`query ${show(query)}: prediction ${show(prediction, 4)}`);
      write(names.values[0], show(prediction, 3));
      say(
        names.values[0],
        "prediction",
        prediction,
        t`prediction ${show(prediction, 6)} at query ${show(query)}`,
      );
      write(names.values[1], show(largest, 3));
      say(
        names.values[1],
        "largest",
        largest,
        t`the largest weight is ${show(largest, 6)}, a probability`,
      );
      const change = show(prediction - dot(weights, given));
      let effect = t`${moved.length} moved points change this prediction by ${change}.`;
      if (moved.length === 1) effect = t`1 moved point changes this prediction by ${change}.`;
      return together(
        t`At query ${show(query)} with width ${show(width)}, the prediction is ${show(prediction)} and the largest weight is ${show(largest)}.`,
        moved.length && effect,
      );
    });
  },
};
