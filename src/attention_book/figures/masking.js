// Chapter 3: a slider per length sets how many keys are valid; the way to mask is a choice.

export default {
  render({ model, el }) {
    const { tokens } = model.get("data");
    const start = model.get("scores");
    const [queries, keys] = [start[0].length, start[0][0].length];
    const perQuery = () => Array.isArray(model.get("valid_lens")[0]);
    const length = (b, q) =>
      perQuery() ? model.get("valid_lens")[b][q] : model.get("valid_lens")[b];

    const weigh = (row, allowed) => {
      const fill = model.get("fill");
      if (fill === "-inf") return softmax(row, allowed);
      if (fill === "after") return softmax(row).map((weight, k) => (allowed[k] ? weight : 0));
      return softmax(row.map((score, k) => (allowed[k] ? score : Number(fill))));
    };
    /** Every row of every example: its scores, which keys are allowed, and its weights. */
    const rowsNow = () =>
      model.get("scores").flatMap((rows, b) =>
        rows.map((row, q) => {
          const allowed = row.map((_, k) => k < length(b, q));
          return { b, q, row, allowed, weights: weigh(row, allowed) };
        }),
      );
    const leaks = ({ allowed, weights }) =>
      weights.filter((weight, k) => !allowed[k] && weight !== 0);

    const figure = frame(
      { model, el },
      {
        traits: ["valid_lens", "fill", "scores"],
        question:
          "Only some keys are valid. Suppose the softmax runs over all of them, and the weights of the masked keys are set to 0 afterwards. What does a row sum to?",
        answers: ["1", "less than 1", "more than 1"],
        right: 1,
        because:
          "The softmax has already given a share to the masked keys; setting it to 0 throws that share away. Masking before the softmax, with −∞, keeps the sum at 1.",
        seen: () =>
          model.get("fill") === "after" && rowsNow().some(({ allowed }) => allowed.includes(false)),
        toSee: "choose “weight 0 after the softmax”, with a length below its end",
        challenge: {
          task: "find a state in which a masked key keeps a weight",
          met: () => rowsNow().some((row) => leaks(row).length > 0),
        },
      },
    );
    figure.choice({
      label: "Valid lengths:",
      name: "mode",
      options: [
        ["one", "one per example (batch)"],
        ["each", "one per query (batch, queries)"],
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
      label: "Masked keys:",
      name: "fill",
      options: [
        ["-inf", "score −∞"],
        ["-1e6", "score −10⁶"],
        ["1e-6", "score 10⁻⁶ (a mistake)"],
        ["after", "weight 0 after the softmax"],
      ],
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

    const names = range(queries).map((q) => `query ${q + 1}`);
    const [before, after] = [[], []];
    start.forEach((rows, b) => {
      const stops = range(keys + 1);
      const text = (n) => `${n} of ${keys} keys`;
      const change = (q) => (n) =>
        figure.set(
          "valid_lens",
          model.get("valid_lens").map((old, i) => {
            if (i !== b) return old;
            return q === null ? n : old.map((m, j) => (j === q ? n : m));
          }),
        );
      figure.slider({
        label: `example ${b + 1}`,
        stops,
        text,
        hidden: perQuery,
        get: () => length(b, 0),
        change: change(null),
      });
      rows.forEach((_, q) =>
        figure.slider({
          label: `example ${b + 1}, query ${q + 1}`,
          stops,
          text,
          hidden: () => !perQuery(),
          get: () => length(b, q),
          change: change(q),
        }),
      );
      before.push(
        grid({
          title: `Scores, example ${b + 1}`,
          rows: names,
          columns: tokens,
          dims: ["queries", "keys"],
        }),
      );
      after.push(
        grid({
          title: `Weights, example ${b + 1}`,
          rows: names,
          columns: tokens,
          dims: ["queries", "keys"],
          extra: ["sum"],
        }),
      );
      figure.edit(before[b].cells, (q, k, number) => {
        const scores = structuredClone(model.get("scores"));
        scores[b][q][k] = number;
        figure.set("scores", scores);
      });
      figure.stage.append(h("div", { class: "af-row" }, before[b].node, after[b].node));
    });

    return figure.open(() => {
      const all = rowsNow();
      for (const { b, q, row, allowed, weights } of all) {
        const place = `example ${b + 1}, query ${q + 1}`;
        row.forEach((score, k) => {
          const masked = allowed[k] ? "" : ", masked";
          const leak = !allowed[k] && weights[k] !== 0;
          fill(before[b].cells[q][k], {
            key: `score ${b} ${q} ${k}`,
            value: score,
            text: show(score, 1),
            reading: `${place}, ${tokens[k]}: score ${show(score, 3)}${masked}`,
            off: !allowed[k],
          });
          fill(after[b].cells[q][k], {
            key: `weight ${b} ${q} ${k}`,
            value: weights[k],
            text: show(weights[k], 3),
            reading: `${place}, ${tokens[k]}: weight ${show(weights[k], 6)}${masked}${leak ? ", a leak: it should be 0" : ""}`,
            shade: weights[k],
            off: !allowed[k],
          });
          after[b].cells[q][k].classList.toggle("af-leak", leak);
        });
        const total = sum(weights);
        const cell = after[b].cells[q][keys];
        const lost = sum(weights.filter((_, k) => !allowed[k]));
        fill(cell, {
          key: `sum ${b} ${q}`,
          value: total,
          text: show(total, 3),
          reading: `${place}: the weights sum to ${show(total, 6)}, of which ${show(lost, 6)} on masked keys`,
        });
        cell.classList.toggle("af-wrong", Math.abs(total - 1) > 1e-9 && length(b, q) > 0);
      }
      const sums = all.map(({ weights }) => sum(weights));
      const [low, high] = [show(Math.min(...sums), 3), show(Math.max(...sums), 3)];
      const kept = Math.max(0, ...all.flatMap(leaks));
      const most = kept < 0.001 ? "less than 0.001" : `up to ${show(kept, 3)}`;
      let leak = kept === 0 ? "masked keys get 0" : `masked keys keep ${most}, which is a leak`;
      if (all.every(({ allowed }) => allowed.every(Boolean))) leak = "no key is masked";
      return `Rows sum to ${low === high ? low : `numbers from ${low} to ${high}`}; ${leak}.`;
    });
  },
};
