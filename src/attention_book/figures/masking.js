// Chapter 3: a slider per length sets how many keys are valid; the way to mask is a choice.

export default {
  render({ model, el }) {
    const { tokens: given } = model.get("data");
    const tokens = given.map((token) => token.replace(/^key (\d+)$/, (_, n) => t`key ${n}`));
    const start = model.get("scores");
    const [queries, keys] = [start[0].length, start[0][0].length];
    const perQuery = () => Array.isArray(model.get("valid_lens")[0]);
    const length = (b, q) =>
      perQuery() ? model.get("valid_lens")[b][q] : model.get("valid_lens")[b];

    const weigh = (row, allowed, fill) => {
      if (fill === "-inf") return softmax(row, allowed);
      if (fill === "after") return softmax(row).map((weight, k) => (allowed[k] ? weight : 0));
      return softmax(row.map((score, k) => (allowed[k] ? score : Number(fill))));
    };
    const SAME = 1e-9; // weights that differ by less are drawn as equal
    const isCompared = () => model.get("compare") !== "none";
    /** Every row of every example: its scores, which keys are allowed, and its weights; those of the
     * second fill are the same while there is none. */
    const rowsNow = () =>
      model.get("scores").flatMap((rows, b) =>
        rows.map((row, q) => {
          const allowed = row.map((_, k) => k < length(b, q));
          const [weights, others] = [
            model.get("fill"),
            isCompared() ? model.get("compare") : model.get("fill"),
          ].map((fill) => weigh(row, allowed, fill));
          return { b, q, row, allowed, weights, others };
        }),
      );
    const leaks = ({ allowed, weights }, seen = weights) =>
      seen.filter((weight, k) => !allowed[k] && weight !== 0);

    const figure = frame(
      { model, el },
      {
        traits: ["valid_lens", "fill", "compare", "scores"],
        question: t(
          "Only some keys are valid. Suppose the softmax runs over all of them, and the weights of the masked keys are set to 0 afterwards. What does a row sum to?",
        ),
        answers: ["1", t("less than 1"), t("more than 1")],
        right: 1,
        because: t(
          "The softmax has already given a share to the masked keys; setting it to 0 throws that share away. Masking before the softmax, with −∞, keeps the sum at 1.",
        ),
        seen: () =>
          [model.get("fill"), model.get("compare")].includes("after") &&
          rowsNow().some(({ allowed }) => allowed.includes(false)),
        toSee: t("choose “weight 0 after the softmax”, with a length below its end"),
        challenge: {
          task: t("find a state in which a masked key keeps a weight"),
          met: () => rowsNow().some((row) => leaks(row).length + leaks(row, row.others).length > 0),
        },
      },
    );
    figure.choice({
      label: t("Valid lengths:"),
      name: "mode",
      options: [
        ["one", t("one per example (batch)")],
        ["each", t("one per query (batch, queries)")],
      ],
      get: () => (perQuery() ? "each" : "one"),
      change: (mode) => {
        const lens = model.get("valid_lens");
        if (mode === "each" && !perQuery())
          figure.set(
            "valid_lens",
            lens.map((n) => Array(queries).fill(n)),
          );
        if (mode === "one" && perQuery())
          figure.set(
            "valid_lens",
            lens.map((row) => row[0]),
          );
      },
    });
    figure.choice({
      label: t("Masked keys:"),
      name: "fill",
      options: [
        ["-inf", t("score −∞")],
        ["-1e6", t("score −10⁶")],
        ["1e-6", t("score 10⁻⁶ (a mistake)")],
        ["after", t("weight 0 after the softmax")],
      ],
    });
    const named = {
      "-inf": t("score −∞"),
      "-1e6": t("score −10⁶"),
      "1e-6": t("score 10⁻⁶"),
      after: t("weight 0 after the softmax"),
    };
    figure.choice({
      label: t("Compare with:"),
      name: "compare",
      options: [["none", t("nothing")], ...Object.entries(named)],
    });
    const isLength = (n) => Number.isInteger(n) && n >= 0 && n <= keys;
    const isList = (list, size, check) =>
      Array.isArray(list) && list.length === size && list.every(check);
    figure.accept(
      "valid_lens",
      (lens) =>
        isList(lens, start.length, isLength) ||
        isList(lens, start.length, (row) => isList(row, queries, isLength)),
    );
    figure.accept("scores", (scores) =>
      isList(scores, start.length, (rows) =>
        isList(rows, queries, (row) => isList(row, keys, isTyped)),
      ),
    );

    const names = range(queries).map((q) => t`query ${q + 1}`);
    const [before, after, second] = [[], [], []];
    start.forEach((rows, b) => {
      const stops = range(keys + 1);
      const text = (n) => t`${n} of ${keys} keys`;
      const change = (q) => (n) =>
        figure.set(
          "valid_lens",
          model.get("valid_lens").map((old, i) => {
            if (i !== b) return old;
            return q === null ? n : old.map((m, j) => (j === q ? n : m));
          }),
        );
      figure.slider({
        label: t`example ${b + 1}`,
        stops,
        text,
        hidden: perQuery,
        get: () => length(b, 0),
        change: change(null),
      });
      rows.forEach((_, q) =>
        figure.slider({
          label: t`example ${b + 1}, query ${q + 1}`,
          stops,
          text,
          hidden: () => !perQuery(),
          get: () => length(b, q),
          change: change(q),
        }),
      );
      const table = (title, extra) =>
        grid({ title, rows: names, columns: tokens, dims: ["queries", "keys"], extra });
      before.push(table(t`Scores, example ${b + 1}`));
      after.push(table(t`Weights, example ${b + 1}`, [t("sum")]));
      second.push(table(t`Compared, example ${b + 1}`, [t("sum")]));
      figure.edit(before[b].cells, (q, k, number) => {
        const scores = structuredClone(model.get("scores"));
        scores[b][q][k] = number;
        figure.set("scores", scores);
      });
      figure.stage.append(
        h(
          "div",
          { class: "af-row" },
          before[b].node,
          h("div", { class: "af-pair" }, after[b].node, second[b].node),
        ),
      );
    });

    /** Write one row of weights and its sum into a table; `differs` says which are not the first's. */
    const writeRow = (table, stem, { b, q, allowed }, weights, differs = () => false) => {
      weights.forEach((weight, k) => {
        const cell = table.cells[q][k];
        const leak = !allowed[k] && weight !== 0;
        fill(cell, {
          key: `${stem}weight ${b} ${q} ${k}`,
          value: weight,
          text: show(weight, 3),
          reading: inList([
            t`example ${b + 1}, query ${q + 1}, ${tokens[k]}: weight ${show(weight, 6)}`,
            !allowed[k] && t("masked"),
            leak && t("a leak: it should be 0"),
            differs(k) && t("differs from the first fill"),
          ]),
          shade: weight,
          off: !allowed[k],
        });
        cell.classList.toggle("af-leak", leak);
        cell.classList.toggle("af-differs", differs(k));
      });
      const total = sum(weights);
      const cell = table.cells[q][keys];
      const lost = sum(weights.filter((_, k) => !allowed[k]));
      fill(cell, {
        key: `${stem}sum ${b} ${q}`,
        value: total,
        text: show(total, 3),
        reading: t`example ${b + 1}, query ${q + 1}: the weights sum to ${show(total, 6)}, of which ${show(lost, 6)} on masked keys`,
      });
      cell.classList.toggle("af-wrong", Math.abs(total - 1) > 1e-9 && length(b, q) > 0);
    };
    const upTo = (number) => (number < 0.001 ? t("less than 0.001") : t`up to ${show(number, 3)}`);
    /** What the second fill changes, in one sentence. */
    const compared = (all) => {
      const gaps = all.flatMap(({ b, q, weights, others }) =>
        weights.map((weight, k) => ({ b, q, k, gap: Math.abs(others[k] - weight) })),
      );
      const most = Math.max(...gaps.map(({ gap }) => gap));
      const name = named[model.get("compare")];
      if (most <= SAME) return t`With ${name}, all weights are the same.`;
      const { b, q, k } = gaps.find(({ gap }) => gap > most - SAME);
      const count = gaps.filter(({ gap }) => gap > SAME).length;
      return t`With ${name}, ${count} of ${gaps.length} weights differ, by ${upTo(most)} (example ${b + 1}, query ${q + 1}, ${tokens[k]}).`;
    };

    return figure.open(() => {
      const all = rowsNow();
      second.forEach((table, b) => {
        table.node.hidden = !isCompared();
        const name = named[model.get("compare")];
        const title = t`Weights with ${name}, example ${b + 1}`;
        write(table.node.querySelector(".af-title").firstChild, title);
        put(table.node.querySelector(".af-grid"), "aria-label", title);
      });
      for (const now of all) {
        const { b, q, row, allowed, weights, others } = now;
        row.forEach((score, k) =>
          fill(before[b].cells[q][k], {
            key: `score ${b} ${q} ${k}`,
            value: score,
            text: show(score, 1),
            reading: inList([
              t`example ${b + 1}, query ${q + 1}, ${tokens[k]}: score ${show(score, 3)}`,
              !allowed[k] && t("masked"),
            ]),
            off: !allowed[k],
          }),
        );
        writeRow(after[b], "", now, weights);
        const differs = (k) => Math.abs(others[k] - weights[k]) > SAME;
        writeRow(second[b], "other ", now, others, differs);
      }
      const sums = all.map(({ weights }) => sum(weights));
      const [low, high] = [show(Math.min(...sums), 3), show(Math.max(...sums), 3)];
      const kept = Math.max(0, ...all.flatMap((row) => leaks(row)));
      const rowSums = low === high ? low : t`numbers from ${low} to ${high}`;
      let sentence = t`Rows sum to ${rowSums}; masked keys keep ${upTo(kept)}, which is a leak.`;
      if (all.every(({ allowed }) => allowed.every(Boolean)))
        sentence = t`Rows sum to ${rowSums}; no key is masked.`;
      else if (kept === 0) sentence = t`Rows sum to ${rowSums}; masked keys get 0.`;
      return together(sentence, isCompared() && compared(all));
    });
  },
};
