// Chapter 8: put the words in another order; positions and dropout decide whether their outputs change.

const PITCH = roomy(84, 60); // of a word's place in the picture
const [CARD, WOVEN, STRIP] = [roomy(72, 54), 106, 17]; // a card's width, the threads' height, a vector's height
const INDENT = roomy(82, 72); // for the names at the left
const [TOP, LOW] = [34, 34 + WOVEN]; // of the threads
const BETWEEN = 7; // an output and what it was as written: the room for the marks of what changed

/** The block in float64, from its parts: weights before and after dropout, and the outputs. */
function runBlock({ scores, updates, x, code }, order, positions, draws, rate) {
  const on = positions ? 1 : 0;
  const weights = order.map((i, p) => {
    const row = order.map(
      (j, q) =>
        scores[0][0][i][j] + on * (scores[0][1][i][q] + scores[1][0][p][j] + scores[1][1][p][q]),
    );
    return softmax(row);
  });
  const kept = weights.map((row, p) =>
    row.map((weight, q) => (draws[p][q] >= rate ? weight / (1 - rate) : 0)),
  );
  const outputs = order.map((i, p) => {
    const sums = x[i].map((number, c) => {
      const update = order.map((j, q) => kept[p][q] * (updates[0][j][c] + on * updates[1][q][c]));
      return number + on * code[p][c] + sum(update);
    });
    const mean = sum(sums) / sums.length;
    const variance = sum(sums.map((number) => (number - mean) ** 2)) / sums.length;
    return sums.map((number) => (number - mean) / Math.sqrt(variance + 1e-12));
  });
  return { weights, kept, outputs };
}

/** Cards that change places by drag, click or keyboard; `carry(token, place)` moves one. */
function movableCards({ cards, plot, placeOf, carry, tell }) {
  let lifted = null; // the token that a click or Enter has taken up
  let dragged = null;
  const lift = (token) => {
    lifted = token;
    cards.forEach((card, i) => put(card, "aria-pressed", i === token));
  };
  const across = (event) =>
    new DOMPoint(event.clientX, event.clientY).matrixTransform(plot.getScreenCTM().inverse()).x;
  const clamp = (place) => Math.max(0, Math.min(cards.length - 1, place));
  cards.forEach((card, token) => {
    card.classList.add("af-handle");
    card.addEventListener("pointerdown", (event) => {
      card.setPointerCapture(event.pointerId);
      dragged = { token, from: across(event), start: placeOf(token) * PITCH, far: false };
    });
    card.addEventListener("pointermove", (event) => {
      if (dragged?.token !== token) return;
      const by = across(event) - dragged.from;
      dragged.far ||= Math.abs(by) > 5;
      if (!dragged.far) return;
      if (!card.classList.contains("af-dragged")) {
        card.before(...cards.filter((each) => each !== card)); // so that it glides over the others
        card.classList.add("af-dragged");
      }
      const at = Math.max(0, Math.min((cards.length - 1) * PITCH, dragged.start + by));
      card.style.transform = `translate(${at}px, 0)`;
      const place = clamp(Math.round(at / PITCH));
      if (place !== placeOf(token)) carry(token, place);
    });
    const drop = ({ pointerType }) => {
      if (dragged?.token !== token) return;
      const { far } = dragged;
      dragged = null;
      card.classList.remove("af-dragged");
      card.style.transform = `translate(${placeOf(token) * PITCH}px, 0)`;
      if (far) lift(null);
      else if (pointerType !== "touch") choose(); // a finger that taps wants to read
    };
    const choose = () => {
      if (lifted === null) {
        lift(token);
        tell();
      } else {
        if (lifted !== token) carry(lifted, placeOf(token));
        lift(null);
      }
    };
    card.addEventListener("pointerup", drop);
    card.addEventListener("pointercancel", drop);
    card.addEventListener("touchmove", (event) => event.preventDefault(), { passive: false });
    card.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (event.key === "Enter" || event.key === " ") choose();
      else if (event.key === "Escape") lift(null);
      else if (lifted === token && by) {
        carry(token, clamp(placeOf(token) + by));
        event.stopPropagation(); // the arrow keys walk over the cards otherwise
      } else return;
      event.preventDefault();
    });
  });
  return {
    isDragged: (token) => dragged?.token === token && dragged.far,
    release: () => lift(null),
  };
}

export default {
  render({ model, el }) {
    const data = model.get("data");
    const { tokens, draws } = data;
    const written = range(tokens.length);
    const order = () => model.get("order");
    const run = (places, rate) =>
      runBlock(data, places, model.get("positions"), draws[model.get("draw")], rate);
    const now = () => {
      const { kept, outputs } = run(order(), model.get("dropout"));
      const before = run(written, 0).outputs;
      const change = order().map((token, place) =>
        Math.hypot(...outputs[place].map((number, c) => number - before[token][c])),
      );
      return { kept, outputs, before, change };
    };
    const isWritten = () => `${order()}` === `${written}`;
    const figure = blockFrame({ model, el }, { isWritten, change: () => now().change });
    const again = blockControls(figure, model, data);
    const picture = wordsPicture(tokens, data.x[0].length);
    const map = weightsMap(tokens);
    figure.stage.append(h("div", { class: "af-order" }, picture.plot));
    figure.below.append(map.node);
    const { isDragged } = movableCards({
      cards: picture.cards,
      plot: picture.plot,
      placeOf: (token) => order().indexOf(token),
      carry: (token, place) => {
        const others = order().filter((each) => each !== token);
        figure.set("order", others.toSpliced(place, 0, token));
      },
      tell: () => figure.tell(t("Taken up. Now choose the word whose place it shall take.")),
    });

    return figure.open(() => {
      const seen = now();
      const rate = model.get("dropout");
      again.disabled = rate === 0;
      picture.draw(order(), seen, isDragged);
      map.draw(order(), seen.kept, rate);
      return blockSentence(model, seen.change);
    });
  },
};

function blockFrame({ model, el }, { isWritten, change }) {
  return frame(
    { model, el },
    {
      question: t(
        "Without positions and without dropout, put the words in another order. What happens to the output of a word?",
      ),
      answers: [t("it changes"), t("it stays, in its word's new place"), t("it becomes 0")],
      right: 1,
      because: t(
        "Each output is a sum over all positions, and a sum does not depend on their order. Positions added to the input make a word's place part of what it is; dropout draws anew on each call and so changes outputs in any order.",
      ),
      lines: roomy(2, 3),
      seen: () => !model.get("positions") && model.get("dropout") === 0 && !isWritten(),
      toSee: t("move a word, with positions off and no dropout"),
      challenge: {
        task: t("make an output change while the positions are off"),
        met: () => !model.get("positions") && Math.max(...change()) > 0.01,
      },
    },
  );
}

/** Order, positions and dropout; returns the button that draws anew what is dropped. */
function blockControls(figure, model, { orders, draws, tokens }) {
  const is = (other) => `${model.get("order")}` === `${other}`;
  figure.choice({
    label: t("Order:"),
    name: "order",
    options: Object.keys(orders).map((name) => [name, t(name)]),
    get: () => Object.keys(orders).find((name) => is(orders[name])),
    change: (name) => figure.set("order", orders[name]),
  });
  figure.accept(
    "order",
    (asked) =>
      Array.isArray(asked) &&
      asked.length === tokens.length &&
      tokens.every((_, place) => asked.includes(place)),
  );
  figure.choice({ name: "positions" });
  figure.slider({ name: "dropout", text: (rate) => t`${show(rate, 1)} (probability)` });
  const again = h("button", { type: "button", class: "af-button" }, t("Draw again"));
  again.addEventListener("click", () => figure.set("draw", (model.get("draw") + 1) % draws.length));
  figure.control(again);
  return again;
}

function blockSentence(model, change) {
  const { tokens } = model.get("data");
  const rate = show(model.get("dropout"), 1);
  const most = change.indexOf(Math.max(...change));
  const words = model.get("order").map((token) => tokens[token]);
  const line = words.join(" ");
  const isWritten = model.get("order").every((token, place) => token === place);
  const positions = t(declared.controls.positions.names[Number(model.get("positions"))]);
  const dropout = model.get("dropout")
    ? phrase("dropout", rate, model.get("draw") + 1)
    : phrase("no dropout");
  const state = [line, positions, dropout];
  return change[most] >= 0.005
    ? phrase("changes", ...state, words[most], show(change[most]))
    : isWritten
      ? phrase("nothing changes", ...state)
      : phrase("moved", ...state);
}

/** The card of a word, which can be carried to another place. */
function wordCard(token) {
  const middle = PITCH / 2;
  const fits = roomy(9, 6); // letters
  const text = token.length > fits ? `${token.slice(0, fits - 1)}…` : token;
  const node = h(
    "svg:g",
    { class: "af-card", "aria-description": t("Enter takes the word up, arrow keys carry it") },
    h("svg:rect", { x: middle - CARD / 2, y: 2, width: CARD, height: 32, rx: 4 }),
    h("svg:text", { x: middle, y: 23, "text-anchor": "middle" }, text),
  );
  return mark(node, 0, 0, "button");
}

/** The output of a word as a strip of squares, over what it was as written, and how far they differ. */
function wordResult(token, size) {
  const middle = PITCH / 2;
  const strip = (y, kind) =>
    range(size).map((c) => {
      const x = middle - CARD / 2 + (c * CARD) / size;
      return h("svg:rect", { class: kind, x, y, width: CARD / size, height: STRIP });
    });
  const shown = strip(LOW, "af-square");
  const changed = strip(LOW + STRIP + 1.5, "af-change");
  const asWritten = strip(LOW + STRIP + BETWEEN, "af-square");
  const edge = { x: middle - CARD / 2, y: LOW + STRIP + BETWEEN, width: CARD, height: STRIP };
  const y = LOW + 2 * STRIP + BETWEEN + 20;
  const text = h("svg:text", { x: middle, y, "text-anchor": "middle" });
  const distance = mark(h("svg:g", {}, text), size, 0);
  for (const [c, cell] of shown.entries()) {
    mark(cell, 0, c);
    put(changed[c], "height", BETWEEN - 3);
  }
  const group = { "data-marks": "", "data-say": "below", role: "group" };
  const node = h(
    "svg:g",
    { class: "af-result", ...group, "aria-label": t`output of “${token}”` },
    ...shown,
    ...changed,
    ...asWritten,
    h("svg:rect", { class: "af-before", ...edge }),
    distance,
  );
  const draw = (r, output, before, change) => {
    output.forEach((number, c) => {
      const old = show(before[c], 4);
      shadeSigned(shown[c], number);
      shadeSigned(asWritten[c], before[c]);
      const by = Math.abs(number - before[c]);
      changed[c].toggleAttribute("hidden", by < 0.005);
      put(changed[c], "fill-opacity", Math.min(1, 0.3 + by).toFixed(2));
      const reading = t`“${token}”, output ${c + 1}: ${show(number, 4)}, as written ${old}`;
      say(shown[c], `output ${r} ${c}`, number, reading);
    });
    write(text, show(change));
    node.classList.toggle("af-moved", change >= 0.005);
    const reading = t`“${token}” (${r + 1}): its output moves by ${show(change, 4)}`;
    say(distance, `change ${r}`, change, reading);
  };
  return { node, draw };
}

function shadeSigned(square, value) {
  put(square, "fill-opacity", Math.min(1, Math.abs(value) / 2).toFixed(3));
  square.classList.toggle("af-below", value < 0);
}

/** The words, their outputs and the threads between them, each where its word now stands. */
function wordsPicture(tokens, size) {
  const cards = tokens.map(wordCard);
  const results = tokens.map((token) => wordResult(token, size));
  const woven = threads(tokens.length ** 2, { bend: 0.7 });
  const side = (y, text) => h("svg:text", { x: 0, y, "aria-hidden": "true" }, text);
  const width = tokens.length * PITCH + INDENT;
  const group = { "data-marks": "", "data-say": "above", role: "group" };
  const plot = h(
    "svg:svg",
    {
      class: "af-plot",
      viewBox: `${-INDENT} 0 ${width} ${LOW + 2 * STRIP + BETWEEN + 30}`,
      style: `--plot-width: ${width}px`,
    },
    h(
      "svg:g",
      { transform: `translate(${-INDENT} 0)` },
      side(23, t("words ↔")), // they can be carried
      side((TOP + LOW) / 2, t("weights")),
      side(LOW + 13, t("outputs")),
      side(LOW + STRIP + BETWEEN + 13, t("before")),
      side(LOW + 2 * STRIP + BETWEEN + 20, t("distance")),
    ),
    woven.node,
    ...results.map(({ node }) => node),
    h("svg:g", { ...group, "aria-label": t("words") }, ...cards),
  );
  const draw = (order, { kept, outputs, before, change }, isDragged) => {
    order.forEach((token, r) => {
      const place = `translate(${r * PITCH}px, 0)`;
      results[token].node.style.transform = place;
      if (!isDragged(token)) cards[token].style.transform = place;
      put(cards[token], "data-at", `0,${r}`);
      say(cards[token], `token ${r}`, token, t`“${tokens[token]}”, place ${r + 1}`);
      results[token].draw(r, outputs[r], before[token], change[r]);
      order.forEach((other, c) => {
        const i = token * tokens.length + other; // the thread travels with its two words
        woven.tie(i, [(c + 0.5) * PITCH, TOP], [(r + 0.5) * PITCH, LOW], kept[r][c]);
        woven.pair(i, `${r} ${c}`);
        woven.paths[i].classList.toggle("af-dropped", kept[r][c] === 0);
      });
    });
  };
  return { plot, cards, draw };
}

/** The weights as numbers, in the order in which the words stand. */
function weightsMap(tokens) {
  const map = grid({
    title: t("Weights after dropout"),
    rows: tokens,
    columns: tokens,
    dims: ["queries", "keys"],
    extra: [t("sum")],
  });
  tokens.forEach((_, r) => {
    tokens.forEach((_, c) => put(map.cells[r][c], "data-pair", `${r} ${c}`));
  });
  const draw = (order, kept, rate) =>
    order.forEach((from, r) => {
      for (const node of [map.heads[r], map.sides[r]]) write(node, tokens[from]);
      order.forEach((to, c) => {
        const weight = kept[r][c];
        fill(map.cells[r][c], {
          key: `weight ${r} ${c}`,
          value: weight,
          text: show(weight),
          shade: weight,
          off: rate > 0 && weight === 0,
          reading: t`${tokens[from]} (${r + 1}) gives ${tokens[to]} (${c + 1}) the weight ${show(weight, 4)}`,
        });
      });
      const total = sum(kept[r]);
      fill(map.cells[r][tokens.length], {
        key: `sum ${r}`,
        value: total,
        text: show(total),
        reading: t`the weights of ${tokens[from]} (${r + 1}) sum to ${show(total, 4)}`,
      });
    });
  return { node: map.node, draw };
}
