// Chapter 1: a soft lookup. Threads from the query to each stored value, as wide as its weight, and the
// products of weights and values placed end to end, which reach the answer.

export default {
  render({ model, el }) {
    const { keys, values, queries } = model.get("data");
    const weigh = (query) => softmax(keys.map((key) => -((query - key) ** 2) / 2));
    const answerOf = (query) => dot(weigh(query), values);
    const band = bandOf(queries, values, model.get("query"), answerOf);
    const figure = lookupFrame({ model, el }, answerOf, band);
    figure.slider({ name: "query", text: (q) => show(q, 1) });
    const picture = drawLookup({ keys, values, queries }, (query) => figure.set("query", query));
    const result = drawAnswer({ values }, band);
    figure.stage.append(h("div", { class: "af-wide" }, picture.node, result.node));
    return figure.open(() => {
      const query = model.get("query");
      const [weights, answer] = [weigh(query), answerOf(query)];
      picture.draw(query, weights, answer);
      result.draw(weights, answer);
      const parts = weights.map((weight, k) => `${show(weight, 4)}·${show(values[k], 1)}`);
      return phrase("answer", show(query, 1), parts.join(" + "), show(answer));
    });
  },
};

/** The answers that the challenge asks for: those near the top, the middle or the bottom of the values
 * that some query reaches, but none on the way to the left end, where the prediction leads. */
function bandOf(queries, values, start, answerOf) {
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const isIn = ([low, high], query) => low <= answerOf(query) && answerOf(query) <= high;
  return [7, 17, 27]
    .map((part) => [part, part - 4].map((p) => most - (p / 30) * (most - least)))
    .filter((band) => queries.some((query) => isIn(band, query)))
    .find((band) => !queries.some((query) => query <= start && isIn(band, query)));
}

function lookupFrame({ model, el }, answerOf, band) {
  const { queries } = model.get("data");
  return frame(
    { model, el },
    {
      question: t("Move the query to the left, far below every key. What does the answer become?"),
      answers: ["0", t("the value of the nearest key, or nearly"), t("the mean of all the values")],
      right: 1,
      because: t(
        "The weights depend on how the distances differ. Far away, the nearest key is nearer than the others by so much that it gets almost all the weight; the weights always sum to 1.",
      ),
      seen: () => model.get("query") <= queries[5],
      toSee: t("move the query to the left end"),
      challenge: band && {
        task: t`find a query whose answer lies between ${show(band[0], 0)} and ${show(band[1], 0)}`,
        met: () => {
          const answer = answerOf(model.get("query"));
          return band[0] <= answer && answer <= band[1];
        },
      },
    },
  );
}

const WIDE = 48; // units of the picture: the box of a value, where its neighbours leave it room

/** The query on the axis of the keys, with a thread to the value above each key. */
function drawLookup({ keys, values, queries }, move) {
  const plot = axes({
    title: t("query and stored facts"),
    width: roomy(640, 336),
    height: 200,
    ...{ left: 14, foot: 46, drop: 22 }, // the diamond hides no number
    x: [queries[0], queries.at(-1)],
    y: [0, 1],
    xLabel: t("key and query"),
    yLabel: "",
    xTicks: ticks([queries[0], queries.at(-1)]),
    yTicks: [],
  });
  const bundle = threads(keys.length, { bend: 0.5, widest: 16 });
  const foot = plot.sy(0);
  const inOrder = keys.map(plot.sx).sort((a, b) => a - b);
  const gaps = inOrder.slice(1).map((at, i) => at - inOrder[i] - 4);
  const width = Math.max(31, Math.min(WIDE, ...gaps));
  const boxes = keys.map((key, k) => {
    const name = h("svg:text", { class: "af-fact-name", y: 5 }, show(values[k], 1));
    const share = h("svg:text", { class: "af-share", y: -22 });
    const rect = h("svg:rect", { x: -width / 2, y: -16, width, height: 32, rx: 3 });
    const at = { class: "af-box", transform: `translate(${plot.sx(key)} 44)` };
    const box = mark(h("svg:g", at, rect, name, share), 0, k);
    put(box, "data-pair", k);
    bundle.pair(k, k);
    return { box, share };
  });
  const stems = keys.map((key) =>
    h("svg:path", { class: "af-stem", d: `M${plot.sx(key)},60V${foot}` }),
  );
  const dots = keys.map((key) =>
    h("svg:circle", { class: "af-point", r: 5, cx: plot.sx(key), cy: foot }),
  );
  const tip = mark(h("svg:path", { class: "af-tip", d: "M0,-10L10,0L0,10L-10,0Z" }), 1, 0);
  const diamond = handle(plot, tip, (at) => move(queries[nearest(queries, at)]));
  const rows = [t("weight"), t("value")].map((name, i) =>
    h("svg:text", { x: plot.box.left, y: 22 + 27 * i, "aria-hidden": "true" }, name),
  );
  plot.layer.append(
    ...rows,
    ...stems,
    bundle.node,
    ...dots,
    ...boxes.map(({ box }) => box),
    diamond,
  );

  const draw = (query, weights, answer) => {
    keys.forEach((key, k) => {
      bundle.tie(k, [plot.sx(query), foot], [plot.sx(key), 60], weights[k]);
      write(boxes[k].share, show(weights[k]));
      const weight = show(weights[k], 4);
      const reading = t`key ${show(key, 1)}, value ${show(values[k], 1)}: weight ${weight}`;
      say(boxes[k].box, `weight ${k}`, weights[k], reading);
    });
    put(diamond, "transform", `translate(${plot.sx(query)} ${foot})`);
    say(tip, "answer", answer, t`query ${show(query, 1)}: answer ${show(answer, 4)}`);
  };
  return { node: plot.node, draw };
}

const [TALL, NARROW] = [24, 46]; // units of the picture: a product's height, and the room of its number

/** The products of weights and values, placed end to end on a scale; where the last one ends is the
 * answer. A negative product leads back. The challenge's `band` is marked on the scale. */
function drawAnswer({ values }, band) {
  const [least, most] = [Math.min(0, ...values), Math.max(0, ...values)];
  const x = [least, most > least ? most : 1];
  const plot = axes({
    title: t("products of weights and values, end to end"),
    width: roomy(640, 336),
    height: 106,
    left: 14,
    x,
    y: [0, 1],
    xLabel: t("answer: the sum of weight · value"),
    yLabel: "",
    xTicks: ticks(x),
    yTicks: [],
  });
  const { sx, box } = plot;
  const top = box.bottom - TALL;
  const [from, to] = band?.map(sx) ?? [];
  const goal = band
    ? [
        h("svg:path", { class: "af-band", d: `M${from},${box.bottom}V16H${to}V${box.bottom}` }),
        h(
          "svg:text",
          { class: "af-band-name", x: (from + to) / 2, y: 12, "text-anchor": "middle" },
          band.map((end) => show(end, 0)).join("–"),
        ),
      ]
    : [];
  const products = values.map((_, k) => {
    const rect = h("svg:rect", { class: "af-product", y: top, height: TALL });
    const number = h("svg:text", { class: "af-share", y: top + 17 });
    const node = mark(h("svg:g", {}, rect, number), 0, k);
    put(node, "data-pair", k);
    return { node, rect, number };
  });
  const sum = h("svg:text", { class: "af-fact-name", y: top - 9 });
  const end = h("svg:path", { class: "af-end", d: `M0,${top - 4}V${box.bottom}` });
  plot.layer.append(...products.map(({ node }) => node), ...goal, end, sum);

  const draw = (weights, answer) => {
    let from = 0;
    products.forEach(({ node, rect, number }, k) => {
      const product = weights[k] * values[k];
      const [left, right] = [from, from + product].map(sx).sort((a, b) => a - b);
      put(rect, "x", left.toFixed(2));
      put(rect, "width", (right - left).toFixed(2));
      put(number, "x", ((left + right) / 2).toFixed(2));
      write(number, right - left < NARROW ? "" : show(product));
      const reading = t`weight ${show(weights[k], 4)} · value ${show(values[k], 1)} = ${show(product, 4)}`;
      say(node, `product ${k}`, product, reading);
      from += product;
    });
    put(end, "transform", `translate(${sx(answer).toFixed(2)})`);
    put(sum, "x", Math.max(box.left + 20, Math.min(sx(answer), box.right - 20)).toFixed(2));
    write(sum, show(answer));
  };
  return { node: plot.node, draw };
}
