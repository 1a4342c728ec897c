// Chapter 1: a query among points on a line. Threads to the points are as wide as their weights, and
// the kernel is a bell around the query, whose width is a handle. Points can be moved.

export default {
  render({ model, el }) {
    const data = model.get("data");
    const { keys, given, widths } = data;
    const weigh = (query, width) => softmax(keys.map((key) => -(((query - key) / width) ** 2) / 2));
    const largestNow = () => Math.max(...weigh(model.get("query"), model.get("width")));
    const figure = frame(
      { model, el },
      {
        question: t("Make the width very large. What does the prediction become?"),
        answers: [t("the nearest key's value"), t("the mean of all values"), "0"],
        right: 1,
        because: t(
          "With a large width all keys count as equally near, so every weight is the same and the prediction is the plain mean. With a small width the nearest key gets nearly all the weight, unless another is about as near.",
        ),
        lines: roomy(1, 2),
        seen: () => model.get("width") >= widths.at(-1),
        toSee: t("move the width to its largest value"),
        challenge: {
          task: t("give one key more than 0.99 of the weight"),
          met: () => largestNow() > 0.99,
        },
      },
    );
    const moves = moving(model, figure, data);
    const above = upper(figure, data, moves);
    const below = lower(figure, data);
    figure.stage.append(h("div", { class: "af-wide" }, above.plot.node, below.plot.node));

    return figure.open(() => {
      const now = Object.fromEntries(
        ["query", "width", "values", "point"].map((name) => [name, model.get(name)]),
      );
      const { query, width, values } = now;
      const weights = weigh(query, width);
      const prediction = dot(weights, values);
      const largest = Math.max(...weights);
      above.draw({ ...now, weights, prediction, weigh, chosen: moves.chosen() });
      below.draw({ ...now, weights, largest });
      const change = show(prediction - dot(weights, given));
      const moved = keys.filter((_, k) => values[k] !== given[k]).length;
      const numbers = [query, width, prediction].map((number) => show(number));
      if (!moved) return phrase("prediction", ...numbers, show(largest));
      if (moved === 1) return phrase("one moved", ...numbers, change);
      return phrase("some moved", ...numbers, moved, change);
    });
  },
};

/** The sliders, and how a point is chosen and lifted. `point` counts from left to right. */
function moving(model, figure, { keys, given, heights }) {
  const order = range(keys.length).sort((a, b) => keys[a] - keys[b]);
  const chosen = () => order[model.get("point")];
  /** The heights that a point can have: the axis in steps, and the one that it was given. */
  const stopsOf = (k) => [...new Set([...heights, given[k]])].sort((a, b) => a - b);
  const lift = (k, value) =>
    figure.set(
      "values",
      model.get("values").map((old, i) => (i === k ? value : old)),
    );
  for (const name of ["query", "width"]) figure.slider({ name, text: (number) => show(number) });
  figure.slider({
    label: () => t`value at key ${show(keys[chosen()])}`,
    stops: () => stopsOf(chosen()),
    get: () => model.get("values")[chosen()],
    change: (value) => lift(chosen(), value),
    text: (value) => show(value),
  });
  const choose = (place) => figure.set("point", place);
  return { order, chosen, stopsOf, lift, choose, heightOf: (k) => model.get("values")[k] };
}

/** What takes a point: a drag lifts it, a click or a key chooses it. */
function gripOf(plot, k, place, { stopsOf, lift, choose, heightOf }) {
  const grip = mark(h("svg:path", { class: "af-grip" }), 0, place, "button");
  put(grip, "data-pair", `k${k}`);
  let held = [0, 0]; // the point's value and the pointer's when the drag began
  drag(
    plot,
    grip,
    (_, at) => {
      const stops = [held[0], ...stopsOf(k)];
      lift(k, stops[nearest(stops, held[0] + at - held[1])]);
    },
    (_, at) => {
      held = [heightOf(k), at];
      choose(place);
    },
  );
  grip.addEventListener("click", (event) => {
    event.stopPropagation();
    choose(place);
  });
  grip.addEventListener("keydown", (event) => {
    if (["Enter", " "].includes(event.key)) choose(place);
  });
  return grip;
}

/** Points, threads, the prediction and the curve. */
function upper(figure, { keys, given, queries, heights }, moves) {
  const [x, y] = [
    [queries[0], queries.at(-1)],
    [heights[0], heights.at(-1)],
  ];
  const plot = axes({
    title: t("points and prediction"),
    width: roomy(640, 336),
    height: roomy(235, 205),
    x,
    y,
    xLabel: "",
    yLabel: t("value"),
    xTicks: [],
    yTicks: ticks(y),
    foot: 6,
  });
  const { sx, sy } = plot;
  const fine = range(241).map((i) => x[0] + (i * (x[1] - x[0])) / 240);
  const bundle = threads(keys.length, { widest: 20 });
  const [points, grips] = [[], []]; // what is seen, and what is pointed at and held
  moves.order.forEach((k, place) => {
    points[k] = h("svg:circle", { class: "af-point", r: 5 });
    grips[k] = gripOf(plot, k, place, moves);
    bundle.pair(k, `k${k}`);
  });
  const curve = h("svg:path", { class: "af-curve" });
  const former = h("svg:path", { class: "af-former" });
  const mean = h("svg:path", { class: "af-mean" });
  const meanName = h("svg:text", { class: "af-mean-name", "aria-hidden": "true" }, t("mean"));
  const ring = h("svg:circle", { class: "af-cursor", r: 8 });
  const guide = h("svg:path", { class: "af-guide", d: `M0,${plot.box.top}V${plot.box.bottom}` });
  const guess = mark(h("svg:path", { class: "af-tip", d: "M0,-9L9,0L0,9L-9,0Z" }), 1, 0);
  const diamond = handle(plot, guess, (at) => figure.set("query", queries[nearest(queries, at)]));
  const number = h("svg:text", { class: "af-fact-name", "aria-hidden": "true" });
  const before = h("svg:text", { class: "af-mean-name", "aria-hidden": "true" }, t("before"));
  plot.layer.append(
    mean,
    meanName,
    guide,
    former,
    curve,
    bundle.node,
    ...points,
    ring,
    diamond,
    number,
    before,
  );
  plot.layer.append(...moves.order.map((k) => grips[k]));

  const draw = ({ query, width, values, weights, prediction, weigh, chosen }) => {
    const at = [sx(query), sy(prediction)];
    const places = keys.map((key, k) => [sx(key), sy(values[k])]);
    keys.forEach((key, k) => {
      put(points[k], "transform", `translate(${places[k]})`);
      put(grips[k], "d", around(places[k], [...places, at]));
      bundle.tie(k, at, places[k], weights[k]);
      const reading = t`key ${show(key)}: value ${show(values[k])}, weight ${show(weights[k], 4)}`;
      say(grips[k], `value ${k}`, values[k], reading);
      put(grips[k], "aria-pressed", k === chosen);
    });
    put(ring, "cx", sx(keys[chosen]));
    put(ring, "cy", sy(values[chosen]));
    const moved = moves.order.filter((k) => values[k] !== given[k]);
    const [now, then] = [[], []];
    for (const q of fine) {
      const shares = weigh(q, width);
      now.push([sx(q), sy(dot(shares, values))]);
      if (moved.length) then.push([sx(q), sy(dot(shares, given))]);
    }
    put(curve, "d", line(now));
    const middle = sy(sum(values) / values.length);
    put(mean, "d", `M${plot.box.left},${middle}H${plot.box.right}`);
    // Named at that end where the curve is farther away.
    const isRight = Math.abs(now.at(-1)[1] - middle) > Math.abs(now[0][1] - middle);
    put(meanName, "x", isRight ? plot.box.right - 4 : plot.box.left + 4);
    put(meanName, "text-anchor", isRight ? "end" : "start");
    put(meanName, "y", middle - 4);
    before.toggleAttribute("hidden", !moved.length);
    if (moved.length) {
      const end = isRight ? 0 : -1; // the other one
      put(before, "x", isRight ? plot.box.left + 4 : plot.box.right - 4);
      put(before, "text-anchor", isRight ? "start" : "end");
      put(before, "y", then.at(end)[1] + (then.at(end)[1] > now.at(end)[1] ? 15 : -6));
    }
    const paths = moved.map((k) => `M${sx(keys[k])},${sy(given[k])}V${sy(values[k])}`);
    put(former, "d", line(then) + paths.join(""));
    put(guide, "transform", `translate(${sx(query)})`);
    put(diamond, "transform", `translate(${at[0]} ${at[1]})`);
    // Above all points, beside the line that leads to the diamond.
    const isEarly = at[0] < (plot.box.left + plot.box.right) / 2;
    put(number, "x", at[0] + (isEarly ? 5 : -5));
    put(number, "y", plot.box.top + 10);
    number.style.textAnchor = isEarly ? "start" : "end";
    write(number, t`prediction ${show(prediction)}`);
    say(guess, "guess", prediction, t`query ${show(query)}: prediction ${show(prediction, 4)}`);
  };
  return { plot, draw };
}

/** The bell: the kernel around the query, as high as the plot, with the weights as bars. They end on
 * the bell, and the axis says what its height stands for; where no key is near enough for that with
 * weights up to 1, the axis ends at 1 and the bars stand out of the bell. */
function lower(figure, { keys, queries, widths }) {
  const x = [queries[0], queries.at(-1)];
  const plot = axes({
    title: t("weights"),
    width: roomy(640, 336),
    height: roomy(150, 135),
    x,
    y: [0, 1],
    xLabel: t("key and query"),
    yLabel: t("weight"),
    xTicks: ticks(x),
    yTicks: [
      [0, "0"],
      [1, ""],
    ],
  });
  const { sx, sy, box } = plot;
  const highest = [...plot.node.querySelectorAll("text")].find((node) => !node.textContent);
  const stems = keys.map((key, k) => {
    const stem = mark(h("svg:rect", { class: "af-bar", x: sx(key) - 3, width: 6 }), 0, k);
    put(stem, "data-pair", `k${k}`);
    return stem;
  });
  const bell = h("svg:path", { class: "af-bell" });
  const clip = h(
    "svg:svg",
    {
      x: box.left,
      y: box.top,
      width: box.right - box.left,
      height: box.bottom - box.top,
      viewBox: `${box.left} ${box.top} ${box.right - box.left} ${box.bottom - box.top}`,
    },
    bell,
  );
  const guide = h("svg:path", { class: "af-guide", d: `M0,${box.top}V${box.bottom}` });
  const arrows = h("svg:path", {
    class: "af-tip af-widens",
    d: "M-13,0L-4,-8V-2H4V-8L13,0L4,8V2H-4V8Z",
  });
  const grip = mark(arrows, 1, 0);
  const side = h("svg:g", {}, h("svg:circle", { class: "af-disc", r: 28 }), grip);
  const number = h("svg:text", { class: "af-share", "aria-hidden": "true" });
  let stand = () => {};
  const arrow = widthHandle(figure, plot, side, { x, widths, stand: () => stand() });
  plot.layer.append(clip, guide, ...stems, side, number);

  const draw = ({ query, width, values, weights, largest }) => {
    const kernel = (place) => Math.exp(-(((place - query) / width) ** 2) / 2);
    const near = Math.min(...keys.map((key) => Math.abs(key - query)));
    const peak = largest / Math.exp(-((near / width) ** 2) / 2); // of the bell that the bars end on
    const full = Math.min(peak, 1);
    const spots = range(121).map((i) => query + ((i - 60) / 60) * Math.min(4 * width, x[1] - x[0]));
    const outline = spots.map((place) => [sx(place), sy(kernel(place))]);
    put(bell, "d", `${line(outline)}L${sx(spots.at(-1))},${sy(0)}H${sx(spots[0])}Z`);
    write(highest, show(full));
    const thick = Math.max(2, Math.min(6, sx(width) - sx(0))); // no wider than the bell
    keys.forEach((key, k) => {
      put(stems[k], "x", sx(key) - thick / 2);
      put(stems[k], "width", thick);
      put(stems[k], "y", sy(weights[k] / full));
      put(stems[k], "height", sy(0) - sy(weights[k] / full));
      const reading = t`key ${show(key)}: weight ${show(weights[k], 4)}, value ${show(values[k])}`;
      say(stems[k], `weight ${k}`, weights[k], reading);
    });
    put(guide, "transform", `translate(${sx(query)})`);
    const tallest = weights.indexOf(largest);
    put(number, "x", sx(keys[tallest]));
    put(number, "y", sy(largest / full) - 5);
    write(number, show(largest));
    stand = () => {
      const edge = arrow.place(query, width);
      put(side, "transform", `translate(${sx(edge)} ${sy(kernel(edge))})`);
    };
    stand();
    const share = show(Math.exp(-0.5));
    const told = arrow.fits(query, width)
      ? t`the width w is ${show(width)}: at this distance from the query the kernel is ${share} of its height`
      : t`the width w is ${show(width)}: farther from the query than the picture goes`;
    say(grip, "width", width, told);
  };
  return { plot, draw };
}

const INSET = 16; // units of the picture: the arrow stays that far from where the plot ends

/**
 * The arrow that is dragged to set the width. `place(query, width)` says where it stands: at the width's
 * distance from the query, on the side with more room, and where there is none, at that end of the
 * plot. It is dragged from where it stands: at half its distance the width is half as large, and at the
 * end of the plot the largest. While it is held it stays under the pointer, though the width has few
 * stops; `stand` is told where. `fits` says whether its place is the width's.
 */
function widthHandle(figure, plot, node, { x, widths, stand }) {
  const margin = (INSET * (x[1] - x[0])) / (plot.box.right - plot.box.left);
  let now = { width: 1, distance: 1, room: 1, sign: 1 };
  let held = null;
  drag(
    plot,
    node,
    (at) => {
      const { width, distance, room, sign, from } = held;
      const far = distance + sign * (at - from);
      held.far = Math.max(0, far);
      const stop = nearest(widths, (width * far) / distance);
      const isAtEnd = far >= room && distance < room;
      figure.set("width", isAtEnd ? widths.at(-1) : widths[stop]);
      stand(); // also where the width is the same
    },
    (at) => {
      held = { ...now, from: at, far: now.distance };
    },
  );
  for (const type of ["pointerup", "pointercancel"])
    node.addEventListener(type, () => {
      held = null;
      stand();
    });
  /** The side of the query on which the arrow stands, and how far it can go there. */
  const sideOf = (query, width) => {
    const [right, left] = [x[1] - margin - query, query - x[0] - margin];
    const isRight = held ? held.sign > 0 : right >= Math.min(width, left);
    return isRight ? [1, right] : [-1, left];
  };
  const place = (query, width) => {
    const [sign, room] = sideOf(query, width);
    if (held) return query + sign * Math.min(held.far, room);
    const distance = Math.min(width, room);
    now = { width, distance, room, sign };
    return query + sign * distance;
  };
  return { place, fits: (query, width) => width <= sideOf(query, width)[1] };
}
