// Chapter 4: point at an entry of Q·Kᵀ; its row and its column light up and the sum is written out.

export default {
  render({ model, el }) {
    const start = { queries: model.get("Q"), keys: model.get("K") };
    const [rows, columns, size] = [start.queries.length, start.keys.length, start.keys[0].length];
    const entries = range(rows * columns);
    const place = (step) => [Math.floor(step / columns), step % columns];
    const entry = (r, c) => dot(model.get("Q")[r], model.get("K")[c]);
    const plain = (number) => String(Number(number.toFixed(3))).replace("-", "−");
    const factor = (number) => (number < 0 ? `(${plain(number)})` : plain(number));
    const differs = (a, b) => JSON.stringify(a) !== JSON.stringify(b);
    const chosen = Math.min(1, columns - 1); // the key that the question is about

    const figure = frame(
      { model, el },
      {
        traits: ["Q", "K", "step"],
        question: t`Change one number of key ${chosen + 1}, a column of Kᵀ. Which entries of Q·Kᵀ can change?`,
        answers: [t("one entry"), t("one row"), t("one column")],
        right: 2,
        because: t`Key ${chosen + 1} takes part in one entry per query, which are column ${chosen + 1}, and in no other. An entry of that column stays as it is where its query has a 0 in the changed feature.`,
        seen: () => differs(model.get("K")[chosen], start.keys[chosen]),
        toSee: t`click a number in column k${chosen + 1} of Kᵀ and change it`,
        challenge: {
          task: t("change one number so that q1 · k1 becomes 0"),
          met: () => entry(0, 0) === 0,
        },
      },
    );
    figure.slider({
      label: t("entry"),
      name: "step",
      stops: entries,
      play: true,
      text: (step) =>
        t`${step + 1} of ${entries.length}: row ${place(step)[0] + 1}, column ${place(step)[1] + 1}`,
    });
    const isMatrix = (matrix, count) =>
      Array.isArray(matrix) &&
      matrix.length === count &&
      matrix.every((row) => Array.isArray(row) && row.length === size && row.every(isTyped));
    figure.accept("Q", (matrix) => isMatrix(matrix, rows));
    figure.accept("K", (matrix) => isMatrix(matrix, columns));

    const features = range(size).map((f) => String(f + 1));
    const names = {
      q: range(rows).map((i) => `q${i + 1}`),
      k: range(columns).map((j) => `k${j + 1}`),
    };
    const left = grid({ title: "Q", rows: names.q, columns: features, dims: ["queries", "size"] });
    const right = grid({ title: "Kᵀ", rows: features, columns: names.k, dims: ["size", "keys"] });
    const product = grid({
      title: "Q·Kᵀ",
      rows: names.q,
      columns: names.k,
      dims: ["queries", "keys"],
    });
    const replace = (name, row, f, number) =>
      figure.set(
        name,
        model.get(name).map((old, i) => (i === row ? old.with(f, number) : old)),
      );
    figure.edit(left.cells, (row, f, number) => replace("Q", row, f, number));
    figure.edit(right.cells, (f, row, number) => replace("K", row, f, number));
    const follow = (event) => {
      const at = event.target.closest("[data-at]");
      if (!at) return;
      const [r, c] = at.getAttribute("data-at").split(",").map(Number);
      figure.set("step", r * columns + c);
    };
    product.node.addEventListener("pointerover", follow);
    product.node.addEventListener("focusin", follow);
    figure.stage.append(left.node, right.node, product.node);

    return figure.open(() => {
      const [queries, keys, step] = [model.get("Q"), model.get("K"), model.get("step")];
      const [i, j] = place(step);
      const changed = differs(queries, start.queries) || differs(keys, start.keys);
      queries.forEach((row, r) =>
        row.forEach((number, f) =>
          fill(left.cells[r][f], {
            key: `q ${r} ${f}`,
            value: number,
            text: plain(number),
            on: r === i,
            shade: r === i ? 0.5 : 0,
            reading: t`query ${r + 1}, feature ${f + 1}: ${plain(number)}`,
          }),
        ),
      );
      keys.forEach((row, c) =>
        row.forEach((number, f) =>
          fill(right.cells[f][c], {
            key: `k ${c} ${f}`,
            value: number,
            text: plain(number),
            on: c === j,
            shade: c === j ? 0.5 : 0,
            reading: t`key ${c + 1}, feature ${f + 1}: ${plain(number)}`,
          }),
        ),
      );
      entries.forEach((each) => {
        const [r, c] = place(each);
        const value = entry(r, c);
        const before = dot(start.queries[r], start.keys[c]);
        const equation = `q${r + 1} · k${c + 1} = ${plain(value)}`;
        fill(product.cells[r][c], {
          key: `entry ${r} ${c}`,
          value,
          text: changed || each <= step ? plain(value) : "·",
          on: each === step,
          reading: value === before ? equation : t`${equation}, was ${plain(before)}`,
        });
        product.cells[r][c].classList.toggle("af-changed", value !== before);
      });
      const products = queries[i].map((number, f) => `${factor(number)}×${factor(keys[j][f])}`);
      return `q${i + 1} · k${j + 1} = ${products.join(" + ")} = ${plain(entry(i, j))}.`;
    });
  },
};
