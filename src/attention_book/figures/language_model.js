// Chapter 11: a trained language model runs here, on the reader's own words.

const MOST_OFF = 5; // of the heads of the model that comes with the package, as its challenge asks
const FAINTEST = 0.05; // threads of smaller weights are not drawn
const MOST_SHOWN = roomy(8, 4); // of the next tokens
const LITTLE = 0.5; // nats: so little is the loss that the second challenge asks for
const PER_WORD = 350; // milliseconds that the model takes to write a word when it is watched

/** The words of `typed` as the vocabulary spells them; what it lacks stays as it is. */
function wordsOf(typed, vocabulary) {
  const found = typed.trim().split(/\s+/).filter(Boolean);
  return found.map((word) => (vocabulary.includes(word) ? word : word.toLowerCase()));
}

/** What keeps the model from reading `words`, in one sentence; nothing where it can. */
function problemOf(words, { vocabulary, longest }) {
  if (!words.length)
    return t("Type or choose a word: the model continues a text, but begins none.");
  const said = (number) => number.toLocaleString("en");
  const strange = words.find((word) => !vocabulary.includes(word));
  // Isolated, so that a word written from right to left does not turn the sentence around.
  if (strange !== undefined) {
    const word = `\u2068${Array.from(strange).slice(0, 20).join("")}\u2069`;
    return t`The model does not know “${word}”: its vocabulary has ${vocabulary.length} words.`;
  }
  if (words.length <= longest) return "";
  return t`${said(words.length)} words are too many: the model reads at most ${longest}.`;
}

/** The field for the reader's words, and the words of the vocabulary to click, in the fold `into`. */
function promptControl(figure, model, data, into) {
  const { vocabulary } = data;
  const { field, problem, complain } = wordField(figure);
  const take = (words) => {
    const found = problemOf(words, data);
    complain(found && together(found, t("The figure still shows the text before.")));
    if (found) return;
    figure.set("written", 0);
    figure.set("prompt", words.join(" "));
  };
  /** While a word is being typed, only those before it count. */
  const whole = () => {
    const words = wordsOf(field.value, vocabulary);
    const last = words.at(-1) ?? "";
    const more = vocabulary.some((word) => word.startsWith(last) && word !== last);
    const isBegun = /\S$/.test(field.value) && !vocabulary.includes(last) && more;
    return isBegun && words.length > 1 ? words.slice(0, -1) : isBegun ? null : words;
  };
  field.addEventListener("input", () => {
    const words = whole();
    if (words) take(words);
    else complain("");
  });
  field.addEventListener("change", () => take(wordsOf(field.value, vocabulary)));
  const shown = () => model.get("prompt").split(" ");
  const chips = vocabulary.map((word) => chip(word, () => take([...shown(), word])));
  const said = hovers
    ? t`Click words: ${vocabulary.length} in the vocabulary`
    : t`Tap words: ${vocabulary.length} in the vocabulary`;
  const known = h("div", { class: "af-chips" }, ...chips);
  const written = h(
    "div",
    { class: "af-control" },
    h("label", { class: "af-typed af-long" }, h("span", {}, t("your text")), field),
    problem,
    chip(t("remove the last word"), () => take(shown().slice(0, -1))),
    h("details", { class: "af-vocabulary" }, h("summary", {}, said), known),
  );
  into.append(written);
  figure.accept("prompt", (asked) => {
    const words = typeof asked === "string" ? asked.split(" ") : [];
    return !problemOf(words, data);
  });
  const toEnd = () => {
    field.scrollLeft = field.scrollWidth; // the last word is the one that matters
  };
  field.addEventListener("blur", () => requestAnimationFrame(toEnd)); // browsers go to the start first
  into.addEventListener("toggle", toEnd);
  /** Bring the field in step with the prompt, unless it says the same. */
  return (prompt) => {
    if (whole()?.join(" ") === prompt) return;
    field.value = prompt;
    toEnd();
    complain("");
  };
}

/** What the model writes and how a word is chosen, folded away where there is little room. */
function writingControls(figure, model, data) {
  const { vocabulary, longest, asks } = data;
  const into = h("div", { class: "af-choosing" });
  const summary = h("summary", {}, t("Write with it"));
  const fold = h("details", { class: "af-inside", open: roomy("", null) }, summary, into);
  figure.below.append(fold);
  const room = () => longest - model.get("prompt").split(" ").length;
  figure.slider({
    into,
    name: "written",
    stops: () => range(room() + 1),
    get: () => Math.min(model.get("written"), room()),
    play: true,
    pace: PER_WORD,
  });
  figure.slider({ into, name: "temperature", text: (n) => show(n, 1) });
  figure.slider({
    into,
    name: "top_k",
    text: (n) => (n === vocabulary.length ? t("all words") : n === 1 ? t("1 word") : t`${n} words`),
  });
  figure.slider({ into, name: "top_p", text: (n) => show(n, 2) });
  figure.slider({ into, name: "seed" });
  if (asks !== "mask") into.append(figure.tick({ name: "causal" }));
  const showPrompt = promptControl(figure, model, data, fold);
  const folded = Object.keys(declared.controls).filter(
    (name) => name !== "off" && (name !== "causal" || asks !== "mask"),
  );
  const start = folded.map((name) => model.get(name));
  let wasMoved = false;
  /** Bring the field in step, and unfold what a link has moved. */
  return () => {
    showPrompt(model.get("prompt"));
    const isMoved = folded.some((name, i) => model.get(name) !== start[i]);
    if (isMoved && !wasMoved) fold.open = true;
    wasMoved = isMoved;
  };
}

/** The strongest look of a layer's heads from the word at place `q` at another, if it is most of a head's weight. */
function lookOf({ words, weights, isOff }, layer, q) {
  const looks = weights[layer].flatMap((rows, head) =>
    isOff(layer, head)
      ? []
      : words.map((_, to) => ({ layer, head, from: q, to, weight: to === q ? 0 : rows[q][to] })),
  );
  const best = looks.sort((a, b) => b.weight - a.weight)[0];
  return best?.weight > 0.5 ? best : null;
}

/** From the word at place `q`: where the last layer looks, and where the layer before had looked from there. */
function hopsOf(now, q) {
  const last = now.weights.length - 1;
  const first = last > 0 ? lookOf(now, last, q) : null;
  return first ? [first, lookOf(now, last - 1, first.to)].filter(Boolean) : [];
}

/** The hops in one sentence, or what to do to see some. */
function hopsSentence({ words, weights }, q, [first, second] = []) {
  const last = weights.length - 1;
  if (!last) return "";
  if (q === null)
    return hovers
      ? t`Point at a word to see two hops: where layer ${last} looks from it, and where layer ${last - 1} has looked from there.`
      : t`Tap a word to see two hops: where layer ${last} looks from it, and where layer ${last - 1} has looked from there.`;
  if (!first)
    return t`From “${words[q]}” (${q}) no head of layer ${last} puts most of its weight on one other word.`;
  const [, from, to] = [q, first.from, first.to].map((k) => words[k]);
  const one = t`From “${from}” (${q}) head ${first.head} of layer ${last} looks at “${to}” (${first.to}).`;
  return second
    ? together(
        one,
        t`Before that, head ${second.head} of layer ${last - 1} has looked from “${to}” at “${words[second.to]}” (${second.to}).`,
      )
    : one;
}

const TALL = 28; // a word's box
const HIGHEST = 30; // a word's loss as a bar
const BESIDE = roomy(6, 4); // between two words
const [LETTER, AROUND, NARROWEST] = roomy([9, 16, 38], [7.6, 12, 34]); // of a word's width

/** Where words stand in rows of a width, with so much room `above` each row: their left ends, widths and rows. */
function rowsOf(words, room, above) {
  let [left, row, column] = [0, 0, 0];
  return words.map((word) => {
    const wide = Math.min(room - BESIDE, Math.max(NARROWEST, LETTER * word.length + AROUND));
    if (left + wide + BESIDE > room) [left, row, column] = [0, row + 1, 0];
    const place = { x: left + BESIDE / 2 + wide / 2, y: above + row * (above + TALL), wide, row };
    left += wide + BESIDE;
    return { ...place, column: column++, above };
  });
}

/** The path of a thread between two words; `shift` keeps those of different heads apart. */
function threadPath(from, to, shift) {
  const [a, b] = [from.x + shift, to.x + shift];
  if (from === to)
    return `M${a - 6},${from.y}C${a - 14},${from.y - 22} ${a + 14},${from.y - 22} ${a + 6},${from.y}`;
  if (from.row === to.row) {
    const top = from.y - Math.min(12 + Math.abs(a - b) / 6, 1.25 * from.above);
    return `M${a},${from.y}C${a},${top} ${b},${top} ${b},${to.y}`;
  }
  const isUp = to.row < from.row;
  const [start, end] = isUp ? [from.y, to.y + TALL] : [from.y + TALL, to.y];
  const half = (end - start) / 2;
  return `M${a},${start}C${a},${start + half} ${b},${end - half} ${b},${end}`;
}

/** One thread of a layer, between two of the `places` of words. */
function threadOf(places, { layer, from, to, shift = 0 }, attributes) {
  return h("svg:path", {
    d: threadPath(places[from], places[to], shift),
    style: `--layer: ${layer}`,
    ...attributes,
  });
}

/** The threads of a head from the word at place `q`. */
function threadsOf({ weights }, places, [layer, head], q) {
  const row = weights[layer][head][q];
  const shift = 3 * (head - (weights[layer].length - 1) / 2);
  const seen = range(places.length).filter((k) => row[k] >= FAINTEST);
  return seen.map((to) =>
    threadOf(
      places,
      { layer, from: q, to, shift },
      {
        class: "af-thread af-of-layer",
        pathLength: 1,
        "stroke-width": 0.6 + 3.4 * row[to],
        "stroke-opacity": 0.25 + 0.75 * row[to],
      },
    ),
  );
}

/** One word: a box in the colour of its loss, and above the threads its letters, which can be read out. */
function wordBox(word, { x, y, wide, row, column }, { kind, loss }) {
  const box = () => h("svg:rect", { x: x - wide / 2, y, width: wide, height: TALL, rx: 6 });
  const letters = h("svg:text", { x, y: y + 19, "text-anchor": "middle" }, word);
  const under = h("svg:g", { class: kind, style: `--loss: ${loss}` }, box());
  const over = h("svg:g", { class: "af-box af-over" }, box(), letters);
  return { under, over: mark(over, row, column) };
}

/** The loss of each word as a bar over it; dashed, what it was with the mask. */
function lossBars() {
  const node = h("svg:g", { "aria-hidden": "true" });
  const made = [];
  const one = () => {
    const before = h("svg:rect", { class: "af-loss-before" });
    const bar = h("svg:rect", { class: "af-loss" });
    const value = h("svg:text", { "text-anchor": "middle" });
    const parts = h("svg:g", {}, bar, before, value);
    node.append(parts);
    return { bar, before, value, parts };
  };
  const draw = (places, { losses, masked, settings }, most) => {
    while (made.length < places.length) made.push(one());
    while (made.length > places.length) made.pop().parts.remove();
    const scale = HIGHEST / Math.max(most, ...masked.slice(1), ...losses.slice(1));
    made.forEach(({ bar, before, value }, i) => {
      const { x, y } = places[i];
      const raise = (rect, loss) => {
        const height = scale * (loss ?? 0);
        for (const [name, number] of Object.entries({
          x: x - 12,
          width: 24,
          y: y - height,
          height,
        }))
          put(rect, name, number);
      };
      const other = settings.causal ? 0 : masked[i];
      raise(bar, losses[i]);
      raise(before, other);
      const top = scale * Math.max(losses[i] ?? 0, other ?? 0); // above both, which cross no number
      put(value, "transform", `translate(${x} ${y - 4 - top})`);
      write(value, i ? show(losses[i], 2) : "");
    });
  };
  return { node, draw };
}

/**
 * The text in rows of boxes, the threads from one word to where the heads look, and the two hops; what
 * they are in words stands in the fold of the heads, if there is one.
 */
function textView({ vocabulary, asks }, figure, fold) {
  const boxes = h("svg:g", { "aria-hidden": "true" });
  const paths = h("svg:g", { "aria-hidden": "true" });
  const texts = h("svg:g", {
    "data-marks": "",
    role: "group",
    "aria-label": t("text"),
    "data-say": "below",
  });
  const bars = asks === "mask" ? lossBars() : null;
  const above = bars ? HIGHEST + 20 : roomy(30, 18);
  const picture = h(
    "svg:svg",
    { class: "af-weave af-text" },
    ...(bars ? [bars.node] : []),
    paths,
    boxes,
    texts,
  );
  const sentence = h("p", { class: "af-hops" });
  const pane = h("div", { class: "af-pane" }, picture);
  const key = h("p", { class: "af-loss-key" });
  const keyOf = ({ causal }) => {
    if (!bars) return t("The stronger the orange, the less the word was expected.");
    return causal ? t("Bars: loss in nats.") : t("Bars: loss in nats. Dashed: with the mask.");
  };
  const node = h("div", { class: "af-words" }, pane, ...(bars ? [] : [key]));
  if (fold) fold.append(sentence);
  else roomy(node, figure.below).prepend(sentence);
  figure.stage.append(node);
  if (bars)
    figure.stage.append(h("div", { class: "af-masked" }, figure.tick({ name: "causal" }), key));
  let [last, room, places, rows] = [null, 0, [], 0]; // rows that a prompt has needed; what is written scrolls

  /**
   * Draw the threads of the word at place `pointed`, of all heads and its hops, or of one head alone.
   * Where none is pointed at, those of the last word: its hops would answer what the reader is asked.
   */
  const look = (pointed, only = null) => {
    if (!last) return;
    const q = pointed ?? last.words.length - 1;
    const isAsked = !bars || pointed !== null || only;
    const isDrawn = (layer, head) =>
      isAsked && !last.isOff(layer, head) && (!only || `${only}` === `${[layer, head]}`);
    const drawn = last.weights.flatMap((heads, layer) =>
      heads.flatMap((_, head) =>
        isDrawn(layer, head) ? threadsOf(last, places, [layer, head], q) : [],
      ),
    );
    const hops = pointed === null ? [] : hopsOf(last, q);
    const arcs = (only ? [] : hops).map((hop) =>
      threadOf(places, hop, {
        class: "af-hop af-of-layer",
        "data-key": ["hop", hop.layer, hop.head].join(" "),
      }),
    );
    paths.replaceChildren(...drawn, ...arcs);
    picture.classList.toggle("af-hopping", arcs.length > 0);
    write(sentence, hopsSentence(last, pointed, hops));
    const ends = hops.map((hop) => hop.to);
    for (const [i, one] of [...texts.children].entries()) {
      one.classList.toggle("af-from", i === q);
      one.classList.toggle("af-met", !only && ends.includes(i));
    }
  };
  const draw = (now, pointed) => {
    const before = last;
    last = now;
    write(key, keyOf(now.settings));
    room = picture.clientWidth || 680;
    places = rowsOf(now.words, room, above);
    rows = Math.max(rows, Math.min(places[now.prompted - 1].row + 1, bars ? 2 : 3));
    pane.style.setProperty("--height", `${rows * (above + TALL) + BESIDE}px`);
    put(picture, "viewBox", `0 0 ${room} ${places.at(-1).y + TALL + BESIDE}`);
    const most = Math.log(vocabulary.length);
    const made = now.words.map((word, i) => {
      const kind = i < now.prompted ? "af-box" : "af-box af-written";
      const loss = Math.min(1, (now.losses[i] ?? 0) / most);
      const { under, over } = wordBox(word, places[i], { kind, loss });
      say(over, `word ${i}`, now.losses[i] ?? "", now.readings[i]);
      return [under, over];
    });
    boxes.replaceChildren(...made.map(([under]) => under));
    texts.replaceChildren(...made.map(([, over]) => over));
    bars?.draw(places, now, most);
    look(pointed);
    if (now.words.length !== before?.words.length) pane.scrollTop = pane.scrollHeight;
    const isOneMore = before && now.words.length === before.words.length + 1;
    const fresh = [boxes.lastChild, texts.lastChild, ...paths.children];
    for (const one of isOneMore ? fresh : []) one.classList.add("af-fresh");
  };
  new ResizeObserver(() => {
    if (last && picture.clientWidth !== room) draw(last, null);
  }).observe(picture);
  return { draw, look };
}

/** The likeliest next words as bars. */
function nextBars() {
  const rows = range(MOST_SHOWN).map((i) => {
    const word = h("span", { class: "af-next-word" });
    const bar = h("span", { class: "af-next-bar" });
    const value = h("span", { class: "af-value" });
    const node = h("div", { class: "af-next" }, word, bar, value);
    return { word, bar, value, node: mark(node, i, 0) };
  });
  const node = h(
    "div",
    { "data-marks": "", role: "group", "aria-label": t("next words") },
    ...rows.map((row) => row.node),
  );
  /** Show what may come after `word`, the one at place `q`, and had come with every head on; the token `kept` stays in sight. */
  const draw = ({ chances, before }, vocabulary, word, q, kept) => {
    write(title, t`Next word after “${word}” (${q})`);
    const best = likeliest(chances, rows.length, kept);
    rows.forEach((row, i) => {
      row.node.hidden = i >= best.length;
      if (row.node.hidden) return;
      const [token, chance] = [best[i], chances[best[i]]];
      write(row.word, vocabulary[token]);
      write(row.value, show(chance, 3));
      row.bar.style.setProperty("--chance", chance);
      row.bar.style.setProperty("--before", before[token]);
      const isChanged = before[token] >= 0.005 && Math.abs(before[token] - chance) >= 0.005;
      row.bar.classList.toggle("af-compared", isChanged);
      row.node.classList.toggle("af-cut", chance === 0);
      const reading = chance
        ? t`“${vocabulary[token]}” is drawn next with probability ${show(chance, 4)}`
        : t`“${vocabulary[token]}” cannot be drawn with these settings`;
      say(row.node, `next ${token}`, chance, reading);
    });
  };
  const whole = panel("", node);
  const title = whole.firstChild;
  whole.classList.add("af-nexts");
  return { node: whole, draw };
}

/** A switch for each head, with the word at which it looks most. */
function headSwitches(data, change) {
  const columns = Math.min(4, data.heads);
  const heads = range(data.layers).flatMap((layer) =>
    range(data.heads).map((head) => {
      const title = t`layer ${layer}, head ${head}`;
      const input = h("input", { type: "checkbox", "aria-label": title });
      input.addEventListener("change", () => change([layer, head], input.checked));
      const looks = mark(h("span", { class: "af-looks" }), layer, head);
      const name = h("label", {}, input, t`head ${head}`);
      const node = h("div", { class: "af-switch" }, name, looks);
      return { one: [layer, head], title, input, looks, node };
    }),
  );
  const node = h(
    "div",
    { "data-marks": "", role: "group", "aria-label": t("heads") },
    ...range(data.layers).map((layer) =>
      h(
        "div",
        {
          class: "af-layer",
          style: `--layer: ${layer}; --columns: ${columns}; --lines: ${Math.ceil(data.heads / columns)}`,
        },
        h("p", { class: "af-layer-name" }, t`layer ${layer}`),
        ...heads.filter(({ one }) => one[0] === layer).map((head) => head.node),
      ),
    ),
  );
  /** Say where each head looks from the word at place `q`. */
  const draw = ({ words, weights, isOff }, q) => {
    write(title, t`Where the heads look from “${words[q]}” (${q})`);
    for (const { one, title, input, looks, node } of heads) {
      const row = weights[one[0]][one[1]][q];
      const k = row.indexOf(Math.max(...row));
      input.checked = !isOff(...one);
      node.classList.toggle("af-gone", isOff(...one));
      looks.style.setProperty("--weight", isOff(...one) ? 0 : row[k]);
      write(looks, isOff(...one) ? t("is off") : `→\u2009${words[k]}`);
      const reading = isOff(...one)
        ? t`${title} is off: it adds nothing`
        : t`${title} looks from “${words[q]}” (${q}) most at “${words[k]}” (${k}), weight ${show(row[k], 4)}`;
      say(looks, `looks ${one.join(" ")}`, row[k], reading);
    }
  };
  const whole = panel("", node);
  const title = whole.firstChild;
  whole.classList.add("af-layers");
  return { node: whole, draw };
}

/** All that the model does with the prompt under the settings, computed once for each. */
function reader(model, net, { vocabulary, longest }) {
  const names = Object.keys(declared.controls);
  let [made, madeFor, read, readFor] = [null, "", null, ""];
  return () => {
    const settings = Object.fromEntries(names.map((name) => [name, model.get(name)]));
    const key = JSON.stringify(settings);
    if (key === madeFor) return made;
    const prompt = settings.prompt.split(" ").map((word) => vocabulary.indexOf(word));
    const number = Math.min(settings.written, longest - prompt.length);
    const text = [...prompt, ...net.write(prompt, number, settings)];
    const same = JSON.stringify([text, settings.causal, settings.off]);
    if (same !== readFor) {
      read = { ...net.read(text, settings) }; // what it computes when it is asked, once
      const { off, causal } = settings;
      const other = (switches) => net.read(text, { ...settings, ...switches }).logits;
      read.losses = lossesOf(text, read.logits);
      read.masked = causal ? read.losses : lossesOf(text, other({ causal: true }));
      read.whole = off.length ? other({ off: [] }) : read.logits; // with every head on
      readFor = same;
    }
    madeFor = key;
    made = { settings, prompted: prompt.length, text, ...read };
    Object.assign(made, chancesOf(read.logits.at(-1), settings));
    return made;
  };
}

/** How many heads are off, and what was the likeliest word with all of them on. */
function offSentence({ settings, whole }, chances, vocabulary, q) {
  const number = settings.off.length;
  if (!number) return "";
  const before = chancesOf(whole[q], settings).chances;
  const was = before.indexOf(Math.max(...before));
  const values = [vocabulary[was], show(chances[was], 3), show(before[was], 3)];
  return number === 1 ? phrase("one off", ...values) : phrase("off", number, ...values);
}

/** What comes after the word at place `q`, or what the text costs with and without the mask. */
function sentencesOf(all, data, q) {
  const { settings, text, losses, masked } = all;
  const { vocabulary, longest } = data;
  const { chances, kept } = chancesOf(all.logits[q], settings);
  const best = chances.indexOf(Math.max(...chances));
  const number = vocabulary.length;
  const isMore = text.length > 1;
  const claims = () => {
    if (settings.off.length === data.layers * data.heads) return phrase("no heads");
    const costs = [losses, masked].map((each) => isMore && show(costOf(each), 2));
    if (!settings.causal && isMore) return phrase("unmasked", ...costs);
    if (data.asks === "mask" && isMore) return phrase("cost", costs[0]);
    return together(
      phrase("next", vocabulary[text[q]], vocabulary[best], show(chances[best], 3)),
      offSentence(all, chances, vocabulary, q) || (isMore && phrase("cost", costs[0])),
    );
  };
  let which = kept < number && phrase("some", kept, number);
  if (kept === 1) which = phrase("one");
  if (settings.temperature === 0) which = phrase("likeliest");
  return together(claims(), which, text.length === longest && phrase("full", longest));
}

/** What is read out of each word of the text. */
function readingsOf({ text, losses, prompted }, vocabulary) {
  return text.map((token, i) => {
    const word = vocabulary[token];
    if (i === 0) return t`“${word}” (0) begins the text, so nothing predicts it`;
    const [chance, loss] = [show(Math.exp(-losses[i]), 3), show(losses[i], 2)];
    return i < prompted
      ? t`“${word}” (${i}): the model gave it the probability ${chance}, a loss of ${loss} nats`
      : t`“${word}” (${i}), written by the model, which gives it the probability ${chance}, a loss of ${loss} nats`;
  });
}

/** What the reader predicts of the mask: the answer is what the model of the page does with the opening text. */
function maskLesson(model, now, net, { vocabulary }) {
  const prompt = model.get("prompt");
  const text = prompt.split(" ").map((word) => vocabulary.indexOf(word));
  const [masked, bare] = [true, false].map((causal) =>
    costOf(lossesOf(text, net.read(text, { causal, off: [] }).logits)),
  );
  const change = Math.round(100 * (bare - masked));
  return {
    question: t("Take the causal mask away: what happens to the loss of this text?"),
    answers: [t("it rises"), t("it stays"), t("it falls")],
    right: 1 - Math.sign(change),
    because: t`Its words cost ${show(masked, 2)} nats each with the mask and ${show(bare, 2)} without: now a position sees the word that it has to predict, and mostly uses it.`,
    seen: () =>
      !model.get("causal") &&
      model.get("prompt") === prompt &&
      !model.get("written") &&
      !model.get("off").length,
    toSee: t("take the mask away"),
    challenge: {
      task: t`type a text under “Write with it” whose words cost less than ${show(LITTLE, 1)} nats each, with the mask in place`,
      met: () => model.get("causal") && costOf(now().losses) < LITTLE,
    },
  };
}

/** What the reader predicts of the heads, and is challenged to find. */
function headsLesson(model, now, { asks, back, wanted, prompt, vocabulary }) {
  const isOff = ([layer, head]) => model.get("off").some((one) => `${one}` === `${[layer, head]}`);
  return {
    question:
      asks &&
      t(
        "The second mention of a name brings back its thing. Which one head makes the model lose it when you switch it off?",
      ),
    answers: [
      t("a head of layer 0, which looks one word back"),
      t("a head of layer 1, which looks at the thing"),
      t("none: the others take over"),
    ],
    right: 0,
    because:
      asks &&
      together(
        t`Head ${back[1]} of layer ${back[0]} tells each thing whose it is. Without it the heads of layer 1 do not know which thing to look for, whereas any one of them can be missing.`,
        hovers
          ? t`With it on, point at “${wanted}” to see it.`
          : t`With it on, tap “${wanted}” to see it.`,
      ),
    seen: () => model.get("off").length === 1 && isOff(back),
    toSee: t("switch the heads off, one at a time"),
    challenge: asks
      ? {
          task: t`switch off five heads and keep “${wanted}” above 0.5, at temperature 1`,
          met: () => {
            const { chances, settings } = now();
            const isOpening = settings.prompt === prompt && settings.temperature === 1;
            const chance = chances[vocabulary.indexOf(wanted)];
            return (
              isOpening && !settings.written && settings.off.length >= MOST_OFF && chance > 0.5
            );
          },
        }
      : null,
  };
}

export default {
  render({ model, el }) {
    const data = model.get("data");
    const { vocabulary } = data;
    const net = decoder(data);
    const now = reader(model, net, data);
    const lesson =
      data.asks === "mask" ? maskLesson(model, now, net, data) : headsLesson(model, now, data);
    const figure = frame(
      { model, el },
      { lines: data.asks === "mask" ? roomy(1, 2) : 2, ...lesson },
    );
    figure.form.classList.add("af-writer");
    // What the mask does is asked without the heads.
    const fold =
      data.asks === "mask" &&
      h("details", { class: "af-inside" }, h("summary", {}, t("Where its heads look")));
    const view = textView(data, figure, fold);
    const bars = nextBars();
    const change = (one, isOn) => {
      const others = model.get("off").filter((other) => `${other}` !== `${one}`);
      figure.set("off", isOn ? others : [...others, one]);
    };
    const heads = headSwitches(data, change);
    if (fold) fold.append(heads.node);
    figure.stage.append(h("div", { class: "af-row" }, bars.node, fold || heads.node));
    const unfold = writingControls(figure, model, data);
    figure.accept(
      "off",
      (asked) =>
        Array.isArray(asked) &&
        asked.every(
          (one) =>
            Array.isArray(one) &&
            one.length === 2 &&
            range(data.layers).includes(one[0]) &&
            range(data.heads).includes(one[1]),
        ),
    );

    let [shown, pointed] = [null, null]; // a word that was pointed at stays chosen until the stage is left
    const look = ({ target }) => {
      const [what, ...at] = target.closest?.("[data-key]")?.dataset.key.split(" ") ?? [];
      const numbers = at.map(Number);
      if (what === "word") pointed = numbers[0];
      view.look(pointed, what === "looks" ? numbers : null);
      tell();
    };
    /** Show what comes after that word, or the last, and where the heads look from there; returns it in words. */
    const tell = () => {
      const q = pointed ?? shown.words.length - 1;
      const { chances } = chancesOf(shown.logits[q], shown.settings);
      const before = chancesOf(shown.whole[q], shown.settings).chances;
      const isOpening = shown.settings.prompt === data.prompt && !shown.settings.written;
      const kept = isOpening && q === shown.words.length - 1 ? data.wanted : "";
      bars.draw({ chances, before }, vocabulary, shown.words[q], q, vocabulary.indexOf(kept));
      heads.draw(shown, q);
      const sentence = sentencesOf(shown, data, q);
      write(figure.now, sentence);
      return sentence;
    };
    const leave = ({ pointerType, relatedTarget }) => {
      // A finger leaves as soon as it has tapped.
      const isInside = figure.stage.contains(relatedTarget) || figure.stage.matches(":hover");
      if (pointerType === "touch" || (!pointerType && isInside)) return;
      pointed = null;
      view.look(null);
      tell();
    };
    for (const event of ["pointerover", "focusin"]) figure.stage.addEventListener(event, look);
    for (const event of ["pointerleave", "focusout"]) figure.stage.addEventListener(event, leave);

    return figure.open(() => {
      const all = now();
      const isOff = (layer, head) =>
        all.settings.off.some((one) => `${one}` === `${[layer, head]}`);
      const words = all.text.map((token) => vocabulary[token]);
      if (words.join(" ") !== shown?.words.join(" ")) pointed = null;
      shown = { ...all, words, isOff, readings: readingsOf(all, vocabulary) };
      view.draw(shown, pointed);
      unfold();
      if (fold && all.settings.off.length) fold.open = true;
      return tell();
    });
  },
};
