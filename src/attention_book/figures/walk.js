// The shape steps of a trace: a slider per free size, and every step follows. What is a size and what
// follows from it was found in Python; here expressions such as "d_model/heads" are evaluated.

const NUMBER = new Intl.NumberFormat("en");
const FITS = t("Nothing is broken: the sizes agree.");

const parsed = new Map();

/** An expression as a sum of quotients of products. */
function parse(expression) {
  if (!parsed.has(expression)) {
    const terms = expression.split("+").map((term) => {
      const [product, ...under] = term.split("/");
      return { over: product.split("*"), under };
    });
    parsed.set(expression, terms);
  }
  return parsed.get(expression);
}

/** The size that an expression stands for; 0 for a quotient that is not whole. */
function evaluate(expression, sizes) {
  let total = 0;
  for (const { over, under } of parse(expression)) {
    let result = 1;
    for (const name of over) result *= sizes[name] ?? Number(name);
    for (const name of under) result = result % sizes[name] ? 0 : result / sizes[name];
    total += result;
  }
  return total;
}

const namesIn = (expression) => expression.match(/[A-Za-z_]\w*/g) ?? [];
const listed = (items) => `(${items.join(", ")}${items.length === 1 ? "," : ""})`;

/** A number of bytes with its unit, three digits long. */
function bytesIn(number) {
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  let i = 0;
  while (number >= 999.5 && i < units.length - 1) [number, i] = [number / 1000, i + 1];
  return i ? `${Number(number.toPrecision(3))} ${units[i]}` : t`${number} bytes`;
}

/** A count in words where it is long. */
function counted(number) {
  const names = [
    (n) => NUMBER.format(n),
    (n) => t`${n} million`,
    (n) => t`${n} billion`,
    (n) => t`${n} trillion`,
    (n) => t`${n} quadrillion`,
  ];
  let i = 0;
  let rest = number;
  if (number >= 999_500) [rest, i] = [number / 1e6, 1];
  while (i && rest >= 999.5 && i < names.length - 1) [rest, i] = [rest / 1000, i + 1];
  return names[i](i ? Number(rest.toPrecision(3)) : number);
}

/** ×2 or ÷3, of a ratio. */
function times(ratio) {
  const round = (x) => Number(x.toPrecision(3)).toString();
  return ratio >= 1 ? `×${round(ratio)}` : `÷${round(1 / ratio)}`;
}

/** Round sizes that a slider stops at, up to `largest`. */
function roundSizes(largest) {
  const found = range(8)
    .map((i) => i + 1)
    .concat(10, 12, 14, 16);
  for (let size = 16; size < largest; size *= 2) found.push(size * 1.5, size * 2);
  return found;
}

/** The messages as patterns of English texts, the longest first; none where the page is English. */
const FORMS = Object.keys(words)
  .filter((form) => /[a-z]/.test(form))
  .sort((a, b) => b.length - a.length)
  .map((form) => {
    const pieces = form.split(/\{(\d+)\}/);
    const pattern = pieces.map((piece, i) => {
      if (i % 2 === 0) return piece.replace(/[^\w\s]/g, "\\$&");
      return pieces.indexOf(piece) === i ? "(.+)" : `\\${Number(piece) + 1}`;
    });
    return [form, new RegExp(`^${pattern.join("")}$`)];
  });

/** Translate a text that Python put its values into: as the longest message that it fits. */
function retell(text) {
  for (const [form, pattern] of FORMS) {
    const found = text.match(pattern);
    if (found) return t(form, ...found.slice(1));
  }
  return text;
}

/** A walk of the data, with its steps by name. */
function unpack(walk, texts) {
  const list = (at) => (texts[at] ? texts[at].split(",") : []);
  const steps = walk.steps.map(
    ([number, bytes, tensor, memory, name, code, owner, dims, axes, ...products]) => ({
      number,
      bytes,
      tensor,
      memory,
      name: texts[name],
      code: texts[code],
      owner: texts[owner],
      dims: list(dims),
      axes: list(axes),
      products: products.map(list),
      nested: number.includes("."),
    }),
  );
  const breaks = walk.breaks.map((entry) => ({
    ...entry,
    label: retell(texts[entry.label]),
    says: texts[entry.says],
    hint: retell(texts[entry.hint] ?? ""),
    cases: entry.cases.map((each) => ({ ...each, text: retell(texts[each.text]) })),
  }));
  const quotients = [
    ...new Set(steps.flatMap((step) => step.axes).filter((axis) => axis.includes("/"))),
  ];
  // Only these sizes limit each other.
  const tied = new Set(
    [
      ...quotients,
      ...walk.links.flatMap(({ name, to }) => [name, to]),
      ...walk.divides.flat(),
    ].flatMap(namesIn),
  );
  return {
    ...walk,
    steps,
    breaks,
    tied,
    quotients,
    start: Object.fromEntries(walk.dims.map((dim) => [dim.name, dim.size])),
  };
}

/** What is wrong with sizes for a walk, as a sentence; empty where nothing is. */
function misfit(walk, sizes, largest, unlinked) {
  const names = walk.dims.map((dim) => dim.name);
  const given = typeof sizes === "object" && sizes ? Object.keys(sizes) : [];
  const unknown = given.find((name) => !names.includes(name));
  if (unknown)
    return t`${t(walk.name)} has no size “${unknown.slice(0, 40)}”; its sizes are ${inList(names)}`;
  if (given.length < names.length) return t`sizes must name ${inList(names)}`;
  for (const name of names) {
    const size = sizes[name];
    if (!Number.isInteger(size) || size < 1 || size > largest) {
      const text = JSON.stringify(size).slice(0, 40);
      return t`${name} must be a whole number from 1 to ${NUMBER.format(largest)}, but is ${text}`;
    }
  }
  const broken = walk.quotients.find((axis) => !evaluate(axis, sizes));
  if (broken) {
    const [whole, under] = [
      broken.slice(0, broken.indexOf("/")),
      broken.slice(broken.indexOf("/") + 1),
    ];
    return t`${whole} = ${evaluate(whole, sizes)} is not a multiple of ${under} = ${sizes[under]}`;
  }
  const pair = walk.divides.find(
    ([whole, part]) => sizes[whole] % sizes[part] || sizes[whole] === sizes[part],
  );
  const link = walk.links.find(
    ({ name, to, fixed }) =>
      (fixed || !unlinked.includes(name)) && sizes[name] !== evaluate(to, sizes),
  );
  if (link?.fixed) return t`${link.name} = ${sizes[link.name]} must be ${link.to}`;
  if (link) return t`${link.name} = ${sizes[link.name]} must be ${link.to}, or be unlinked`;
  if (pair)
    return t`${pair[1]} = ${sizes[pair[1]]} must divide ${pair[0]} = ${sizes[pair[0]]} and be smaller`;
  return "";
}

/** What happens when something is broken: `{ text, error }`, without `error` where nothing refuses. */
function outcome(entry, sizes, own) {
  const all = { ...sizes, own };
  const filled = (text) =>
    text.replace(/\{([^}]+)\}/g, (_, expression) => evaluate(expression, all));
  const holds = ({ equal, divides }) =>
    equal
      ? evaluate(equal[0], all) === evaluate(equal[1], all)
      : evaluate(divides[0], all) % evaluate(divides[1], all) === 0;
  if (entry.expected && evaluate(entry.expected, sizes) === own) return { text: FITS };
  const silent = entry.cases.find(holds);
  return silent ? { text: filled(silent.text) } : { text: filled(entry.says), error: entry.error };
}

/** The block of a tensor: sides in the colours of their dimensions, drawn without scaling. */
function block() {
  const faces = h("svg:path", { class: "af-faces" });
  const edges = range(3).map(() => [
    h("svg:path", { class: "af-edge" }),
    h("svg:path", { class: "af-edge af-second" }),
  ]);
  const texts = range(3).map((i) => h("svg:text", { "text-anchor": ["middle", "end", "end"][i] }));
  const node = h(
    "svg:svg",
    { class: "af-block", width: 148, height: 100, viewBox: "0 0 148 100", "aria-hidden": "true" },
    faces,
    ...edges.flat(),
    ...texts,
  );
  const draw = (dims, axes, shape, scale) => {
    const skip = dims[0] === "batch" ? 1 : 0;
    const sheets = skip ? Math.min(shape[0], 3) : 1;
    const sides = dims
      .slice(skip)
      .map((dim, i) => [dim, shape[i + skip], axes[i + skip]])
      .slice(-3)
      .reverse();
    const long = (i, base, slope) =>
      sides[i] ? (sides[i][1] === 1 ? 5 : base + slope * (Math.log2(sides[i][1]) / scale)) : 5;
    const [width, height] = [long(0, 9, 62), long(1, 9, 40)];
    const depth = sides[2] ? 0.7 * long(2, 7, 22) : 0;
    const [x, y] = [40, 84];
    let d = "";
    for (let sheet = sheets - 1; sheet >= 0; sheet--) {
      const [left, base] = [x + 4 * sheet, y - 4 * sheet];
      d += `M${left},${base}h${width}v${-height}h${-width}z`;
      if (depth)
        d += `M${left},${base - height}l${depth},${-depth}h${width}l${-depth},${depth}zM${left + width},${base}l${depth},${-depth}v${-height}l${-depth},${depth}z`;
    }
    put(faces, "d", d);
    const lines = [
      `M${x},${y}h${width}`,
      `M${x},${y}v${-height}`,
      `M${x},${y - height}l${depth},${-depth}`,
    ];
    const places = [
      [x + width / 2, y + 14],
      [x - 4, y - height / 2 + 4],
      [x + depth / 2 - 3, y - height - depth / 2],
    ];
    edges.forEach(([first, second], i) => {
      const side = sides[i];
      const colours = side ? namesIn(side[0]) : [];
      put(first, "d", side ? lines[i] : null);
      put(second, "d", colours.length > 1 ? lines[i] : null);
      put(first, "style", side ? `--dim: var(--dim-${colours[0]}, var(--af-quiet))` : null);
      put(
        second,
        "style",
        colours.length > 1 ? `--dim: var(--dim-${colours[1]}, var(--af-quiet))` : null,
      );
      for (const edge of [first, second])
        put(edge, "data-of", side ? namesIn(side[2]).join(" ") : null);
      put(texts[i], "x", places[i][0]);
      put(texts[i], "y", places[i][1]);
      write(texts[i], side ? String(side[1]) : "");
    });
  };
  return { node, draw };
}

/** A dimension as a table writes it, each of its names over its colour; it lights up with its size. */
function named(dim, axis, text = null) {
  const parts = dim
    .split(/([*+])/)
    .map((part) =>
      /\w/.test(part) && !/^\d+$/.test(part)
        ? h(
            "span",
            { class: "af-dim", style: `--dim: var(--dim-${part}, var(--af-quiet))` },
            text ?? part,
          )
        : text === null
          ? part
          : "",
    );
  const shown = text === null ? parts : [parts.find((part) => part !== "") ?? text];
  return h("span", { class: "af-axis", "data-of": namesIn(axis).join(" ") }, ...shown);
}

/** What one step holds and costs at some sizes. */
function measure(step, sizes, bytes) {
  const shape = step.axes.map((axis) => evaluate(axis, sizes));
  const count = shape.reduce((product, size) => product * size, 1);
  const known = step.products.filter((axes) => axes.length);
  const work = sum(
    known.map((axes) => axes.reduce((product, axis) => product * evaluate(axis, sizes), 1)),
  );
  return {
    shape,
    count,
    bytes: count * (step.bytes || bytes),
    work,
    unknown: known.length < step.products.length,
  };
}

/** The bytes that steps hold together; those that share memory count once. */
function held(steps, sizes, bytes) {
  const each = new Map();
  for (const step of steps) {
    const own = measure(step, sizes, bytes).bytes;
    each.set(step.memory, Math.max(own, each.get(step.memory) ?? 0));
  }
  return sum([...each.values()]);
}

/**
 * A challenge for these steps, `{ task, met }` as in frame.js, which one slider alone can meet;
 * null where none can. `opened` are the sizes at the start, `reached` those that one move leads to.
 */
function challengeOf(steps, opened, reached, bytes) {
  const count = (step, sizes) =>
    step.axes.reduce((product, axis) => product * evaluate(axis, sizes), 1);
  const most = (sizes) => Math.max(...steps.map((step) => count(step, sizes)));
  const start = most(opened);
  const largest = steps.find((step) => count(step, opened) === start);
  const challenges = [
    {
      task: t`make another step larger than step ${largest.number} (${largest.name})`,
      met: (sizes) => most(sizes) > count(largest, sizes),
    },
    {
      task: t("make all steps together take at least ten times the memory by moving one slider"),
      met: (sizes, per, alone) => alone && held(steps, sizes, per) >= 10 * held(steps, opened, per),
    },
  ];
  return challenges.find(({ met }) => reached.some((sizes) => met(sizes, bytes, true))) ?? null;
}

export default {
  render({ model, el }) {
    const data = model.get("data");
    const walks = data.walks.map((each) => unpack(each, data.texts));
    const traits = [
      "shown",
      "preset",
      "unlinked",
      "sizes",
      "dtype",
      "nested",
      "broken",
      "own",
      "written",
    ];
    const start = Object.fromEntries(traits.map((name) => [name, model.get(name)]));
    const now = () => walks.find((walk) => walk.name === model.get("shown"));
    const stops = roundSizes(data.largest);
    let parts = null; // what is drawn for the walk that is shown
    let quiet = false;
    let before = null; // the sizes before this slider was taken
    let [moving, chosen, heard, speaking, drawn] = ["", null, "", 0, false];
    const challenges = new Map(); // of each walk, with and without the steps of calls within
    let won = ""; // a challenge that was met and is not spoken yet

    // The frame
    const [choose, sliders, links, options, own] = range(5).map(() =>
      h("div", { class: "af-controls" }),
    );
    const story = h("p", { class: "af-now" });
    const refusal = h("p", { class: "af-refusal" });
    const note = h("p", { class: "af-note" });
    const cache = h("p", { class: "af-cache" });
    const goal = h("p", { class: "af-challenge" });
    const list = h("ol", { class: "af-steps" });
    const detail = h("li", { class: "af-detail" });
    // No paragraph: an empty one is not displayed here, and is then not heard when it is filled.
    const spoken = h("div", { class: "af-spoken", role: "status" });
    const copy = h("button", { type: "button", class: "af-button af-copy" }, t("Copy link"));
    const reset = h("button", { type: "button", class: "af-button af-reset" }, t("Reset"));
    const form = h(
      "form",
      { class: "af-form af-walk" },
      choose,
      sliders,
      links,
      options,
      own,
      note,
      refusal,
      story,
      cache,
      goal,
      list,
      h(
        "div",
        { class: "af-foot" },
        h(
          "p",
          { class: "af-reading" },
          t("Choose a step to see its code and its axes; the arrow keys move from step to step."),
        ),
        ...(model.link ? [copy] : []),
        reset,
      ),
      h("p", { class: "af-caption" }, model.get("caption")),
      spoken,
    );
    const announce = (text) => {
      heard = text;
      clearTimeout(speaking);
      speaking = setTimeout(() => {
        write(spoken, together(heard, won));
        won = "";
      }, PAUSE_BEFORE_SPEAKING);
    };
    const tell = (text) => {
      write(note, text);
      if (text) announce(text);
    };
    const place = (values) => {
      quiet = true;
      for (const name of traits) if (name in values) model.set(name, values[name]);
      quiet = false;
      model.save_changes();
      draw();
    };

    // Sizes and links
    const linked = (walk, unlinked = model.get("unlinked")) =>
      walk.links.filter((link) => link.fixed || !unlinked.includes(link.name));
    const follow = (walk, sizes, unlinked) => {
      const all = { ...sizes };
      for (const link of linked(walk, unlinked)) all[link.name] = evaluate(link.to, all);
      return all;
    };
    const free = (walk, unlinked) =>
      walk.dims.filter((dim) => !linked(walk, unlinked).some((link) => link.name === dim.name));
    /** Where a slider can stop: sizes that leave every quotient whole. */
    const stopsOf = (
      walk,
      name,
      { sizes, unlinked } = { sizes: model.get("sizes"), unlinked: model.get("unlinked") },
    ) => {
      const wanted = new Set([...stops, sizes[name], walk.start[name]]);
      const sorted = [...wanted].sort((a, b) => a - b);
      if (!walk.tied.has(name)) return sorted;
      return sorted.filter(
        (size) =>
          !misfit(walk, follow(walk, { ...sizes, [name]: size }, unlinked), data.largest, unlinked),
      );
    };

    /** A labelled slider; its label lights up what has this size. */
    const slider = (parent, label, of, get, at, change) => {
      const input = h("input", { type: "range", min: 0, step: 1 });
      const value = h("span", { class: "af-value", "aria-hidden": "true" });
      const node = h(
        "label",
        { class: "af-slider", "data-of": of },
        h("span", {}, label),
        input,
        value,
      );
      parent.append(h("div", { class: "af-control" }, node));
      input.addEventListener("input", () => change(at()[Number(input.value)]));
      input.addEventListener("change", () => {
        before = null;
      });
      return () => {
        const all = at();
        put(input, "max", all.length - 1);
        input.value = nearest(all, get());
        put(input, "aria-valuetext", NUMBER.format(get()));
        put(node.parentNode, "hidden", all.length < 2 ? "" : null);
        write(value, NUMBER.format(get()));
      };
    };
    const select = (parent, label, name, entries, change) => {
      const input = h(
        "select",
        { name },
        ...entries.map(([value, text]) => h("option", { value }, text)),
      );
      parent.append(h("label", { class: "af-select" }, h("span", {}, label), input));
      input.addEventListener("change", () => change(input.value));
      return () => {
        input.value = model.get(name);
      };
    };
    const tick = (parent, text, get, change) => {
      const input = h("input", { type: "checkbox" });
      parent.append(h("label", { class: "af-tick" }, input, text));
      input.addEventListener("change", () => change(input.checked));
      return () => {
        input.checked = get();
      };
    };
    const move = (name, size) => {
      const sizes = model.get("sizes");
      if (moving !== name || !before) [moving, before] = [name, sizes];
      note.textContent = "";
      place({ sizes: follow(now(), { ...sizes, [name]: size }) });
    };

    // The challenge
    const strive = (walk, per, nested) => {
      const key = `${walk.name} ${nested}`;
      const opening = walk.name === start.shown ? start : { sizes: walk.start, unlinked: [] };
      if (!challenges.has(key)) {
        const { sizes, unlinked } = opening;
        const reached = free(walk, unlinked).flatMap(({ name }) =>
          stopsOf(walk, name, opening).map((size) =>
            follow(walk, { ...sizes, [name]: size }, unlinked),
          ),
        );
        const steps = walk.steps.filter((step) => nested || !step.nested);
        challenges.set(key, challengeOf(steps, sizes, reached, per));
      }
      const challenge = challenges.get(key);
      if (!challenge) return write(goal, "");
      const sizes = model.get("sizes");
      const changed = free(walk).filter(({ name }) => sizes[name] !== opening.sizes[name]);
      const isNew = !challenge.found && challenge.met(sizes, per, changed.length === 1);
      challenge.found ||= isNew;
      const { found, task } = challenge;
      write(goal, found ? t`Challenge met: ${task}.` : t`Challenge: ${task}.`);
      goal.classList.toggle("af-met", challenge.found);
      if (isNew) won = goal.textContent;
    };

    // What is broken
    const entryOf = (walk) => walk.breaks.find((entry) => entry.id === model.get("broken"));
    const startOwn = (entry, sizes) => {
      if (!entry.expected) return 0;
      const expected = evaluate(entry.expected, sizes);
      let size = entry.step && expected > 1 ? expected - 1 : expected + 1;
      while (!outcome(entry, sizes, size).error) size += 1;
      return size;
    };
    const breakIt = (id) => {
      const entry = now().breaks.find((each) => each.id === id);
      before = null;
      place({ broken: id, own: entry ? startOwn(entry, model.get("sizes")) : 0 });
    };

    // The models of the explorer
    const modelsFor = (walk) => (data.models ?? []).filter((each) => walk.name in each.sizes);
    const toModel = (name) => {
      const chosenModel = modelsFor(now()).find((each) => each.name === name);
      before = null;
      const sizes = chosenModel
        ? { ...now().start, ...chosenModel.sizes[now().name] }
        : now().start;
      place({
        preset: name,
        sizes,
        unlinked: [],
        broken: "",
        own: 0,
        written: chosenModel?.cache?.context ?? 0,
      });
    };
    const toWalk = (name) => {
      const walk = walks.find((each) => each.name === name);
      quiet = true;
      model.set("shown", name);
      quiet = false;
      toModel(
        modelsFor(walk).some((each) => each.name === model.get("preset"))
          ? model.get("preset")
          : "",
      );
    };

    /** Build everything that depends on which walk is shown and on what is linked. */
    const build = () => {
      const walk = now();
      for (const box of [choose, sliders, links, options, own]) box.replaceChildren();
      const syncs = [];
      if (walks.length > 1) {
        syncs.push(
          select(
            choose,
            t("Show"),
            "shown",
            walks.map((each) => [each.name, t(each.title ?? each.name)]),
            toWalk,
          ),
        );
        syncs.push(
          select(
            choose,
            t("at the sizes of"),
            "preset",
            [["", t("a small example")], ...modelsFor(walk).map((each) => [each.name, each.name])],
            toModel,
          ),
        );
      }
      for (const dim of free(walk)) {
        const label = dim.names.flatMap((name, i) => [i ? " = " : "", named(name, dim.name)]);
        syncs.push(
          slider(
            sliders,
            h("span", {}, ...label),
            dim.name,
            () => model.get("sizes")[dim.name],
            () => stopsOf(walk, dim.name),
            (size) => move(dim.name, size),
          ),
        );
      }
      for (const link of walk.links) {
        const text = h(
          "span",
          { "data-of": link.name },
          `${link.name} = ${link.to.replace("/", " / ")}`,
          ...(link.fixed ? [" ", t("(set by the layer)")] : []),
        );
        if (link.fixed) links.append(h("p", { class: "af-tick" }, text));
        else
          syncs.push(
            tick(
              links,
              text,
              () => !model.get("unlinked").includes(link.name),
              (on) => {
                const others = model.get("unlinked").filter((name) => name !== link.name);
                before = null;
                place({ unlinked: on ? others : [...others, link.name] });
                const sizes = follow(now(), model.get("sizes"));
                place({
                  sizes: misfit(now(), sizes, data.largest, model.get("unlinked"))
                    ? now().start
                    : sizes,
                });
              },
            ),
          );
      }
      syncs.push(
        select(
          options,
          t("Count bytes in"),
          "dtype",
          Object.keys(data.bytes).map((name) => [name, name]),
          (dtype) => place({ dtype }),
        ),
      );
      if (walk.breaks.length) {
        syncs.push(
          select(
            options,
            t("Break it:"),
            "broken",
            [["", t("nothing is broken")], ...walk.breaks.map((entry) => [entry.id, entry.label])],
            breakIt,
          ),
        );
      }
      if (walk.steps.some((step) => step.nested)) {
        syncs.push(
          tick(
            options,
            t("show the steps of the calls within"),
            () => model.get("nested"),
            (nested) => place({ nested }),
          ),
        );
      }
      const entry = entryOf(walk);
      if (entry?.expected) {
        const dim = entry.id.split(".")[1];
        const label = entry.step ? t`${dim} in ${entry.step} alone` : entry.id;
        syncs.push(
          slider(
            own,
            label,
            "",
            () => model.get("own"),
            () => {
              const expected = evaluate(entry.expected, model.get("sizes"));
              return [
                ...new Set([
                  ...stops.filter((size) => size <= 4 * expected + 8),
                  expected - 1,
                  expected,
                  expected + 1,
                  model.get("own"),
                ]),
              ]
                .filter((size) => size > 0)
                .sort((a, b) => a - b);
            },
            (size) => place({ own: size }),
          ),
        );
      }
      if (modelsFor(walk).find((each) => each.name === model.get("preset"))?.cache) {
        const limit = () =>
          modelsFor(walk).find((each) => each.name === model.get("preset")).cache.context;
        syncs.push(
          slider(
            own,
            t("tokens written"),
            "",
            () => model.get("written"),
            () => [0, ...stops.filter((size) => size < limit()), limit()],
            (written) => place({ written }),
          ),
        );
      }
      const cards = walk.steps.map((step, i) => {
        const picture = block();
        const name = h(
          "button",
          { type: "button", class: "af-step-name", "aria-expanded": "false", tabindex: i ? -1 : 0 },
          h("span", {}, step.number),
          ` ${step.name}`,
        );
        const dims = h(
          "p",
          { class: "af-dims" },
          "(",
          ...step.dims.flatMap((dim, d) => [d ? ", " : "", named(dim, step.axes[d])]),
          ")",
        );
        const sizes = step.axes.map((axis) =>
          h("span", { class: "af-size", "data-of": namesIn(axis).join(" ") }),
        );
        const shape = h(
          "p",
          { class: "af-shape" },
          "(",
          ...sizes.flatMap((size, d) => [d ? ", " : "", size]),
          ")",
        );
        const cost = h("p", { class: "af-cost" });
        const badge = h("span", { class: "af-badge" });
        const node = h(
          "li",
          { class: step.nested ? "af-step af-nested" : "af-step" },
          name,
          badge,
          picture.node,
          dims,
          shape,
          cost,
        );
        node.addEventListener("click", (event) => {
          if (!event.target.closest(".af-detail")) open(chosen === i ? null : i);
        });
        return { node, name, sizes, cost, badge, picture, step };
      });
      list.replaceChildren(...cards.map((card) => card.node));
      parts = { walk, syncs, cards, key: keyOf() };
      chosen = null;
    };
    const keyOf = () =>
      JSON.stringify(["shown", "unlinked", "broken", "preset"].map((name) => model.get(name)));

    /** Open the details of a step behind its card. */
    const open = (i) => {
      for (const card of parts.cards) put(card.name, "aria-expanded", "false");
      chosen = i;
      detail.remove();
      if (i === null) return;
      const { node, name, step } = parts.cards[i];
      put(name, "aria-expanded", "true");
      node.after(detail);
      explain(step);
      rove(i, false);
    };
    const explain = (step) => {
      const sizes = model.get("sizes");
      const meaning = (dim) =>
        namesIn(dim)
          .map((name) =>
            name in data.meanings ? t(data.meanings[name]) : t`a dimension of ${step.owner}`,
          )
          .reduce((all, next) => (all ? t`${all}; times: ${next}` : next), "");
      const rows = step.dims.map((dim, d) => {
        const axis = step.axes[d];
        const same = axis === dim ? "" : ` = ${axis}`;
        const factors =
          namesIn(axis).length > 1
            ? ` = ${axis
                .replace(/[A-Za-z_]\w*/g, (name) => NUMBER.format(sizes[name]))
                .replace("*", " × ")
                .replace("/", " / ")
                .replace("+", " + ")}`
            : "";
        const text =
          dim === "1"
            ? t("one, so that it is broadcast over the axis it is combined with")
            : meaning(dim);
        const equation = `${same}${factors} = ${NUMBER.format(evaluate(axis, sizes))}`;
        return h("li", {}, named(dim, axis), t`${equation}: ${text}`);
      });
      const products = step.products
        .filter((axes) => axes.length)
        .map((axes) => {
          const product = axes.join(" · ").replace(/([A-Za-z_]\w*[*+][\w*+]*)/g, "($1)");
          const number = NUMBER.format(axes.reduce((p, axis) => p * evaluate(axis, sizes), 1));
          return h("p", {}, t`Multiply-adds: ${product} = ${number}`);
        });
      const memory =
        step.memory === step.tensor
          ? []
          : [h("p", {}, t("It is a view: it shares the memory of an earlier step."))];
      detail.replaceChildren(
        step.code
          ? h("pre", {}, h("code", {}, step.code))
          : h("p", {}, t`An argument of ${step.owner}.`),
        h("ul", {}, ...rows),
        ...products,
        ...memory,
      );
    };
    const visible = () => parts.cards.filter((card) => !card.node.hidden);
    const inSight = () => visible().map((card) => card.step);
    const rove = (i, focus = true) => {
      for (const card of parts.cards) put(card.name, "tabindex", -1);
      put(parts.cards[i].name, "tabindex", 0);
      if (focus) parts.cards[i].name.focus();
    };

    const draw = () => {
      if (quiet) return;
      if (!parts || parts.key !== keyOf()) build();
      const { walk, cards, syncs } = parts;
      const sizes = model.get("sizes");
      const per = data.bytes[model.get("dtype")];
      for (const sync of syncs) sync();
      const entry = entryOf(walk);
      const result = entry ? outcome(entry, sizes, model.get("own")) : null;
      const nested = model.get("nested");
      let largest = null;
      const totals = { work: 0, unknown: false };
      const counts = [];
      for (const card of cards) card.now = measure(card.step, sizes, per);
      const longest = Math.log2(Math.max(...cards.flatMap((card) => card.now.shape)));
      const scale = [4, 6, 8, 12, 16].find((power) => longest <= power) ?? longest;
      cards.forEach((card, i) => {
        const { step, node } = card;
        node.hidden = step.nested && !nested;
        if (node.hidden) return;
        const { shape, count, bytes } = card.now;
        // Where nested steps are hidden, a step counts the products of the calls made to compute it.
        const within = nested
          ? []
          : cards.filter((other) => other.step.number.startsWith(`${step.number}.`));
        const work = card.now.work + sum(within.map((other) => other.now.work));
        const unknown = [card, ...within].some((each) => each.now.unknown);
        const isBroken =
          entry?.step === step.name && !step.nested && entry.axis >= 0 && result.error;
        const seen = isBroken
          ? shape.map((size, d) => (d === entry.axis ? model.get("own") : size))
          : shape;
        card.sizes.forEach((size, d) => write(size, NUMBER.format(seen[d])));
        card.picture.draw(step.dims, step.axes, seen, scale);
        write(
          card.cost,
          inList([
            t`${NUMBER.format(count)} numbers`,
            bytesIn(bytes),
            work && t`${counted(work)} multiply-adds`,
            unknown && t("and products not counted"),
          ]),
        );
        put(node, "data-shape", shape.join(","));
        put(node, "data-bytes", bytes);
        put(node, "data-work", work);
        node.classList.toggle("af-broken", Boolean(isBroken));
        node.classList.toggle(
          "af-unreached",
          Boolean(result?.error) && (Boolean(step.code) || (!entry.step && entry.expected !== "")),
        );
        totals.work += work;
        totals.unknown ||= unknown;
        counts.push([step.name, count]);
        if (largest === null || count > cards[largest].now.count) largest = i;
      });
      cards.forEach((card, i) => {
        write(card.badge, i === largest ? t("largest") : "");
        card.node.classList.toggle("af-largest", i === largest);
      });
      const bytes = held(inSight(), sizes, per);
      put(list, "data-bytes", bytes);
      put(list, "data-work", totals.work);
      tellStory({ bytes, work: totals.work, largest: cards[largest], per, sizes });
      write(
        refusal,
        result
          ? result.error
            ? together(`${result.error}: ${result.text}`, entry.hint)
            : result.text
          : "",
      );
      put(refusal, "data-error", result?.error ?? null);
      refusal.classList.toggle("af-silent", Boolean(result) && !result.error);
      drawCache(walk, per);
      strive(walk, per, nested);
      if (chosen !== null) explain(cards[chosen].step);
      const all = together(...[note, refusal, story, cache].map((line) => line.textContent));
      if ((all !== heard || won) && drawn) announce(all);
      heard = all;
      drawn = true;
    };
    /** What the last move made grow, or what all steps hold. */
    const tellStory = ({ bytes, work, largest, per, sizes }) => {
      const [all, dtype] = [bytesIn(bytes), model.get("dtype")];
      const top = t`The largest step is ${largest.step.name} ${listed(largest.now.shape)}.`;
      const was = before?.[moving];
      if (!was || was === sizes[moving]) {
        const sentence = work
          ? t`All steps together: ${all} in ${dtype}, ${counted(work)} multiply-adds.`
          : t`All steps together: ${all} in ${dtype}.`;
        write(story, together(sentence, top));
        return;
      }
      const groups = new Map();
      const old = { bytes: held(inSight(), before, per), work: 0 };
      for (const { step, node, now: here } of parts.cards) {
        const there = measure(step, before, per);
        old.work += there.work;
        if (node.hidden) continue;
        const ratio = times(here.count / there.count);
        if (!groups.has(ratio)) groups.set(ratio, []);
        groups.get(ratio).push(step.name);
      }
      groups.delete("×1");
      const grown = [...groups].map(([ratio, names]) => {
        const each = [...new Set(names)];
        const list = inList([...each.slice(0, 4), each.length > 4 && "…"]);
        return names.length === 1
          ? t`1 step ${ratio} (${list})`
          : t`${names.length} steps ${ratio} (${list})`;
      });
      const ratio = times(sizes[moving] / was);
      const move = `${moving} ${NUMBER.format(was)} → ${NUMBER.format(sizes[moving])} (${ratio})`;
      const steps = grown.length ? inList(grown) : t("no step changes");
      const growth = times(bytes / old.bytes);
      const sentence =
        work && old.work
          ? t`${move}: ${steps}; together ${growth}, to ${all} in ${dtype}, multiply-adds ${times(work / old.work)}.`
          : t`${move}: ${steps}; together ${growth}, to ${all} in ${dtype}.`;
      write(story, together(sentence, top));
    };
    const drawCache = (walk, per) => {
      const each = modelsFor(walk).find(({ name }) => name === model.get("preset"));
      if (!each) return write(cache, "");
      const source = t`${each.name}: ${t(each.source)}.`;
      if (!each.cache) return write(cache, source);
      const { layers, kv_heads, d_k } = each.cache;
      const written = model.get("written");
      const bytes = 2 * layers * kv_heads * d_k * written * per;
      const tokens = NUMBER.format(written);
      put(cache, "data-bytes", bytes);
      write(
        cache,
        together(
          source,
          t`Its key–value cache for one sequence of ${tokens} tokens: 2 · ${layers} layers · ${kv_heads} key and value heads · ${d_k} · ${tokens} tokens · ${per} bytes = ${bytesIn(bytes)}.`,
        ),
      );
    };

    // Light up everything that has one size
    let lit = "";
    const light = (of) => {
      if (of === lit) return;
      lit = of;
      const wanted = of ? of.split(" ") : [];
      for (const node of form.querySelectorAll("[data-of]")) {
        const own_names = node.getAttribute("data-of").split(" ");
        node.classList.toggle(
          "af-lit",
          wanted.some((name) => own_names.includes(name)),
        );
      }
    };
    const lightFrom = (event) =>
      light(event.target.closest?.("[data-of]")?.getAttribute("data-of") ?? "");
    form.addEventListener("pointerover", lightFrom);
    form.addEventListener("focusin", lightFrom);
    form.addEventListener("pointerleave", () => light(""));
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("keydown", (event) => {
      event.stopPropagation(); // JupyterLab takes arrow keys for itself
      if (!event.target.matches(".af-step-name")) return;
      const cards = visible();
      const at = cards.findIndex((card) => card.name === event.target);
      const to = {
        ArrowRight: at + 1,
        ArrowDown: at + 1,
        ArrowLeft: at - 1,
        ArrowUp: at - 1,
        Home: 0,
        End: cards.length - 1,
      }[event.key];
      if (event.key === "Escape") open(null);
      if (to === undefined) return;
      event.preventDefault();
      if (cards[to]) rove(parts.cards.indexOf(cards[to]));
    });
    reset.addEventListener("click", () => {
      before = null;
      note.textContent = "";
      for (const challenge of challenges.values()) if (challenge) challenge.found = false;
      won = "";
      place(start);
    });
    copy.addEventListener("click", async () => {
      const address = model.link(
        traits
          .filter((name) => JSON.stringify(model.get(name)) !== JSON.stringify(start[name]))
          .map((name) => [name, model.get(name)]),
      );
      history.replaceState(null, "", address);
      try {
        await navigator.clipboard.writeText(address);
        tell(t("Copied: a link to the figure as it is now."));
      } catch {
        tell(t("The address of this page now leads to the figure as it is."));
      }
    });

    /** Take over what the page's address asks for, or say why not. */
    const arrive = () => {
      const asked = model.asked?.();
      if (!asked) return;
      before = null;
      place(start);
      const problem = asked.problem ?? refuse(asked.values);
      if (!problem) {
        const walk = walks.find(({ name }) => name === (asked.values.shown ?? start.shown));
        place({ ...start, sizes: walk.start, ...asked.values });
      }
      tell(problem ?? "");
      el.scrollIntoView({ block: "start" });
    };
    const refuse = (values) => {
      const as = (name) =>
        t`The address asks for ${name} = ${JSON.stringify(values[name]).slice(0, 60)}, which this figure cannot show, so you see its opening state.`;
      const unknown = Object.keys(values).find((name) => !traits.includes(name));
      if (unknown) return as(unknown);
      const walk = walks.find(({ name }) => name === (values.shown ?? start.shown));
      if (!walk) return as("shown");
      const checks = {
        preset: (name) => name === "" || modelsFor(walk).some((each) => each.name === name),
        unlinked: (names) =>
          Array.isArray(names) &&
          names.every((name) => walk.links.some((link) => link.name === name && !link.fixed)),
        dtype: (name) => name in data.bytes,
        nested: (on) => typeof on === "boolean",
        broken: (id) => id === "" || walk.breaks.some((entry) => entry.id === id),
        own: (size) => Number.isInteger(size) && size >= 0 && size <= 4 * data.largest,
        written: (size) => Number.isInteger(size) && size >= 0 && size <= data.largest,
      };
      const wrong = Object.keys(checks).find(
        (name) => name in values && !checks[name](values[name]),
      );
      if (wrong) return as(wrong);
      const problem =
        "sizes" in values ? misfit(walk, values.sizes, data.largest, values.unlinked ?? []) : "";
      return problem
        ? t`The address cannot be shown: ${problem}. You see the opening state of the figure.`
        : null;
    };
    for (const name of traits) model.on(`change:${name}`, draw);
    model.on("asked", arrive);
    el.classList.add("attention-figure");
    draw();
    el.append(form);
    arrive();
    return () => traits.forEach((name) => model.off(`change:${name}`, draw));
  },
};
