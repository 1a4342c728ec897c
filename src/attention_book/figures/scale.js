// Chapter 6: d_k from 1 to 1024, plain and scaled dot products on the same axes.

const ROOM = { left: 40, foot: 38 }; // beside and below axes

export default {
  render({ model, el }) {
    const data = model.get("data");
    const sides = [
      ["plain", t("plain"), t("Plain, q·k")],
      ["scaled", t("scaled"), t("Scaled, q·k / √d_k")],
    ];
    const place = () => data.stops.indexOf(model.get("d_k"));
    const figure = scaleFrame({ model, el }, place);
    figure.form.classList.add("af-scaling");
    figure.slider({
      name: "d_k",
      text: (d) => (d === 1 ? t("1 feature") : t`${d} features`),
    });
    const seen = [spread, bestKey, gradients].map((part) => part(data, sides));
    const folded = tablesOf(data, sides);
    figure.stage.append(...seen.map(({ node }) => node));
    figure.below.append(
      h(
        "details",
        { class: "af-inside" },
        h("summary", {}, t("All gradients, variances and weights")),
        h("div", { class: "af-row" }, ...folded.map(({ node }) => node)),
        notes(data),
      ),
    );
    return figure.open(() => {
      for (const part of [...seen, ...folded]) part.draw(place());
      const now = sides.map(([name]) => data[name][place()]);
      const numbers = now.flatMap((side) => [show(side.variance, 1), show(side.gradient, 3)]);
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
        "When d_k grows from 64 to 1024, what happens to the gradient that passes through the softmax of plain dot products?",
      ),
      answers: [t("it grows"), t("it stays"), t("it shrinks")],
      right: 2,
      because: t(
        "The scores’ variance grows with d_k: one key takes nearly all the weight, and the softmax hardly responds. Divided by √d_k, they keep their variance.",
      ),
      lines: roomy(2, 3),
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

/** Which query is shown, and why the variance of few components is not the one they are drawn with. */
function notes({ pairs, plain, query }) {
  const keys = plain[0].weights.length;
  const texts = [
    t`The curve is the weight of the best key of query ${query + 1} for any score of that key, while the other keys keep theirs; the line through a dot shows how steep it is there. Of all queries, it is the one whose plain dot goes back least as d_k grows.`,
    t`The variance is measured on ${pairs / keys} queries and ${keys} keys. Where d_k is small, these are few numbers, so the variance of the plain scores can differ clearly from d_k, and that of the scaled ones from 1.`,
  ];
  return h("div", {}, ...texts.map((text) => h("p", { class: "af-small-print" }, text)));
}

/** A bar that is read in its whole column. */
function stem({ layer, sx, sy, box }, name, [from, to], [row, column]) {
  const across = { x: sx(from), width: sx(to) - sx(from) };
  const bar = h("svg:rect", { class: `af-bar af-${name}`, ...across });
  const reach = { class: "af-near", ...across, y: box.top, height: box.bottom - box.top };
  const node = mark(h("svg:g", {}, h("svg:rect", reach), bar), row, column);
  layer.append(node);
  const rise = (value) => {
    put(bar, "y", sy(value));
    put(bar, "height", sy(0) - sy(value));
  };
  return { node, rise };
}

/** How the scores of both sides spread, the plain ones as an outline; `draw` shows those of the stop `at`. */
function spread({ edges, pairs, ...measured }, sides) {
  const span = [edges[0], edges.at(-1)];
  const last = edges.length - 2;
  const shares = sides.flatMap(([name]) => measured[name].flatMap((seen) => seen.shares));
  const most = Math.ceil(10 * Math.max(...shares)) / 10;
  const labels = { xLabel: t("score; the end bins hold all further out"), yLabel: t("share") };
  const about = { title: t("Scores"), width: roomy(700, 320), height: roomy(170, 126), ...labels };
  const plot = axes({
    ...about,
    ...ROOM,
    drop: 18, // the score at the corner stands clear of the share there
    x: span,
    y: [0, most],
    xTicks: ticks(span),
    yTicks: [0, most],
  });
  const { sx, sy, box } = plot;
  const stems = sides.map(([name], row) =>
    range(last + 1).map((i) => stem(plot, name, [edges[i], edges[i + 1]], [row, i])),
  );
  const outline = h("svg:path", { class: "af-outline af-plain" });
  const kinds = ["af-outline af-plain", "af-bar af-scaled"];
  const names = sides.flatMap(([, , title], row) => {
    const at = { x: row ? sx(roomy(4, 3)) : box.left + 8, y: box.top, width: 10, height: 10 };
    const text = { class: "af-label", x: at.x + 15, y: at.y + 10, "aria-hidden": "true" };
    return [h("svg:rect", { class: kinds[row], ...at }), h("svg:text", text, title)];
  });
  plot.layer.append(outline, ...names);

  const edge = (i) => String(edges[i]).replace("-", "−");
  const readingOf = (i, title, percent) => {
    if (i === 0) return t`${title}: ${percent} % of ${pairs} pairs score below ${edge(1)}`;
    if (i === last) return t`${title}: ${percent} % of ${pairs} pairs score ${edge(i)} or more`;
    return t`${title}: ${percent} % of ${pairs} pairs score from ${edge(i)} to ${edge(i + 1)}`;
  };
  const draw = (at) => {
    sides.forEach(([name, , title], row) => {
      measured[name][at].shares.forEach((share, i) => {
        const { node, rise } = stems[row][i];
        rise(share);
        say(node, `${name} share ${i}`, share, readingOf(i, title, show(100 * share, 1)));
      });
    });
    const stairs = measured.plain[at].shares.map((share, i) => `V${sy(share)}H${sx(edges[i + 1])}`);
    put(outline, "d", `M${box.left},${sy(0)}${stairs.join("")}V${sy(0)}`);
  };
  return { node: h("div", { class: "af-spread" }, plot.node), draw };
}

/**
 * The softmax, as a curve: the weight of the shown query's best key for any score of that key while
 * the others keep theirs. On each side a dot where the key is, and the tangent there.
 */
function bestKey({ reach, ...measured }, sides) {
  const span = [-reach, reach];
  const title = t("One query’s best key");
  const labels = { xLabel: t("score, 0 where weight is ½"), yLabel: t("weight") };
  const about = { title, width: roomy(480, 198), height: roomy(230, 186), ...ROOM, ...labels };
  const plot = axes({ ...about, x: span, y: [0, 1.1], xTicks: ticks(span), yTicks: [0, 0.5, 1] });
  const { sx, sy, box } = plot;
  put(plot.layer, "data-say", "below"); // what is read out must not cover the curve
  const curve = range(161).map((i) => {
    const score = span[0] + ((span[1] - span[0]) * i) / 160;
    return [sx(score), sy(1 / (1 + Math.exp(-score)))];
  });
  const sigmoid = h("svg:path", { class: "af-sigmoid", d: line(curve) });
  const parts = sides.map(([name], row) => ({
    tangent: h("svg:path", { class: `af-tangent af-${name}` }),
    dot: h("svg:circle", { class: `af-dot af-${name}`, r: 6 - row }),
    label: h("svg:text", { class: "af-name", "aria-hidden": "true" }),
    near: mark(h("svg:path", { class: "af-near" }), row, 0),
  }));
  const kinds = ["tangent", "label", "dot", "near"];
  plot.layer.append(sigmoid, ...kinds.flatMap((kind) => parts.map((part) => part[kind])));
  const draw = (at) => {
    const dots = sides.map(([name]) => measured[name][at]);
    const spots = dots.map(({ best, lead, weights }) => [sx(lead), sy(weights[best])]);
    sides.forEach(([name, side, long], row) => {
      const { best, score, lead, slope, weights } = dots[row];
      const { tangent, dot, label, near } = parts[row];
      const [x, y] = spots[row];
      const [right, up] = [sx(1) - sx(0), slope * (sy(0) - sy(1))];
      const half = 36 / Math.hypot(right, up); // as long however steep
      const after = Math.min(half, (box.right - x) / right); // within the axes
      const ends = [-half, after].map((by) => [x + by * right, y - by * up]);
      put(tangent, "d", line(ends));
      put(dot, "cx", x);
      put(dot, "cy", y);
      // The plain dot is named above the curve, the scaled one below it, where both are clear of it.
      const ahead = row ? 1 : -1;
      const isAtEnd = ahead * lead > 5;
      write(label, Math.abs(lead) < reach ? side : t`${side}, further out`);
      put(label, "text-anchor", ahead > 0 === isAtEnd ? "end" : "start");
      put(label, "x", x + (isAtEnd ? 0 : 9 * ahead));
      put(label, "y", y + (row ? 19 : -9));
      put(near, "d", around(spots[row], spots));
      for (const node of [dot, near]) put(node, "data-pair", `${name} ${best}`);
      const reading = t`${long}: key ${best + 1} scores ${show(score, 2)}, which gives it the weight ${show(weights[best], 4)}; the slope there is ${show(slope, 4)}`;
      say(near, `${name} slope`, slope, reading);
    });
  };
  return { node: titled("af-best", title, plot), draw };
}

/** The mean gradient of each side as a bar, and a quarter of the scaled one as a line. */
function gradients({ stops, ...measured }, sides) {
  const most = Math.max(...sides.flatMap(([name]) => measured[name].map((seen) => seen.gradient)));
  const title = t("Gradient through the softmax");
  const size = { width: roomy(200, 118), height: roomy(230, 186), ...ROOM, left: 4 };
  const ends = { x: [-0.5, 1.5], y: [0, 1.15 * most || 1], xLabel: "", yLabel: "", yTicks: [] };
  const xTicks = sides.map(([, side], row) => [row, side]);
  const plot = axes({ title, ...size, ...ends, xTicks });
  const { sx, sy, box } = plot;
  const stems = sides.map(([name], row) => stem(plot, name, [row - 0.4, row + 0.4], [0, row]));
  const quarter = h("svg:path", { class: "af-mean" });
  const top = { class: "af-name af-over", "text-anchor": "middle", "aria-hidden": "true" };
  const names = [0, 1].map((row) => h("svg:text", { ...top, x: sx(row) }));
  const ofLine = h(
    "svg:text",
    { ...top, class: [top.class, "af-of-line"].join(" "), x: sx(1) },
    t("¼ of scaled"),
  );
  plot.layer.append(quarter, ...names, ofLine);
  const draw = (at) => {
    const numbers = sides.map(([name]) => measured[name][at].gradient);
    const level = sy(numbers[1] / 4);
    sides.forEach(([name, , title], row) => {
      const reading = gradientReading(title, stops[at], numbers[row]);
      stems[row].rise(numbers[row]);
      say(stems[row].node, `${name} gradient`, numbers[row], reading);
      write(names[row], show(numbers[row], 3));
      // Above its bar, and above the line where that would cross it.
      const above = sy(numbers[row]);
      put(names[row], "y", (above > level - 3 && above < level + 20 ? level : above) - 5);
    });
    put(ofLine, "y", level + 14);
    put(quarter, "d", `M${box.left},${level}H${box.right}`);
  };
  const name = roomy(t("Gradient (norm of the Jacobian)"), t("Gradient"));
  return { node: titled("af-graded", name, plot), draw };
}

function gradientReading(title, d, number) {
  return t`${title}, d_k = ${d}: norm of the softmax's gradient ${show(number, 4)}`;
}

function titled(kind, title, plot) {
  return h("div", { class: kind }, h("p", { class: "af-title" }, title), plot.node);
}

/** Gradient and variance at all d_k, and the weights of the shown query at the chosen one, as numbers. */
function tablesOf({ stops, query, ...measured }, sides) {
  const keys = measured.plain[0].weights.map((_, k) => k + 1);
  const tables = [
    { what: "gradient", title: t("Gradient"), rows: stops, digits: 3 },
    { what: "variance", title: t("Variance of the scores"), rows: stops, digits: 1 },
    { what: "weight", title: t`Weights of query ${query + 1}`, rows: keys, digits: 2 },
  ];
  const readings = {
    gradient: gradientReading,
    variance: (side, d, number) =>
      t`${side}, d_k = ${d}: variance of the scores ${show(number, 4)}`,
    weight: (side, k, number) => t`${side}: key ${k} gets the weight ${show(number, 4)}`,
  };
  return tables.map(({ what, title, rows, digits }) => {
    const isWeight = what === "weight";
    const columns = sides.map(([, side]) => side);
    const table = grid({ title, rows, columns, dims: [isWeight ? "keys" : "d_k", null] });
    const numbers = ([name], at) =>
      isWeight ? measured[name][at].weights : measured[name].map((seen) => seen[what]);
    const most = isWeight ? 1 : Math.max(...sides.flatMap((side) => numbers(side, 0)), 1e-9);
    const draw = (at) =>
      sides.forEach((side, column) => {
        numbers(side, at).forEach((value, i) => {
          const [name, , long] = side;
          const cell = table.cells[i][column];
          const [text, reading] = [show(value, digits), readings[what](long, rows[i], value)];
          const on = !isWeight && i === at;
          fill(cell, {
            key: `${name} ${what} ${i}`,
            value,
            text,
            reading,
            on,
            shade: value / most,
          });
          if (isWeight) put(cell, "data-pair", `${name} ${i}`);
        });
      });
    return { node: table.node, draw };
  });
}
