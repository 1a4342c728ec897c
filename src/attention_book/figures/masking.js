// Chapter 3: the words of sentences as columns, an edge behind which keys are masked, and the weights
// as bars that fill what is left. An edge is a slider; each query has one of its own, too. A masked
// score is struck through above what is put in its place; a sum is a bar of length 1.

export default {
  render({ model, el }) {
    const start = model.get("scores");
    const [queries, keys] = [start[0].length, start[0][0].length];
    const given = model.get("data").tokens;
    const { stops, names } = declared.controls.compare;
    const fills = Object.fromEntries(stops.map((fill, i) => [fill, t(names[i])]));
    const lens = lengthsOf(model, queries);
    const rows = rowsOf(model, lens);
    const figure = maskingFrame({ model, el }, rows, { start, queries, keys });
    figure.form.classList.add("af-masks");
    figure.choice({ name: "fill" });
    roomy(figure.choice, figure.menu)({ name: "compare" });
    const examples = start.map((_, b) => {
      const own = Array.isArray(given[0]) ? given[b] : given;
      const tokens = own.map((token) => t(token).replace(/^key (\d+)$/, (_, n) => t`key ${n}`));
      return exampleOf(figure, { b, queries, keys, tokens, lens });
    });
    examples.forEach((example, b) => {
      figure.edit(example.before.cells, (q, k, number) => {
        const scores = structuredClone(model.get("scores"));
        scores[b][q][k] = number;
        figure.set("scores", scores);
      });
    });
    const tensor = h("span", {});
    const thrown = h("span", { class: "af-thrown" }, t("thrown away"));
    const under = h("p", { class: "af-tensor" }, tensor, thrown);
    // A narrow screen keeps the first example and its controls together.
    const [first, ...others] = examples.map(({ node }) => node);
    const beside = h("div", { class: "af-sentences" }, first, ...roomy(others, []));
    figure.stage.append(beside, under);
    figure.below.append(h("div", { class: "af-sentences" }, ...roomy([], others)));

    return figure.open(() => {
      const all = rows.now();
      const [fill, compared] = [model.get("fill"), model.get("compare")];
      const both = compared === "none" ? null : [fills[fill], fills[compared]];
      examples.forEach((example, b) => {
        example.draw(
          all.filter((row) => row.b === b),
          { instead: INSTEAD[fill], names: both },
        );
      });
      const shape = lens.perQuery() ? t("one per query") : t("one per example");
      const list = JSON.stringify(model.get("valid_lens")).replaceAll(",", ", ");
      write(tensor, roomy(t`valid_lens = ${list}, ${shape}`, `valid_lens = ${list}`));
      thrown.hidden =
        ![fill, compared].includes("after") || !all.some((row) => row.allowed.includes(false));
      const own = all.filter(({ b }) => b === 0);
      return summary(own, rows, examples[0].tokens, fills, [fill, compared]);
    });
  },
};

/** The valid lengths: one number per example where its queries agree everywhere, else lists. */
function lengthsOf(model, queries) {
  const nested = () =>
    model.get("valid_lens").map((n) => (Array.isArray(n) ? [...n] : Array(queries).fill(n)));
  const tidy = (lists) =>
    lists.every((list) => list.every((n) => n === list[0])) ? lists.map((list) => list[0]) : lists;
  return {
    perQuery: () => Array.isArray(model.get("valid_lens")[0]),
    of: (b, q) => nested()[b][q],
    differ: (b) => new Set(nested()[b]).size > 1,
    least: (b) => Math.min(...nested()[b]),
    most: (b) => Math.max(...nested()[b]),
    /** The lengths with those of query `q`, or of each query, of example `b` set to `n`. */
    changed(b, q, n) {
      const lists = nested();
      lists[b] = lists[b].map((old, i) => (q === null || i === q ? n : old));
      return tidy(lists);
    },
  };
}

/** What the softmax gets in place of a masked score. */
const INSTEAD = { "-inf": "−∞", "-1e6": "−10⁶", "1e-6": "10⁻⁶" };

const SAME = 1e-9; // weights that differ by less are drawn as equal

/** Every row of every example: its scores, which keys are allowed, and its weights; those of the
 * second fill are the same while there is none. */
function rowsOf(model, lens) {
  const weigh = (row, allowed, fill) => {
    if (fill === "-inf") return softmax(row, allowed);
    if (fill === "after") return softmax(row).map((weight, k) => (allowed[k] ? weight : 0));
    return softmax(row.map((score, k) => (allowed[k] ? score : Number(fill))));
  };
  /** The share of each key that is set to 0 after the softmax has given it. */
  const lostShare = (row, allowed, fill) =>
    softmax(row).map((weight, k) => (fill === "after" && !allowed[k] ? weight : 0));
  const now = () => {
    const fill = model.get("fill");
    const second = model.get("compare") === "none" ? fill : model.get("compare");
    return model.get("scores").flatMap((rows, b) =>
      rows.map((row, q) => {
        const length = lens.of(b, q);
        const allowed = row.map((_, k) => k < length);
        const [weights, others] = [fill, second].map((one) => weigh(row, allowed, one));
        const [lost, otherLostShare] = [fill, second].map((one) => lostShare(row, allowed, one));
        return { b, q, row, allowed, weights, others, lost, otherLostShare };
      }),
    );
  };
  const leaks = ({ allowed, weights }, seen = weights) =>
    seen.filter((weight, k) => !allowed[k] && weight !== 0);
  return { now, leaks };
}

function maskingFrame({ model, el }, rows, { start, queries, keys }) {
  const figure = frame(
    { model, el },
    {
      question: t(
        "Only some keys are valid. Suppose the softmax runs over all of them, and the weights of the masked keys are set to 0 afterwards. What does a row sum to?",
      ),
      answers: ["1", t("less than 1"), t("more than 1")],
      right: 1,
      because: t(
        "The softmax has already given a share to the masked keys; setting it to 0 throws that share away. Masking before the softmax, with −∞, keeps the sum at 1.",
      ),
      lines: 2,
      seen: () =>
        [model.get("fill"), model.get("compare")].includes("after") &&
        rows.now().some(({ allowed }) => allowed.includes(false)),
      toSee: t("choose “0 afterwards”, with a length below its end"),
      challenge: {
        task: t("find a state in which a masked key keeps a weight"),
        met: () =>
          rows.now().some((row) => rows.leaks(row).length + rows.leaks(row, row.others).length > 0),
      },
    },
  );
  const isLength = (n) => Number.isInteger(n) && n >= 0 && n <= keys;
  const isList = (list, size, check) =>
    Array.isArray(list) && list.length === size && list.every(check);
  figure.accept(
    "valid_lens",
    (lens) =>
      isList(lens, start.length, isLength) ||
      isList(lens, start.length, (row) => isList(row, queries, isLength)),
  );
  return figure;
}

/** The edges of one example's mask: one for all its queries, and each query's own twice. */
function edgesOf(figure, { b, queries, keys, lens }) {
  const edge = (q, label, place = {}) => {
    const into = h("div", { class: "af-edge", ...place });
    figure.slider({
      label,
      into,
      stops: range(keys + 1),
      text: (n) =>
        q === null && lens.differ(b)
          ? t`from ${lens.least(b)} to ${lens.most(b)} of ${keys} keys`
          : t`${n} of ${keys} keys`,
      get: () => lens.of(b, q ?? queries - 1), // below the last row hangs what moves all
      change: (n) => figure.set("valid_lens", lens.changed(b, q, n)),
    });
    return into;
  };
  const own = (pitch) =>
    range(queries).map((q) =>
      edge(q, t`example ${b + 1}, query ${q + 1}`, { style: `--row: ${q}; ${pitch}` }),
    );
  return [edge(null, t`example ${b + 1}`), own("--pitch: 2.4rem"), own("")];
}

/** One example: its words, its scores, its weights as bars, and the edges. */
function exampleOf(figure, { b, queries, keys, tokens, lens }) {
  const names = range(queries).map((q) => t`query ${q + 1}`);
  const table = (title, extra) =>
    grid({ title, rows: names, columns: tokens, dims: ["queries", "keys"], extra });
  const before = table(t`Scores, example ${b + 1}`, []);
  const after = table(t`Weights, example ${b + 1}`, [t("sum")]);
  const second = table(t`Compared, example ${b + 1}`, [t("sum")]);
  const linesOf = ({ node }) => [...node.querySelectorAll(".af-line")];
  for (const part of linesOf(before)) part.append(h("span", { role: "none" })); // under no sum
  // The second fill's row stands right under the first's, so that the cells look split.
  const [, ...below] = linesOf(second);
  linesOf(after)
    .slice(1)
    .forEach((part, q) => {
      below[q].classList.add("af-second");
      part.after(below[q]);
      second.cells[q].forEach((cell, c) => put(cell, "data-at", `${queries + q},${c}`));
    });
  for (const cell of [...after.cells, ...second.cells].flatMap((row) => row.slice(0, keys)))
    cell.classList.add("af-poured");
  const [whole, ofScores, ofWeights] = edgesOf(figure, { b, queries, keys, lens });
  for (const slot of ofScores) {
    put(slot, "aria-hidden", true); // the same edges again: the keyboard has them below
    put(slot.querySelector("input"), "tabindex", -1);
  }
  const scores = h("div", { class: "af-edged" }, before.node, whole, ...ofScores);
  const node = h(
    "div",
    { class: "af-sentence", style: `--keys: ${keys}; --rows: ${queries}` },
    scores,
    h("div", { class: "af-edged" }, after.node, ...ofWeights),
  );

  const draw = (rows, { instead, names: fillNames }) => {
    node.classList.toggle("af-compared", Boolean(fillNames));
    scores.classList.toggle("af-parted", lens.differ(b));
    for (const part of below) part.hidden = !fillNames;
    for (const now of rows) {
      now.row.forEach((score, k) =>
        fill(before.cells[now.q][k], {
          key: `score ${b} ${now.q} ${k}`,
          value: score,
          text: show(score, 1),
          reading: inList([
            t`query ${now.q + 1}, ${tokens[k]}: score ${show(score, 3)}`,
            !now.allowed[k] && (instead ? t`replaced by ${instead}` : t("masked")),
          ]),
          off: !now.allowed[k],
        }),
      );
      now.row.forEach((_, k) => {
        put(before.cells[now.q][k], "data-instead", now.allowed[k] ? null : instead);
      });
      writeRow(after, "", { ...now, tokens });
      const differs = (k) => Math.abs(now.others[k] - now.weights[k]) > SAME;
      const others = { weights: now.others, lost: now.otherLostShare };
      writeRow(second, "other ", { ...now, ...others, tokens }, differs);
      const [first, other] = fillNames ?? [];
      after.sides[now.q].replaceChildren(names[now.q], ...(first ? [h("small", {}, first)] : []));
      if (other) write(second.sides[now.q], other);
    }
  };
  return { node, before, tokens, draw };
}

/** Write one row of weights and its sum; `differs` says which are not the first fill's. */
function writeRow(table, stem, { b, q, allowed, weights, lost, tokens }, differs = () => false) {
  weights.forEach((weight, k) => {
    const cell = table.cells[q][k];
    const leak = !allowed[k] && weight !== 0;
    fill(cell, {
      key: `${stem}weight ${b} ${q} ${k}`,
      value: weight,
      text: show(weight, 3),
      reading: inList([
        t`query ${q + 1}, ${tokens[k]}: weight ${show(weight, 6)}`,
        !allowed[k] && t("masked"),
        leak && t("a leak: it should be 0"),
        lost[k] > 0 && t`the softmax gave it ${show(lost[k], 6)}`,
        differs(k) && t("differs from the first fill"),
      ]),
      shade: weight,
      off: !allowed[k],
    });
    cell.style.setProperty("--lost", lost[k]);
    cell.classList.toggle("af-lost", lost[k] > 0);
    cell.classList.toggle("af-leak", leak);
    cell.classList.toggle("af-differs", differs(k));
  });
  const total = sum(weights);
  const cell = table.cells[q].at(-1);
  const kept = sum(weights.filter((_, k) => !allowed[k]));
  fill(cell, {
    key: `${stem}sum ${b} ${q}`,
    value: total,
    text: show(total, 3),
    reading:
      kept === 0
        ? t`query ${q + 1}: the weights sum to ${show(total, 6)}`
        : t`query ${q + 1}: the weights sum to ${show(total, 6)}, of which ${show(kept, 6)} on masked keys`,
  });
  cell.style.setProperty("--stack", stackOf(weights, allowed));
  cell.classList.toggle("af-wrong", Math.abs(total - 1) > 1e-9 && allowed.includes(true));
}

/** The weights of a row one after another, as the background of a bar of length 1. */
function stackOf(weights, allowed) {
  let end = 0;
  const parts = weights.flatMap((weight, k) => {
    const start = end;
    end += 100 * weight;
    const colour = allowed[k] ? "var(--af-weight)" : "var(--af-warm)";
    const [from, to] = [start, end].map((at) => `${at.toFixed(2)}%`);
    const last = `calc(${to} - 1px)`; // a gap of one pixel before the next
    return [`${colour} ${from} ${last}`, `var(--af-paper) ${last} ${to}`];
  });
  return `linear-gradient(to right, ${parts.join()}, transparent ${end.toFixed(2)}%)`;
}

/** What the rows of the first example sum to, what its masked keys keep, and what the second fill changes. */
function summary(all, { leaks }, tokens, names, [own, compared]) {
  const upTo = (number) => (number < 0.001 ? phrase("little") : phrase("up to", show(number, 3)));
  const totals = all.map(({ weights }) => sum(weights));
  const [low, high] = [show(Math.min(...totals), 3), show(Math.max(...totals), 3)];
  const kept = Math.max(0, ...all.flatMap((row) => leaks(row)));
  const apart =
    all.length === 2
      ? phrase("two", ...totals.map((total) => show(total, 3)))
      : phrase("range", low, high);
  const rowSums = low === high ? low : apart;
  const isEmpty = all.map(({ allowed }) => !allowed.includes(true));
  const isRight = all.every((_, i) => Math.abs(totals[i] - (isEmpty[i] ? 0 : 1)) < SAME);
  let first = phrase("leak", names[own], upTo(kept));
  if (all.every(({ allowed }) => allowed.every(Boolean))) first = phrase("unmasked", rowSums);
  else if (isRight && low !== high) first = phrase("empty rows");
  else if (kept === 0) first = phrase(own === "after" ? own : "masked", names[own], rowSums);
  if (compared === "none") return first;
  const other = names[compared];
  const gaps = all.flatMap(({ q, weights, others }) =>
    weights.map((weight, k) => ({ q, k, gap: Math.abs(others[k] - weight) })),
  );
  const most = Math.max(...gaps.map(({ gap }) => gap));
  if (most <= SAME) return together(first, phrase("same", other));
  const { q, k } = gaps.find(({ gap }) => gap > most - SAME);
  const count = gaps.filter(({ gap }) => gap > SAME).length;
  return together(first, phrase("differ", other, count, gaps.length, upTo(most), q + 1, tokens[k]));
}
