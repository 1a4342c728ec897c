// Chapter 7: what each head of a model reads, as arrows on a ring and as maps, for one head or several.

const [RADIUS, NODE, LOOP] = roomy([116, 17, 30], [60, 13, 14]); // of the ring, a position on it and what is around
const FEW = 2; // heads: of more, only arrows of weights above `CLEAR` are drawn, and none of other queries
const CLEAR = 0.2;
const hueOf = (head) => 245 + 137.5 * head; // the same in every model

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
  const aside = 2 * steps === n ? 0.5 * RADIUS * (lane - 0.5) : 0; // straight across: lanes side by side
  const middle = [bend[0] * (1 - pull) + aside, bend[1] * (1 - pull)];
  const short = (at) => {
    const [x, y] = [middle[0] - at[0], middle[1] - at[1]];
    const length = Math.hypot(x, y) || 1;
    return [at[0] + (x / length) * NODE, at[1] + (y / length) * NODE];
  };
  if (steps === 0) {
    const [x, y] = from;
    const [side, foot, top] = [NODE / 2, y - 0.9 * NODE, y - NODE - LOOP * (0.8 + 0.5 * lane)];
    return {
      d: `M${x - side},${foot}C${x - 1.2 * NODE},${top} ${x + 1.2 * NODE},${top} ${x + side},${foot}`,
      at: [x + side, foot],
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
        .filter((k) => row[k] > CLEAR)
        .map((k) => {
          const style = `--hue: ${hueOf(head)}; transform: ${turn(q)}`;
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
      const node = h("svg:g", { style: `--hue: ${hueOf(head)}` }, path, tip);
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
      h("svg:text", { x, y: y + 5, "text-anchor": "middle" }, short(token)),
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
 * the others are pale. Where more heads would make a tangle, the widest arrows alone are drawn.
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
  const edge = RADIUS + NODE + LOOP;
  const picture = h(
    "svg:svg",
    {
      class: "af-plot af-ring",
      viewBox: `${-edge} ${-edge} ${2 * edge} ${2 * edge}`,
      style: `--plot-width: ${2 * edge}px`,
    },
    h("svg:g", { class: "af-pale", "aria-hidden": "true" }, ...pale),
    turning,
    h("svg:g", group(t("positions")), ...nodes),
  );
  let turned = 0; // in steps, on and on, so that the shorter way is taken
  const drawArrow = ({ node, path, tip }, head, query, key, from) => {
    const weight = maps[head][query][key];
    node.toggleAttribute("hidden", weight < from);
    if (node.hasAttribute("hidden")) return;
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
      const isTangled = shown.length > FEW;
      pale[head].toggleAttribute("hidden", !isShown || isTangled);
      const from = isShown ? (isTangled ? CLEAR : least) : Infinity;
      ofHead.forEach((arrow, steps) => drawArrow(arrow, head, query, (query + steps) % n, from));
    });
    nodes.forEach((node, i) => {
      put(node, "aria-pressed", i === query);
      say(node, `place ${i}`, i, t`position ${tokens[i]}`);
    });
  };
  return { node: picture, draw };
}

/** Where the weights stand: one column for each key; the rows are heads or queries. */
function measures(tokens, least) {
  const [left, wide, tall] = roomy([34, 344, 272], [20, 138, 204]);
  const letters = Math.max(...tokens.map((token) => short(token).length));
  const top = letters > 2 ? 8 + 7 * letters : 16;
  return { left, wide, tall, top, cell: wide / tokens.length, least, isUpright: letters > 2 };
}

const short = (token) => token.slice(0, 4);

const unheard = (x, y, text, more = {}) =>
  h("svg:text", { x, y, "text-anchor": "middle", "aria-hidden": "true", ...more }, text);

/** From which weight on numbers are written into squares of that height. */
const writtenIn = ({ cell, least }, height) => (cell >= 30 && height >= 20 ? least : Infinity);

/** The names of the keys over their columns; long ones stand upright. */
function keyNames(tokens, { left, cell, top, isUpright }) {
  return tokens.map((token, i) => {
    const [x, y] = [left + (i + 0.5) * cell, top - 5];
    const upright = { "text-anchor": "start", transform: `translate(${x + 4} ${y}) rotate(-90)` };
    return isUpright ? unheard(0, 0, short(token), upright) : unheard(x, y, short(token));
  });
}

/** A row of squares, one for each key, with a name before it and its large weights where there is room. */
function weightRow(tokens, at, about) {
  const squares = tokens.map((_, c) =>
    h("svg:rect", { class: "af-square", x: at.left + c * at.cell, width: at.cell }),
  );
  const insets = tokens.map((_, c) =>
    unheard(at.left + (c + 0.5) * at.cell, 0, "", { class: "af-inset" }),
  );
  const name = unheard(at.left - 6, 0, "", { "text-anchor": "end" });
  const reach = h("svg:rect", { class: "af-near", x: 0, width: at.left + at.wide });
  const node = h("svg:g", about, reach, name, ...squares, ...insets);
  const place = (y, height, gap = 0) => {
    for (const part of [...squares, reach]) {
      put(part, "y", y.toFixed(2));
      put(part, "height", (part === reach ? height : height - gap).toFixed(2));
    }
    for (const text of [name, ...insets]) put(text, "y", (y + height / 2 + 4.5).toFixed(2));
  };
  /** Show the weights of one query in one head. */
  const draw = (weights, { head, query, count, written }) => {
    weights.forEach((weight, c) => {
      const [from, key] = [tokens[query], tokens[c]];
      const reading = t`head ${head} of ${count}: query ${from} gives key ${key} the weight ${show(weight, 4)}`;
      put(squares[c], "fill-opacity", weight);
      put(squares[c], "data-pair", `${head} ${query} ${c}`);
      say(squares[c], `weight ${head} ${query} ${c}`, weight, reading);
      const text = weight >= written ? show(weight).replace(/^0|\.00$/g, "") : "";
      write(insets[c], text);
    });
  };
  return { node, name, squares, place, draw };
}

/** For each head the row of the chosen query; `choose` is told the head that is clicked. */
function headStrips(tokens, most, at, choose) {
  const strips = range(most).map((head) => {
    const strip = weightRow(tokens, at, { class: "af-strip" });
    for (const square of strip.squares) put(square, "role", "img");
    mark(strip.node, head, 0).addEventListener("click", () => choose({ head }));
    write(strip.name, String(head));
    return strip;
  });
  const name = t("what the chosen query reads, head by head");
  const about = { "data-marks": "", "data-say": "below", role: "group", "aria-label": name };
  const node = h("svg:g", about, ...strips.map((strip) => strip.node));
  const draw = (maps, query) => {
    const [count, height] = [maps.length, Math.min(roomy(136, 48), at.tall / maps.length)];
    strips.forEach((strip, head) => {
      strip.node.toggleAttribute("hidden", head >= count);
      if (head >= count) return;
      const weights = maps[head][query];
      strip.place(at.top + head * height, height, 2);
      strip.node.style.setProperty("--hue", hueOf(head));
      strip.draw(weights, { head, query, count, written: writtenIn(at, height) });
      const large = range(tokens.length).filter((key) => weights[key] >= at.least);
      const list = inList(large.map((key) => `${tokens[key]} ${show(weights[key])}`));
      say(strip.node, null, null, t`head ${head} of ${count}: ${tokens[query]} reads ${list}`);
    });
  };
  return { node, draw };
}

/** The map of one head; `choose` is told the query whose row is clicked. */
function headMap(tokens, at, choose) {
  const height = at.tall / tokens.length;
  const rows = tokens.map((token, q) => {
    const row = weightRow(tokens, at, { role: "row" });
    for (const [c, square] of row.squares.entries()) mark(square, q, c, "gridcell");
    row.node.addEventListener("click", () => choose({ query: q }));
    row.place(at.top + q * height, height);
    write(row.name, short(token));
    return row;
  });
  const cursor = h("svg:rect", { class: "af-cursor", x: at.left, width: at.wide, height });
  const about = { "data-marks": "", "data-say": "below", role: "grid" };
  const grid = h("svg:g", about, ...rows.map((row) => row.node));
  const node = h("svg:g", {}, grid, cursor);
  const draw = (map, head, count, query) => {
    node.style.setProperty("--hue", hueOf(head));
    put(grid, "aria-label", t`map of head ${head}`);
    put(cursor, "y", at.top + query * height);
    rows.forEach((row, q) => {
      const written = q === query ? writtenIn(at, height) : Infinity;
      row.draw(map[q], { head, query: q, count, written });
    });
  };
  return { node, draw };
}

/** The weights of the chosen query in every head, or the map of the head that is kept. */
function weightsView(tokens, least, most, choose) {
  const at = measures(tokens, least);
  const [strips, map] = [headStrips(tokens, most, at, choose), headMap(tokens, at, choose)];
  const box = `0 0 ${at.left + at.wide + 1} ${at.top + at.tall + 1}`;
  const style = `--plot-width: ${at.left + at.wide + 1}px`;
  const about = { class: "af-plot", viewBox: box, style };
  const picture = h("svg:svg", about, ...keyNames(tokens, at), strips.node, map.node);
  const rowNames = [dimension("heads", t("heads ↓")), dimension("queries", t("queries ↓"))];
  const sides = { class: "af-sides", "aria-hidden": "true" };
  const keys = dimension("keys", t("keys →"));
  const node = h("div", { class: "af-headside" }, h("div", sides, ...rowNames, keys), picture);
  const draw = (maps, query, kept) => {
    const isMap = kept !== "all";
    [strips.node, map.node].forEach((part, i) => {
      part.toggleAttribute("hidden", isMap !== Boolean(i));
      rowNames[i].hidden = isMap !== Boolean(i);
    });
    if (isMap) map.draw(maps[kept], kept, maps.length, query);
    else strips.draw(maps, query);
  };
  return { node, draw };
}

/** Buttons that keep one head, or show all again; `draw` has those of a model with `count` heads. */
function headChips(most, keep) {
  const all = chip(t("all"), () => keep("all"), { name: "head", value: "all" });
  const each = range(most).map((head) =>
    chip(String(head), () => keep(head), {
      ...{ name: "head", value: head, "aria-label": t`Head ${head}` },
    }),
  );
  const about = {
    class: "af-chips af-headchips",
    role: "group",
    "aria-label": t(declared.controls.head.label),
  };
  const node = h("div", about, h("span", {}, t("show")), all, ...each);
  const draw = (count, kept) => {
    put(all, "aria-pressed", kept === "all");
    each.forEach((button, head) => {
      button.hidden = head >= count;
      button.style.setProperty("--hue", hueOf(head));
      put(button, "aria-pressed", kept === head);
    });
  };
  return { node, draw };
}

/** What is asked about the models of the ring; about a reader's own maps nothing is. */
function headsQuestion(model, maps) {
  return {
    question: t(
      "Each position needs its two neighbours’ numbers. What will two trained heads look at?",
    ),
    answers: [
      t("both look at both neighbours"),
      t("one looks before, the other after"),
      t("both look everywhere"),
    ],
    right: 1,
    because: t(
      "A head returns one weighted mean: one head must mix its two neighbours, and half of the error remains. Two heads each take one, and the error falls almost to 0.",
    ),
    lines: roomy(1, 2),
    seen: () => model.get("num_heads") === 2,
    toSee: t("go to two heads"),
    challenge: {
      task: t(
        "of eight heads, find the one that looks at no single place: only one position gives a key more than half of its weight",
      ),
      met: () => {
        const map = maps[model.get("num_heads")][model.get("head")] ?? [];
        return map.length && map.filter((row) => Math.max(...row) > 0.5).length <= 1;
      },
    },
  };
}

/** What cannot be seen of the arrows, and where the rest is. */
function hintOf(number, kept, count) {
  if (kept !== "all" || count === 1) return t("Pale: what the other positions read.");
  const drawn = number <= FEW ? t("Pale: the other positions.") : t`Arrows above ${CLEAR}.`;
  return together(drawn, hovers ? t("Click a strip for its map.") : t("Tap a strip for its map."));
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
    figure.form.classList.add("af-heading");
    if (counts.length > 1)
      figure.choice({
        name: "num_heads",
        options: counts.map((count) => [count, count]),
        change: (n) => figure.move({ num_heads: n, head: "all" }),
      });
    figure.slider({ name: "query", text: (q) => tokens[q] });
    const most = Math.max(...counts);
    const chips = headChips(most, (head) => figure.set("head", head));
    figure.control(chips.node);
    const choose = (query) => figure.move({ query });
    const rings = counts.map((count) => drawRing({ tokens, maps: maps[count], least, choose }));
    const weights = weightsView(tokens, least, most, figure.move);
    const error = facts(own ? [t("squared error:")] : []);
    const bar = h("div", { class: "af-error", hidden: own ? null : "" });
    const hint = h("p", { class: "af-headhint" });
    const nodes = rings.map(({ node }) => node);
    figure.stage.append(
      h("div", { class: "af-ringside" }, ...nodes, error.node, bar, hint),
      weights.node,
    );
    if (roomy(true, false)) weights.node.append(figure.controls);

    const ends = errors.slice(0, 2).map((number) => show(number, 3));
    /** What the only head of the ring reads: both neighbours, the one that gets more weight first. */
    const mixture = (row, query) => {
      const steps = [1, row.length - 1].map((by) => (query + by) % row.length);
      const keys = steps.sort((a, b) => row[b] - row[a]);
      const parts = keys.flatMap((key) => [tokens[key], show(row[key])]);
      return phrase("mixed", tokens[query], ...parts, ends[0]);
    };
    return figure.open(() => {
      const [count, query, asked] = ["num_heads", "query", "head"].map((name) => model.get(name));
      const kept = asked < count ? asked : "all"; // a kernel tells the new count before the new head
      const shown = kept === "all" ? range(count) : [kept];
      chips.draw(count, kept);
      rings.forEach((ring, i) => {
        ring.node.toggleAttribute("hidden", counts[i] !== count);
        if (counts[i] === count) ring.draw(query, shown);
      });
      weights.draw(maps[count], query, kept);
      if (own) {
        const number = errors[counts.indexOf(count)];
        write(error.values[0], show(number, 3));
        say(error.values[0], "error", number, errorReading(count, show(number, 3)));
        bar.style.setProperty("--share", number / Math.max(...errors));
      }
      write(hint, hintOf(shown.length, kept, count));
      if (own && count === 1) return mixture(maps[1][0][query], query);
      if (own && count === 2 && kept === "all") return phrase("split", tokens[query], ...ends);
      const looks = new Map(); // for each key the heads that read it most
      for (const head of shown) {
        const row = maps[count][head][query];
        const best = row.indexOf(Math.max(...row));
        if (shown.length === 1)
          return phrase("one head", head, tokens[query], tokens[best], show(row[best]));
        looks.set(best, [...(looks.get(best) ?? []), head]);
      }
      const told = [...looks].map(([key, heads]) =>
        phrase(heads.length > 1 ? "heads" : "head", tokens[key], inList(heads.map(String))),
      );
      return phrase("all", tokens[query], inList(told));
    });
  },
};
