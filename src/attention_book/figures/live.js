// Chapter 9 and the start page: a trained encoder–decoder runs here, on the reader's own word.

const MOST_LETTERS = 12;
const FAINT = 0.02; // threads of smaller weights are not drawn
const USES = {
  encoder: t("Encoder self-attention"),
  decoder: t("Decoder self-attention"),
  cross: t("Cross-attention"),
};

const cleaned = (typed) => typed.trim().toLowerCase();
const same = (a, b) => `${a}` === `${b}`;

/** What keeps the model from reading `typed`, in one sentence; nothing where it can. */
function problemWith(typed, letters) {
  const word = cleaned(typed);
  if (!word) return t`Type a word of 1 to ${MOST_LETTERS} letters.`;
  const words = word.split(/\s+/).length;
  const said = (number) => number.toLocaleString("en");
  if (words > 1) return t`These are ${said(words)} words; the model reads one.`;
  const signs = Array.from(new Intl.Segmenter().segment(word), ({ segment }) => segment);
  const strange = signs.find((sign) => !letters.includes(sign));
  // Isolated, so that a sign written from right to left does not turn the sentence around.
  if (strange) {
    const sign = `\u2068${strange.slice(0, 12)}\u2069`;
    return t`The model knows only the letters a to z, not “${sign}”.`;
  }
  if (signs.length <= MOST_LETTERS) return "";
  return t`${said(signs.length)} letters are too many: the model reads at most ${MOST_LETTERS}.`;
}

/** What the model does with the word now, in a few sentences: `shown` are the tokens written so
 * far, `says` what each position names when they are read in one pass. */
function tell({ word, switches, right, wanted, text, ended, total }, shown, says, data) {
  if (!shown.length) return t`The encoder has read “${word}”. Nothing is written yet.`;
  const whole = shown.length === total;
  let reads = t`The model reads “${word}” and writes “${text}” instead of “${wanted}”.`;
  if (right) reads = t`The model reads “${word}” and writes “${text}”: right.`;
  else if (text === wanted)
    reads = t`The model reads “${word}” and writes “${text}”, without an end token.`;
  else if (!ended)
    reads = t`The model reads “${word}” and writes “${text}” instead of “${wanted}”, without an end token.`;
  const others = says.filter((token, i) => token !== shown[i]).length;
  return together(
    whole ? reads : t`${shown.length} of ${total} tokens are written.`,
    whole &&
      !switches.positions &&
      t("Without positions it writes the same for every order of its letters."),
    whole &&
      word.length > data.longest &&
      t`No word in its training had more than ${data.longest} letters.`,
    whole &&
      word.length < data.shortest &&
      t`No word in its training had fewer than ${data.shortest} letters.`,
    !switches.causal && t("Writing needs no mask, because no later token exists yet."),
    !switches.causal &&
      t`But when the decoder reads all its tokens again in one pass, as in training, each position sees those after it, and ${others} of ${says.length} predict another token (the small ones).`,
  );
}

const STEP = 46; // from one letter to the next
const middle = (i) => STEP * (i + 0.5);
/** Where a weight of query q for key k runs in the drawing: above the source, across, or below. */
const PATHS = {
  encoder: (q, k) => arc(q, k, 30, 0),
  cross: (q, k) => `M${middle(q)},144C${middle(q)},102 ${middle(k)},104 ${middle(k)},62`,
  decoder: (q, k) => arc(q, k, 194, 224),
};

function arc(q, k, y, top) {
  const apart = q === k ? 8 : 0; // a weight for the query's own position is a loop
  const [a, b] = [middle(q) - apart, middle(k) + apart];
  return `M${a},${y}C${a},${top} ${b},${top} ${b},${y}`;
}

/** A token in its box, and below it the other token that is named there in one pass. */
function box(i, y, token, other = "") {
  const text = (dy, kind, words) =>
    h("svg:text", { x: middle(i), y: y + dy, class: kind, "text-anchor": "middle" }, words);
  return h(
    "svg:g",
    { class: "af-box" },
    h("svg:rect", { x: middle(i) - 17, y, width: 34, height: 30, rx: 5 }),
    text(21, token.length > 1 ? "af-sign" : "af-letter", token),
    text(46, "af-other", other),
  );
}

export default {
  render({ model, el }) {
    const data = model.get("data");
    const { letters, heads, layers } = data;
    const net = network(data);
    const names = [...letters, t("start"), t("end")];
    const every = Object.keys(USES).flatMap((use) =>
      range(layers).flatMap((layer) => range(heads).map((head) => [use, layer, head])),
    );

    let [made, madeFor] = [null, ""];
    /** All that the model writes for the word under the switches, computed once for each. */
    const run = () => {
      const [word, positions, causal, off] = ["word", "positions", "causal", "off"].map((name) =>
        model.get(name),
      );
      const key = JSON.stringify([word, positions, causal, off]);
      if (key !== madeFor) {
        const switches = { positions, causal, off };
        const written = net.write(word, switches);
        const ended = written.tokens.at(-1) === net.end;
        const text = written.tokens
          .slice(0, ended ? -1 : undefined)
          .map((token) => names[token])
          .join("");
        const wanted = [...word].reverse().join("");
        const right = ended && text === wanted;
        made = {
          word,
          switches,
          ...written,
          total: written.tokens.length,
          ended,
          text,
          wanted,
          right,
        };
        madeFor = key;
      }
      return made;
    };

    const figure = frame(
      { model, el },
      {
        traits: ["word", "written", "positions", "causal", "off"],
        question:
          data.asks &&
          t("The model writes “evil” for “live”. What does it write for “live” without positions?"),
        answers: [t("still “evil”"), t("nothing"), t("the same as for “evil”")],
        right: 2,
        because: t(
          "Without positions the encoder reads a bag of letters, and two words of the same letters are the same to it.",
        ),
        seen: () => !model.get("positions"),
        toSee: t("switch the positions off and try both words"),
        challenge: {
          task: t("with everything switched on, find a word that the model gets wrong"),
          met: () => model.get("positions") && !model.get("off").length && !run().right,
        },
      },
    );

    const field = h("input", {
      type: "text",
      class: "af-word",
      autocomplete: "off",
      autocapitalize: "none",
      spellcheck: "false",
      dir: "auto",
    });
    const problem = h("p", { class: "af-problem" });
    const complain = (text) => {
      write(problem, text);
      put(field, "aria-invalid", text ? "true" : null);
      figure.announce("problem", text);
    };
    field.addEventListener("input", () => {
      const found = problemWith(field.value, letters);
      complain(found && together(found, t`The figure still shows “${run().word}”.`));
      if (found) return;
      const word = cleaned(field.value); // drawing writes the shown word into the field
      figure.set("written", MOST_LETTERS + MARGIN);
      figure.set("word", word);
    });
    figure.control(
      h("label", { class: "af-typed" }, h("span", {}, t("your word")), field),
      problem,
    );
    figure.accept("word", (asked) => asked === cleaned(`${asked}`) && !problemWith(asked, letters));
    figure.accept("off", (asked) =>
      asked.every?.((one) => every.some((other) => same(one, other))),
    );
    figure.slider({
      label: t("tokens written"),
      name: "written",
      stops: () => range(run().total + 1),
      get: () => Math.min(model.get("written"), run().total),
      text: (n) => t`${n} of ${run().total}`,
      play: true,
    });
    const switches = { positions: t("positions"), causal: t("causal mask") };
    const boxOf = Object.fromEntries(
      Object.keys(switches).map((name) => {
        const input = h("input", { type: "checkbox", name });
        input.addEventListener("change", () => figure.set(name, input.checked));
        figure.accept(name, (asked) => typeof asked === "boolean");
        return [name, input];
      }),
    );
    figure.control(
      ...Object.entries(switches).map(([name, text]) => h("label", {}, boxOf[name], text)),
    );

    const threads = h("svg:g");
    const boxes = h("svg:g", {
      "data-marks": "",
      role: "group",
      "aria-label": t("tokens written"),
    });
    const letterBoxes = h("svg:g", { "aria-hidden": "true" });
    const isOff = (one) => model.get("off").some((other) => same(other, one));
    const followed = h("svg:path", { class: "af-followed" });
    const drawing = h("svg:svg", { class: "af-weave" }, threads, followed, letterBoxes, boxes);
    const maps = every.map((one) => {
      const [use, layer, head] = one;
      const [name, title] =
        layers > 1
          ? [t`layer ${layer}, head ${head}`, t`${USES[use]}, layer ${layer}, head ${head}`]
          : [t`head ${head}`, t`${USES[use]}, head ${head}`];
      const input = h("input", { type: "checkbox", "aria-label": title });
      input.addEventListener("change", () => {
        const others = model.get("off").filter((other) => !same(other, one));
        figure.set("off", input.checked ? others : [...others, one]);
      });
      const slot = h("div");
      const node = h("div", { class: "af-small" }, h("label", {}, input, name), slot);
      return { one, title, input, slot, node };
    });
    const panels = Object.entries(USES).map(([use, title]) => {
      const own = maps.filter(({ one }) => one[0] === use);
      return panel(title, h("div", { class: "af-row" }, ...own.map(({ node }) => node)));
    });
    const cache = h("p", { class: "af-cache" });
    figure.stage.append(drawing, h("div", { class: "af-uses" }, ...panels), cache);

    /** Draw the weight that the reader points at as a path from its query to its key. */
    const follow = ({ target }) => {
      const [use, ...at] = target.closest?.("[data-key]")?.dataset.key.split(" ") ?? [];
      const [q, k] = at.slice(-2).map(Number);
      put(followed, "d", PATHS[use]?.(q, k));
      for (const thread of threads.children) {
        thread.classList.toggle("af-on", use === "token" && thread.dataset.query === at[0]);
      }
    };
    for (const event of ["pointerover", "focusin"]) figure.stage.addEventListener(event, follow);

    /** Fill one map; a weight of a token that is not written yet is undefined. */
    const fillMap = (map, rows, columns, weights) => {
      const [use, layer, head] = map.one;
      const key = `${rows} ${columns}`;
      if (map.key !== key) {
        const signs = (tokens) => tokens.map((token) => letters[token] ?? "▷");
        map.key = key;
        map.grid = grid({ title: map.title, rows: signs(rows), columns: signs(columns), dims: [] });
        map.slot.replaceChildren(map.grid.node);
      }
      map.input.checked = !isOff(map.one);
      map.node.classList.toggle("af-gone", isOff(map.one));
      const ahead = (q, k) => use === "decoder" && model.get("causal") && k > q;
      rows.forEach((row, q) => {
        columns.forEach((column, k) => {
          const weight = weights[q]?.[k];
          fill(map.grid.cells[q][k], {
            key: `${use} ${layer} ${head} ${q} ${k}`,
            value: weight,
            text: "",
            shade: weight ?? 0,
            off: weight === undefined || ahead(q, k),
            reading:
              weight === undefined
                ? t`${map.title}: ${names[row]} (${q}) gives ${names[column]} (${k}) no weight yet`
                : t`${map.title}: ${names[row]} (${q}) gives ${names[column]} (${k}) the weight ${show(weight, 4)}`,
          });
        });
      });
    };

    /** Draw the word, what is written below it, and the cross-attention's weights as threads. */
    const weave = (source, reads, shown, says, cross) => {
      const last = maps.filter(({ one }) => one[0] === "cross" && one[1] === layers - 1);
      const on = last
        .filter(({ one }) => !isOff(one))
        .map(({ one }) => cross[layers - 1]?.[one[2]]);
      const mean = (q, k) => sum(on.map((weights) => weights[q][k])) / on.length;
      const weights = shown.map((_, q) => (on.length ? source.map((_, k) => mean(q, k)) : []));
      const width = STEP * Math.max(source.length, reads.length);
      put(drawing, "viewBox", `0 0 ${width} 220`);
      drawing.style.setProperty("--plot-width", `${width}px`);
      const thread = (weight, q, k) =>
        h("svg:path", {
          class: "af-thread",
          d: PATHS.cross(q, k),
          "data-query": q,
          "stroke-width": 0.5 + 5 * weight,
          "stroke-opacity": 0.15 + 0.85 * weight,
        });
      threads.replaceChildren(
        ...weights.flatMap((row, q) =>
          row.flatMap((weight, k) => (weight < FAINT ? [] : thread(weight, q, k))),
        ),
      );
      letterBoxes.replaceChildren(...source.map((token, k) => box(k, 32, letters[token])));
      boxes.replaceChildren(
        ...shown.map((token, q) => {
          const other = says[q] === token ? "" : names[says[q]];
          const node = mark(box(q, 144, names[token], other), 0, q);
          const most = weights[q].indexOf(Math.max(...weights[q]));
          const reading =
            most < 0
              ? t`Position ${q}: after ${names[reads[q]]} it writes ${names[token]}; no head of the cross-attention is on.`
              : t`Position ${q}: after ${names[reads[q]]} it writes ${names[token]}; it looks most at ${letters[source[most]]} (${most}), weight ${show(weights[q][most], 2)}, the mean of the heads.`;
          say(node, `token ${q}`, token, reading);
          return node;
        }),
      );
    };

    return figure.open(() => {
      const all = run();
      const shown = all.tokens.slice(0, model.get("written"));
      const blank = range(layers).map(() => range(heads).map(() => []));
      const once = shown.length
        ? net.pass({ ...all, tokens: shown }, all.switches)
        : { says: [], decoder: blank, cross: blank };
      const source = [...all.word].map((letter) => letters.indexOf(letter));
      const reads = [net.start, ...all.tokens.slice(0, -1)];
      const sides = { encoder: [source, source], decoder: [reads, reads], cross: [reads, source] };
      for (const map of maps) {
        const [use, layer, head] = map.one;
        const weights = (use === "encoder" ? all.encoder : once[use])[layer][head];
        fillMap(map, ...sides[use], weights);
      }
      weave(source, reads, shown, once.says, once.cross);
      const blocks = "▮".repeat(shown.length) + "▯".repeat(all.total - shown.length);
      const bytes = all.bytes[shown.length].toLocaleString("en");
      cache.replaceChildren(
        t("Key–value cache:"),
        " ",
        h("span", { "aria-hidden": "true" }, blocks),
        " ",
        shown.length
          ? t`${shown.length} written and ${source.length} read positions, ${bytes} bytes.`
          : t("empty."),
      );
      for (const [name, input] of Object.entries(boxOf)) input.checked = model.get(name);
      if (cleaned(field.value) !== all.word) {
        field.value = all.word;
        complain("");
      }
      return tell(all, shown, once.says, data);
    });
  },
};
