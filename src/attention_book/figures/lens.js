// The attention maps of any model: a grid of all heads, one head in detail, and what it reads.

const [STRIP_FROM, MAP_FROM, WIDEST_TILE] = [26, 60, 110]; // pixels: smaller tiles show a colour alone
const TOUCH = 24; // pixels: what is smaller is pointed at through a loupe
const [ASIDE, ABOVE] = [26, 18]; // pixels for the numbers of layers and heads
const LEAST_DRAWN = 0.002;
const LISTED = 12;

/** The bytes of a base64 text. */
function bytesOf(text) {
  const signs = atob(text);
  const bytes = new Uint8Array(signs.length);
  for (let i = 0; i < signs.length; i++) bytes[i] = signs.charCodeAt(i);
  return bytes;
}

/**
 * The stored weights of the n-th head: `weight` has one and `along` those of a place, NaN where it is
 * not stored; `take` adds a whole map.
 */
function stored({ tokens, causal, whole, maps, kept, lists }) {
  const places = tokens.length;
  const size = causal ? (places * (places + 1)) / 2 : places ** 2;
  const [codes, largest] = [bytesOf(maps), bytesOf(lists)];
  const known = new Map(whole.map((n, i) => [n, codes.subarray(i * size, (i + 1) * size)]));
  const weightOf = range(256).map((code) => (code / 255) ** 2);
  const weight = (n, q, k) => {
    if (causal && k > q) return 0;
    const map = known.get(n);
    if (map) return weightOf[map[causal ? (q * (q + 1)) / 2 + k : q * places + k]];
    const start = (n * places + q) * kept * 2;
    for (let i = start; i < start + 2 * kept; i += 2) {
      if (largest[i] === k) return weightOf[largest[i + 1]];
    }
    return Number.NaN;
  };
  const along = (n, place, isColumn) =>
    range(places).map((i) => (isColumn ? weight(n, i, place) : weight(n, place, i)));
  /** Call `see(query, key, code)` for the stored weights of a head that are not 0. */
  const visit = (n, see) => {
    const map = known.get(n);
    for (let [q, at] = [0, map ? 0 : n * places * kept * 2]; q < places; q++) {
      const length = map ? (causal ? q + 1 : places) : kept;
      for (let i = 0; i < length; i++, at += map ? 1 : 2) {
        const code = map ? map[at] : largest[at + 1];
        if (code) see(q, map ? i : largest[at], code);
      }
    }
  };
  return {
    weight,
    visit,
    along,
    isWhole: (n) => known.has(n),
    take: (n, map) => known.set(n, map),
  };
}

/** The index of the largest number, the first of several; NaN counts as nothing. */
function placeOfMost(numbers) {
  let best = 0;
  numbers.forEach((number, i) => {
    if (number > (numbers[best] || 0)) best = i;
  });
  return best;
}

/** A canvas that is as sharp as the screen: `begin(width, height)` clears it and returns what draws. */
function sheet(about) {
  const node = h("canvas", { class: "af-sheet", role: "img", ...about });
  const pen = node.getContext("2d");
  const begin = (width, height) => {
    const scale = devicePixelRatio || 1;
    const [across, down] = [Math.round(width * scale), Math.round(height * scale)];
    if (node.width !== across || node.height !== down) {
      Object.assign(node, { width: across, height: down });
      Object.assign(node.style, { width: `${width}px`, height: `${height}px` });
    }
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.globalAlpha = 1;
    pen.lineWidth = 1;
    pen.clearRect(0, 0, width, height);
    const look = getComputedStyle(node);
    const colour = (name) => look.getPropertyValue(`--af-${name}`).trim();
    pen.font = `12px ${look.fontFamily}`;
    const inks = ["ink", "quiet", "line", "paper", "strong", "warm"];
    return { pen, ...Object.fromEntries(inks.map((name) => [name, colour(name)])) };
  };
  return { node, begin };
}

/** Draw the outline of a box, `[x, y, width, height]`. */
function outline(pen, colour, thick, ...box) {
  pen.globalAlpha = 1;
  pen.strokeStyle = colour;
  pen.lineWidth = thick;
  pen.strokeRect(...box);
}

/** The whole number of a field that something is in, of `most`. */
const fieldOf = (value, most) => Math.max(0, Math.min(Math.floor(value), most - 1));

/** Call `point(x, y, isHeld)` while the pointer is down on `node`, or over it; `leave` when it goes. */
function follow(node, point, leave) {
  const at = (event) => {
    const box = node.getBoundingClientRect();
    point(event.clientX - box.left, event.clientY - box.top, event.buttons > 0);
  };
  node.addEventListener("pointerdown", (event) => {
    node.setPointerCapture(event.pointerId);
    at(event);
  });
  node.addEventListener("pointermove", at);
  for (const type of ["pointerup", "pointercancel", "pointerleave"]) {
    node.addEventListener(type, (event) => {
      if (type === "pointerleave" || event.pointerType === "touch") leave();
    });
  }
}

/**
 * A loupe over a drawing of `rows` × `columns` fields: five by five of them, larger, above the pointer,
 * and a line of text.
 */
function loupe(panel, rows, columns) {
  const drawing = sheet({ "aria-hidden": "true" });
  const text = h("p", {});
  const node = h(
    "div",
    { class: "af-loupe", "aria-hidden": "true", hidden: "" },
    drawing.node,
    text,
  );
  panel.append(node);
  const side = 26;
  /** `shadeOf(row, column)` of a field is from 0 to 1; without it no field is drawn. */
  const show = (x, y, words, row, column, shadeOf = null) => {
    write(text, words);
    drawing.node.hidden = !shadeOf;
    node.hidden = false;
    if (shadeOf) {
      const { pen, strong, line, warm } = drawing.begin(5 * side, 5 * side);
      for (let r = 0; r < 5; r++) {
        for (let c = 0; c < 5; c++) {
          const [i, j] = [row + r - 2, column + c - 2];
          if (i !== fieldOf(i, rows) || j !== fieldOf(j, columns)) continue;
          pen.globalAlpha = shadeOf(i, j);
          pen.fillStyle = strong;
          pen.fillRect(c * side, r * side, side, side);
          outline(pen, line, 1, c * side + 0.5, r * side + 0.5, side - 1, side - 1);
        }
      }
      outline(pen, warm, 2, 2 * side, 2 * side, side, side);
    }
    const most = panel.clientWidth - node.offsetWidth;
    const left = Math.max(0, Math.min(x - node.offsetWidth / 2, most));
    const away = hovers ? 22 : -26 - node.offsetHeight; // under a mouse, and above a finger
    const top = panel.querySelector(".af-sheet").offsetTop + y + away;
    node.style.translate = `${Math.round(left)}px ${Math.round(top)}px`;
  };
  return {
    show,
    hide: () => {
      node.hidden = true;
    },
  };
}

/** The pictures of maps, a pixel for each weight, made when first drawn, and anew in other colours. */
function pictures(weights, places) {
  const made = new Map();
  return (n, colour) => {
    const name = `${n} ${weights.isWhole(n)} ${colour}`;
    if (made.has(name)) return made.get(name);
    const canvas = h("canvas", { width: places, height: places });
    const pen = canvas.getContext("2d");
    pen.fillStyle = colour;
    pen.fillRect(0, 0, 1, 1);
    const ink = pen.getImageData(0, 0, 1, 1).data;
    const image = pen.createImageData(places, places);
    weights.visit(n, (q, k, code) => {
      const at = 4 * (q * places + k);
      image.data.set(ink, at);
      image.data[at + 3] = code; // the root of the weight
    });
    pen.putImageData(image, 0, 0);
    made.set(name, canvas);
    return canvas;
  };
}

const nameOf = (n, heads) => t`layer ${Math.floor(n / heads)}, head ${n % heads}`;

/**
 * All heads as tiles, as large as fit: a shade of the description, from 26 pixels on the weights of the
 * chosen place as a strip, from 60 pixels on the whole map. `choose(n)` is called for the tile that the pointer holds.
 */
function headGrid({ layers, heads, tokens }, picture, choose) {
  const drawing = sheet({});
  const panel = h("div", { class: "af-panel af-lens-grid" }, drawing.node);
  const glass = loupe(panel, layers, heads);
  let now = null; // what is drawn
  const sizes = () => {
    const room = panel.clientWidth - ASIDE;
    const width = Math.min(Math.floor(room / heads), WIDEST_TILE);
    const height = Math.min(width, Math.max(roomy(6, 3), Math.floor(roomy(610, 145) / layers)));
    return { width, height };
  };
  /** The corner of the i-th tile. */
  const corner = (i, { width, height }) => [
    ASIDE + (i % heads) * width,
    ABOVE + Math.floor(i / heads) * height,
  ];
  const tile = (pen, n, x, y, { width, height }) => {
    const { numbers, most, along } = now;
    const shade = numbers.length ? Math.max(0, numbers[n]) / most : 0;
    const small = Math.min(width, height);
    pen.fillStyle = now.strong;
    if (small < STRIP_FROM) {
      pen.globalAlpha = shade;
      pen.fillRect(x, y, width - 1, height - 1);
      return;
    }
    const foot = 4; // the description, as a bar below what is drawn
    const [across, down] = [width - 6, height - 6 - foot];
    pen.globalAlpha = 1;
    if (small < MAP_FROM) {
      const one = across / tokens.length;
      along(n).forEach((weight, i) => {
        if (!(weight > LEAST_DRAWN)) return;
        pen.globalAlpha = Math.sqrt(weight);
        pen.fillRect(x + i * one, y, Math.max(1, one), down);
      });
    } else {
      pen.imageSmoothingEnabled = tokens.length > Math.min(across, down);
      pen.drawImage(picture(n, now.strong), x, y, across, down);
    }
    outline(pen, now.line, 1, x - 0.5, y - 0.5, across + 1, down + 1);
    pen.fillStyle = now.quiet; // the chosen head and place alone are warm
    pen.fillRect(x, y + down + 1, shade * across, foot - 1);
  };
  const names = (pen, size) => {
    const { width, height } = size;
    pen.globalAlpha = 1;
    pen.fillStyle = now.quiet;
    pen.textBaseline = "middle";
    const every = (room, least) => [1, 2, 4, 8, 16].find((n) => n * room >= least) ?? 16;
    const byLayer = now.isByLayer;
    pen.textAlign = "right";
    range(byLayer ? layers : 0).forEach((row) => {
      if (row % every(height, 14) === 0) pen.fillText(row, ASIDE - 6, ABOVE + (row + 0.5) * height);
    });
    pen.textAlign = "center";
    range(byLayer ? heads : 0).forEach((column) => {
      if (column % every(width, 18) === 0)
        pen.fillText(column, ASIDE + (column + 0.5) * width, ABOVE - 8);
    });
    if (byLayer || Math.min(width, height) < STRIP_FROM) return;
    pen.textAlign = "left"; // of sorted tiles each says which it is
    now.order.forEach((n, i) => {
      const [x, y] = corner(i, size);
      pen.fillStyle = now.paper;
      const text = `${Math.floor(n / heads)}.${n % heads}`;
      pen.fillRect(x, y, pen.measureText(text).width + 4, 14);
      pen.fillStyle = now.ink;
      pen.fillText(text, x + 2, y + 8);
    });
  };
  /** `along(n)` are the weights of the chosen place, `numbers` the descriptions of all heads. */
  const draw = (about) => {
    const size = sizes();
    if (size.width < 1) return; // it is not on the page yet
    const most = about.numbers.reduce((a, b) => Math.max(a, b), 1e-6);
    const { pen, ...inks } = drawing.begin(
      ASIDE + size.width * heads + 2,
      ABOVE + size.height * layers + 2,
    );
    now = { ...about, ...inks, most };
    now.order.forEach((n, i) => tile(pen, n, ...corner(i, size), size));
    names(pen, size);
    const [x, y] = corner(now.order.indexOf(now.chosen), size);
    outline(pen, now.warm, 2.5, x - 1.5, y - 1.5, size.width, size.height);
    const small = Math.min(size.width, size.height) < TOUCH;
    drawing.node.style.touchAction = small ? "none" : "pan-y"; // through a loupe a finger goes both ways
    put(drawing.node, "aria-label", about.alt);
  };
  const point = (x, y, isHeld) => {
    const size = sizes();
    const column = fieldOf((x - ASIDE) / size.width, heads);
    const row = fieldOf((y - ABOVE) / size.height, layers);
    const n = now.order[row * heads + column];
    if (isHeld) choose(n);
    const shadeOf = (r, c) => Math.max(0, now.numbers[now.order[r * heads + c]] ?? 0) / now.most;
    const number = now.numbers.length ? show(now.numbers[n], 3) : "–";
    const isSmall = Math.min(size.width, size.height) < TOUCH;
    const words = t`${nameOf(n, heads)}: ${number}`;
    glass.show(x, y, words, row, column, isSmall ? shadeOf : null);
  };
  follow(drawing.node, point, glass.hide);
  /** What a field shows: one colour, the weights of the chosen place, or the whole map. */
  const shows = () => {
    const small = Math.min(sizes().width, sizes().height);
    return small < STRIP_FROM ? "shade" : small < MAP_FROM ? "stripes" : "map";
  };
  return { node: panel, draw, shows };
}

/** What the colours of the fields and frames stand for, with the word that is followed. */
function keyOfColours() {
  const parts = ["blue", "long", "frame"].map((name) => [
    h("span", { class: `af-lens-sign af-lens-${name}` }),
    h("span", {}),
  ]);
  const hint = hovers ? t("Click a word, then a head.") : t("Tap a word, then a head.");
  const lines = parts.map((part) => h("p", {}, ...part));
  const node = h("div", { class: "af-lens-key" }, h("p", {}, hint), ...lines);
  const draw = (shows, label, word, isColumn) => {
    const stripes = isColumn
      ? t`in a head: who reads “${word}”`
      : t`in a head: what “${word}” reads`;
    const blue = { shade: label, stripes, map: t("in a head: all its weights") }[shows];
    write(parts[0][1], blue);
    write(parts[1][1], t`${label}, relative to the largest`);
    lines[1].hidden = shows === "shade";
    write(parts[2][1], t("chosen head and word"));
  };
  return { node, draw };
}

/**
 * One head in detail, as a map or as threads from queries to keys. `choose(place)` is called for the
 * place that the pointer holds.
 */
function headDetail({ tokens }, picture, choose) {
  const places = tokens.length;
  const drawing = sheet({});
  const title = h("p", { class: "af-title" });
  const panel = h("div", { class: "af-panel af-lens-detail" }, title, drawing.node);
  const glass = loupe(panel, places, places);
  let [now, across, down] = [null, 0, 0];
  const map = (pen) => {
    const [wide, high] = [across / places, down / places]; // one weight
    pen.imageSmoothingEnabled = places > 2 * down;
    pen.drawImage(picture(now.chosen, now.strong), 0, 0, across, down);
    pen.globalAlpha = 0.6;
    pen.strokeStyle = now.quiet;
    pen.strokeRect(0.5, 0.5, across - 1, down - 1);
    const row = [1, now.query * high, across - 2, Math.max(high, 3)];
    const column = [now.query * wide, 1, Math.max(wide, 3), down - 2];
    outline(pen, now.warm, 2, ...(now.isColumn ? column : row));
  };
  /** Tokens beside the threads, the first first, each where none stands yet. */
  const words = (pen, x, align, shown) => {
    const taken = [];
    pen.textAlign = align;
    pen.textBaseline = "middle";
    for (const [i, ink] of shown) {
      const y = Math.max(7, Math.min(((i + 0.5) * down) / places, down - 7));
      if (taken.some((other) => Math.abs(other - y) < 13)) continue;
      taken.push(y);
      pen.fillStyle = ink;
      pen.fillText(tokens[i].slice(0, roomy(10, 7)), x, y);
    }
  };
  const strands = (pen) => {
    const pitch = down / places;
    const [left, middle, right] = [roomy(0.3, 0.26), 0.5, roomy(0.7, 0.74)].map((x) => x * across);
    const tie = (q, k, weight, alpha) => {
      pen.globalAlpha = alpha;
      pen.lineWidth = Math.max(0.4, Math.min(7, pitch) * weight);
      const [from, to] = [(q + 0.5) * pitch, (k + 0.5) * pitch];
      pen.stroke(new Path2D(`M${left},${from}C${middle},${from},${middle},${to},${right},${to}`));
    };
    pen.strokeStyle = now.strong;
    now.visit((q, k, code) => {
      const each = (code / 255) ** 2;
      if (each > 0.1) tie(q, k, each, 0.18);
    });
    pen.strokeStyle = now.warm;
    now.looks.forEach((each, i) => {
      if (!(each > LEAST_DRAWN)) return;
      if (now.isColumn) tie(i, now.query, each, 0.9);
      else tie(now.query, i, each, 0.9);
    });
    pen.globalAlpha = 1;
    const own = [[now.query, now.warm]];
    const most = range(places).filter((i) => now.looks[i] > 0.04);
    most.sort((a, b) => now.looks[b] - now.looks[a]);
    const others = most.map((i) => [i, now.ink]);
    words(pen, left - 6, "right", now.isColumn ? others : own);
    words(pen, right + 6, "left", now.isColumn ? own : others);
  };
  const draw = (about) => {
    const room = panel.clientWidth;
    if (room < 1) return;
    across = down = Math.min(room, roomy(400, 199));
    const { pen, ...inks } = drawing.begin(across, down);
    now = { ...about, ...inks };
    (about.isThreads ? strands : map)(pen);
    write(title, about.title);
    put(drawing.node, "aria-label", about.title);
  };
  const point = (x, y, isHeld) => {
    const [q, k] = [y / down, x / across].map((share) => fieldOf(share * places, places));
    if (isHeld) choose(now.isColumn && !now.isThreads ? k : q);
    if (now.isThreads) return glass.show(x, y, t`“${tokens[q]}”, place ${q}`, 0, 0);
    const weight = now.weight(q, k);
    const number = Number.isNaN(weight) ? t("not stored") : show(weight, 3);
    const shadeOf = (r, c) => Math.sqrt(now.weight(r, c) || 0);
    const text = t`“${tokens[q]}” ${q} reads “${tokens[k]}” ${k}: ${number}`;
    return glass.show(x, y, text, q, k, down / places < TOUCH ? shadeOf : null);
  };
  follow(drawing.node, point, glass.hide);
  return { node: panel, draw };
}

/** The text, each token marked as strongly as its weight for the chosen place; a token is chosen by a click. */
function markedText({ tokens }, chooseToken) {
  let isOwn = false; // what is chosen in the text does not scroll away from there
  const choose = (i) => {
    isOwn = true;
    chooseToken(i);
    isOwn = false;
  };
  const words = tokens.map((token, i) => {
    const node = h("span", { class: "af-lens-token", dir: "auto" }, token);
    node.addEventListener("click", () => choose(i));
    node.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      choose(i);
    });
    return mark(node, 0, i, "button");
  });
  const about = { "data-marks": "", role: "group", "aria-label": t("text") };
  const node = h("div", { class: "af-lens-tokens", ...about }, ...words);
  const see = (word) => {
    const [top, bottom] = [word.offsetTop - node.offsetTop, word.offsetTop - node.offsetTop + 26];
    if (top < node.scrollTop || bottom > node.scrollTop + node.clientHeight) {
      node.scrollTop = top < node.scrollTop ? top : bottom - node.clientHeight;
    }
  };
  let before = []; // most weights stay what they were
  let chosen = null;
  const draw = (line, query, best) => {
    words.forEach((word, i) => {
      const weight = line[i];
      if (Object.is(weight, before[i]) && (i === query) === (i === chosen)) return;
      const isKnown = !Number.isNaN(weight);
      word.style.setProperty("--shade", Math.sqrt(weight || 0).toFixed(3));
      word.classList.toggle("af-chosen-token", i === query);
      put(word, "aria-pressed", i === query);
      const place = t`“${tokens[i]}”, place ${i}`;
      const reading = t`${place}: weight ${isKnown ? show(weight, 3) : t("not stored")}`;
      say(word, `weight ${i}`, isKnown ? weight : null, reading);
    });
    [before, chosen] = [line, query];
    if (!isOwn) see(words[best]);
  };
  return { node, draw };
}

/** The heads with the largest of a description, as rows to choose from without aiming. */
function largestHeads({ heads }, choose) {
  const rows = range(LISTED).map(() => h("button", { type: "button", class: "af-button af-led" }));
  rows.forEach((row) => row.addEventListener("click", () => choose(Number(row.value))));
  const name = h("summary", {});
  const node = h("details", { class: "af-inside" }, name, h("div", { class: "af-leds" }, ...rows));
  const draw = ({ numbers, chosen, measure }) => {
    write(name, t`The largest: ${measure}`);
    const order = numbers.map((_, n) => n).sort((a, b) => numbers[b] - numbers[a]);
    rows.forEach((row, i) => {
      row.hidden = i >= order.length;
      if (row.hidden) return;
      row.value = order[i];
      put(row, "aria-pressed", order[i] === chosen);
      write(row, t`${nameOf(order[i], heads)}: ${show(numbers[order[i]], 3)}`);
    });
  };
  return { node, draw };
}

/** What the page does not have, and what its rows sum to. */
function notes({ layers, heads, tokens, whole, kept, uneven }) {
  const count = layers * heads;
  const total = (number) => number.toLocaleString("en");
  const left = t`Of ${total(count)} maps this page has ${whole.length} whole; of the others it has the ${kept} largest keys of each query, in 8 bits. Beside a running kernel the lens shows all.`;
  const sums = t`${total(uneven)} of ${total(count * tokens.length)} rows do not sum to 1. Their descriptions are those of the weights as they are.`;
  return together(whole.length < count ? left : "", uneven ? sums : "");
}

/** Redraw when the page's colours change, or the room for `nodes`. Returns what stops that. */
function watching(nodes, redraw) {
  const room = new ResizeObserver(() => requestAnimationFrame(redraw));
  for (const node of nodes) room.observe(node);
  const theme = new MutationObserver(redraw);
  const attributeFilter = ["data-theme", "data-jp-theme-light"];
  for (const node of [document.documentElement, document.body]) {
    theme.observe(node, { attributeFilter });
  }
  return () => {
    room.disconnect();
    theme.disconnect();
  };
}

export default {
  render({ model, el }) {
    const data = model.get("data");
    const { heads, tokens, measures } = data;
    const { names: labels, stops } = declared.controls.measure;
    const labelOf = (name) => t(labels[stops.indexOf(name)]);
    const weights = stored(data);
    const picture = pictures(weights, tokens.length);
    /** To find the head that leads in a description, one in which the first does not. */
    const told = ["first", "previous"].filter((name) => measures[name].length);
    const goals = told.map((name) => ({
      task: t`find the head with the largest ${labelOf(name)}`,
      met: () => {
        const n = model.get("layer") * heads + model.get("head");
        return measures[name][n] === Math.max(...measures[name]);
      },
    }));
    const figure = frame({ model, el }, { challenge: goals.find(({ met }) => !met()) });
    const chooseHead = (n) => {
      const values = { layer: Math.floor(n / heads), head: n % heads };
      if (values.layer !== model.get("layer") || values.head !== model.get("head"))
        figure.move(values);
    };
    const chooseQuery = (i) => i !== model.get("query") && figure.set("query", i);
    const grid = headGrid(data, picture, chooseHead);
    const detail = headDetail(data, picture, chooseQuery);
    const text = markedText(data, chooseQuery);
    const key = keyOfColours();
    roomy(grid, detail).node.append(key.node);
    const [over, beside] = [h("div", { class: "af-lens-bar" }), h("div", { class: "af-lens-bar" })];
    figure.menu({ name: "measure", into: over });
    figure.menu({ name: "order", into: over });
    figure.menu({ name: "reading", into: beside });
    figure.menu({ name: "view", into: beside });
    grid.node.prepend(over);
    // On a phone a head and a place are tapped, and all else is folded.
    const summary = h("summary", {}, t("The chosen head"));
    const more = roomy(h("div", {}), h("details", { class: "af-inside" }, summary));
    if (roomy(true, false)) detail.node.prepend(beside);
    else more.append(beside);
    const into = roomy(figure.controls, more);
    figure.slider({ name: "layer", into });
    figure.slider({ name: "head", into });
    figure.slider({ name: "query", into, text: (i) => t`${i}: “${tokens[i].trim().slice(0, 8)}”` });
    const names = Object.keys(measures);
    const values = facts(names.map((name) => labelOf(name)));
    const led = largestHeads(data, chooseHead);
    const call = h("code", {});
    const caution = h(
      "p",
      { class: "af-caution" },
      t(
        "A pattern says where a head looks, not what the model does with it. Switch the head off and see what changes:",
      ),
      " ",
      call,
    );
    const left = h("p", { class: "af-small-print" }, notes(data));
    figure.stage.append(text.node, grid.node, detail.node);
    more.append(h("div", { class: "af-row" }, values.node, caution));
    figure.below.append(more, led.node, left);

    const asked = new Set();
    const ask = (n) => {
      if (weights.isWhole(n) || asked.has(n) || !model.send || model.link) return;
      asked.add(n);
      model.send({ head: n });
    };
    const receive = (message, buffers) => {
      const { buffer, byteOffset, byteLength } = buffers[0];
      weights.take(message.head, new Uint8Array(buffer, byteOffset, byteLength));
      figure.redraw();
    };
    model.on("msg:custom", receive);

    /** The weights of head n for the chosen place. */
    const along = (n) => weights.along(n, model.get("query"), model.get("reading") === "key");
    const lookOf = (line, n) => {
      const [query, best] = [model.get("query"), placeOfMost(line)];
      const place = [model.get("layer"), model.get("head"), tokens[query].trim(), query];
      if (!line[best]) return phrase("none", ...place);
      const isSome = model.get("reading") === "key" && !weights.isWhole(n);
      const name = isSome ? "some" : model.get("reading");
      return phrase(name, ...place, tokens[best].trim(), best, show(line[best]));
    };
    const redraw = () => {
      const [layer, head, query] = ["layer", "head", "query"].map((name) => model.get(name));
      const [measure, chosen] = [model.get("measure"), layer * heads + head];
      ask(chosen);
      const line = along(chosen);
      const numbers = measures[measure];
      const isByLayer = model.get("order") === "layer";
      const order = range(data.layers * heads);
      if (!isByLayer && numbers.length) order.sort((a, b) => numbers[b] - numbers[a]);
      const isColumn = model.get("reading") === "key";
      const alt = isByLayer
        ? t`Heads in their layers, shaded by ${labelOf(measure)}`
        : t`Heads, the largest first, shaded by ${labelOf(measure)}`;
      grid.draw({ numbers, order, isByLayer, chosen, along, alt });
      key.draw(grid.shows(), labelOf(measure), tokens[query].trim(), isColumn);
      const isThreads = model.get("view") === "threads";
      const sides = isThreads
        ? t`Layer ${layer}, head ${head}: queries left, keys right`
        : t`Layer ${layer}, head ${head}: queries down, keys across`;
      const part = weights.isWhole(chosen) ? "" : t`(${data.kept} largest keys per query)`;
      const title = together(sides, part);
      const weight = (q, k) => weights.weight(chosen, q, k);
      const visit = (see) => weights.visit(chosen, see);
      detail.draw({ chosen, weight, visit, query, looks: line, isColumn, isThreads, title });
      text.draw(line, query, placeOfMost(line));
      names.forEach((name, i) => {
        const fact = values.values[i];
        const number = measures[name][chosen];
        write(fact, number === undefined ? "–" : show(number, 3));
        const reading = number === undefined ? t("no place in this text has it") : show(number, 4);
        say(fact, name, number ?? null, t`${labelOf(name)}: ${reading}`);
        fact.parentNode.classList.toggle("af-measured", name === measure);
      });
      led.draw({ numbers, chosen, measure: labelOf(measure) });
      write(call, t`with without(model, layer=${layer}, head=${head}):`);
      return lookOf(line, chosen);
    };
    const close = figure.open(redraw);
    const stop = watching([grid.node, detail.node], redraw);
    return () => {
      stop();
      model.off("msg:custom", receive);
      close();
    };
  },
};
