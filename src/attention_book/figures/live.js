// Chapter 9 and the start page: a trained encoder–decoder runs here, on the reader's own word.

const MOST_LETTERS = 12;
const FAINT = 0.02; // threads of smaller weights are not drawn
const PER_LETTER = 350; // milliseconds that the model takes to write a letter when it is watched
// All of which it gets right; where it asks, about the first two.
const TO_TRY = ["level", "banana", "attention"];
const ASKED = ["live", "evil", "attention"];
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
function tell({ word, switches, right, wanted, text, ended, total }, shown, says, data, looked) {
  if (!shown.length) return phrase("read", word);
  const whole = shown.length === total;
  let reads = phrase("wrong", word, text, wanted);
  if (right) reads = phrase("right", word, text);
  else if (text === wanted) reads = phrase("endless", word, text);
  else if (!ended) reads = phrase("wrong and endless", word, text, wanted);
  if (!text && ended) reads = phrase("empty", word, wanted);
  const { length: off } = switches.off;
  const others = says.filter((token, i) => token !== shown[i]).length;
  return together(
    whole ? reads : looked ? phrase("looked", ...looked) : phrase("some", shown.length, total),
    off > 0 && (off === 1 ? phrase("one off") : phrase("some off", off)),
    whole &&
      !switches.positions &&
      (text && word !== wanted ? phrase("as reversed", wanted, text) : phrase("no positions")),
    whole && word.length > data.longest && phrase("long", data.longest),
    whole && word.length < data.shortest && phrase("short", data.shortest),
    !switches.causal && phrase("unmasked"),
    !switches.causal && phrase("in one pass", others, says.length),
  );
}

const LABELS = [78, 50]; // the column of words on the left: units of the drawing, and pixels at least
const [NEAR, FAR] = [43, 130]; // from one letter to the next, at least and at most
const SIDE = 38; // of a letter's box
const READS = 22; // the top of the upper row
const FOOT = 64; // from the top of the lower row to the end
const HEIGHT = roomy(216, 172); // pixels, for a long word too

/** Where things stand in a drawing `room` pixels wide with at most `number` letters in a row, and
 * where a weight of query q for key k runs: above what is read, across, or below what is written. What
 * the decoder reads at a position is the token before it, and at the first one the start. */
function layoutOf(room, number) {
  const [usual, least] = LABELS;
  const labels = Math.max(usual, (least * NEAR * number) / (room - least)); // where all is drawn smaller
  const step = Math.min(FAR, Math.max(NEAR, (room - labels) / number));
  const x = (i) => labels + step * (i + 0.5);
  const start = labels - 10; // the decoder's first input, before all that it writes
  const input = (i) => (i ? x(i - 1) : start);
  const arc = (from, to, y, top) => {
    const apart = from === to ? 8 : 0; // a weight for the query's own position is a loop
    const [a, b] = [from - apart, to + apart];
    return `M${a},${y}C${a},${top} ${b},${top} ${b},${y}`;
  };
  const width = Math.max(room, labels + step * number);
  const [low, high] = [(HEIGHT * width) / room - FOOT, READS + SIDE];
  return {
    x,
    start,
    width,
    low,
    sign: (0.55 * 12.2 * width) / room, // of a letter of the smallest type
    paths: {
      encoder: (q, k) => arc(x(q), x(k), READS - 1, READS - 30),
      cross: (q, k) => `M${x(q)},${low}C${x(q)},${low - 48} ${x(k)},${high + 48} ${x(k)},${high}`,
      decoder: (q, k) => arc(input(q), input(k), low + SIDE + 1, low + SIDE + 36),
    },
  };
}

/** A token in its box, and below it the other token that is named there in one pass; a letter of a word,
 * which only comes at the end, is at least as wide as `sign`. */
function box(x, y, token, other, sign) {
  const more = token.length > 1 ? Math.max(10, token.length * sign + 18 - SIDE) : 0;
  const text = (dy, kind, words, at = x) =>
    h("svg:text", { x: at, y: y + dy, class: kind, "text-anchor": "middle" }, words);
  return h(
    "svg:g",
    { class: "af-box" },
    h("svg:rect", { x: x - SIDE / 2, y, width: SIDE + more, height: SIDE, rx: 6 }),
    text(26, token.length > 1 ? "af-sign" : "af-letter", token, x + more / 2),
    text(SIDE + 18, "af-other", other),
  );
}

/** The elements of the drawing, empty. */
function weavingParts() {
  const row = (name, side) =>
    h("svg:g", { "data-marks": "", role: "group", "aria-label": name, "data-say": side });
  const label = (y, words) => h("svg:text", { class: "af-row-name", x: 0, y }, words);
  const threads = h("svg:g");
  const read = row(t("letters read"), "above");
  const written = row(t("tokens written"), "below");
  const followed = h("svg:path", { class: "af-followed" });
  const at = { y: 24, "text-anchor": "middle", "aria-hidden": "true" };
  const start = h("svg:text", { class: "af-row-name", ...at, visibility: "hidden" }, "▷");
  const [first, last = ""] = t("in one pass").split(/ (?=\S+$)/); // in two lines: the column is narrow
  const below = h("svg:tspan", { x: 0, dy: "1em" }, last);
  const others = label(SIDE + 14, "");
  others.append(first, below);
  const above = { class: "af-row-name af-wrong-name", x: 0, y: 24, dy: "-1.4em" };
  const wrong = h("svg:text", above, t("┄ wrong"));
  const named = h("svg:g", { "aria-hidden": "true" }, label(24, t("writes")), wrong, others);
  const lower = h("svg:g", {}, named, start, written);
  const upper = h("svg:g", { "aria-hidden": "true" }, label(READS + 24, t("reads")));
  const node = h("svg:svg", { class: "af-weave af-wide" }, upper, threads, followed, read, lower);
  return { node, threads, read, written, followed, start, others, wrong, lower };
}

/** Keep the threads of what is pointed at, or else of the newest token, in front of the others. */
function shade(threads, isFollowed, newest) {
  for (const { classList, dataset } of threads.children) {
    const isOn = Boolean(isFollowed?.(dataset));
    classList.toggle("af-on", isOn);
    const isNewest = newest < 0 || Number(dataset.query) === newest;
    classList.toggle("af-faded", isFollowed ? !isOn : !isNewest);
  }
}

/** Draw the tokens of a row at `places`; a box that says the same stays, and keeps the focus. */
function fillRow(row, tokens, { x: places, sign }, y, name) {
  for (const [i, [text, reading, value, other, isWrong]] of tokens.entries()) {
    const drawn = `${places(i)} ${text} ${other}`;
    const old = row.children[i];
    const one =
      old?.dataset.drawn === drawn ? old : mark(box(places(i), y, text, other, sign), 0, i);
    put(one, "data-drawn", drawn);
    one.classList.remove("af-fresh", "af-newest");
    one.classList.toggle("af-amiss", Boolean(isWrong));
    say(one, `${name} ${i}`, value, reading);
    if (!old) row.append(one);
    else if (one !== old) old.replaceWith(one);
  }
  for (const one of [...row.children].slice(tokens.length)) one.remove();
}

/** The word, what is written below it, and the weights of the cross-attention as threads. */
function weaving() {
  const { node, threads, read, written, followed, start, others, wrong, lower } = weavingParts();
  const threadOf = new Map();
  let [last, layout, room] = [null, null, 0];
  let newest = -1; // the token that is being written
  let isFollowed = null; // says of a thread whether it belongs to what is pointed at
  /** Draw a thread, or change the one that is there, so that a switch shows as a movement. */
  const thread = (q, k, weight) => {
    const id = `${q} ${k}`;
    let path = threadOf.get(id);
    if (!path) {
      path = h("svg:path", {
        class: "af-thread",
        pathLength: 1,
        "data-query": q,
        "data-source": k,
      });
      threadOf.set(id, path);
    }
    const seen = weight >= FAINT;
    put(path, "d", layout.paths.cross(q, k));
    put(path, "stroke-width", seen ? 0.6 + 5.4 * weight : 0);
    put(path, "stroke-opacity", seen ? 0.22 + 0.78 * weight : 0);
    path.classList.remove("af-fresh");
    return path;
  };
  /** Let the tokens from position `first` on appear one after another, each with its threads. */
  const appear = (first) => {
    const fresh = (one, q) => {
      one.classList.toggle("af-fresh", q >= first);
      one.style.setProperty("--after", `${(q - first) * PER_LETTER}ms`);
    };
    for (const [q, one] of [...written.children].entries()) fresh(one, q);
    for (const one of threads.children) fresh(one, Number(one.dataset.query));
  };
  /** `now` has the `word`, the tokens in both rows as [text, reading, value, other text, is wrong], the
   * `weights` (written, read) and how many tokens there will be. */
  const draw = (now) => {
    const before = last;
    last = now;
    room = node.clientWidth;
    layout = layoutOf(room || 680, now.read.length + MARGIN); // for all that can be written
    put(start, "x", layout.start);
    put(lower, "transform", `translate(0 ${layout.low})`);
    const shrunk = layout.width / (room || layout.width);
    put(node, "viewBox", `0 0 ${layout.width} ${HEIGHT * shrunk}`);
    node.style.setProperty("--shrunk", shrunk);
    if (before?.word !== now.word) threadOf.clear();
    const paths = now.weights.flatMap((weights, q) => weights.map((w, k) => thread(q, k, w)));
    const kept = new Set(paths);
    for (const one of [...threads.children]) if (!kept.has(one)) one.remove();
    for (const one of paths) if (!one.parentNode) threads.append(one);
    fillRow(read, now.read, layout, READS, "letter");
    fillRow(written, now.written, layout, 0, "token");
    newest = now.written.length < now.most ? now.written.length - 1 : -1;
    written.children[newest]?.classList.add("af-newest");
    shade(threads, isFollowed, newest);
    put(wrong, "visibility", now.written.some((token) => token[4]) ? null : "hidden");
    put(others, "visibility", now.written.some(([, , , other]) => other) ? null : "hidden");
    const one = before?.word === now.word && now.written.length === before.written.length + 1;
    if (one) appear(before.written.length);
  };
  const follow = (use, q, k) => {
    put(followed, "d", layout.paths[use]?.(q, k));
    put(start, "visibility", use === "decoder" && !(q && k) ? null : "hidden");
    const end = { token: "query", letter: "source" }[use];
    isFollowed = end ? (dataset) => Number(dataset[end]) === q : null;
    shade(threads, isFollowed, newest);
  };
  new ResizeObserver(() => {
    if (last && node.clientWidth !== room) draw(last);
  }).observe(node);
  return { node, draw, follow };
}

/** A switch and a map for every head; `change(head, isOn)` is told what is switched. */
function mapsOf(every, { letters, names, layers, change }) {
  const maps = every.map((one) => {
    const [use, layer, head] = one;
    const [name, title] =
      layers > 1
        ? [t`layer ${layer}, head ${head}`, t`${USES[use]}, layer ${layer}, head ${head}`]
        : [t`head ${head}`, t`${USES[use]}, head ${head}`];
    const input = h("input", { type: "checkbox", "aria-label": title });
    input.addEventListener("change", () => change(one, input.checked));
    const slot = h("div");
    const sides = h(
      "div",
      { class: "af-sides", "aria-hidden": "true" },
      dimension("queries", t("queries ↓")),
      dimension("keys", t("keys →")),
    );
    const node = h("div", { class: "af-small" }, h("label", {}, input, name), sides, slot);
    return { one, title, input, slot, node };
  });
  const panels = Object.entries(USES).map(([use, title]) => {
    const own = maps.filter(({ one }) => one[0] === use);
    return panel(title, h("div", { class: "af-row" }, ...own.map(({ node }) => node)));
  });

  /** Fill one map; a weight of a token that is not written yet is undefined. */
  const fillOne = (map, { rows, columns, weights, isOff, causal }) => {
    const [use, layer, head] = map.one;
    const isOnce = use !== "encoder" && !causal;
    const title = isOnce ? t`${map.title}, in one pass` : map.title;
    const key = `${rows} ${columns}`;
    if (map.key !== key) {
      const signs = (tokens) => tokens.map((token) => letters[token] ?? "▷");
      map.key = key;
      map.grid = grid({ title: map.title, rows: signs(rows), columns: signs(columns), dims: [] });
      map.slot.replaceChildren(map.grid.node);
    }
    map.input.checked = !isOff;
    map.node.classList.toggle("af-gone", isOff);
    const ahead = (q, k) => use === "decoder" && causal && k > q;
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
              ? t`${title}: ${names[row]} (${q}) gives ${names[column]} (${k}) no weight yet`
              : t`${title}: ${names[row]} (${q}) gives ${names[column]} (${k}) the weight ${show(weight, 4)}`,
        });
      });
    });
  };
  /** Mark what concerns the token or the letter at place `i`, which the reader points at. */
  const follow = (kind, i) => {
    const rows = { token: ["decoder", "cross"], letter: ["encoder"] };
    const columns = { letter: ["cross"] };
    for (const { one, grid } of maps) {
      const [isRow, isColumn] = [rows, columns].map((lit) => lit[kind]?.includes(one[0]) ?? false);
      grid.cells.forEach((row, q) =>
        row.forEach((cell, k) =>
          cell.classList.toggle("af-lit", (isRow && q === i) || (isColumn && k === i)),
        ),
      );
    }
  };
  return { maps, panels, fillOne, follow };
}

/** All that the model writes for the word under the switches, computed once for each. */
function runner(model, net, names) {
  let [made, madeFor] = [null, ""];
  return () => {
    const [word, positions, causal, off] = ["word", "positions", "causal", "off"].map((name) =>
      model.get(name),
    );
    const key = JSON.stringify([word, positions, causal, off]);
    if (key === madeFor) return made;
    const switches = { positions, causal, off };
    const written = net.write(word, switches);
    const ended = written.tokens.at(-1) === net.end;
    const spelled = written.tokens.slice(0, ended ? -1 : undefined).map((token) => names[token]);
    const [text, wanted] = [spelled.join(""), [...word].reverse().join("")];
    const right = ended && text === wanted;
    const total = written.tokens.length;
    madeFor = key;
    made = { word, switches, ...written, total, ended, text, wanted, right };
    return made;
  };
}

/** The field for the reader's word, and words that are written token by token. */
function wordControl(figure, { letters, run, play, asks }) {
  const { field, problem, complain } = wordField(figure);
  const take = (word) => figure.move({ word, written: MOST_LETTERS + MARGIN });
  field.addEventListener("input", () => {
    const found = problemWith(field.value, letters);
    complain(found && together(found, t`The figure still shows “${run().word}”.`));
    if (!found) take(cleaned(field.value)); // drawing writes the shown word into the field
  });
  const chips = (asks ? ASKED : TO_TRY).map((word) =>
    chip(word, () => {
      take(word);
      play();
    }),
  );
  figure.control(
    h("label", { class: "af-typed" }, h("span", {}, t("your word")), field),
    h("div", { class: "af-chips" }, h("span", {}, t("reverse")), ...chips),
    problem,
  );
  figure.accept("word", (asked) => asked === cleaned(`${asked}`) && !problemWith(asked, letters));
  /** Bring the field in step with the word that is shown, unless it says the same. */
  return (word) => {
    if (cleaned(field.value) === word) return;
    field.value = word;
    complain("");
  };
}

/** The controls below the word: how much is written, and the two switches. Returns what plays the
 * writing. */
function controlsBelow(figure, model, run, seen) {
  const play = figure.slider({
    name: "written",
    stops: () => range(run().total + 1),
    get: () => Math.min(seen(), model.get("written"), run().total),
    text: (n) => t`${n} of ${run().total}`,
    play: true,
    pace: PER_LETTER,
  });
  figure.control(...["positions", "causal"].map((name) => figure.tick({ name })));
  return play;
}

/** Lets the word write itself, `last()` tokens in all, by drawing alone: what a link or Reset restores
 * stays. `seen()` is the number of tokens that may be drawn; every other drawing ends the writing. */
function opening(redraw, last) {
  let [number, isMine, timer] = [0, false, 0];
  const stop = () => clearInterval(timer);
  const go = (to) => {
    number = to;
    if (number >= last()) stop();
    isMine = true;
    redraw();
    isMine = false;
  };
  const play = () => {
    go(0);
    timer = setInterval(() => go(number + 1), PER_LETTER);
  };
  return { play, stop, seen: () => (isMine ? number : Infinity), drawn: () => isMine || stop() };
}

/** What the reader predicts and is challenged to find. */
function lessonOf(model, run) {
  const tried = new Set(); // words that were written without positions
  return {
    question:
      model.get("data").asks &&
      t("The model writes “evil” for “live”. What does it write for “live” without positions?"),
    answers: [t("still “evil”"), t("nothing"), t("the same as for “evil”")],
    right: 2,
    because: t(
      "Without positions the encoder reads a bag of letters, and two words of the same letters are the same to it.",
    ),
    seen: () => {
      const isWhole = model.get("written") >= run().total;
      if (!model.get("positions") && isWhole) tried.add(run().word);
      return tried.has("live") && tried.has("evil");
    },
    forget: () => tried.clear(),
    toSee: t("switch the positions off and try both words"),
    challenge: {
      task: t("with everything switched on, find a word that the model gets wrong"),
      met: () =>
        model.get("positions") && model.get("causal") && !model.get("off").length && !run().right,
    },
  };
}

/** What the drawing shows: both rows with their readings, and between them the mean weights of `heads`
 * with which each token was written, also where one pass without the mask has others. */
function woven({ all, shown, says, heads, letters, names, reads }) {
  const source = [...all.word];
  const mean = (q, k) => sum(heads.map((head) => all.looks[q][head][k])) / heads.length;
  const weights = shown.map((_, q) => (heads.length ? source.map((_, k) => mean(q, k)) : []));
  const largest = (numbers) => numbers.indexOf(Math.max(...numbers));
  const read = source.map((letter, k) => {
    const q = largest(weights.map((row) => row[k]));
    let reading = t`${letter} (${k}): no head of the cross-attention is on.`;
    if (!shown.length) reading = t`${letter} (${k}) has been read; nothing is written yet.`;
    else if (heads.length)
      reading = t`${letter} (${k}): ${names[shown[q]]} (${q}) looks at it most, weight ${show(weights[q][k], 2)}, the mean of the heads.`;
    return [letter, reading, letters.indexOf(letter), ""];
  });
  const written = shown.map((token, q) => {
    const k = largest(weights[q]);
    const reading =
      k < 0
        ? t`Position ${q}: after ${names[reads[q]]} it writes ${names[token]}; no head of the cross-attention is on.`
        : t`Position ${q}: after ${names[reads[q]]} it writes ${names[token]}; it looks most at ${source[k]} (${k}), weight ${show(weights[q][k], 2)}, the mean of the heads.`;
    const right = all.wanted[q] ?? t("end");
    const isWrong = names[token] !== right;
    const told = together(reading, isWrong && t`Right would be ${right}.`);
    return [names[token], told, token, says[q] === token ? "" : names[says[q]], isWrong];
  });
  return { word: all.word, most: reads.length, read, written, weights };
}

/** How full the key–value cache is after `number` tokens. */
function fillCache(cache, { total, bytes, word }, number) {
  const blocks = "▮".repeat(number) + "▯".repeat(total - number);
  const size = bytes[number].toLocaleString("en");
  cache.replaceChildren(
    t("Key–value cache:"),
    " ",
    h("span", { "aria-hidden": "true" }, blocks),
    " ",
    number ? t`${number} written and ${word.length} read positions, ${size} bytes.` : t("empty."),
  );
}

/** What opens below the controls: the maps, of which pass they are, and the cache. */
function insideOf(number, panels) {
  const passes = h(
    "p",
    { class: "af-passes" },
    t(
      "Without the mask, the maps of the decoder and of the cross-attention are those of one pass; the threads above are those of the writing.",
    ),
  );
  const cache = h("p", { class: "af-cache" });
  const node = h(
    "details",
    { class: "af-inside" },
    h("summary", {}, t`Look inside: ${number} attention maps`),
    passes,
    h("div", { class: "af-uses" }, ...panels),
    cache,
  );
  const draw = (all, shown) => {
    passes.hidden = all.switches.causal;
    fillCache(cache, all, shown);
  };
  return { node, draw };
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
    const isOff = (one) => model.get("off").some((other) => same(other, one));
    const run = runner(model, net, names);
    const lesson = lessonOf(model, run);
    const pointed = (mark) => {
      const [use, ...at] = mark?.dataset.key.split(" ") ?? [];
      const [q, k] = at.slice(-2).map(Number);
      weave.follow(use, q, k);
      follow(use, q);
    };
    const figure = frame({ model, el }, { pointed, lines: roomy(2, 4), ...lesson });

    const weave = weaving();
    const showWord = wordControl(figure, { ...data, run, play: () => play() });
    const itself = opening(figure.redraw, () => Math.min(model.get("written"), run().total));
    const play = controlsBelow(figure, model, run, itself.seen);
    figure.accept("off", (asked) =>
      asked.every?.((one) => every.some((other) => same(one, other))),
    );
    const change = (one, isOn) => {
      const others = model.get("off").filter((other) => !same(other, one));
      figure.set("off", isOn ? others : [...others, one]);
    };
    const { maps, panels, fillOne, follow } = mapsOf(every, { letters, names, layers, change });
    const inside = insideOf(maps.length, panels);
    figure.stage.append(weave.node);
    figure.below.append(inside.node);

    let draws = 0;
    const close = figure.open(() => {
      draws += 1;
      itself.drawn();
      const all = run();
      const shown = all.tokens.slice(0, Math.min(model.get("written"), itself.seen()));
      const blank = range(layers).map(() => range(heads).map(() => []));
      const once = shown.length
        ? net.pass({ ...all, tokens: shown }, all.switches)
        : { says: [], decoder: blank, cross: blank };
      const source = [...all.word].map((letter) => letters.indexOf(letter));
      const reads = [net.start, ...all.tokens.slice(0, -1)];
      const sides = { encoder: [source, source], decoder: [reads, reads], cross: [reads, source] };
      const weightsOf = ([use, layer, head]) =>
        (use === "encoder" ? all.encoder : once[use])[layer][head];
      for (const map of maps) {
        const [rows, columns] = sides[map.one[0]];
        const weights = weightsOf(map.one);
        fillOne(map, {
          rows,
          columns,
          weights,
          isOff: isOff(map.one),
          causal: model.get("causal"),
        });
      }
      const on = range(heads).filter((head) => !isOff(["cross", layers - 1, head]));
      const drawn = woven({ all, shown, says: once.says, heads: on, letters, names, reads });
      weave.draw(drawn);
      const last = drawn.weights.at(-1) ?? [];
      const most = Math.max(...last);
      const numbers = [shown.length, all.total, all.word[last.indexOf(most)], show(most, 2)];
      const looked = model.get("causal") && last.length && [names[shown.at(-1)], ...numbers];
      inside.draw(all, shown.length);
      showWord(all.word);
      return tell(all, shown, once.says, data, looked);
    });
    const stop = whenSeen(weave.node, () => draws === 1 && itself.play());
    return () => {
      stop();
      itself.stop();
      close();
    };
  },
};
