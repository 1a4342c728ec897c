// Chapter 7: cut the width into heads; each head draws its own map.

export default {
  render({ model, el }) {
    const { counts, d_model, maps, tokens } = model.get("data");
    const most = counts.at(-1);
    const positions = range(tokens.length);

    const slices = range(most).map(() => h("span", { class: "af-slice" }));
    const features = range(d_model).map((f) => h("span", { class: "af-feature" }, String(f)));
    const width = h("div", { class: "af-width" }, h("span", {}, dimension("d_model"), " split:"), ...slices);
    const map = grid({ title: "Weights of the chosen head", rows: tokens, columns: tokens, dims: ["queries", "keys"], extra: ["sum"] });
    const thumbs = range(most).map((n) => {
      const squares = positions.map((r) => positions.map((c) => h("svg:rect", { x: c, y: r, width: 1, height: 1 })));
      const picture = h("svg:svg", { viewBox: `0 0 ${tokens.length} ${tokens.length}`, "aria-hidden": "true" }, ...squares.flat());
      const node = mark(h("div", { class: "af-thumb" }, picture, h("span", {}, `head ${n}`)), 0, n);
      node.addEventListener("click", () => figure.set("head", n));
      return { node, squares };
    });

    const figure = frame({ model, el }, {
      traits: ["num_heads", "head"],
      question: "Go from 1 head to more heads at the same d_model. What happens to the numbers that one head compares?",
      answers: ["they stay as many", "they become fewer", "they become more"],
      right: 1,
      because: "The heads share the width: d_k is d_model divided by the number of heads. More heads mean more maps, each from a narrower slice.",
      draw: () => {
        const n = model.get("num_heads");
        const head = Math.min(model.get("head"), n - 1);
        const size = d_model / n;
        slices.forEach((slice, i) => {
          slice.hidden = i >= n;
          slice.classList.toggle("af-on", i === head);
          if (i < n) slice.replaceChildren(...features.slice(i * size, (i + 1) * size));
        });
        thumbs.forEach(({ node, squares }, i) => {
          node.hidden = i >= n;
          node.classList.toggle("af-on", i === head);
          if (i >= n) return;
          const weights = maps[n][i];
          positions.forEach((r) => positions.forEach((c) => put(squares[r][c], "fill-opacity", weights[r][c])));
          const top = Math.max(...weights.flat());
          say(node, `top ${i}`, top, `head ${i} of ${n}, features ${i * size} to ${(i + 1) * size - 1}: largest weight ${show(top, 4)}`);
        });
        positions.forEach((r) => {
          positions.forEach((c) => {
            const weight = maps[n][head][r][c];
            fill(map.cells[r][c], { key: `weight ${r} ${c}`, value: weight, text: show(weight, 2), shade: weight,
              reading: `head ${head} of ${n}: ${tokens[r]} (${r}) gives ${tokens[c]} (${c}) the weight ${show(weight, 4)}` });
          });
          const total = sum(maps[n][head][r]);
          fill(map.cells[r][tokens.length], { key: `sum ${r}`, value: total, text: show(total, 2),
            reading: `head ${head}: the weights of ${tokens[r]} sum to ${show(total, 3)}` });
        });
      },
    });
    figure.slider({ label: "heads", stops: counts, get: () => model.get("num_heads"),
      change: (n) => {
        if (model.get("head") >= n) figure.set("head", n - 1);
        figure.set("num_heads", n);
      },
      text: (n) => `${n}, each with d_k = ${d_model / n}` });
    figure.slider({ label: "head shown", stops: () => range(model.get("num_heads")), get: () => model.get("head"),
      change: (i) => figure.set("head", i), text: (i) => `head ${i}` });
    figure.stage.append(width, map.node,
      h("div", { class: "af-thumbs", "data-marks": "", role: "group", "aria-label": "maps of all heads" }, ...thumbs.map(({ node }) => node)));
    return figure.open();
  },
};
