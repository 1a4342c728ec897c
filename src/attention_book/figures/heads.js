// Chapter 7: what each head of a model reads, as arrows on a ring and as maps, for one head or several.

const [RADIUS, NODE] = [116, 17]; // of the ring and of a position on it
const SIDE = 15; // of a square of a map, in the picture's units
const LEAST_WRITTEN = 0.05; // smaller weights are not written into a map
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

/** For each head the arrows of all positions, pale, where a weight is large enough to be seen. */
function paleArrows(maps, shapes, { width, turn }) {
  const n = shapes.length;
  return maps.map((map, head) => {
    const ofRow = (row, q) =>
      range(n)
        .filter((k) => row[k] > 0.2)
        .map((k) => {
          const style = `--hue: ${hueOf(head, maps.length)}; transform: ${turn(q)}`;
          const { d } = shapes[(k - q + n) % n][head];
          const about = { class: "af-headthread", d, style, "stroke-width": width(row[k]) };
          return h("svg:path", about);
        });
    return h("svg:g", {}, ...map.flatMap(ofRow));
  });
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
 * the others are pale, and left out where more than two heads would make a tangle of them.
 */
function drawRing({ tokens, maps, least, choose }) {
  const [n, count] = [tokens.length, maps.length];
  const lane = (head) => (count === 1 ? 0.3 : head / (count - 1));
  const width = (weight) => 7 * weight;
  const shapes = range(n).map((steps) => range(count).map((head) => arrowTo(steps, n, lane(head))));
  const turn = (i) => `rotate(${(360 * i) / n}deg)`;
  const arrows = ringArrows(shapes, count);
  const pale = paleArrows(maps, shapes, { width, turn });
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
    h("svg:g", { class: "af-pale", "aria-hidden": "true" }, ...pale),
    turning,
    h("svg:g", group(t("positions")), ...nodes),
  );
  let turned = 0; // in steps, on and on, so that the shorter way is taken
  const drawArrow = ({ node, path, tip }, head, query, key, isShown) => {
    const weight = maps[head][query][key];
    node.toggleAttribute("hidden", !isShown || weight < least);
    put(path, "stroke-width", width(weight).toFixed(2));
    const size = 4 + 5 * weight;
    put(tip, "d", `M${size},0L${-size},${size}L${-size},${-size}z`);
    put(node, "data-pair", `${head} ${query} ${key}`);
    const reading = t`head ${head}: ${tokens[query]} reads ${tokens[key]} with the weight ${show(weight, 4)}`;
    say(node, `arrow ${head} ${key}`, weight, reading);
  };
  const draw = (query, shown) => {
    const by = (((query - turned) % n) + n) % n;
    turned += by > n / 2 ? by - n : by;
    turning.style.transform = turn(turned);
    arrows.forEach((ofHead, head) => {
      const isShown = shown.includes(head);
      pale[head].toggleAttribute("hidden", !isShown || shown.length > 2);
      ofHead.forEach((arrow, steps) => drawArrow(arrow, head, query, (query + steps) % n, isShown));
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

const short = (token) => token.slice(0, 4);

/** The names of the positions of a map; long ones stand upright over the columns. */
function mapNames(tokens, isUpright) {
  const side = { "text-anchor": "end" };
  return [
    ...tokens.map((token, i) => {
      const x = (i + 0.5) * SIDE;
      const upright = { "text-anchor": "start", transform: `translate(${x + 4} -4) rotate(-90)` };
      return isUpright ? unheard(0, 0, short(token), upright) : unheard(x, -4, short(token), {});
    }),
    ...tokens.map((token, i) => unheard(-3, (i + 0.5) * SIDE + 4, short(token), side)),
  ];
}

/** The map of one head; `draw` outlines the row of the chosen query and writes its weights there. */
function headMap(map, tokens, { head, count, choose }) {
  const length = tokens.length * SIDE;
  const row = h("svg:rect", { class: "af-cursor", x: 0, width: length, height: SIDE });
  const insets = tokens.map((_, c) => unheard((c + 0.5) * SIDE, 0, "", { class: "af-inset" }));
  const letters = Math.max(...tokens.map((token) => short(token).length));
  const [left, above] = [6 + 6 * letters, letters > 2 ? 6 + 6 * letters : 14];
  const squares = { "data-marks": "", "data-say": "below", role: "grid" };
  const picture = h(
    "svg:svg",
    {
      class: "af-plot",
      preserveAspectRatio: "xMinYMin",
      viewBox: `${-left} ${-above} ${length + left + 1} ${length + above + 1}`,
    },
    ...mapNames(tokens, letters > 2),
    h(
      "svg:g",
      { ...squares, "aria-label": t`map of head ${head}` },
      ...mapSquares(map, tokens, { head, count }),
    ),
    row,
    ...insets,
  );
  const swatch = h("span", { class: "af-swatch" });
  const title = h("p", { class: "af-title" }, swatch, t`Head ${head}`);
  const style = `--hue: ${hueOf(head, count)}`;
  const node = h("div", { class: "af-headmap", style }, title, picture);
  node.addEventListener("click", (event) => {
    const at = event.target.closest("[data-at]")?.getAttribute("data-at");
    choose({ head, ...(at && { query: Number(at.split(",")[0]) }) });
  });
  const draw = (query) => {
    put(row, "y", query * SIDE);
    insets.forEach((inset, c) => {
      const weight = map[query][c];
      const text = show(weight).replace(/^0|\.00$/g, "");
      put(inset, "y", (query + 0.5) * SIDE + 3.5);
      write(inset, weight < LEAST_WRITTEN ? "" : text);
    });
  };
  return { node, draw };
}

/** One model: its ring and its maps, those of all heads or of the one that is kept. */
function modelView(maps, { tokens, least, choose }) {
  const count = maps.length;
  const pick = ({ head, query }) =>
    choose({ ...(count > 1 && { head }), ...(query !== undefined && { query }) });
  const heads = maps.map((map, head) => headMap(map, tokens, { head, count, choose: pick }));
  const ring = drawRing({ tokens, maps, least, choose: (query) => choose({ query }) });
  const all = h("div", { class: "af-headmaps" }, ...heads.map(({ node }) => node));
  const written = h("span", {}, t`written: weights from ${show(LEAST_WRITTEN)} on`);
  const sides = h(
    "div",
    { class: "af-sides", "aria-hidden": "true" },
    dimension("queries", t("queries ↓")),
    dimension("keys", t("keys →")),
    written,
  );
  const node = h(
    "div",
    { class: "af-heads" },
    ring.node,
    h("div", { class: "af-headside" }, sides, all),
  );
  const mostNumbered = tokens.length > 8 ? 1 : roomy(4, 2); // smaller maps have no room for numbers
  const draw = (query, shown) => {
    ring.draw(query, shown);
    all.style.setProperty("--columns", Math.ceil(Math.sqrt(shown.length)));
    all.classList.toggle("af-unnumbered", shown.length > mostNumbered);
    written.style.visibility = shown.length > mostNumbered ? "hidden" : "";
    all.classList.toggle("af-few", shown.length > 4);
    heads.forEach((each, head) => {
      each.node.hidden = !shown.includes(head);
      each.draw(query);
    });
  };
  return { count, node, draw };
}

/** Buttons that keep one head, or show all again; `draw` has those of a model with `count` heads. */
function headChips(most, keep) {
  const all = chip(t("all heads"), () => keep("all"), { name: "head", value: "all" });
  const each = range(most).map((head) => {
    const node = chip(t`Head ${head}`, () => keep(head), { name: "head", value: head });
    node.prepend(h("span", { class: "af-swatch" }));
    return node;
  });
  const about = {
    class: "af-chips af-headchips",
    role: "group",
    "aria-label": t(declared.controls.head.label),
  };
  const node = h("div", about, all, ...each);
  node.hidden = most === 1;
  const draw = (count, kept) => {
    node.style.visibility = count === 1 ? "hidden" : "";
    put(all, "aria-pressed", kept === "all");
    each.forEach((button, head) => {
      button.hidden = head >= count;
      button.style.setProperty("--hue", hueOf(head, count));
      put(button, "aria-pressed", kept === head);
    });
  };
  return { node, draw };
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
      task: t(
        "keep a head that spreads its weight: from all positions but one, no key gets more than half",
      ),
      met: () => {
        const map = maps[model.get("num_heads")][model.get("head")] ?? [];
        return map.length && map.filter((row) => Math.max(...row) > 0.5).length <= 1;
      },
    },
  };
}

function errorReading(count, number) {
  return count === 1
    ? t`squared error of the model with 1 head: ${number}, the mean over all numbers of all positions`
    : t`squared error of the model with ${count} heads: ${number}, the mean over all numbers of all positions`;
}

export default {
  render({ model, el }) {
    const { counts, maps, errors, tokens, least } = model.get("data");
    const own = errors.length > 0; // the maps of the ring, about which there is a question
    const figure = frame({ model, el }, own ? headsQuestion(model, maps) : {});
    figure.slider({
      name: "num_heads",
      text: (n) => (n === 1 ? t("1 head") : t`${n} heads`),
      change: (n) => figure.move({ num_heads: n, head: "all" }),
    });
    figure.slider({ name: "query", text: (q) => tokens[q] });
    const chips = headChips(Math.max(...counts), (head) => figure.set("head", head));
    figure.control(chips.node);
    const about = { tokens, least, choose: figure.move };
    const models = counts.map((count) => modelView(maps[count], about));
    const error = facts(own ? [t("squared error of the trained model:")] : []);
    figure.stage.append(...models.map(({ node }) => node), error.node);

    return figure.open(() => {
      const [count, query, asked] = ["num_heads", "query", "head"].map((name) => model.get(name));
      const kept = asked < count ? asked : "all"; // a kernel tells the new count before the new head
      const shown = kept === "all" ? range(count) : [kept];
      chips.draw(count, kept);
      for (const each of models) {
        each.node.hidden = each.count !== count;
        if (each.count === count) each.draw(query, shown);
      }
      if (own) {
        const number = errors[counts.indexOf(count)];
        write(error.values[0], show(number, 3));
        say(error.values[0], "error", number, errorReading(count, show(number, 3)));
      }
      const looks = shown.map((head) => {
        const row = maps[count][head][query];
        const best = row.indexOf(Math.max(...row));
        const look = [tokens[best], show(row[best])];
        if (kept === head) return phrase("one head", head, tokens[query], ...look);
        return phrase("look", ...look, head);
      });
      if (kept !== "all") return looks[0];
      return phrase("heads", tokens[query], inList(looks));
    });
  },
};
