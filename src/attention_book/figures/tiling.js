// Chapter 10: read the scores tile by tile; m, l and o carry each row across.

const AREA = 112; // the side of the whole matrix, where areas are memory
const ZOOM = 24; // how much the lens enlarges a corner of the matrix where a tile is too small to see

/** Squares next to and below each other as one path, `side` apart, from `left` on. */
function squares(columns, rows, side, left = 0) {
  const edge = side - Math.max(1, side / 8);
  const one = (r, c) => `M${left + c * side},${r * side}h${edge}v${edge}h${-edge}z`;
  return range(rows)
    .flatMap((r) => range(columns).map((c) => one(r, c)))
    .join("");
}

/** Where the columns of the table stand: scores next to each other, wider what is carried along. */
function places(columns, carried, side) {
  const [wide, gap] = [52, 14];
  const left = (c) => (c < columns ? c * side : columns * side + gap + (c - columns) * wide);
  const width = (c) => (c < columns ? side : wide);
  return { left, width, end: left(columns + carried) };
}

const middled = (x, y, text = "", more = {}) =>
  h("svg:text", { x, y, "text-anchor": "middle", ...more }, text);

/** The cells of the table, each a rectangle with a number. */
function cellsOf(rows, columns, side, { left, width }) {
  return range(rows).map((r) =>
    range(columns).map((c) => {
      const box = { x: left(c), y: r * side, width: width(c) - 1, height: side - 1 };
      const rect = h("svg:rect", { class: "af-square", ...box });
      const number = middled(left(c) + width(c) / 2, (r + 0.5) * side + 5);
      return { rect, number, cell: mark(h("svg:g", {}, rect, number), r, c, "gridcell") };
    }),
  );
}

/**
 * The scores, and right of each row what it carries along: m, l, o / l and the last factor. `write`
 * draws a cell, `outline` puts the frame around the tile, `flash` shows that a row is rescaled.
 */
function drawTable(rows, columns, side) {
  const words = [...columns, "m", "l", "o / l", t("factor")];
  const at = places(columns.length, words.length - columns.length, side);
  const { left, width, end } = at;
  const parts = cellsOf(rows.length, words.length, side, at);
  const aside = { x: left(columns.length), width: end - left(columns.length) };
  const flashes = rows.map((_, r) =>
    h("svg:rect", { class: "af-flash", ...aside, y: r * side, height: side - 1 }),
  );
  const border = h("svg:rect", { class: "af-cursor" });
  const heads = words.map((word, c) =>
    side < 20 && c < columns.length ? "" : middled(left(c) + width(c) / 2, -6, word),
  );
  const sides = rows.map((word, r) => middled(-16, (r + 0.5) * side + 5, word));
  const lines = parts.map((row) => h("svg:g", { role: "row" }, ...row.map(({ cell }) => cell)));
  const name = t("scores, and what is carried along");
  const node = h(
    "svg:svg",
    {
      class: "af-plot af-tiled",
      viewBox: `-34 -22 ${end + 36} ${rows.length * side + 24}`,
      style: `--plot-width: ${end + 36}px`,
    },
    h("svg:g", { "aria-hidden": "true" }, ...heads, ...sides),
    h("svg:g", { "data-marks": "", role: "grid", "aria-label": name }, ...lines),
    ...flashes,
    border,
  );
  return {
    node,
    cells: parts.map((row) => row.map(({ cell }) => cell)),
    write(r, c, { text, shade = 0, off, inside = false, gone = false, warm = false }) {
      const { rect, number, cell } = parts[r][c];
      write(number, text);
      put(rect, "fill-opacity", Math.abs(shade).toFixed(3));
      rect.classList.toggle("af-below", shade < 0);
      cell.classList.toggle("af-unread", off);
      cell.classList.toggle("af-held", inside);
      cell.classList.toggle("af-forgotten", gone);
      cell.classList.toggle("af-rescaled", warm);
    },
    outline(place, tile) {
      border.toggleAttribute("hidden", !place);
      const [column, row] = place ?? [0, 0];
      put(border, "x", column * tile * side);
      put(border, "y", row * tile * side);
      put(border, "width", tile * side - 1);
      put(border, "height", tile * side - 1);
    },
    flash(r) {
      if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
      flashes[r].animate([{ fillOpacity: 0.7 }, { fillOpacity: 0 }], 900);
    },
  };
}

/** One row after its first `seen` scores, `tile` at a time: the numbers carried along, and what
 * those from before the last tile were multiplied with. */
function online(row, values, seen, tile) {
  let [m, l, o, factor] = [-Infinity, 0, 0, 0];
  for (let from = 0; from < seen; from += tile) {
    const part = row.slice(from, from + tile);
    const next = Math.max(m, ...part);
    factor = Math.exp(m - next); // what was summed before shrinks to the new maximum
    const powers = part.map((s) => Math.exp(s - next));
    const grown = l * factor + sum(powers);
    o = (o * l * factor + dot(powers, values.slice(from, from + tile))) / grown;
    [m, l] = [next, grown];
  }
  return [m, l, o, factor];
}

/** What is read of a number that a row carries along. */
function carriedReading(i, name, number) {
  return [
    t`${name}: m, the largest score so far, is ${number}`,
    t`${name}: l, the sum so far, is ${number}`,
    t`${name}: o / l, the output so far, is ${number}`,
    t`${name}: with the last tile, l and o were multiplied by exp(old m − new m) = ${number}`,
  ][i];
}

/** The scores and what each row carries along; `draw` writes the rows that a step changes. */
function scoresTable({ scores, values }) {
  const length = scores.length;
  const rows = scores.map((_, i) => `q${i + 1}`);
  const columns = scores.map((_, i) => `k${i + 1}`);
  const table = drawTable(rows, columns, (272 / length) | 0);
  const largest = Math.max(...scores.flat().map(Math.abs)) || 1;
  const drawScores = (r, { seen, from, tile }) => {
    const name = rows[r];
    columns.forEach((column, c) => {
      const inside = c >= from && c < from + tile;
      const gone = c < seen && !inside;
      const number = show(scores[r][c], length <= 8 ? 1 : 2);
      let reading = t`${name}, ${column}: score ${number}, not read yet`;
      if (inside) reading = t`${name}, ${column}: score ${number}, held now`;
      else if (gone)
        reading = t`${name}, ${column}: score ${number}, read before and no longer in memory`;
      const text = length <= 8 && !gone ? number : "";
      const shade = inside ? scores[r][c] / largest : 0;
      table.write(r, c, { text, shade, off: c >= seen, inside, gone });
      say(table.cells[r][c], `score ${r} ${c}`, scores[r][c], reading);
    });
  };
  const drawCarried = (r, { seen, tile, isDone }) => {
    online(scores[r], values, seen, tile).forEach((number, i) => {
      const known = i < 3 ? seen > 0 : seen > tile;
      const warm = i === 3 && known && number < 1 && !isDone;
      const text = known ? show(number, 2) : "";
      table.write(r, length + i, { text, off: !known, warm, gone: isDone && i !== 2 });
      let reading = t`${rows[r]}: nothing read yet`;
      if (known) reading = carriedReading(i, rows[r], show(number, 2));
      else if (i === 3) reading = t`${rows[r]}: nothing was carried along before the first tile`;
      if (isDone && i === 2) reading = t`${reading}; the row is done, and this is written out`;
      else if (isDone) reading = t`${reading}; the row is done, and this is no longer in memory`;
      say(table.cells[r][length + i], `${["m", "l", "o", "factor"][i]} ${r}`, number, reading);
    });
  };
  const drawn = rows.map(() => ""); // what each row shows, to draw only what changes
  let before = -1;
  const draw = (step, tile) => {
    const strips = length / tile;
    const [strip, across] = [Math.floor((step - 1) / strips), (step - 1) % strips];
    rows.forEach((_, r) => {
      const own = Math.floor(r / tile);
      const reads = step > 0 && own === strip;
      const seen = reads ? (across + 1) * tile : own < strip ? length : 0;
      const state = { seen, from: reads ? across * tile : length, tile, isDone: own < strip };
      if (drawn[r] === JSON.stringify(state)) return;
      drawn[r] = JSON.stringify(state);
      drawScores(r, state);
      drawCarried(r, state);
      const isRescaled = table.cells[r].at(-1).classList.contains("af-rescaled");
      if (reads && step === before + 1 && isRescaled) table.flash(r);
    });
    before = step;
    table.outline(step > 0 ? [across, strip] : null, tile);
  };
  return { node: table.node, draw };
}

/** How many numbers are held at once, as boxes to be counted. */
function memoryHeld(length) {
  const side = 112 / length;
  const all = h("svg:path", { class: "af-boxes", d: squares(length, length, side) });
  const filled = h("svg:path", { class: "af-boxes af-filled" });
  const picture = h(
    "svg:svg",
    { class: "af-plot af-meter", viewBox: "-1 -1 174 114", "aria-hidden": "true" },
    all,
    filled,
  );
  const { node, values } = facts([
    t("scores held at once:"),
    t("with m, l and o:"),
    t("scores of the whole matrix:"),
  ]);
  /** Show that a tile is held, or nothing where its side is 0. */
  const draw = (tile) => {
    put(filled, "d", squares(tile, tile, side) + squares(3, tile, side, 112 + 2 * side));
    const [scores, all] = [tile * tile, tile * tile + 3 * tile];
    [
      [scores, t`scores held now: ${scores}`],
      [
        all,
        tile === 1
          ? t`with m, l and o of 1 row, ${all} numbers are held`
          : t`with m, l and o of ${tile} rows, ${all} numbers are held`,
      ],
      [length * length, t`the whole matrix holds ${length * length} scores`],
    ].forEach(([number, reading], i) => {
      write(values[i], number === 1 ? t("1 number") : t`${number} numbers`);
      say(values[i], `held ${i}`, number, reading);
    });
  };
  return {
    node: panel(t("In memory at once"), h("div", { class: "af-beside" }, picture, node)),
    draw,
  };
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
    t`one tile of ${side}, with m, l and o:`,
  ]);
  const ratio = h("p", {});
  const slider = h("div", {});
  const notes = t`Areas are to scale. Each number takes ${memory.bytes} bytes. Each of the tile's ${memory.tile} queries has an m, an l and the ${memory.value_size} numbers of its o. Queries, keys, values and output are not counted, because both ways need them. A GPU works on many tiles at the same time.`;
  const whole = panel(
    t("At real lengths, for one head"),
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
      [tile, t`one tile of ${side} with m, l and o: ${inBytes(tile)}`],
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

function tilingFrame({ model, el }, finished) {
  const { tiles } = model.get("data");
  const opened = model.get("tile");
  return frame(
    { model, el },
    {
      question: t("Make the tiles smaller. What happens to the outputs at the end?"),
      answers: [t("they become less exact"), t("they stay the same"), t("they become 0")],
      right: 1,
      because: t(
        "When a larger score comes, the sums so far are multiplied by exp(old m − new m). Nothing is approximated: each tile size gives the exact softmax, and only the memory in use changes.",
      ),
      seen: () => finished() && (model.get("tile") < opened || opened === tiles[0]),
      toSee: t("make the tiles smaller and read all of them"),
      challenge: {
        task: t("read every tile while holding no more than 4 scores at a time"),
        met: () => finished() && model.get("tile") ** 2 <= 4,
      },
    },
  );
}

export default {
  render({ model, el }) {
    const { scores, values, tiles, memory } = model.get("data");
    const length = scores.length;
    const strips = () => length / model.get("tile"); // tiles next to each other
    const figure = tilingFrame({ model, el }, () => model.get("step") === strips() ** 2);
    figure.slider({
      name: "tile",
      text: (tile) => t`${tile} × ${tile} scores`,
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
    figure.stage.append(table.node);
    figure.below.append(h("div", { class: "af-row" }, held.node, real.node));

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
