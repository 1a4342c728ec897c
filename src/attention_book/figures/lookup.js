// Chapter 1: a soft lookup. Threads from the query to each stored value, as wide as its weight.

export default {
  render({ model, el }) {
    const { keys, values, queries } = model.get("data");
    const weigh = (query) => softmax(keys.map((key) => -((query - key) ** 2) / 2));
    const answerOf = (query) => dot(weigh(query), values);
    const figure = lookupFrame({ model, el }, answerOf);
    figure.slider({ label: t("query"), name: "query", stops: queries, text: (q) => show(q, 1) });
    const picture = drawLookup({ keys, values, queries }, (query) => figure.set("query", query));
    figure.stage.append(picture.node);
    return figure.open(() => {
      const query = model.get("query");
      const [weights, answer] = [weigh(query), answerOf(query)];
      picture.draw(query, weights, answer);
      const parts = weights.map((weight, k) => `${show(weight)}·${show(values[k], 1)}`);
      return t`The query ${show(query, 1)} gets ${parts.join(" + ")} = ${show(answer)}.`;
    });
  },
};

function lookupFrame({ model, el }, answerOf) {
  const { values, queries } = model.get("data");
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const goal = [17, 13].map((part) => most - (part / 30) * (most - least)); // about the middle
  const isThere = (query) => goal[0] <= answerOf(query) && answerOf(query) <= goal[1];
  return frame(
    { model, el },
    {
      traits: ["query"],
      question: t("Move the query to the left, far below every key. What does the answer become?"),
      answers: ["0", t("the value of the nearest key, or nearly"), t("the mean of all the values")],
      right: 1,
      because: t(
        "The weights depend on how the distances differ. Far away, the nearest key is nearer than the others by so much that it gets almost all the weight; the weights always sum to 1.",
      ),
      seen: () => model.get("query") <= queries[5],
      toSee: t("move the query to the left end"),
      challenge: queries.some(isThere)
        ? {
            task: t`find a query whose answer lies between ${show(goal[0], 0)} and ${show(goal[1], 0)}`,
            met: () => isThere(model.get("query")),
          }
        : null,
    },
  );
}

const WIDE = 48; // units of the picture: the box of a value, where its neighbours leave it room

/** The query on the axis of the keys, with a thread to the value above each key. */
function drawLookup({ keys, values, queries }, move) {
  const plot = axes({
    title: t("query and stored facts"),
    width: roomy(640, 360),
    height: 200,
    left: 14,
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
  const gaps = inOrder.slice(1).map((at, i) => at - inOrder[i] - 2);
  const width = Math.max(34, Math.min(WIDE, ...gaps));
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
  const dots = keys.map((key) =>
    h("svg:circle", { class: "af-point", r: 5, cx: plot.sx(key), cy: foot }),
  );
  const tip = mark(h("svg:path", { class: "af-tip", d: "M0,-10L10,0L0,10L-10,0Z" }), 1, 0);
  const diamond = handle(plot, tip, (at) => move(queries[nearest(queries, at)]));
  plot.layer.append(bundle.node, ...dots, ...boxes.map(({ box }) => box), diamond);

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
