// Chapter 10: read the scores tile by tile; m, l and o carry each row across.

const AREA = 112; // the side of the whole matrix, where areas are memory
const ZOOM = 24; // how much the lens enlarges a corner of the matrix where a tile is too small to see
const HEAD = 32; // the room for the names of the columns

/** Where things stand: the scores, a square matrix, and right of each row what it carries along. */
function measures(length) {
  const [name, size, room, bar, track, gap] = roomy(
    [26, 272, 34, 110, 180, 14],
    [16, 194, 24, 32, 35, 4],
  );
  const m = name + size + gap;
  const l = m + room + gap;
  const o = l + bar + gap + 5;
  return { name, size, side: size / length, m, room, l, bar, o, track, width: o + track + 6 };
}

/** One row after its first `seen` scores, `tile` at a time: the numbers carried along, what those
 * from before the last tile were multiplied with, and the sum until then. */
function online(row, values, seen, tile) {
  let [m, l, o, factor, before] = [-Infinity, 0, 0, 0, 0];
  for (let from = 0; from < seen; from += tile) {
    const part = row.slice(from, from + tile);
    const next = Math.max(m, ...part);
    factor = Math.exp(m - next); // what was summed before shrinks to the new maximum
    before = l;
    const powers = part.map((s) => Math.exp(s - next));
    const grown = l * factor + sum(powers);
    o = (o * l * factor + dot(powers, values.slice(from, from + tile))) / grown;
    [m, l] = [next, grown];
  }
  return { m, l, o, factor, before };
}

const textAt = (x, y, text = "", anchor = "middle") =>
  h("svg:text", { x, y, "text-anchor": anchor }, text);

/** A rectangle in row `r`, so much lower than the row, and how to move its sides. */
function barAt(at, r, kind, x, width, inset = 0) {
  const height = at.side - 2 * inset;
  return h("svg:rect", { class: kind, x, y: HEAD + r * at.side + inset, width, height });
}

function stretch(bar, x, width) {
  put(bar, "x", x.toFixed(2));
  put(bar, "width", width.toFixed(2));
}

/** A number as a shade of a square, from −1 to 1, and as a text where there is room. */
function shadedCell(at, r, x, width) {
  const square = barAt(at, r, "af-square", x, width);
  const number = textAt(x + width / 2, HEAD + (r + 0.5) * at.side + 4);
  const node = h("svg:g", {}, square, number);
  const draw = (shade, text) => {
    put(square, "fill-opacity", Math.abs(shade).toFixed(3));
    square.classList.toggle("af-below", shade < 0);
    write(number, text);
  };
  return { node, draw };
}

/** The scores of row `r` as shades. */
function scoresOf(r, at, { row, highest, isWritten }) {
  const cells = row.map((_, c) => shadedCell(at, r, at.name + c * at.side, at.side));
  cells.forEach(({ node }, c) => {
    mark(node, r, c, "gridcell");
  });
  const draw = ({ seen, from, tile }, newest) => {
    cells.forEach(({ node, draw }, c) => {
      const [name, number] = [`q${r + 1}, k${c + 1}`, show(row[c], row.length <= 8 ? 1 : 2)];
      const inside = c >= from && c < from + tile;
      const gone = c < seen && !inside;
      let reading = t`${name}: score ${number}, not read yet`;
      if (inside) reading = t`${name}: score ${number}, held now`;
      else if (gone) reading = t`${name}: score ${number}, read before and no longer in memory`;
      draw(row[c] / highest, isWritten && inside ? number : "");
      node.classList.toggle("af-unread", !inside && !gone);
      node.classList.toggle("af-held", inside);
      node.classList.toggle("af-forgotten", gone);
      node.classList.toggle("af-top", inside && row[c] === newest);
      say(node, `score ${r} ${c}`, row[c], reading);
    });
  };
  return { nodes: cells.map(({ node }) => node), draw };
}

/** What row `r` carries along: m as a shade, l as a bar, and o / l as a dot on its way to the exact output. */
function carriedOf(r, at, { row, values, highest, widest, isWritten }) {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const across = (output) => at.o + (at.track * (output - low)) / (high - low || 1);
  const [name, middle, inset] = [`q${r + 1}`, HEAD + (r + 0.5) * at.side, Math.min(6, at.side / 4)];
  const cx = across(online(row, values, row.length, 1).o).toFixed(2);
  const round = (kind, radius) => h("svg:circle", { class: kind, cx, cy: middle, r: radius });
  const largest = shadedCell(at, r, at.m, at.room);
  const [added, kept] = ["af-added", "af-kept"].map((kind) => barAt(at, r, kind, at.l, 0, inset));
  const ghost = barAt(at, r, "af-shrunk", at.l, 0, inset - 3);
  const ring = Math.min(8, at.side / 3); // which the dot fills when the output is exact
  const point = round("af-so-far", 0);
  const line = h("svg:path", { class: "af-guide", d: `M${at.o},${middle}h${at.track}` });
  const nodes = [
    largest.node,
    h("svg:g", {}, barAt(at, r, "af-near", at.l - 2, at.bar + 4), added, kept, ghost),
    h(
      "svg:g",
      {},
      barAt(at, r, "af-near", at.o - 6, at.track + 12),
      line,
      round("af-exact", ring),
      point,
    ),
  ];
  for (const [i, node] of nodes.entries()) mark(node, r, row.length + i, "gridcell");
  put(ghost, "role", "img");
  const draw = ({ seen, tile, isDone }, { m, l, o, factor, before }, isNext) => {
    const [known, wasKnown] = [seen > 0, seen > tile];
    const shrinks = wasKnown && factor < 1 && !isDone;
    const top = show(m, row.length <= 8 ? 1 : 2);
    largest.draw(known ? m / highest : 0, isWritten && known && !isDone ? top : "");
    const scale = at.bar / widest;
    const old = wasKnown ? before * factor * scale : 0;
    stretch(kept, at.l, old);
    stretch(added, at.l + old, l * scale - old);
    stretch(ghost, at.l, shrinks ? before * scale : 0);
    for (const part of [ghost, point]) part.toggleAttribute("hidden", !known);
    put(point, "cx", known ? across(o).toFixed(2) : at.o);
    put(point, "r", isDone || seen === row.length ? ring : ring / 2);
    for (const node of nodes) {
      node.classList.toggle("af-unread", !known);
      node.classList.toggle("af-forgotten", isDone);
      node.classList.toggle("af-rescaled", shrinks);
    }
    nodes[1].classList.toggle("af-smaller", shrinks && l < before);
    const times = show(factor);
    const texts = [
      t`${name}: m, the largest score so far, is ${top}`,
      wasKnown
        ? t`${name}: ℓ, the sum so far, is ${show(l)}; with the last tile, the sum before was multiplied by exp(old m − new m) = ${times}`
        : t`${name}: ℓ, the sum so far, is ${show(l)}`,
      t`${name}: o / ℓ, the output so far, is ${show(o)}`,
    ];
    [m, l, o].forEach((number, i) => {
      let reading = known ? texts[i] : t`${name}: nothing read yet`;
      if (isDone && i === 2) reading = t`${reading}; the row is done, and this is written out`;
      else if (isDone) reading = t`${reading}; the row is done, and this is no longer in memory`;
      say(nodes[i], `${["m", "l", "o"][i]} ${r}`, number, reading);
    });
    say(
      ghost,
      `factor ${r}`,
      factor,
      t`${name}: with the last tile, ℓ and o were multiplied by exp(old m − new m) = ${times}`,
    );
    if (shrinks && isNext && !matchMedia("(prefers-reduced-motion: reduce)").matches)
      kept.animate([{ width: `${before * scale}px` }, { width: `${old}px` }], 700);
  };
  return { nodes, draw };
}

/** The scores and what each row carries along; `draw` writes the rows that a step changes. */
function scoresTable({ scores, values }) {
  const [length, at] = [scores.length, measures(scores.length)];
  const about = {
    values,
    highest: Math.max(...scores.flat().map(Math.abs)) || 1,
    widest: Math.max(
      ...scores.flatMap((row) => row.map((_, i) => online(row, values, i + 1, 1).l)),
    ),
    isWritten: roomy(at.side >= 28, false),
  };
  const rows = scores.map((row, r) =>
    [scoresOf, carriedOf].map((of) => of(r, at, { row, ...about })),
  );
  const border = h("svg:rect", { class: "af-cursor" });
  const names = [
    ...scores.map((_, c) => [at.name + (c + 0.5) * at.side, at.side < 20 ? "" : `k${c + 1}`]),
    [at.m + at.room / 2, "m", t("max"), roomy(0, -5)], // so that no two read as one
    [at.l + at.bar / 2, "ℓ", t("sum"), roomy(0, 3)],
    [at.o + at.track / 2, "o / ℓ", t("output"), roomy(0, 3)],
  ].flatMap(([x, sign, word = "", aside = 0]) => [
    textAt(x, HEAD - 5, sign),
    textAt(x + aside, HEAD - 19, word),
  ]);
  const sides = scores.map((_, r) =>
    at.side < 14 && r % 2
      ? ""
      : textAt(at.name - 3, HEAD + (r + 0.5) * at.side + 4, `q${r + 1}`, "end"),
  );
  const name = t("scores, and what is carried along");
  const lines = rows.map((parts) =>
    h("svg:g", { role: "row" }, ...parts.flatMap(({ nodes }) => nodes)),
  );
  const node = h(
    "svg:svg",
    {
      class: "af-plot af-tiled",
      viewBox: `0 0 ${at.width} ${HEAD + at.size + 2}`,
      style: `--plot-width: ${at.width}px`,
    },
    h("svg:g", { "aria-hidden": "true" }, ...names, ...sides),
    h("svg:g", { "data-marks": "", role: "grid", "aria-label": name }, ...lines),
    border,
  );
  const drawn = scores.map(() => ""); // what each row shows, to draw only what changes
  let before = -1;
  const draw = (step, tile) => {
    const strips = length / tile;
    const [strip, across] = [Math.floor((step - 1) / strips), (step - 1) % strips];
    rows.forEach(([held, carried], r) => {
      const own = Math.floor(r / tile);
      const reads = step > 0 && own === strip;
      const seen = reads ? (across + 1) * tile : own < strip ? length : 0;
      const state = { seen, from: reads ? across * tile : length, tile, isDone: own < strip };
      if (drawn[r] === JSON.stringify(state)) return;
      drawn[r] = JSON.stringify(state);
      const now = online(scores[r], values, seen, tile);
      held.draw(state, now.factor < 1 && seen > tile ? now.m : null);
      carried.draw(state, now, reads && step === before + 1);
    });
    before = step;
    border.toggleAttribute("hidden", step === 0);
    for (const side of ["width", "height"]) put(border, side, tile * at.side);
    put(border, "x", at.name + across * tile * at.side);
    put(border, "y", HEAD + strip * tile * at.side);
  };
  return { node, draw };
}

/** What the marks of the table stand for. */
function legend() {
  const names = {
    forgotten: t("forgotten"),
    top: t("new largest"),
    end: t("exact output"),
    exact: t("reached"),
    scores: t("scores below and above 0"),
    sum: t("sum ℓ: kept, just added; dashed: before rescaling"),
  };
  const items = Object.entries(names).map(([kind, name]) =>
    h("span", {}, h("i", { class: `af-means-${kind}` }), name),
  );
  return h("p", { class: "af-means" }, ...items);
}

/** How many numbers are held at once, counted and as a bar. */
function memoryHeld(length) {
  const named = (kind, name) => h("span", {}, h("i", { class: `af-means-${kind}` }), name);
  const names = [named("kept", t("scores held")), named("added", t("with m, ℓ, o"))];
  const { node, values } = facts([...names, t("whole matrix")]);
  const most = length ** 2 + 3 * length;
  const bar = h("div", { class: "af-holds", style: `--whole: ${length ** 2 / most}` }, h("i"));
  const whole = h("div", { class: "af-holding" }, node, bar);
  /** Show that a tile is held, or nothing where its side is 0. */
  const draw = (tile) => {
    const [scores, all] = [tile * tile, tile * tile + 3 * tile];
    [
      [scores, t`scores held now: ${scores}`],
      [
        all,
        tile === 1
          ? t`with m, ℓ and o of 1 row, ${all} numbers are held`
          : t`with m, ℓ and o of ${tile} rows, ${all} numbers are held`,
      ],
      [length * length, t`the whole matrix holds ${length * length} scores`],
    ].forEach(([number, reading], i) => {
      write(values[i], String(number));
      say(values[i], `held ${i}`, number, reading);
    });
    bar.style.setProperty("--scores", scores / most);
    bar.style.setProperty("--all", all / most);
  };
  return { node: whole, draw };
}

/** A number of bytes in the largest unit that leaves it at least 1. */
function inBytes(number) {
  const power = Math.min(3, Math.floor(Math.log2(number) / 10));
  return `${number / 1024 ** power} ${[t("bytes"), "KiB", "MiB", "GiB"][power]}`;
}

/** The areas of a whole matrix and of one tile, to scale; where the tile is too small to be seen, a
 * lens enlarges the corner of the matrix that it is in. */
function areasToScale() {
  const rect = (kind, x = 0) => h("svg:rect", { class: kind, x, y: 0 });
  const [small, corner] = [rect("af-square af-part"), rect("af-corner")];
  const pointer = h("svg:path", { class: "af-guide" });
  const [left, side] = [AREA + 34, 84]; // of the lens
  const [glass, seen] = [rect("af-lens", left), rect("af-square af-enlarged", left)];
  for (const name of ["width", "height"]) {
    put(corner, name, side / ZOOM);
    put(glass, name, side);
  }
  const rays = `M${side / ZOOM},0H${left}M${side / ZOOM},${side / ZOOM}L${left},${side}`;
  const lens = h(
    "svg:g",
    {},
    h("svg:path", { class: "af-guide", d: rays }),
    glass,
    seen,
    h("svg:text", { x: left, y: side + 16 }, t`corner × ${ZOOM}`),
  );
  const label = h("svg:text", {}, t("a tile"));
  const node = h(
    "svg:svg",
    { class: "af-plot af-areas", viewBox: "-1 -1 234 114", "aria-hidden": "true" },
    h("svg:rect", { class: "af-whole", width: AREA, height: AREA }),
    ...[small, corner, lens, pointer, label],
  );
  const draw = (share) => {
    const width = AREA * Math.sqrt(share);
    const enlarged = ZOOM * width;
    const isSmall = enlarged < side;
    for (const part of [corner, lens]) part.toggleAttribute("hidden", !isSmall);
    pointer.toggleAttribute("hidden", isSmall);
    for (const name of ["width", "height"]) {
      put(small, name, width);
      put(seen, name, enlarged);
    }
    put(pointer, "d", `M${width + 3},${(width + 3) / 5}L${AREA + 14},24`);
    put(label, "x", isSmall ? left + enlarged + 5 : AREA + 18);
    put(label, "y", isSmall ? Math.max(14, enlarged / 2 + 4) : 30);
  };
  return { node, draw };
}

/** What one head takes at a real length; its slider goes into `slider`. */
function realLengths(memory) {
  const side = `${memory.tile} × ${memory.tile}`;
  const areas = areasToScale();
  const { node, values } = facts([
    t("the whole matrix, n × n scores:"),
    t`one tile of ${side}, with m, ℓ and o:`,
  ]);
  const ratio = h("p", {});
  const slider = h("div", {});
  const notes = t`Areas are to scale. Each number takes ${memory.bytes} bytes. Each of the tile's ${memory.tile} queries has an m, an ℓ and the ${memory.value_size} numbers of its o. Queries, keys, values and output are not counted, because both ways need them. A GPU works on many tiles at the same time.`;
  const whole = h(
    "details",
    { class: "af-inside" },
    h("summary", {}, t("Memory at real lengths, for one head")),
    slider,
    h("div", { class: "af-beside" }, areas.node, node),
    ratio,
    h("p", { class: "af-small-print" }, notes),
  );
  /** Returns the sentence that compares the two. */
  const draw = (n) => {
    const [, matrix, tile] = memory.at.find(([each]) => each === n);
    [
      [matrix, t`all scores of one head: ${inBytes(matrix)}`],
      [tile, t`one tile of ${side} with m, ℓ and o: ${inBytes(tile)}`],
    ].forEach(([bytes, reading], i) => {
      write(values[i], inBytes(bytes));
      say(values[i], `memory ${i}`, bytes, reading);
    });
    const times = Number((matrix / tile).toPrecision(3)).toLocaleString("en");
    const at = n.toLocaleString("en");
    write(ratio, phrase("memory", at, inBytes(matrix), times, inBytes(tile)));
    areas.draw(tile / matrix);
    return ratio.textContent;
  };
  return { node: whole, slider, draw };
}

/** Whether some row's sum becomes smaller with a tile of some size: the reader's own may not. */
function canShrink({ scores, values, tiles }) {
  return tiles.some((tile) =>
    scores.some((row) =>
      row.some((_, i) => {
        const { l, before } = online(row, values, i + 1, tile);
        return (i + 1) % tile === 0 && l < before;
      }),
    ),
  );
}

function tilingFrame({ model, el }, finished) {
  const { tiles } = model.get("data");
  const opened = model.get("tile");
  let isFound = false; // the sum that is pointed at has become smaller
  const figure = frame(
    { model, el },
    {
      question: t("Make the tiles smaller. What happens to the outputs at the end?"),
      answers: [t("they become less exact"), t("they stay the same"), t("they become 0")],
      right: 1,
      because: t(
        "When a larger score comes, ℓ and o are multiplied by exp(old m − new m). Nothing is approximated: only the memory in use changes.",
      ),
      seen: () => finished() && (model.get("tile") < opened || opened === tiles[0]),
      toSee: t("make the tiles smaller and read all of them"),
      challenge: canShrink(model.get("data"))
        ? {
            task: hovers
              ? t("stop at a tile with which a row's sum ℓ becomes smaller, and point at that sum")
              : t("stop at a tile with which a row's sum ℓ becomes smaller, and tap that sum"),
            met: () => isFound,
          }
        : null,
      pointed: (mark) => {
        isFound = Boolean(mark?.classList.contains("af-smaller"));
        if (isFound) figure.redraw();
      },
    },
  );
  return figure;
}

export default {
  render({ model, el }) {
    const { scores, values, tiles, memory } = model.get("data");
    const length = scores.length;
    const strips = () => length / model.get("tile"); // tiles next to each other
    const figure = tilingFrame({ model, el }, () => model.get("step") === strips() ** 2);
    figure.form.classList.add("af-tiling");
    figure.choice({
      name: "tile",
      options: tiles.map((tile) => [tile, `${tile} × ${tile}`]),
      change: (tile) => {
        const last = (length / tile) ** 2;
        if (model.get("step") > last) figure.set("step", last);
        figure.set("tile", tile);
      },
    });
    figure.slider({
      name: "step",
      play: true,
      text: (step) => t`${step} of ${strips() ** 2}`,
    });
    const [table, held, real] = [
      scoresTable({ scores, values }),
      memoryHeld(length),
      realLengths(memory),
    ];
    figure.slider({
      name: "n",
      text: (n) => n.toLocaleString("en"),
      into: real.slider,
    });
    figure.stage.append(table.node, legend(), held.node);
    figure.below.append(real.node);

    let told = model.get("n");
    return figure.open(() => {
      const [tile, step, n] = ["tile", "step", "n"].map((name) => model.get(name));
      table.draw(step, tile);
      held.draw(step > 0 ? tile : 0);
      const sentence = real.draw(n);
      if (n !== told) figure.announce("memory", sentence);
      told = n;
      if (step === 0) return phrase("nothing read", tile, tile, strips() ** 2);
      const exact = Math.floor(step / strips()) * tile;
      const scoresHeld = [tile * tile, length * length];
      return phrase("read", tile, tile, step, strips() ** 2, ...scoresHeld, exact, length);
    });
  },
};
