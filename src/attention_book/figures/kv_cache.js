// Chapter 9: the keys and values of one step beside those of the next, and what they cost.

const [HEAD, FOOT, LINE] = [30, 26, 17]; // the heights above the words, below them, and of a row of numbers
const COLUMN = 20; // the width of a step in the picture of all steps
const TALL = 36; // and the height of its largest
const PARTS = ["K", "V", "K", "V"]; // what stands next to each word: of layer 0, then of layer 1

/** What has become of a word's key and value in a layer, as a class and in words. */
const FATES = {
  new: t("new"),
  kept: t("kept"),
  again: t("computed again"),
  gone: t("gone"),
  stale: t("may not be kept"),
};
const GROUPS = { before: t("before"), now: t("now"), kept: t("kept"), computed: t("computed") };

/** What the controls and the data say about one step: a place for each word that has come. */
function stepOf(model, step) {
  const data = model.get("data");
  const [cache, window, causal, heads] = ["cache", "window", "causal", "kv_heads"].map((name) =>
    model.get(name),
  );
  const isCached = cache && causal;
  const named = (isOn) => [heads, Number(window), Number(isOn)].join(" ");
  const second = data.second[named(causal)][causal ? 0 : step - 1];
  const fate = (i, layer) => {
    if (i === step - 1) return "new";
    if (isCached) return window && i < step - data.span ? "gone" : "kept";
    // Without the mask, layer 0 has handed the new word on to all that see it.
    const isReached = !causal && layer === 1 && (!window || i >= step - data.span);
    return isReached ? "stale" : "again";
  };
  const [kept, computed] = data.costs[named(isCached)][step - 1];
  return {
    step,
    heads,
    kept,
    computed,
    isCached,
    all: data.costs[named(isCached)],
    weights: data.weights[named(causal)][step - 1],
    fates: data.words.slice(0, step).map((_, i) => [0, 1].map((layer) => fate(i, layer))),
    keys: [data.first[heads], second],
  };
}

/** Let a mark choose something by pointer, Enter and the space bar. */
function chooses(node, choose) {
  node.addEventListener("click", choose);
  node.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    choose();
  });
  return node;
}

/** Where things are in a panel: the left edges of the four columns of blocks, and the rest. */
function measures(number) {
  const [name, cell, lane] = roomy([66, 46, 64], [34, 24, 28]);
  const lefts = [0, cell, 2 * cell + lane, 3 * cell + lane].map((left) => name + left);
  const [width, row] = [lefts[3] + cell, roomy(26, 24)];
  const foot = HEAD + number * row;
  return { lefts, cell, row, width, foot, query: [name + 2 * cell + 4, foot + 13] };
}

/** A block as a bar that is as wide as its heads of keys and values, in the outline of all heads. */
function blockAt(x, y, { cell, row }, about) {
  const [wide, middle] = [cell - 6, y + row / 2];
  const part = h("svg:path", { class: "af-amount" });
  const box = { x: x + 3, y: middle - 8, width: wide, height: 16 };
  const reach = h("svg:rect", { class: "af-near", x, y, width: cell, height: row });
  const node = h("svg:g", about, reach, part, h("svg:rect", { class: "af-room", ...box }));
  const draw = (fate, share) => {
    put(node, "class", `af-block af-is-${fate}`);
    put(part, "d", `M${x + 3},${middle}h${(wide * share).toFixed(2)}`);
  };
  return { node, draw };
}

/** One step: the words, their keys and values, the newest word's query, and two keys in numbers. */
function stepPanel(name, { words, heads }, choose) {
  const size = measures(words.length);
  const { lefts, cell, row, width, foot, query } = size;
  const text = (x, y, content, about = {}) => h("svg:text", { x, y, ...about }, content);
  const centred = { "text-anchor": "middle" };
  const rows = words.map((word, i) => {
    const y = HEAD + i * row;
    const title = text(4, y + row / 2 + 4, word, { class: "af-name" });
    const reach = h("svg:rect", { class: "af-near", x: 0, y, width: lefts[0], height: row });
    const label = mark(h("svg:g", {}, reach, title), i, 0, "button");
    const blocks = lefts.map((x, c) => blockAt(x, y, size, { "data-pair": `${i} ${c}` }));
    for (const [c, { node }] of blocks.entries()) mark(node, i, c + 1, "button");
    const node = h("svg:g", {}, label, ...blocks.map((block) => block.node));
    return { node: chooses(node, () => choose(i + 1)), label, blocks };
  });
  const gap = (width - 18) / 4;
  const lines = [0, 1].map((layer) => {
    const y = foot + FOOT + (layer + 1) * LINE - 5;
    const cells = range(4).map((i) => {
      return text(20 + (i + 0.5) * gap, y, "", { ...centred, class: "af-name", role: "img" });
    });
    const none = text(20 + gap * 2, y, "–", centred);
    return {
      cells,
      none,
      node: h("svg:g", {}, text(0, y, ["K₀", "K₁"][layer]), none, ...cells),
    };
  });
  const heading = text(0, 12, "", { class: "af-step" });
  const asks = text(query[0] + 13, foot + 17, "");
  const owner = text(0, foot + 17, "");
  const ties = threads(words.length, { widest: 7 });
  const chosen = h("svg:rect", { class: "af-chosen-row", x: 0.5, width: width - 1, height: row });
  const svg = h(
    "svg:svg",
    {
      class: "af-plot",
      viewBox: `0 0 ${width} ${foot + FOOT + 2 * LINE}`,
      style: `--plot-width: ${width}px`,
    },
    chosen,
    h(
      "svg:g",
      { "aria-hidden": "true" },
      heading,
      ...[0, 1].map((layer) =>
        text(lefts[2 * layer + 1], 12, t`layer ${layer}`, { ...centred, class: "af-layer-of" }),
      ),
      ...PARTS.map((part, c) => text(lefts[c] + cell / 2, HEAD - 4, part, centred)),
      asks,
      owner,
      h("svg:circle", { class: "af-asks", cx: query[0], cy: query[1], r: 10 }),
      text(query[0], query[1] + 4, "q", { ...centred, class: "af-name" }),
    ),
    ties.node,
    h(
      "svg:g",
      { "data-marks": "", role: "group", "aria-label": GROUPS[name] },
      ...rows.map(({ node }) => node),
      ...lines.map(({ node }) => node),
    ),
  );
  const drawRow = (i, { fates, weights, heads: some }, isChosen) => {
    const { node, label, blocks } = rows[i];
    const word = words[i];
    node.toggleAttribute("hidden", i >= fates.length);
    say(label, `${name} word ${i}`, i + 1, t`word ${i + 1}: ${word}`);
    put(label, "aria-pressed", isChosen);
    const isSeen = i < fates.length && weights[i] > 0;
    const [x, y] = [lefts[2] + 3, HEAD + (i + 0.5) * row];
    ties.tie(i, [query[0], query[1] - 10], isSeen ? [x, y] : query, isSeen ? weights[i] : 0);
    if (i >= fates.length) return;
    blocks.forEach(({ node: block, draw }, c) => {
      const [layer, isKey] = [c < 2 ? 0 : 1, c % 2 === 0];
      const state = fates[i][layer];
      draw(state, some / heads);
      put(block, "aria-pressed", isChosen);
      let reading = t`${word}: value of layer ${layer}, ${FATES[state]}`;
      if (isKey) reading = t`${word}: key of layer ${layer}, ${FATES[state]}`;
      if (c === 2 && isSeen)
        reading = t`${reading}; the query gives it the weight ${show(weights[i], 3)}`;
      if (c === 2) say(block, `${name} weight ${i}`, weights[i], reading);
      else say(block, null, null, reading);
    });
  };
  const draw = (now, word, isLast) => {
    write(heading, t`step ${now.step}`);
    write(asks, isLast ? t("asks now") : t("used once"));
    write(owner, t`keys of ${words[word - 1]}`);
    put(chosen, "y", HEAD + (word - 1) * row);
    for (const i of words.keys()) drawRow(i, now, i === word - 1);
    lines.forEach(({ cells, none }, l) => {
      const fate = now.fates[word - 1]?.[l];
      const isThere = fate && fate !== "gone";
      none.toggleAttribute("hidden", Boolean(isThere));
      cells.forEach((cell, i) => {
        cell.toggleAttribute("hidden", !isThere);
        cell.classList.toggle("af-is-stale", fate === "stale");
        const number = isThere ? now.keys[l][word - 1][i] : 0;
        write(cell, show(number, 2));
        const reading = t`${words[word - 1]}, layer ${l}: number ${i + 1} of its key is ${show(number, 4)}`;
        say(cell, `${name} key ${l} ${i}`, number, reading);
      });
    });
  };
  return { node: h("div", { class: "af-panel" }, svg), draw };
}

/** A quantity at all steps, to scale; what the step before had is outlined at the step itself. */
function course(name, steps, largest) {
  const bars = range(steps).map((i) =>
    h("svg:rect", { class: "af-course", x: i * COLUMN + 3, width: COLUMN - 6 }),
  );
  const before = h("svg:rect", { class: "af-room", width: COLUMN - 2 });
  const ground = h("svg:path", { class: "af-guide", d: `M0,${TALL}H${steps * COLUMN}` });
  const reach = h("svg:rect", { class: "af-near", width: steps * COLUMN, height: TALL });
  const whole = mark(h("svg:g", {}, reach, ...bars, before, ground), 0, 0);
  const viewBox = `-1 -1 ${steps * COLUMN + 2} ${TALL + 2}`;
  const about = { "data-marks": "", role: "group", "aria-label": GROUPS[name] };
  const svg = h("svg:svg", { class: "af-plot", viewBox }, h("svg:g", about, whole));
  const title = h("p", {});
  const set = (bar, value) => {
    const height = (TALL * value) / largest;
    put(bar, "y", (TALL - height).toFixed(2));
    put(bar, "height", height.toFixed(2));
  };
  const draw = (values, step, [text, reading]) => {
    bars.forEach((bar, i) => {
      set(bar, values[i]);
      bar.classList.toggle("af-on", i === step - 1);
    });
    set(before, values[step - 2]);
    put(before, "x", (step - 1) * COLUMN + 1);
    write(title, text);
    say(whole, name, values[step - 1], reading);
  };
  return { node: h("div", { class: "af-panel" }, title, svg), draw };
}

function cacheFrame({ model, el }) {
  const isWhole = () => model.get("cache") && model.get("causal");
  return frame(
    { model, el },
    {
      question: t(
        "Without the causal mask, in which layer does a new word change old keys, 0 or 1?",
      ),
      answers: [t("neither"), "0", "1", t("both")],
      right: 2,
      because: t(
        "Layer 0 makes its keys from the words alone, layer 1 from outputs that have seen the new word.",
      ),
      seen: () => !model.get("causal"),
      toSee: t("take the causal mask away"),
      challenge: {
        task: t("keep a quarter of the bytes, and forget no word"),
        met: () => isWhole() && !model.get("window") && model.get("kv_heads") === 2,
      },
    },
  );
}

export default {
  render({ model, el }) {
    const data = model.get("data");
    const figure = cacheFrame({ model, el });
    figure.form.classList.add("af-caching");
    const choose = (word) => figure.set("word", word);
    const panels = ["before", "now"].map((name) => stepPanel(name, data, choose));
    const plain = data.costs[`${data.heads} 0 0`].at(-1)[1];
    const cached = data.costs[`${data.heads} 0 1`].at(-1)[0];
    const courses = [
      course("kept", data.words.length, cached),
      course("computed", data.words.length, plain),
    ];
    const legend = Object.entries(FATES).map(([fate, name]) =>
      h("span", {}, h("i", { class: `af-is-${fate}` }), name),
    );
    const former = h("span", {}, h("i", { class: "af-outlined" }), t("step before"));
    const key = h("p", { class: "af-fates" }, ...legend, former);
    figure.stage.append(...panels.map(({ node }) => node), key, ...courses.map(({ node }) => node));
    figure.slider({ name: "step", play: true });
    figure.control(...["cache", "window", "causal"].map((name) => figure.tick({ name })));
    figure.choice({ name: "kv_heads" });

    const sentenceOf = (before, now) => {
      const { step, kept, isCached } = now;
      const near = Math.min(step - 1, model.get("window") ? data.span - 1 : step - 1);
      const bytes = kept.toLocaleString("en");
      if (!model.get("causal")) return phrase("changed", step, near, step - 1);
      if (!isCached && near < step - 1) return phrase("again near", step, near + 1);
      if (!isCached) return phrase("again", step, step - 1);
      if (kept === before.kept) return phrase("forgotten", step, near, bytes);
      return phrase("cached", step, near, bytes, (kept - before.kept).toLocaleString("en"));
    };
    return figure.open(() => {
      const step = model.get("step");
      const steps = [stepOf(model, step - 1), stepOf(model, step)];
      panels.forEach(({ draw }, i) => {
        draw(steps[i], model.get("word"), i === 1);
      });
      const shown = new Set(steps.flatMap(({ fates }) => fates.flat()));
      for (const [i, fate] of Object.keys(FATES).entries()) legend[i].hidden = !shown.has(fate);
      const [before, now] = steps;
      const [kept, computed] = [now.kept, now.computed].map((n) => n.toLocaleString("en"));
      const last = [before.kept, before.computed].map((n) => n.toLocaleString("en"));
      [
        [t`kept: ${kept} bytes`, t`kept after step ${step}: ${kept} bytes, ${last[0]} before`],
        [
          t`now: ${computed} multiply-adds`,
          t`step ${step} computes ${computed} multiply-adds, the step before ${last[1]}`,
        ],
      ].forEach((texts, i) => {
        courses[i].draw(
          now.all.map((pair) => pair[i]),
          step,
          texts,
        );
      });
      return sentenceOf(before, now);
    });
  },
};
