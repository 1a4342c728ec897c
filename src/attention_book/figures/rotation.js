// Chapter 8: a query and a key, turned by their positions; what is between them, and their score.

const WIDTH = 320; // units of the dials' picture and of the strip of positions
const PITCH = 26.5; // from one position to the next
const FIRST = (WIDTH - 12 * PITCH) / 2; // where the first begins
const [RIM, TIP, OPENING] = [56, 54, 34]; // radii of a dial, its arrows and the wedge between them
const KINDS = ["fast", "slow", "sum"];
const degrees = (angle) => (angle * 180) / Math.PI;
const onCircle = (angle, radius) => [radius * Math.cos(angle), -radius * Math.sin(angle)];

export default {
  render({ model, el }) {
    const now = stateNow(model);
    const figure = rotationFrame({ model, el }, now);
    figure.form.classList.add("af-turning");
    const dials = [t("fast"), t("slow")].map((name, pair) => dial(name, pair, now));
    const place = (values) => {
      if (Object.keys(values).some((name) => values[name] !== model.get(name))) figure.move(values);
    };
    const strip = stripOf(now, place);
    const plot = scoresOver(now);
    const size = { viewBox: `0 0 ${WIDTH} 155`, style: `--plot-width: ${WIDTH}px` };
    const group = { "data-marks": "", role: "group", "aria-label": t("dials") };
    const nodes = dials.map(({ node }) => node);
    const pictures = h(
      "svg:svg",
      { class: "af-plot", ...size },
      h("svg:g", group, ...nodes),
      shadeName(),
    );
    figure.stage.append(
      h("div", { class: "af-turned" }, pictures, strip.node),
      h("div", { class: "af-turned" }, plot.node),
    );
    rotationControls(figure, now, place);

    return figure.open(() => {
      const state = now();
      for (const part of [...dials, strip, plot]) part.draw(state);
      return sentenceOf(state);
    });
  },
};

/** What follows from the controls: angles in radians, of the fast pair and the slow one. */
function stateNow(model) {
  const { length, trained, speeds } = model.get("data");
  const stretches = declared.controls.stretch.stops;
  return () => {
    const [q, k, pairs] = [model.get("query"), model.get("key"), model.get("pairs")];
    const speed = speeds[pairs][stretches.indexOf(model.get("stretch"))];
    const [before] = speeds.all; // as trained
    const distance = Math.abs(q - k);
    const parts = (d) => speed.map((each) => Math.cos(each * d));
    const between = speed.map((each) => {
      const turn = each * (k - q);
      return Math.atan2(Math.sin(turn), Math.cos(turn));
    });
    const isNew = speed[1] * distance > trained * before[1] + 1e-9;
    return { q, k, distance, speed, before, parts, between, isNew, trained, length };
  };
}

function rotationFrame({ model, el }, now) {
  const { trained, before } = now();
  let met = new Map(); // for each distance and speed the first and last position of the query
  const note = () => {
    const { q, k, speed } = now();
    const name = `${q - k} ${speed}`;
    const [first, last] = met.get(name) ?? [q, q];
    met.set(name, [Math.min(first, q), Math.max(last, q)]);
    return met.get(name);
  };
  return frame(
    { model, el },
    {
      question: t("Move both words on by three. What does their score do?"),
      answers: [t("it rises"), t("it falls"), t("it stays")],
      right: 2,
      because: t(
        "In each pair both arrows turn by the same angle, so the angle between them stays, and with it the score.",
      ),
      lines: roomy(2, 3),
      seen: () => {
        const [first, last] = note();
        return last - first >= 3;
      },
      toSee: t("drag the bracket on by three"),
      forget: () => {
        met = new Map();
        note();
      },
      challenge: {
        task: t`put q and k ${trained + 1} or more apart. Keep k in the shaded part of the slow dial, and the fast dial at ${show(degrees(before[0]), 0)}° a word`,
        met: () => {
          const { distance, speed, isNew } = now();
          return distance > trained && !isNew && speed[0] === before[0];
        },
      },
    },
  );
}

function rotationControls(figure, now, place) {
  figure.choice({ name: "stretch" });
  figure.choice({ name: "pairs" });
  const sliders = h("div", { class: "af-controls" });
  const at = { into: sliders, text: (position) => t`position ${position}` };
  figure.slider({ name: "query", ...at });
  figure.slider({ name: "key", ...at });
  const low = ({ q, k }) => Math.min(q, k);
  figure.slider({
    label: t("both, from"),
    into: sliders,
    stops: () => range(now().length - now().distance),
    get: () => low(now()),
    change: (first) => place(moved(now(), first - low(now()))),
    text: (first) => t`${first} to ${first + now().distance}`,
  });
  const summary = h("summary", {}, t("Move them by sliders"));
  const folded = h("details", { class: "af-inside" }, summary, sliders);
  if (hovers) figure.control(sliders);
  else figure.below.append(folded);
}

/** Both positions, moved on by as much as there is room for. */
function moved({ q, k, length }, by) {
  const step = Math.max(-Math.min(q, k), Math.min(by, length - 1 - Math.max(q, k)));
  return { query: q + step, key: k + step };
}

function sentenceOf({ q, k, distance, speed, before, parts, between, isNew }) {
  const score = show(sum(parts(distance)));
  const apart = between.map((angle) => show(Math.abs(degrees(angle)), 0));
  const neighbours = [speed[0], before[0]].map((angle) => show(degrees(angle), 0));
  return together(
    distance ? phrase("apart", q, k, ...apart, score) : phrase("same", q, score),
    isNew ? phrase("new") : "",
    speed[0] < before[0] ? phrase("near", ...neighbours) : "",
  );
}

/** The part of a disc between two angles; always as many points, so that it can glide. */
function sector(from, to, radius) {
  const rim = range(49).map((i) => onCircle(from + ((to - from) * i) / 48, radius));
  return `${line([[0, 0], ...rim])}Z`;
}

/** What the shade on the dials means, in the narrow room between them: a line breaks at a space. */
function shadeName() {
  const lines = [];
  for (const word of t("shaded: met in training").split(" ")) {
    const longer = `${lines.at(-1)} ${word}`;
    if (lines.length && longer.length <= 8) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  const texts = lines.map((text, i) => {
    const at = { x: WIDTH / 2, y: 132 - 13 * (lines.length - 1 - i), "text-anchor": "middle" };
    return h("svg:text", at, text);
  });
  return h("svg:g", { class: "af-shade-name" }, ...texts);
}

const CLOSE = 4; // units of the picture: of closer ticks every fourth is drawn

/** Query and key as arrows in the plane of one pair of features, and the wedge between them. */
function dial(name, pair, now) {
  const { before, trained, length } = now();
  const seen = Math.min(trained * before[pair], Math.PI); // to either side of the query
  const shape = { x: 0, "text-anchor": "middle" };
  const title = h("svg:text", { class: "af-label", ...shape, y: -65 });
  const told = h("svg:text", { class: "af-apart", ...shape, y: 70.5 });
  const arrow = (kind) =>
    h(
      "svg:g",
      { class: `af-hand af-${kind}` },
      h("svg:path", { d: `M0,0H${TIP - 9}` }),
      h("svg:path", { class: "af-head", d: `M${TIP},0l-12,-5v10Z` }),
    );
  const [asks, answers] = [arrow("query"), arrow("key")];
  const names = ["q", "k"].map((text) => h("svg:text", { "text-anchor": "middle" }, text));
  const wedge = mark(h("svg:path", { class: "af-opening" }), 0, pair);
  const shaded = h("svg:path", { class: "af-met", d: sector(-seen, seen, RIM) });
  const query = h("svg:g", { class: "af-hand" }, shaded, wedge);
  const ticks = range(length).map(() => h("svg:path", { class: "af-tick", d: `M${RIM},0h5` }));
  const node = h(
    "svg:g",
    { transform: `translate(${WIDTH * (0.25 + 0.5 * pair)} 76)` },
    ...[query, h("svg:circle", { class: "af-rim", r: RIM }), ...ticks],
    h("svg:path", { class: "af-unturned", d: `M0,0H${TIP}` }),
    ...[answers, asks, ...names, title, told],
  );
  const turn = (part, angle) => {
    part.style.transform = `rotate(${-degrees(angle).toFixed(3)}deg)`;
  };
  const draw = ({ q, k, speed, between, isNew }) => {
    const [each, angle] = [speed[pair], between[pair]];
    const [size, isFar] = [Math.abs(degrees(angle)), isNew && pair === 1];
    for (const part of [query, asks]) turn(part, each * q);
    turn(answers, each * k);
    const every = RIM * each < CLOSE ? 4 : 1;
    ticks.forEach((tick, position) => {
      turn(tick, each * position);
      tick.toggleAttribute("hidden", position % every > 0);
    });
    put(wedge, "d", sector(0, angle, OPENING));
    const side = angle < 0 ? -1 : 1; // the names stand outside the wedge
    [each * q - 0.3 * side, each * k + 0.3 * side].forEach((direction, i) => {
      const [x, y] = onCircle(direction, 45);
      put(names[i], "x", x.toFixed(2));
      put(names[i], "y", (y + 4).toFixed(2));
    });
    node.classList.toggle("af-new", isFar);
    node.classList.toggle("af-slower", pair === 0 && each < before[0]); // its neighbours come closer
    const word = degrees(each);
    write(title, t`${name}, ${show(word, word < 5 ? 1 : 0)}° a word`);
    write(told, isFar ? t`${show(size, 0)}° apart: new` : t`${show(size, 0)}° apart`);
    say(wedge, `angle ${pair}`, size, t`${name} pair: query and key are ${show(size, 1)}° apart`);
  };
  return { node, draw };
}

/** The positions of the text, with a grip for the query, one for the key, and a bracket for both. */
function stripOf(now, place) {
  const middle = (position) => FIRST + (position + 0.5) * PITCH;
  const tile = (position) => {
    const box = { x: middle(position) - 12.5, y: 31, width: 25, height: 25, rx: 3 };
    const number = h("svg:text", { x: middle(position), y: 48, "text-anchor": "middle" }, position);
    return h("svg:g", { class: "af-position" }, h("svg:rect", box), number);
  };
  const tiles = range(now().length).map(tile);
  const all = h("svg:g", {}, ...tiles);
  const grips = ["query", "key"].map((name) => {
    const letter = h("svg:text", { y: 4.5, "text-anchor": "middle" }, name[0]);
    const parts = [
      h("svg:circle", { class: "af-disc", r: 14 }),
      h("svg:circle", { r: 11 }),
      letter,
    ];
    return h("svg:g", { class: `af-carries af-${name}` }, ...parts);
  });
  const span = h("svg:path", { class: "af-span" });
  const label = h("svg:text", { y: 16, "text-anchor": "middle" });
  const pill = h("svg:rect", { x: -56, y: 0, width: 112, height: 24, rx: 12 });
  const bracket = h("svg:g", { class: "af-carries af-both" }, pill, label);
  const node = h(
    "svg:svg",
    {
      class: "af-plot",
      viewBox: `0 0 ${WIDTH} 84`,
      style: `--plot-width: ${WIDTH}px`,
      "aria-hidden": "true", // the sliders say the same
    },
    ...[span, all, bracket, ...grips],
  );
  const at = (event) => {
    const matrix = node.getScreenCTM().inverse();
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(matrix);
    return [(point.x - FIRST) / PITCH - 0.5];
  };
  const within = (x) => Math.max(0, Math.min(Math.round(x), now().length - 1));
  ["query", "key"].forEach((name, i) => {
    drag(
      { at },
      grips[i],
      (x) => place({ [name]: within(x) }),
      () => {},
    );
  });
  let held = 0; // how far from the query the bracket was taken
  const take = (x) => {
    held = x - now().q;
  };
  drag({ at }, bracket, (x) => place(moved(now(), Math.round(x - held) - now().q)), take);
  comes({ node: all, at }, (x) => {
    const isQuery = Math.abs(x - now().q) <= Math.abs(x - now().k);
    place({ [isQuery ? "query" : "key"]: within(x) });
  });
  const draw = ({ q, k, distance }) => {
    const [left, right] = [Math.min(q, k), Math.max(q, k)].map(middle);
    const centre = Math.max(58, Math.min((left + right) / 2, WIDTH - 58));
    put(span, "d", `M${left},31V26H${right}V31`);
    put(bracket, "transform", `translate(${centre} 0)`);
    write(label, t`↔ distance ${distance}`);
    const beside = distance ? 0 : 13; // both fit at one position
    put(grips[0], "transform", `translate(${middle(q) - beside} 70)`);
    put(grips[1], "transform", `translate(${middle(k) + beside} 70)`);
    tiles.forEach((each, position) => {
      each.classList.toggle("af-query", position === q);
      each.classList.toggle("af-key", position === k);
    });
  };
  return { node, draw };
}

/** Where the names of curves stand: over or under their own, and free of the others and of `taken`. */
function spotsFor(curves, taken, box) {
  const wide = 15; // to either side of a name's middle
  const others = [...taken];
  return curves.map((own) => {
    const foreign = [...others, ...curves.filter((curve) => curve !== own).flat()];
    const spots = own.flatMap(([x, y]) =>
      [-1, 1].map((side) => {
        const near = ([at]) => Math.abs(at - x) <= wide;
        const edge = side * Math.max(...own.filter(near).map(([, at]) => side * at));
        const middle = edge + 12 * side;
        const gaps = foreign.filter(near).map(([, at]) => Math.abs(at - middle));
        return { spot: [x, middle], worth: Math.min(15, ...gaps) - Math.abs(edge - y) };
      }),
    );
    const fits = ({ spot: [x, y] }) =>
      x > box.left + wide && x < box.right - wide && y > box.top && y < box.bottom;
    const { spot } = spots.filter(fits).reduce((a, b) => (b.worth > a.worth ? b : a));
    others.push(...[-wide, 0, wide].map((by) => [spot[0] + by, spot[1]]));
    return spot;
  });
}

/** The score for each distance, and the two parts that it is the sum of. */
function scoresOver(now) {
  const { length, trained, before } = now();
  const [last, ends] = [length - 1, [-2, 2]];
  const plot = axes({
    title: t("score for each distance"),
    width: WIDTH,
    height: roomy(246, 128),
    left: 40,
    foot: 38,
    x: [0, last],
    y: ends,
    xLabel: t("distance"),
    yLabel: t("score"),
    xTicks: [0, 2, 4, 6, 8, 10],
    yTicks: [-2, 0, 2],
  });
  const { sx, sy, box } = plot;
  const met = h("svg:rect", { class: "af-met", x: sx(0), y: box.top, height: sy(-2) - box.top });
  const note = h("svg:text", { x: sx(0) + 4, y: box.bottom - 5 }, t("slow angles met in training"));
  const zero = h("svg:path", { class: "af-guide", d: `M${sx(0)},${sy(0)}H${sx(last)}` });
  const curves = KINDS.map((kind) => h("svg:path", { class: `af-curve af-${kind}` }));
  const names = [t("fast"), t("slow"), t("sum")].map((text, i) =>
    h("svg:text", { class: `af-name af-${KINDS[i]}`, "text-anchor": "middle" }, text),
  );
  const width = sx(1) - sx(0);
  const columns = range(length).map((distance) => {
    const reach = { class: "af-near", width, height: box.bottom - box.top, y: box.top };
    const point = h("svg:circle", { class: "af-dot", r: 3, cx: sx(distance) });
    const at = h("svg:rect", { ...reach, x: sx(distance) - width / 2 });
    return { point, node: mark(h("svg:g", {}, at, point), 0, distance) };
  });
  const dot = h("svg:circle", { class: "af-now-dot", r: 7 });
  const nodes = columns.map(({ node }) => node);
  plot.layer.append(met, note, zero, ...curves, ...names, dot, ...nodes);
  const drawCurves = ({ speed, parts }) => {
    const fine = range(111).map((i) => (i * last) / 110);
    const heights = fine.map((d) => [...parts(d), sum(parts(d))]);
    const drawn = curves.map((_, i) => fine.map((d, n) => [sx(d), sy(heights[n][i])]));
    curves.forEach((curve, i) => put(curve, "d", line(drawn[i])));
    put(met, "width", (sx(Math.min(last, (trained * before[1]) / speed[1])) - sx(0)).toFixed(2));
    const low = box.bottom - 9; // where the training is noted
    const noted = range(20).map((i) => [sx(0) + 9 * i, low]);
    const found = spotsFor(drawn, noted, box);
    names.forEach((name, i) => {
      put(name, "x", found[i][0].toFixed(2));
      put(name, "y", (found[i][1] + 4).toFixed(2));
    });
    columns.forEach(({ point, node }, d) => {
      const both = parts(d);
      put(point, "cy", sy(sum(both)).toFixed(2));
      const [first, second] = both.map((part) => show(part));
      const reading = t`distance ${d}: score ${show(sum(both), 4)}, fast ${first}, slow ${second}`;
      say(node, `score ${d}`, sum(both), reading);
    });
  };
  let drawn = ""; // the speeds of the curves that are there
  const draw = (state) => {
    const { distance, speed, parts } = state;
    if (drawn !== `${speed}`) drawCurves(state);
    drawn = `${speed}`;
    put(dot, "cx", sx(distance).toFixed(2));
    put(dot, "cy", sy(sum(parts(distance))).toFixed(2));
  };
  return { node: plot.node, draw };
}
