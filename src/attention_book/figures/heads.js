// Chapter 7: what each head of a model reads, as arrows on a ring and as maps, for one head or several.

const [RADIUS, NODE] = [116, 17]; // of the ring and of a position on it
const SIDE = 15; // of a square of a map, in the picture's units
const hueOf = (head, count) => 245 + (360 * head) / count;

/** Where position `i` of `n` stands, clockwise from the top, `out` times as far out as the ring. */
function onRing(i, n, out = 1) {
  const angle = (2 * Math.PI * i) / n;
  return [RADIUS * out * Math.sin(angle), -RADIUS * out * Math.cos(angle)];
}

/** An arrow on the ring of `n` from the top to `steps` further, in lane `lane` from 0 to 1. */
function arrowTo(steps, n, lane) {
  const [from, to] = [onRing(0, n), onRing(steps, n)];
  // A loop above the position that reads itself, else a bend towards the centre of the ring.
  const bend = [(from[0] + to[0]) / 2, (from[1] + to[1]) / 2];
  const pull = 0.12 + 0.4 * lane;
  const aside = 2 * steps === n ? 60 * (lane - 0.5) : 0; // straight across: lanes side by side
  const middle = [bend[0] * (1 - pull) + aside, bend[1] * (1 - pull)];
  const short = (at) => {
    const [x, y] = [middle[0] - at[0], middle[1] - at[1]];
    const length = Math.hypot(x, y) || 1;
    return [at[0] + (x / length) * NODE, at[1] + (y / length) * NODE];
  };
  if (steps === 0) {
    const reach = 24 + 16 * lane;
    const [x, y] = from;
    const top = y - NODE - reach;
    return {
      d: `M${x - 8},${y - 15}C${x - 20},${top} ${x + 20},${top} ${x + 8},${y - 15}`,
      at: [x + 8, y - 15],
      angle: 115,
    };
  }
  const [start, end] = [short(from), short(to)];
  const angle = (Math.atan2(to[1] - middle[1], to[0] - middle[0]) * 180) / Math.PI;
  return { d: `M${start}Q${middle} ${end}`, at: end, angle };
}

/** The arrows of the heads of all positions, pale, where a weight is large enough to be seen. */
function paleArrows(maps, shapes, { width, turn }) {
  const n = shapes.length;
  return maps.flatMap((map, head) =>
    map.flatMap((row, q) =>
      range(n)
        .filter((k) => row[k] > 0.2)
        .map((k) => {
          const style = `--hue: ${hueOf(head, maps.length)}; transform: ${turn(q)}`;
          const { d } = shapes[(k - q + n) % n][head];
          const about = { class: "af-headthread", d, style, "stroke-width": width(row[k]) };
          return h("svg:path", about);
        }),
    ),
  );
}

/** The arrows of the chosen position, for each head one per step around the ring. */
function ringArrows(shapes, count) {
  return range(count).map((head) =>
    shapes.map((lanes, steps) => {
      const { d, at, angle } = lanes[head];
      const path = h("svg:path", { class: "af-headthread", d });
      const transform = `translate(${at}) rotate(${angle})`;
      const tip = h("svg:path", { class: "af-headtip", transform });
      const node = h("svg:g", { style: `--hue: ${hueOf(head, count)}` }, path, tip);
      return { node: mark(node, head, steps), path, tip };
    }),
  );
}

/** The positions as buttons on the ring. */
function ringPlaces(tokens, choose) {
  return tokens.map((token, i) => {
    const [x, y] = onRing(i, tokens.length);
    const node = h(
      "svg:g",
      { class: "af-place" },
      h("svg:circle", { cx: x, cy: y, r: NODE }),
      h("svg:text", { x, y: y + 5, "text-anchor": "middle" }, token.slice(0, 4)),
    );
    node.addEventListener("click", () => choose(i));
    node.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      choose(i);
    });
    return mark(node, 0, i, "button");
  });
}

/**
 * The positions on a ring, and for the chosen one an arrow to each key for each head, as wide as its
 * weight. All positions read alike on the ring, so the arrows turn when another is chosen; those of
 * the others are pale.
 */
function drawRing({ tokens, maps, least, choose }) {
  const [n, count] = [tokens.length, maps.length];
  const lane = (head) => (count === 1 ? 0.3 : head / (count - 1));
  const width = (weight) => 7 * weight;
  const shapes = range(n).map((steps) => range(count).map((head) => arrowTo(steps, n, lane(head))));
  const turn = (i) => `rotate(${(360 * i) / n}deg)`;
  const arrows = ringArrows(shapes, count);
  const nodes = ringPlaces(tokens, choose);
  const group = (name) => ({ "data-marks": "", role: "group", "aria-label": name });
  const turning = h(
    "svg:g",
    { class: "af-turning", ...group(t("arrows of the chosen query")) },
    ...arrows.flat().map(({ node }) => node),
  );
  const edge = RADIUS + NODE + 30;
  const picture = h(
    "svg:svg",
    { class: "af-plot af-ring", viewBox: `${-edge} ${-edge} ${2 * edge} ${2 * edge}` },
    h(
      "svg:g",
      { class: "af-pale", "aria-hidden": "true" },
      ...paleArrows(maps, shapes, { width, turn }),
    ),
    turning,
    h("svg:g", group(t("positions")), ...nodes),
  );
  let turned = 0; // in steps, on and on, so that the shorter way is taken
  const drawArrow = ({ node, path, tip }, head, query, key) => {
    const weight = maps[head][query][key];
    node.toggleAttribute("hidden", weight < least);
    put(path, "stroke-width", width(weight).toFixed(2));
    const size = 4 + 5 * weight;
    put(tip, "d", `M${size},0L${-size},${size}L${-size},${-size}z`);
    put(node, "data-pair", `${head} ${query} ${key}`);
    const reading = t`head ${head}: ${tokens[query]} reads ${tokens[key]} with the weight ${show(weight, 4)}`;
    say(node, `arrow ${head} ${key}`, weight, reading);
  };
  const draw = (query) => {
    const by = (((query - turned) % n) + n) % n;
    turned += by > n / 2 ? by - n : by;
    turning.style.transform = turn(turned);
    arrows.forEach((ofHead, head) => {
      ofHead.forEach((arrow, steps) => drawArrow(arrow, head, query, (query + steps) % n));
    });
    nodes.forEach((node, i) => {
      put(node, "aria-pressed", i === query);
      say(node, `place ${i}`, i, t`position ${tokens[i]}`);
    });
  };
  return { node: picture, draw };
}

/** The squares of a map, in rows of queries. */
function mapSquares(map, tokens, { head, count }) {
  return tokens.map((query, r) =>
    h(
      "svg:g",
      { role: "row" },
      ...tokens.map((key, c) => {
        const at = { x: c * SIDE, y: r * SIDE, width: SIDE, height: SIDE };
        const square = h("svg:rect", { class: "af-square", ...at, "fill-opacity": map[r][c] });
        const reading = t`head ${head} of ${count}: query ${query} gives key ${key} the weight ${show(map[r][c], 4)}`;
        say(square, `weight ${head} ${r} ${c}`, map[r][c], reading);
        put(square, "data-pair", `${head} ${r} ${c}`);
        return mark(square, r, c, "gridcell");
      }),
    ),
  );
}

const unheard = (x, y, text, more = {}) =>
  h("svg:text", { x, y, "text-anchor": "middle", "aria-hidden": "true", ...more }, text);

/** The weights as numbers, where a square has room for them. */
function numbersOf(map) {
  return map.flatMap((row, r) =>
    row.flatMap((weight, c) => {
      if (weight < 0.005) return [];
      const text = show(weight).replace(/^0/, "");
      return unheard((c + 0.5) * SIDE, (r + 0.5) * SIDE + 2, text, { class: "af-inset" });
    }),
  );
}

/** The names of the axes of a map, and of its positions where it is large enough. */
function mapNames(tokens, few) {
  const length = tokens.length * SIDE;
  const axis = (dim, text, transform) =>
    h(
      "svg:text",
      { class: "af-axis-name", transform, "text-anchor": "middle", "aria-hidden": "true" },
      h("svg:tspan", { style: `--dim: var(--dim-${dim})` }, "■ "),
      text,
    );
  const short = (token) => token.slice(0, 4);
  const heads = tokens.map((token, i) => unheard((i + 0.5) * SIDE, -4, short(token)));
  const sides = tokens.map((token, i) => unheard(-0.8 * SIDE, (i + 0.5) * SIDE + 4, short(token)));
  const [above, aside] = few ? [-6, -8] : [-1.15 * SIDE, -1.6 * SIDE];
  return [
    ...(few ? [] : [...heads, ...sides]),
    axis("keys", t("key"), `translate(${length / 2} ${above})`),
    axis("queries", t("query"), `translate(${aside} ${length / 2}) rotate(-90)`),
  ];
}

/** The map of one head, drawn once, and the outline of the chosen row, which moves. */
function headMap(map, tokens, { head, count, choose }) {
  const length = tokens.length * SIDE;
  const row = h("svg:rect", { class: "af-cursor", x: 0, width: length, height: SIDE });
  const few = count > 2; // smaller maps: the names of the axes alone
  const [left, above] = few ? [22, 22] : [2.4 * SIDE, 2 * SIDE];
  const picture = h(
    "svg:svg",
    {
      class: few ? "af-plot af-few" : "af-plot",
      viewBox: `${-left} ${-above} ${length + left + 1} ${length + above + 1}`,
    },
    ...mapNames(tokens, few),
    h(
      "svg:g",
      { "data-marks": "", role: "grid", "aria-label": t`map of head ${head}` },
      ...mapSquares(map, tokens, { head, count }),
    ),
    row,
    ...(few ? [] : numbersOf(map)),
  );
  picture.addEventListener("click", (event) => {
    const at = event.target.closest("[data-at]");
    if (at) choose(Number(at.getAttribute("data-at").split(",")[0]));
  });
  const swatch = h("span", { class: "af-swatch", style: `--hue: ${hueOf(head, count)}` });
  const title = h("p", { class: "af-title" }, swatch, t`Head ${head}`);
  return { node: h("div", { class: "af-headmap" }, title, picture), row };
}

/** One model: its ring and its maps. */
function modelView(maps, { tokens, least, choose }) {
  const count = maps.length;
  const heads = maps.map((map, head) => headMap(map, tokens, { head, count, choose }));
  const ring = drawRing({ tokens, maps, least, choose });
  const columns = count > 4 ? 4 : Math.ceil(Math.sqrt(count));
  const views = heads.map(({ node }) => node);
  const node = h(
    "div",
    { class: "af-heads" },
    ring.node,
    h(
      "div",
      {
        class: count > 1 ? "af-headmaps" : "af-headmaps af-single",
        style: `--columns: ${columns}`,
      },
      ...views,
    ),
  );
  const draw = (query) => {
    ring.draw(query);
    for (const { row } of heads) put(row, "y", query * SIDE);
  };
  return { count, node, draw };
}

/** What is asked about the models of the ring; about a reader's own maps nothing is. */
function headsQuestion(model, maps) {
  return {
    question: t(
      "Each position wants two numbers of the position before it and two of the position after it. Train two heads on that. What will their maps show?",
    ),
    answers: [
      t("both heads look at both neighbours"),
      t("one head looks before, the other after"),
      t("both heads look everywhere"),
    ],
    right: 1,
    because: t(
      "A head can return one weighted mean. One head must mix its two neighbours, and half of the error remains. Two heads can divide the work: each takes one neighbour, and the error falls almost to 0.",
    ),
    seen: () => model.get("num_heads") === 2,
    toSee: t("go to two heads"),
    challenge: {
      task: t("find a model in which a head gives no key more than half of its weight"),
      met: () =>
        maps[model.get("num_heads")].some(
          (weights) => Math.max(...weights[model.get("query")]) <= 0.5,
        ),
    },
  };
}

function errorReading(count, number) {
  return count === 1
    ? t`squared error of the model with 1 head: ${number}, summed over the four numbers of a position`
    : t`squared error of the model with ${count} heads: ${number}, summed over the four numbers of a position`;
}

export default {
  render({ model, el }) {
    const { counts, maps, errors, tokens, least } = model.get("data");
    const own = errors.length > 0; // the maps of the ring, about which there is a question
    const figure = frame(
      { model, el },
      { traits: ["num_heads", "query"], ...(own && headsQuestion(model, maps)) },
    );
    figure.slider({
      label: t("heads"),
      name: "num_heads",
      stops: counts,
      text: (n) => (n === 1 ? t("1 head") : t`${n} heads`),
    });
    figure.slider({
      label: t("query position"),
      name: "query",
      stops: range(tokens.length),
      text: (q) => tokens[q],
    });
    const choose = (query) => figure.set("query", query);
    const models = counts.map((count) => modelView(maps[count], { tokens, least, choose }));
    const error = facts(own ? [t("squared error of the trained model:")] : []);
    figure.stage.append(...models.map(({ node }) => node), error.node);

    return figure.open(() => {
      const [count, query] = [model.get("num_heads"), model.get("query")];
      for (const each of models) {
        each.node.hidden = each.count !== count;
        if (each.count === count) each.draw(query);
      }
      if (own) {
        const number = errors[counts.indexOf(count)];
        write(error.values[0], show(number, 3));
        say(error.values[0], "error", number, errorReading(count, show(number, 3)));
      }
      const looks = maps[count].map((weights, head) => {
        const row = weights[query];
        const best = row.indexOf(Math.max(...row));
        return t`${tokens[best]} (${show(row[best])}) in head ${head}`;
      });
      return t`Position ${tokens[query]} attends most to ${inList(looks)}.`;
    });
  },
};
