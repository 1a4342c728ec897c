// Chapter 3: a slider a row sets how many keys are valid; the mask value is a choice.

export default {
  render({ model, el }) {
    const { scores, tokens } = model.get("data");
    const [queries, keys] = [scores[0].length, scores[0][0].length];
    const perQuery = () => Array.isArray(model.get("valid_lens")[0]);
    const length = (b, q) => (perQuery() ? model.get("valid_lens")[b][q] : model.get("valid_lens")[b]);

    const weigh = (row, allowed) => {
      const fill = model.get("fill");
      if (fill === "-inf") return softmax(row, allowed);
      if (fill === "after") return softmax(row).map((weight, k) => (allowed[k] ? weight : 0));
      return softmax(row.map((score, k) => (allowed[k] ? score : Number(fill))));
    };

    const draw = () => scores.forEach((rows, b) => rows.forEach((row, q) => {
      const allowed = row.map((_, k) => k < length(b, q));
      const weights = weigh(row, allowed);
      const place = `example ${b + 1}, query ${q + 1}`;
      row.forEach((score, k) => {
        const masked = allowed[k] ? "" : ", masked";
        fill(before[b].cells[q][k], { key: `score ${b} ${q} ${k}`, value: score, text: show(score, 1),
          reading: `${place}, ${tokens[k]}: score ${show(score, 3)}${masked}`, off: !allowed[k] });
        fill(after[b].cells[q][k], { key: `weight ${b} ${q} ${k}`, value: weights[k], text: show(weights[k], 3),
          reading: `${place}, ${tokens[k]}: weight ${show(weights[k], 6)}${masked}`, shade: weights[k], off: !allowed[k] });
      });
      const total = sum(weights);
      const cell = after[b].cells[q][keys];
      fill(cell, { key: `sum ${b} ${q}`, value: total, text: show(total, 3),
        reading: `${place}: the weights sum to ${show(total, 6)}, of which ${show(sum(weights.filter((_, k) => !allowed[k])), 6)} on masked keys` });
      cell.classList.toggle("af-wrong", Math.abs(total - 1) > 1e-9 && length(b, q) > 0);
    }));

    const figure = frame({ model, el }, {
      traits: ["valid_lens", "fill"],
      question: "Only some keys are valid. Suppose the softmax runs over all of them, and the weights of the masked keys are set to 0 afterwards. What does a row sum to?",
      answers: ["1", "less than 1", "more than 1"],
      right: 1,
      because: "The softmax has already given a share to the masked keys; setting it to 0 throws that share away. Masking before the softmax, with −∞, keeps the sum at 1.",
      draw,
    });

    figure.choice({ label: "Valid lengths:", name: "mode", options: [["one", "one an example (batch)"], ["each", "one a query (batch, queries)"]],
      get: () => (perQuery() ? "each" : "one"),
      change: (mode) => {
        const lens = model.get("valid_lens");
        if (mode === "each" && !perQuery()) figure.set("valid_lens", lens.map((n) => Array(queries).fill(n)));
        if (mode === "one" && perQuery()) figure.set("valid_lens", lens.map((row) => row[0]));
      } });
    figure.choice({ label: "Masked keys:", name: "fill", options: [
      ["-inf", "score −∞"], ["-1e6", "score −10⁶"], ["1e-6", "score 10⁻⁶ (a slip)"], ["after", "weight 0 after the softmax"]] });

    const before = [];
    const after = [];
    scores.forEach((rows, b) => {
      const stops = range(keys + 1);
      const text = (n) => `${n} of ${keys} keys`;
      const change = (b, q) => (n) => figure.set("valid_lens", model.get("valid_lens").map((old, i) => {
        if (i !== b) return old;
        return q === null ? n : old.map((m, j) => (j === q ? n : m));
      }));
      figure.slider({ label: `example ${b + 1}`, stops, text, hidden: perQuery, get: () => length(b, 0), change: change(b, null) });
      rows.forEach((_, q) => figure.slider({ label: `example ${b + 1}, query ${q + 1}`, stops, text,
        hidden: () => !perQuery(), get: () => length(b, q), change: change(b, q) }));
      const names = range(queries).map((q) => `query ${q + 1}`);
      before.push(grid({ title: `Scores, example ${b + 1}`, rows: names, columns: tokens, dims: ["queries", "keys"] }));
      after.push(grid({ title: `Weights, example ${b + 1}`, rows: names, columns: tokens, dims: ["queries", "keys"], extra: ["sum"] }));
      figure.stage.append(h("div", { class: "af-row" }, before[b].node, after[b].node));
    });
    return figure.open();
  },
};
