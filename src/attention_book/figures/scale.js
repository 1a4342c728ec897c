// Chapter 6: d_k from 1 to 1024, plain and scaled dot products side by side.

export default {
  render({ model, el }) {
    const data = model.get("data");
    const { stops } = data;
    const sides = [
      ["plain", t("Plain, q·k")],
      ["scaled", t("Scaled, q·k / √d_k")],
    ];
    const place = () => stops.indexOf(model.get("d_k"));
    const figure = scaleFrame({ model, el }, place);
    figure.slider({
      name: "d_k",
      text: (d) => (d === 1 ? t("1 feature") : t`${d} features`),
    });
    const spreads = sides.map((side, i) => spread(data, side, i === 1));
    const best = bestKey(data, sides);
    const [gradient, variance] = bothCourses(data, sides);
    const weights = rows(data, sides);
    const swatch = (name) => h("span", { class: `af-swatch af-${name}` });
    const names = [swatch("plain"), t("plain"), swatch("scaled"), t("scaled")];
    const legend = h("div", { class: "af-legend" }, ...names);
    const courses = h("div", { class: "af-courses" }, legend, gradient.node);
    // On a phone the others go below, so that these are seen while d_k moves.
    const others = roomy(courses, h("div", { class: "af-courses" }));
    others.append(variance.node, weights.node);
    const pour = h("div", { class: "af-pour" }, ...spreads.map(({ node }) => node), best.node);
    figure.stage.append(pour, courses);
    if (others !== courses) figure.below.append(others);
    figure.below.append(sampleNote(data));
    return figure.open(() => {
      for (const part of [...spreads, best, gradient, variance, weights]) part.draw(place());
      const seen = sides.map(([name]) => data[name][place()]);
      const numbers = seen.flatMap((side) => [show(side.variance, 1), show(side.gradient, 3)]);
      return phrase("sides", model.get("d_k"), ...numbers);
    });
  },
};

function scaleFrame({ model, el }, place) {
  const { stops, plain, scaled } = model.get("data");
  const quartered = (i) => plain[i].gradient < scaled[i].gradient / 4;
  return frame(
    { model, el },
    {
      question: t(
        "Each component of a query and of a key is drawn with variance 1. When d_k grows from 64 to 1024, what happens to the gradient that passes through the softmax of plain dot products?",
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
}

/** Why the variance of few components is not the one they are drawn with. */
function sampleNote({ pairs, plain }) {
  const keys = plain[0].weights.length;
  const note = t`The variance is measured on ${pairs / keys} queries and ${keys} keys. Where d_k is small, these are few numbers, so the variance of the plain scores can differ clearly from d_k, and that of the scaled ones from 1.`;
  return h("p", { class: "af-small-print" }, note);
}

/** How the scores of one side spread; `draw` shows those of the stop `i`. */
function spread({ edges, pairs, ...measured }, [name, title], last) {
  const span = [edges[0], edges.at(-1)];
  const shares = [...measured.plain, ...measured.scaled].flatMap((seen) => seen.shares);
  const most = Math.ceil(10 * Math.max(...shares)) / 10;
  const plot = axes({
    title: t`${title}: scores`,
    width: 400,
    height: last ? 132 : 114,
    foot: last ? 40 : 22,
    x: span,
    y: [0, most],
    xLabel: last ? t("score") : "",
    yLabel: t("share"),
    xTicks: ticks(span),
    yTicks: [0, most],
  });
  const width = plot.sx(edges[1]) - plot.sx(edges[0]) - 1;
  const barAt = (i) =>
    h("svg:rect", { class: `af-bar af-${name}`, x: plot.sx(edges[i]) + 0.5, width });
  const bars = range(edges.length - 1).map((i) => mark(barAt(i), 0, i));
  const corner = { x: plot.box.left + 8, y: plot.box.top + 12, "aria-hidden": "true" };
  const label = h("svg:text", { class: "af-label", ...corner }, title);
  plot.layer.append(...bars, label);

  const edge = (i) => String(edges[i]).replace("-", "−");
  const readingOf = (i, percent) => {
    if (i === 0) return t`${title}: ${percent} % of ${pairs} pairs score below ${edge(1)}`;
    if (i === bars.length - 1)
      return t`${title}: ${percent} % of ${pairs} pairs score ${edge(i)} or more`;
    return t`${title}: ${percent} % of ${pairs} pairs score from ${edge(i)} to ${edge(i + 1)}`;
  };
  const draw = (at) => {
    measured[name][at].shares.forEach((share, i) => {
      put(bars[i], "y", plot.sy(share));
      put(bars[i], "height", plot.sy(0) - plot.sy(share));
      say(bars[i], `${name} share ${i}`, share, readingOf(i, show(100 * share, 1)));
    });
  };
  return { node: plot.node, draw };
}

/**
 * The softmax, as a curve: the weight of the shown query's best key for any score of that key while
 * the others keep theirs. On each side a dot where the key is, and the tangent there.
 */
function bestKey({ query, reach, ...measured }, sides) {
  const span = [-reach, reach];
  const title = t`Weight of the best key of query ${query + 1}`;
  const plot = axes({
    title,
    width: 400,
    height: 190,
    x: span,
    y: [0, 1],
    xLabel: t("score, measured from where the weight is ½"),
    yLabel: t("weight"),
    xTicks: ticks(span),
    yTicks: [0, 0.5, 1],
  });
  put(plot.layer, "data-say", "below"); // what is read out must not cover the curve
  const curve = range(161).map((i) => {
    const score = span[0] + ((span[1] - span[0]) * i) / 160;
    return [plot.sx(score), plot.sy(1 / (1 + Math.exp(-score)))];
  });
  const sigmoid = h("svg:path", { class: "af-sigmoid", d: line(curve) });
  const parts = sides.map(([name, side], row) => {
    const tangent = h("svg:path", { class: `af-tangent af-${name}` });
    const dot = mark(h("svg:circle", { class: `af-dot af-${name}`, r: 6 - row }), row, 0);
    return { name, side, tangent, dot };
  });
  plot.layer.append(
    sigmoid,
    ...parts.map(({ tangent }) => tangent),
    ...parts.map(({ dot }) => dot),
  );
  const draw = (at) => {
    for (const { name, side, tangent, dot } of parts) {
      const { best, score, lead, slope, weights } = measured[name][at];
      const [x, y] = [plot.sx(lead), plot.sy(weights[best])];
      const [right, up] = [plot.sx(1) - plot.sx(0), slope * (plot.sy(0) - plot.sy(1))];
      const half = 36 / Math.hypot(right, up); // as long however steep
      const after = Math.min(half, (plot.box.right - x) / right); // within the axes
      const ends = [-half, after].map((by) => [x + by * right, y - by * up]);
      put(tangent, "d", line(ends));
      put(dot, "cx", x);
      put(dot, "cy", y);
      put(dot, "data-pair", `${name} ${best}`);
      const reading = t`${side}: key ${best + 1} scores ${show(score, 2)}, which gives it the weight ${show(weights[best], 4)}; the slope there is ${show(slope, 4)}`;
      say(dot, `${name} slope`, slope, reading);
    }
  };
  return { node: h("div", {}, h("p", { class: "af-title" }, title), plot.node), draw };
}

/** The weights of the shown query on both sides, next to each other. */
function rows({ query, ...measured }, sides) {
  const keys = measured.plain[0].weights.length;
  const title = t`Weights of query ${query + 1}`;
  const plot = axes({
    title,
    width: 260,
    height: 120,
    x: [0.4, keys + 0.6],
    y: [0, 1],
    xLabel: t("key"),
    yLabel: t("weight"),
    xTicks: range(keys).map((k) => k + 1),
    yTicks: [0, 0.5, 1],
  });
  const width = 0.4 * (plot.sx(2) - plot.sx(1));
  const stems = sides.map(([name], row) =>
    range(keys).map((k) => {
      const x = plot.sx(k + 1) + (row - 1) * width;
      const pair = { "data-pair": `${name} ${k}` };
      return mark(h("svg:rect", { class: `af-bar af-${name}`, x, width, ...pair }), row, k);
    }),
  );
  plot.layer.append(...stems.flat());
  const draw = (at) =>
    sides.forEach(([name, side], row) => {
      measured[name][at].weights.forEach((weight, k) => {
        put(stems[row][k], "y", plot.sy(weight));
        put(stems[row][k], "height", plot.sy(0) - plot.sy(weight));
        const reading = t`${side}: key ${k + 1} gets the weight ${show(weight, 4)}`;
        say(stems[row][k], `${name} weight ${k}`, weight, reading);
      });
    });
  return { node: h("div", {}, h("p", { class: "af-title" }, title), plot.node), draw };
}

/** Both sides' curves of one number over d_k; `draw` shows them up to the stop `now`. */
function course({ stops, ...measured }, sides, { what, title, y, yTicks, map, reading }) {
  const plot = axes({
    title,
    width: 260,
    height: 84,
    foot: 20,
    x: [0, Math.max(1, stops.length - 1)],
    y,
    xLabel: "",
    yLabel: "",
    xTicks: stops.flatMap((d, i) => (i % 3 === 0 ? [[i, String(d)]] : [])),
    yTicks,
  });
  const parts = sides.map(([name, side], row) => {
    const curve = h("svg:path", { class: `af-curve af-${name}` });
    const dots = stops.map((_, i) => mark(h("svg:circle", { class: `af-dot af-${name}` }), row, i));
    plot.layer.append(curve, ...dots);
    const at = measured[name].map((seen, i) => [plot.sx(i), plot.sy(map(seen[what]))]);
    dots.forEach((dot, i) => {
      put(dot, "cx", at[i][0]);
      put(dot, "cy", at[i][1]);
      const number = measured[name][i][what];
      say(dot, `${name} ${what} ${i}`, number, reading(side, stops[i], show(number, 4)));
    });
    return (now) => {
      put(curve, "d", line(at.slice(0, now + 1)));
      dots.forEach((dot, i) => {
        dot.toggleAttribute("hidden", i > now);
        put(dot, "r", i === now ? 5 : 2.5);
      });
    };
  });
  return {
    node: h("div", {}, h("p", { class: "af-title" }, title), plot.node),
    draw: (now) => parts.forEach((part) => part(now)),
  };
}

/** The courses of the gradient and of the variance, on axes that hold all stops. */
function bothCourses(data, sides) {
  const numbers = sides.flatMap(([name]) => data[name]);
  const powers = (values) => [Math.floor(Math.min(...values)), Math.ceil(Math.max(...values))];
  const log = (number) => Math.log2(Math.max(number, 2 ** -10));
  const variance = powers(numbers.map((seen) => log(seen.variance)));
  if (variance[0] === variance[1]) variance[1] += 1;
  const steepest = Math.max(...numbers.map((seen) => seen.gradient));
  const gradient = [0, Math.ceil(steepest * 10) / 10 || 1];
  return [
    course(data, sides, {
      what: "gradient",
      title: t("Gradient through the softmax"),
      y: gradient,
      yTicks: gradient,
      map: (number) => number,
      reading: (side, d, number) =>
        t`${side}, d_k = ${d}: norm of the softmax's gradient ${number}`,
    }),
    course(data, sides, {
      what: "variance",
      title: t("Variance of the scores, log scale"),
      y: variance,
      yTicks: variance.map((power) => [power, String(2 ** power)]),
      map: log,
      reading: (side, d, number) => t`${side}, d_k = ${d}: variance of the scores ${number}`,
    }),
  ];
}
