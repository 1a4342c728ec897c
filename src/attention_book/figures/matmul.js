// Chapter 4: point at an entry of Q·Kᵀ; its row and its column light up and the sum is written out.

export default {
  render({ model, el }) {
    const { queries, keys } = model.get("data");
    const size = queries[0].length;
    const entries = range(queries.length * keys.length);
    const place = (step) => [Math.floor(step / keys.length), step % keys.length];
    const plain = (number) => String(Number(number.toFixed(3))).replace("-", "−");
    const factor = (number) => (number < 0 ? `(${plain(number)})` : plain(number));
    const features = range(size).map((f) => String(f + 1));
    const names = { q: queries.map((_, i) => `q${i + 1}`), k: keys.map((_, j) => `k${j + 1}`) };

    const left = grid({ title: "Q", rows: names.q, columns: features, dims: ["queries", "size"] });
    const right = grid({ title: "Kᵀ", rows: features, columns: names.k, dims: ["size", "keys"] });
    const product = grid({ title: "Q·Kᵀ", rows: names.q, columns: names.k, dims: ["queries", "keys"] });
    const written = h("p", { class: "af-sumline", role: "status" });

    const figure = frame({ model, el }, {
      traits: ["step"],
      question: "Which numbers make the entry in row 2, column 1 of Q·Kᵀ?",
      answers: ["row 1 of Q, column 2 of Kᵀ", "row 2 of Q, column 1 of Kᵀ", "all of Q and Kᵀ"],
      right: 1,
      because: "Entry (i, j) pairs query i with key j, position by position. How many queries and keys there are sets the number of entries, not the numbers that one entry needs.",
      draw: () => {
        const step = model.get("step");
        const [i, j] = place(step);
        queries.forEach((row, r) => row.forEach((number, f) => fill(left.cells[r][f], {
          key: `q ${r} ${f}`, value: number, text: plain(number), on: r === i, shade: r === i ? 0.5 : 0,
          reading: `query ${r + 1}, feature ${f + 1}: ${plain(number)}` })));
        keys.forEach((row, c) => row.forEach((number, f) => fill(right.cells[f][c], {
          key: `k ${c} ${f}`, value: number, text: plain(number), on: c === j, shade: c === j ? 0.5 : 0,
          reading: `key ${c + 1}, feature ${f + 1}: ${plain(number)}` })));
        entries.forEach((entry) => {
          const [r, c] = place(entry);
          const value = dot(queries[r], keys[c]);
          fill(product.cells[r][c], { key: `entry ${r} ${c}`, value, text: entry <= step ? plain(value) : "·", on: entry === step,
            reading: `q${r + 1} · k${c + 1} = ${plain(value)}` });
        });
        const products = queries[i].map((number, f) => `${factor(number)}×${factor(keys[j][f])}`).join(" + ");
        const total = dot(queries[i], keys[j]);
        write(written, `q${i + 1} · k${j + 1} = ${products} = ${plain(total)}`);
        put(written, "data-key", "sum");
        put(written, "data-value", total);
      },
    });
    figure.slider({ label: "entry", stops: entries, get: () => model.get("step"), change: (step) => figure.set("step", step),
      text: (step) => `${step + 1} of ${entries.length}: row ${place(step)[0] + 1}, column ${place(step)[1] + 1}` });
    const follow = (event) => {
      const at = event.target.closest("[data-at]");
      if (!at) return;
      const [r, c] = at.getAttribute("data-at").split(",").map(Number);
      figure.set("step", r * keys.length + c);
    };
    product.node.addEventListener("pointerover", follow);
    product.node.addEventListener("focusin", follow);
    figure.stage.append(left.node, right.node, product.node, written);
    return figure.open();
  },
};
