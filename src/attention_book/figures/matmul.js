// Chapter 4: Q on the left, Kᵀ above, and where a row and a column meet, their product. The matrices
// of a batch are sheets on top of each other.

export default {
  render({ model, el }) {
    const start = { Q: model.get("Q"), K: model.get("K") };
    const [rows, columns] = [start.Q[0].length, start.K[0].length];
    const size = start.K[0][0].length;
    const entries = range(rows * columns);
    const place = (step) => [Math.floor(step / columns), step % columns];
    const sheet = () => model.get("sheet");
    const now = (name) => model.get(name)[sheet()];
    const chosen = Math.min(1, columns - 1); // the key that the question is about

    const figure = matmulFrame({ model, el }, start, chosen, now);
    const byEntry = {
      name: "step",
      play: true,
      text: (step) => {
        const [row, column] = place(step).map((number) => number + 1);
        return t`${step + 1} of ${entries.length}: row ${row}, column ${column}`;
      },
    };
    if (roomy(true, false)) figure.slider(byEntry); // on a phone an entry is tapped
    figure.slider({
      name: "sheet",
      text: (s) => t`${s + 1} of ${start.Q.length}`,
    });

    const tables = layout(figure, { batch: start.Q.length, rows, columns, size });
    const replace = (name, row, f, number) => {
      const changed = structuredClone(model.get(name));
      changed[sheet()][row][f] = number;
      figure.set(name, changed);
    };
    figure.edit(tables.left.cells, (row, f, number) => replace("Q", row, f, number));
    figure.edit(tables.right.cells, (f, row, number) => replace("K", row, f, number));
    const follow = (event) => {
      const at = event.target.closest("[data-at]");
      if (!at) return;
      figure.halt(); // what is pointed at stays
      const [r, c] = at.getAttribute("data-at").split(",").map(Number);
      figure.set("step", r * columns + c);
    };
    tables.product.node.addEventListener("pointerover", follow);
    tables.product.node.addEventListener("focusin", follow);
    feeding(tables);

    return figure.open(() => {
      const [queries, keys, step] = [now("Q"), now("K"), model.get("step")];
      const [i, j] = place(step);
      const opened = { queries: start.Q[sheet()], keys: start.K[sheet()] };
      tables.name(sheet());
      fillFactors(tables, queries, keys, [i, j]);
      fillProduct(tables.product, { queries, keys, opened, chosen: step, place, entries });
      const products = queries[i].map((number, f) => `${factor(number)}×${factor(keys[j][f])}`);
      const total = dot(queries[i], keys[j]);
      tables.pairs.replaceChildren(
        ...queries[i].map((number, f) => {
          const text = `${factor(number, brief)}×${factor(keys[j][f], brief)}`;
          const share = brief(number * keys[j][f]);
          return h("span", {}, `${f ? "+ " : ""}${text}`, h("b", {}, share));
        }),
        h("span", { class: "af-total" }, "=", h("b", {}, brief(total))),
      );
      return phrase("sum", i + 1, j + 1, products.join(" + "), plain(total));
    });
  },
};

function plain(number) {
  return String(Number(number.toFixed(3))).replace("-", "−");
}

/** A number for a cell: whole where there is room, else with fewer digits; its reading has them all. */
function brief(number) {
  const fits = (text) => text.replace("−", "").length <= roomy(5, 4);
  const rounded = [3, 2, 1, 0].map((decimals) => plain(Number(number.toFixed(decimals))));
  const inPowers = number.toExponential(1).replace("+", "").replace("-", "−");
  return rounded.find(fits) ?? inPowers;
}

/** As `fill`, with a number that takes the room of the cell. */
function fit(cell, about) {
  fill(cell, { ...about, text: brief(about.value) });
  cell.style.setProperty("--signs", cell.textContent.replace(".", "").length + 0.5);
}

/** A number as it stands in a product: in brackets where it is negative. */
function factor(number, text = plain) {
  return number < 0 ? `(${text(number)})` : text(number);
}

function matmulFrame({ model, el }, start, chosen, now) {
  const differs = (a, b) => JSON.stringify(a) !== JSON.stringify(b);
  return frame(
    { model, el },
    {
      question: t`Change one number of key ${chosen + 1}, a column of Kᵀ. Which entries of Q·Kᵀ can change?`,
      answers: [t("one entry"), t("one row"), t("one column")],
      right: 2,
      because: t`Key ${chosen + 1} takes part in one entry per query, which are column ${chosen + 1}, and in no other. An entry of that column stays as it is where its query has a 0 in the changed feature.`,
      seen: () => model.get("K").some((keys, s) => differs(keys[chosen], start.K[s][chosen])),
      toSee: matchMedia("(hover: hover)").matches
        ? t`click a number in column k${chosen + 1} of Kᵀ and change it`
        : t`tap a number in column k${chosen + 1} of Kᵀ and change it`,
      hint: hovers
        ? t("Click a number of Q or Kᵀ to change it. Tab and the arrow keys reach it, too.")
        : t("Tap a number of Q or Kᵀ to change it."),
      challenge: {
        task: t("change one number so that q1 · k1 becomes 0"),
        met: () => dot(now("Q")[0], now("K")[0]) === 0,
      },
    },
  );
}

/** The three matrices in the shape of an L turned over, and in its corner the sum written out. */
function layout(figure, { batch, rows, columns, size }) {
  const features = range(size).map((f) => String(f + 1));
  const q = range(rows).map((i) => `q${i + 1}`);
  const k = range(columns).map((j) => `k${j + 1}`);
  const left = grid({ title: "Q", rows: q, columns: features, dims: ["queries", "size"] });
  const right = grid({ title: "Kᵀ", rows: features, columns: k, dims: ["size", "keys"] });
  const product = grid({ title: "Q·Kᵀ", rows: q, columns: k, dims: ["queries", "keys"] });
  for (const { node } of [left, right, product]) {
    node.classList.toggle("af-sheets", batch > 1);
  }
  const pairs = h("div", { class: "af-products", "aria-hidden": "true" });
  figure.stage.append(h("div", { class: "af-ell" }, pairs, right.node, left.node, product.node));
  /** Write on the edge of the sheet behind which one it is. */
  const name = (sheet) => {
    const behind = batch === 2 ? t`sheet ${2 - sheet}` : t`${batch - 1} more sheets`;
    for (const { node } of [left, right, product]) put(node.lastChild, "data-behind", behind);
  };
  return { left, right, product, pairs, name };
}

/** Light the entries that a number of Q or Kᵀ takes part in while it is pointed at or focused: a row
 * of the product for a query, a column for a key. */
function feeding({ left, right, product }) {
  const light = (isFed) =>
    product.cells.forEach((row, r) => {
      row.forEach((cell, c) => {
        cell.classList.toggle("af-fed", isFed(r, c));
      });
    });
  const watch = ({ node }, isFed) => {
    const start = ({ target }) => {
      const at = target.closest("[data-at]");
      if (at) light(isFed(...at.getAttribute("data-at").split(",").map(Number)));
    };
    const end = () => light(() => false);
    for (const type of ["pointerover", "focusin"]) node.addEventListener(type, start);
    for (const type of ["pointerleave", "focusout"]) node.addEventListener(type, end);
  };
  watch(left, (query) => (r) => r === query);
  watch(right, (_, key) => (_r, c) => c === key);
}

function fillFactors({ left, right }, queries, keys, [i, j]) {
  const place = (cell, key, value, on, reading) =>
    fit(cell, { key, value, on, shade: on ? 0.5 : 0, reading });
  queries.forEach((row, r) => {
    row.forEach((number, f) => {
      const reading = t`query ${r + 1}, feature ${f + 1}: ${plain(number)}`;
      place(left.cells[r][f], `q ${r} ${f}`, number, r === i, reading);
    });
  });
  keys.forEach((row, c) => {
    row.forEach((number, f) => {
      const reading = t`key ${c + 1}, feature ${f + 1}: ${plain(number)}`;
      place(right.cells[f][c], `k ${c} ${f}`, number, c === j, reading);
    });
  });
}

function fillProduct(product, { queries, keys, opened, chosen, place, entries }) {
  for (const each of entries) {
    const [r, c] = place(each);
    const value = dot(queries[r], keys[c]);
    const before = dot(opened.queries[r], opened.keys[c]);
    const equation = `q${r + 1} · k${c + 1} = ${plain(value)}`;
    fit(product.cells[r][c], {
      key: `entry ${r} ${c}`,
      value,
      on: each === chosen,
      reading: value === before ? equation : t`${equation}, was ${plain(before)}`,
    });
    product.cells[r][c].classList.toggle("af-changed", value !== before);
  }
}
