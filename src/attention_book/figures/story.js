// Chapter 12: a published language model continues the reader's story, here in the page.

const SHOWN = 6; // of the pieces that may come next
const EVERY = 125; // milliseconds from one piece to the next
const SLICE = 24; // milliseconds of computing after which the page is drawn
const STRIPES = 40; // of a head's tile, at most
const COLUMNS = 8; // of tiles

const pause = () => new Promise((go) => setTimeout(go));

/** The model's parameters and tokens, from the reader's own data, from the page, or from the kernel. */
function fetched(model, { file, model: given }) {
  if (given) return Promise.resolve(given);
  if (model.load) return model.load(file);
  return new Promise((take) => {
    model.on("msg:custom", (content) => content.model && take(content.model));
    model.send("begin");
  });
}

/**
 * What the model makes of a text with some heads off, kept from call to call. `base` is the same with
 * all heads on: below the first head that is off nothing differs from it.
 */
function readingOf(net, off, base = null) {
  const first = base ? Math.min(...off.map(([layer]) => layer)) : 0;
  const held = net.caches();
  const [tokens, said, weights] = [[], [], []];
  /** Read on until all is read, which returns true, or the time is up. */
  const extend = (wanted, until) => {
    if (base && !base.extend(wanted, until)) return false;
    let same = 0;
    while (same < tokens.length && tokens[same] === wanted[same]) same++;
    for (const rows of [tokens, said, weights]) rows.length = same;
    net.cut(held, same);
    for (let i = same; i < wanted.length; i++) {
      if (performance.now() > until) return false;
      const given = base?.held[first].inputs.slice(i, i + 1);
      const now = net.read([wanted[i]], { causal: true, off }, held, first, given);
      tokens.push(wanted[i]);
      said.push(now);
      weights.push(
        now.weights.map((heads, n) => heads?.map((rows) => rows[0]) ?? base.weights[i][n]),
      );
    }
    return true;
  };
  const logits = (q) => said[q].logits[0];
  return { held, logits, weights, extend };
}

/**
 * Of a story its spans as the page shows them: its tokens after the begin, and the text that each adds.
 * Those of the last story are kept.
 */
function spanning({ encode, textsOf }) {
  let last = { key: "", spans: [] };
  return (story) => {
    const key = JSON.stringify(story);
    if (key === last.key) return last.spans;
    const spans = story.flatMap((run, i) => {
      const tokens = i % 2 ? run : encode(run, i === 0);
      const texts = textsOf(tokens);
      return tokens.map((token, n) => ({ token, text: texts[n], isWritten: i % 2 === 1 }));
    });
    if (spans.length) spans[0].text = spans[0].text.replace(/^ /, "");
    last = { key, spans };
    return spans;
  };
}

/** The story when its text has become `value`: what the model wrote and nobody touched stays its own. */
function edited(spans, value) {
  const old = spans.map((span) => span.text).join("");
  const most = Math.min(old.length, value.length);
  const isHalf = (text, i) => /[\ud800-\udbff]/.test(text[i - 1] ?? "");
  let [head, tail] = [0, 0];
  while (head < most && old[head] === value[head]) head++;
  if (isHalf(old, head) || isHalf(value, head)) head--;
  while (tail < most - head && old.at(-1 - tail) === value.at(-1 - tail)) tail++;
  if (isHalf(old, old.length - tail)) tail--;
  const story = [""];
  const add = (part, isWritten) => {
    if (!part.length) return;
    const last = story.length - 1;
    if (last % 2 !== Number(isWritten)) story.push(part);
    else story[last] = isWritten ? [...story[last], ...part] : story[last] + part;
  };
  const keep = (from, to, isFirst) => {
    let at = 0;
    spans.forEach(({ token, text, isWritten }, i) => {
      const [start, end] = [at, at + text.length];
      at = end;
      const isWhole = start >= from && end <= to && (text || isFirst === end < head);
      const isMoved = i === 0 && !isFirst && story[0]; // it had lost its space to the beginning
      if (isWritten && isWhole && !isMoved) add([token], true);
      else add(old.slice(Math.max(start, from), Math.max(start, from, Math.min(end, to))), false);
    });
  };
  keep(0, head, true);
  add(
    value.slice(head, value.length - tail).toWellFormed?.() ??
      value.slice(head, value.length - tail),
    false,
  );
  keep(old.length - tail, old.length, false);
  return story;
}

/** The field in which the reader writes, over the text in its colours. */
function pageView(act) {
  const ink = h("div", { class: "af-ink", "aria-hidden": "true" });
  const field = h("textarea", {
    class: "af-quill",
    "aria-label": t("the story"),
    autocomplete: "off",
    spellcheck: "false",
    rows: 1,
  });
  const sheet = h("div", { class: "af-manuscript" }, ink, field);
  const node = h("div", { class: "af-paper" }, sheet);
  const open = () => {
    field.readOnly = false;
    field.focus();
    field.setSelectionRange(field.value.length, field.value.length);
  };
  const pen = chip(t("✎ write"), open, { "aria-label": t("write in the story") });
  field.readOnly = !hovers; // else each tap on a word opens a keyboard
  pen.hidden = hovers;
  field.addEventListener("blur", () => {
    field.readOnly = !hovers;
  });
  field.addEventListener("input", () => act.type(field.value));
  const look = (event) => {
    if (event.type === "click" && field.readOnly) {
      const under = document.elementsFromPoint(event.clientX, event.clientY);
      const at = [...ink.children].findIndex((span) => under.includes(span));
      return act.choose(at < 0 ? null : at);
    }
    const caret = field.selectionStart;
    let end = 0;
    const at = [...ink.children].findIndex((span) => {
      end += span.textContent.length;
      return end >= caret;
    });
    act.choose(caret < field.value.length ? at : null);
  };
  for (const type of ["click", "keyup"]) field.addEventListener(type, look);

  /** Show spans of text under a marker as strong as their weights, and the place that is chosen. */
  const draw = (spans, row, place) => {
    while (ink.children.length > spans.length) ink.lastChild.remove();
    while (ink.children.length < spans.length) ink.append(h("span"));
    spans.forEach(({ text, isWritten }, i) => {
      const span = ink.children[i];
      write(span, text);
      put(span, "class", `${isWritten ? "af-hers" : ""} ${i === place ? "af-here" : ""}`);
      put(span, "style", `--weight: ${(row?.[i + 1] ?? 0).toFixed(2)}`);
    });
    const text = spans.map((span) => span.text).join("");
    if (field.value !== text) field.value = text;
  };
  return { node, pen, draw };
}

/** The likeliest next pieces as bars; a tap writes one. */
function pieceBars(take) {
  const rows = range(SHOWN).map((i) => {
    const [word, bar, former, value] = ["next-word", "next-bar", "former", "value"].map((name) =>
      h("span", { class: `af-${name}` }),
    );
    const row = { word, bar, former, value, token: 0 };
    row.node = h("button", { type: "button", class: "af-next af-piece" }, word, bar, former, value);
    row.node.addEventListener("click", () => take(row.token));
    mark(row.node, i, 0, "button");
    return row;
  });
  const about = {
    class: "af-pieces",
    "data-marks": "",
    role: "group",
    "aria-label": t("next pieces"),
  };
  const node = h("div", about, ...rows.map((row) => row.node));
  const draw = (chances, before, nameOf) => {
    const best = likeliest(chances, SHOWN, before.indexOf(Math.max(...before)));
    // The largest is as wide as there is room.
    node.style.setProperty("--most", Math.max(...best.flatMap((i) => [chances[i], before[i]])));
    rows.forEach((row, i) => {
      row.node.hidden = i >= best.length;
      if (row.node.hidden) return;
      row.token = best[i];
      const [name, chance] = [nameOf(row.token), chances[row.token]];
      write(row.word, name);
      write(row.value, show(chance, 2));
      row.node.style.setProperty("--chance", chance);
      row.former.hidden = before === chances; // the outline of how it was with all heads
      row.node.style.setProperty("--before", before[row.token]);
      row.node.classList.toggle("af-cut", chance === 0);
      say(
        row.node,
        `next ${row.token}`,
        chance,
        t`“${name}” comes next with probability ${show(chance, 4)}; press to write it`,
      );
    });
  };
  return { node, draw };
}

/** The heads as tiles, each a strip of the text with its weights; they glide to where sorting puts them. */
function headTiles(all, choose) {
  const tiles = all.map((one, i) => {
    const strip = h("svg:path", {});
    const picture = h("svg:svg", { viewBox: "0 0 40 24", preserveAspectRatio: "none" }, strip);
    const about = { type: "button", class: "af-head-tile af-eases", "data-number": one.join(".") };
    const node = h("button", about, picture);
    node.addEventListener("click", () => choose(one));
    mark(node, 0, i, "button");
    return { one, node, strip };
  });
  const about = {
    class: "af-head-tiles",
    "data-marks": "",
    role: "group",
    "aria-label": t("heads"),
  };
  about.style = `--rows: ${Math.ceil(all.length / COLUMNS)}`;
  const node = h("div", about, ...tiles.map((tile) => tile.node));
  const shape = (row, length) => {
    const wide = Math.max(1, length / STRIPES);
    const tops = [];
    row.forEach((weight, k) => {
      const at = Math.floor(k / wide);
      tops[at] = Math.max(tops[at] ?? 0, weight);
    });
    const unit = (40 * wide) / length;
    return tops
      .map((top, i) =>
        top > 0.002 // what is lower leaves nothing to see
          ? `M${(i * unit).toFixed(1)},24v${(-24 * top).toFixed(1)}h${unit.toFixed(1)}V24`
          : "",
      )
      .join("");
  };
  /** `order` lists the heads as they stand; `about` says of a head what is shown. */
  const draw = (order, length, tell) => {
    order.forEach((i, rank) => {
      const { one, node, strip } = tiles[i];
      const { row, isOff, isChosen, isKey, value, reading } = tell(one, i);
      const place = [Math.floor(rank / COLUMNS), rank % COLUMNS];
      put(node, "data-at", `${place}`);
      put(node, "style", `--row: ${place[0]}; --column: ${place[1]}`);
      put(strip, "d", shape(row, length));
      put(node, "aria-pressed", isChosen);
      node.classList.toggle("af-gone", isOff);
      node.classList.toggle("af-key", isKey);
      say(node, `head ${one.join(" ")}`, value, reading);
    });
  };
  return { node, draw };
}

/** What is asked and what is to be found; `now` says what the figure shows. */
function lessonOf(now, { asks, beginnings }) {
  if (!asks) return {};
  const [[, child]] = beginnings;
  return {
    question: t(
      "“matters here” switches each of the 40 heads off alone. For how many does the likeliest next piece change?",
    ),
    answers: ["1", "10", "30"],
    right: 0,
    because: t(
      "The others mostly make up for one that is missing. At an average place of a test story, 2.2 of the 40 change it.",
    ),
    seen: () => now().text === child && now().matters !== null && !now().off.length,
    toSee: t("sort the heads by “matters here”, which tries each alone"),
    challenge: {
      task: t("switch off the one head without which the child loses its name"),
      met: () => now().text === child && now().off.length === 1 && now().best !== now().before,
    },
  };
}

/** What the model makes of the story at the place that is looked at; null until all is read. */
function lookingOf(model, data, state) {
  const opened = JSON.stringify(model.get("story"));
  const most = (numbers) => numbers.indexOf(Math.max(...numbers));
  return (until) => {
    const [story, off] = [model.get("story"), model.get("off")];
    const { mind, place } = state;
    const isOpening = JSON.stringify(story) === opened && !off.length && place === null;
    if (!mind && !isOpening) return null;
    const { tokens: stored, runs, logits, looks = [] } = data.opening;
    const spans = mind
      ? mind.spansOf(story)
      : runs.map((text, i) => ({ text, isWritten: i % 2 === 1 }));
    const tokens = mind ? [BEGIN, ...spans.map((span) => span.token)] : stored;
    const q = place === null ? tokens.length - 1 : Math.min(place + 1, tokens.length - 1);
    let [here, all, rows] = [logits, logits, looks];
    if (mind && !isOpening) {
      if (`${off}` !== `${mind.off}`) {
        mind.off = off;
        mind.reading = off.length ? readingOf(mind.net, off, mind.base) : mind.base;
      }
      if (!mind.reading.extend(tokens, until)) return null;
      [here, all] = [mind.reading.logits(q), mind.base.logits(q)];
      rows = mind.reading.weights[q];
    }
    const settings = {
      temperature: model.get("temperature"),
      top_p: model.get("top_p"),
      top_k: data.tokens,
    };
    const { chances, kept } = chancesOf(here, settings);
    const usual = off.length ? chancesOf(all, settings).chances : chances;
    const nameOf = mind?.nameOf ?? ((token) => data.opening.names[token]);
    const text = spans.map((span) => span.text).join("");
    const shown = { spans, tokens, q, chances, kept, usual, rows, off, text, nameOf };
    return { ...shown, best: most(here), before: most(all), logits: here };
  };
}

/**
 * Measure, head by head, what the likeliest piece of a place loses when the head is off, in slices that
 * leave the page alive. `found` is told the progress, and in the end what each head changes.
 */
async function measuring({ net, base }, heads, { tokens, q, off, logits, best }, found) {
  const settings = { temperature: 1, top_p: 1, top_k: logits.length };
  const chance = (all) => chancesOf(all, settings).chances[best];
  const text = tokens.slice(0, q + 1);
  const matters = [];
  for (const one of heads) {
    const reading = readingOf(net, [...off, one], base);
    while (!reading.extend(text, performance.now() + SLICE)) await pause();
    const without = reading.logits(q);
    const changes = without.indexOf(Math.max(...without)) !== best;
    matters.push({ from: chance(logits), to: chance(without), changes });
    if (!found(matters)) return;
    await pause();
  }
}

/** The sentences under the figure: which piece comes next, and from how many. */
function sentenceOf(now, model, data) {
  const { spans, tokens, q, chances, usual, kept, off, nameOf } = now;
  const named = (all) => {
    const token = all.indexOf(Math.max(...all));
    return [nameOf(token), show(all[token], 2)];
  };
  const before = q === tokens.length - 1 ? spans : spans.slice(0, q);
  const text = before.map((span) => span.text).join("");
  const words = text
    .split(/[ \t\r\n]+/)
    .filter(Boolean)
    .slice(-3)
    .join(" ");
  const isSure = model.get("temperature") === 0;
  return together(
    words
      ? phrase("next", [...words].slice(-40).join(""), ...named(chances))
      : phrase("first", ...named(chances)),
    off.length > 0 && phrase("whole", ...named(usual)),
    isSure && phrase("sure"),
    !isSure && kept < data.tokens && phrase("some", kept, data.tokens),
    tokens.length === data.longest && phrase("full", data.longest),
  );
}

/** The heads: sorted, one of them opened, some switched off. */
function headView(figure, model, data, state, act) {
  const heads = range(data.layers).flatMap((layer) =>
    range(data.heads).map((head) => [layer, head]),
  );
  const toggle = (one) => {
    const others = model.get("off").filter((other) => `${other}` !== `${one}`);
    figure.set("off", others.length < model.get("off").length ? others : [...others, one]);
  };
  const choose = (one) =>
    act.withModel(() => {
      if (`${state.chosen}` === `${one}`) return toggle(one);
      state.chosen = one;
      figure.redraw();
    });
  const tiles = headTiles(heads, choose);
  const opened = h("span", {});
  const flip = chip("", () => act.withModel(() => toggle(state.chosen)));
  const restore = chip(t("all on"), () => figure.set("off", []));
  figure.choice({
    label: t("heads by"),
    name: "sort",
    options: [
      ["layer", t("layer")],
      ["far", t("looks far")],
      ["matters", t("matters here")],
    ],
    get: () => state.sort,
    change: (sort) => {
      state.sort = sort;
      act.withModel(() => figure.move({}));
    },
  });
  const sorting = figure.form.querySelector(".af-controls").lastChild;
  const line = h("div", { class: "af-opened" }, opened, flip, restore);
  const node = h("div", { class: "af-headview" }, sorting, tiles.node, line);

  const draw = (now) => {
    const { rows, q, tokens, off, nameOf, best, matters } = now;
    const far = heads.map(([layer, head]) =>
      sum(rows[layer][head].map((weight, k) => weight * (q - k))),
    );
    const loss = matters?.map(({ from, to, changes }) => (changes ? 2 : 0) + Math.abs(from - to));
    const by = { far, matters: loss }[state.sort];
    const order = range(heads.length).sort((a, b) => (by ? by[b] - by[a] : 0) || a - b);
    const isOff = (one) => off.some((other) => `${other}` === `${one}`);
    const about = (one, i) => {
      const [layer, head] = one;
      const row = rows[layer][head];
      const k = row.indexOf(Math.max(...row));
      const effect = matters?.[i];
      let reading = t`layer ${layer}, head ${head} looks most at “${nameOf(tokens[k])}”, weight ${show(row[k], 2)}`;
      if (effect)
        reading = t`without head ${head} of layer ${layer} “${nameOf(best)}” goes from ${show(effect.from, 2)} to ${show(effect.to, 2)}`;
      if (isOff(one)) reading = t`layer ${layer}, head ${head} is off`;
      return {
        row,
        reading,
        isOff: isOff(one),
        isChosen: `${one}` === `${state.chosen}`,
        isKey: Boolean(effect?.changes),
        value: effect ? effect.to - effect.from : row[k],
      };
    };
    tiles.draw(order, tokens.length, about);
    const one = state.pointed ?? state.chosen;
    const i = heads.findIndex((other) => `${other}` === `${one}`);
    const hint = hovers
      ? t("Point at a head: a marker shows where it looks. Click it to open it.")
      : t("Tap a head: a marker shows where it looks.");
    const isTried = heads.some((each, place) => about(each, place).isKey);
    const key = isTried ? t("Outlined: off, it changes the piece.") : t("␣ is a space.");
    write(opened, one ? about(one, i).reading : together(hint, key));
    flip.hidden = !state.chosen;
    write(flip, state.chosen && isOff(state.chosen) ? t("switch on") : t("switch off"));
    restore.hidden = !off.length;
    return one && rows[one[0]][one[1]];
  };
  return { node, draw, heads };
}

export default {
  render({ model, el }) {
    const data = model.get("data");
    // `mind` is the net with its tokenizer and what it has read, once it is here.
    const state = { mind: null, place: null, chosen: null, pointed: null, sort: "layer" };
    let [coming, hasFailed, timer] = [null, false, 0];
    let [now, measured] = [
      { off: [], matters: null },
      { key: "", matters: null },
    ];
    const look = lookingOf(model, data, state);
    const figure = frame(
      { model, el },
      {
        ...lessonOf(() => now, data),
        lines: roomy(2, data.small ? 2 : 3),
        pointed: (mark) => {
          const [what, ...one] = mark?.dataset.key?.split(" ") ?? [];
          const next = what === "head" ? one.map(Number) : null;
          if (`${next}` === `${state.pointed}`) return;
          state.pointed = next;
          figure.redraw();
        },
      },
    );
    const { form, stage } = figure;
    form.classList.add("af-tale");
    form.classList.toggle("af-small-tale", data.small);

    /** Bring the model here, once; where that fails say so, and try again when asked again. */
    const begin = () => {
      hasFailed = false;
      coming ??= fetched(model, data)
        .then((file) => {
          const net = decoder({ ...data, ...file });
          const base = readingOf(net, []);
          const words = tokenizer(file);
          state.mind = { net, ...words, spansOf: spanning(words), base, off: [], reading: base };
        })
        .catch((error) => {
          [coming, hasFailed] = [null, true];
          halt();
          figure.tell(
            t`The model cannot run here (${error.message}), so the picture stays as it is.`,
          );
        })
        .finally(() => figure.redraw());
      return coming;
    };
    const withModel = (action) => {
      if (state.mind) return action();
      begin().then(() => state.mind && action());
      figure.redraw();
    };
    const halt = () => {
      clearInterval(timer);
      timer = 0;
      write(go, goes);
    };
    const goes = t("Go on");
    /** Make this the story, unless it is too long. */
    const become = (story) => {
      if (state.mind.spansOf(story).length < data.longest) return figure.set("story", story);
      halt();
      figure.tell(phrase("full", data.longest));
      figure.redraw();
    };
    const spansNow = () => state.mind.spansOf(model.get("story"));
    /** Write a piece after the chosen place; what stood after it goes. */
    const writePiece = (token) => {
      let story = model.get("story");
      if (state.place !== null) {
        const kept = spansNow().slice(0, state.place + 1);
        story = edited(spansNow(), kept.map((span) => span.text).join(""));
        state.place = null;
      }
      if (story.length % 2) become([...story, [token]]);
      else become([...story.slice(0, -1), [...story.at(-1), token]]);
    };
    const step = () => {
      if (!form.isConnected) return halt();
      state.place = null;
      const { chances } = look(Infinity);
      const token = model.get("temperature") ? drawn(chances, Math.random) : chances.indexOf(1);
      writePiece(token);
      if (token < FIRST_BYTE) halt(); // the story has an end
      return token;
    };
    const go = chip(goes, () => {
      if (timer) return halt();
      timer = -1;
      write(go, t("Stop"));
      withModel(() => {
        if (!timer) return; // pressed again meanwhile
        if (!matchMedia("(prefers-reduced-motion: reduce)").matches) {
          timer = setInterval(step, EVERY);
          return;
        }
        while (timer && !/[.!?\n]/.test(state.mind.nameOf(step()))); // a sentence at once
        halt();
      });
    });
    const view = pageView({
      type: (value) => {
        halt();
        withModel(() => {
          if (value.length <= 8 * data.longest) return become(edited(spansNow(), value));
          figure.tell(phrase("full", data.longest));
          figure.redraw();
        });
      },
      choose: (at) => {
        if (at === state.place) return;
        withModel(() => {
          state.place = at;
          figure.redraw();
        });
      },
    });
    const bars = pieceBars((token) => {
      halt();
      withModel(() => writePiece(token));
    });
    const { stops } = declared.controls.temperature;
    figure.choice({ name: "temperature", options: stops.map((stop) => [stop, String(stop)]) });
    const chance = form.querySelector(".af-controls").lastChild;
    const writing = h("div", { class: "af-writing-row" }, go, view.pen, chance);
    const beginnings = data.beginnings.map(([name, text]) =>
      chip(t(name), () => {
        halt();
        [state.place, state.chosen] = [null, null];
        withModel(() => figure.move({ story: [text], off: [] }));
      }),
    );
    stage.append(h("div", { class: "af-desk" }, view.node, writing), bars.node);
    let heads = null;
    if (!data.small) {
      heads = headView(figure, model, data, state, { withModel });
      stage.append(heads.node);
      figure.slider({ name: "top_p", text: (n) => show(n, 2) });
    }
    if (beginnings.length > 1) {
      const named = {
        class: "af-chips af-beginnings",
        role: "group",
        "aria-label": t("Begin with"),
      };
      figure.control(h("div", named, ...beginnings));
    }
    form.querySelector(".af-reset").addEventListener("click", () => {
      halt();
      Object.assign(state, { place: null, chosen: null, sort: "layer" });
    });
    figure.accept("off", (asked) =>
      asked?.every?.(
        (one) =>
          one?.length === 2 &&
          data.layers > one[0] &&
          data.heads > one[1] &&
          one.every((n) => Number.isInteger(n) && n >= 0),
      ),
    );
    figure.accept(
      "story",
      (asked) =>
        Array.isArray(asked) &&
        asked.length > 0 &&
        asked.every((run, i) =>
          i % 2
            ? Array.isArray(run) &&
              run.length < data.longest &&
              run.every((token) => range(data.tokens).includes(token))
            : typeof run === "string" && run.length <= 8 * data.longest,
        ),
    );

    /** Whether the measured effects belong to what is shown; else they are measured. */
    const effects = () => {
      if (state.sort !== "matters" || !state.mind) return null;
      const key = JSON.stringify([now.tokens, now.q, now.off]);
      if (measured.key !== key) {
        const mine = { key, matters: null, done: 0 };
        measured = mine;
        measuring(state.mind, heads.heads, now, (matters) => {
          if (measured !== mine || state.sort !== "matters" || !form.isConnected) return false;
          mine.done = matters.length;
          if (mine.done === heads.heads.length) mine.matters = matters;
          if (mine.matters || mine.done % 4 === 0) figure.redraw();
          return true;
        });
      }
      return measured.matters;
    };
    return figure.open(() => {
      const found = look(performance.now() + SLICE);
      const isComing = coming && !state.mind;
      form.classList.toggle("af-busy", Boolean(isComing));
      put(form, "aria-busy", Boolean(isComing || (!found && state.mind)));
      if (!found) {
        if (!state.mind && !hasFailed) begin();
        if (state.mind) setTimeout(figure.redraw);
        if (hasFailed) return t("The model is not here.");
        return state.mind ? t("The model reads the story …") : t("The model comes …");
      }
      now = found;
      now.matters = effects();
      if (state.sort === "matters" && !now.matters) put(form, "aria-busy", true);
      const row = heads?.draw(now) ?? null;
      bars.draw(now.chances, now.usual, now.nameOf);
      view.draw(now.spans, state.mind && row, state.place); // last, because it asks where the text ends
      const all = data.layers * data.heads;
      const changing = now.matters?.filter(({ changes }) => changes).length;
      const told = now.off.length
        ? t`One more off: ${changing} of ${all} heads change it.`
        : t`Switched off alone, ${changing} of ${all} heads change it.`;
      const tried = now.matters ? told : t`${measured.done ?? 0} of ${all} heads tried.`;
      return together(sentenceOf(now, model, data), state.sort === "matters" && tried);
    });
  },
};
