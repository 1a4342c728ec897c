// The shape steps of a trace: one slider for the size that is chosen, and every step follows.

const TRAITS = [
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

/** The size with which a broken axis begins: next to the one that fits, and refused. */
function startOwn(entry, sizes) {
  if (!entry?.expected) return 0;
  const expected = evaluate(entry.expected, sizes);
  let size = entry.step && expected > 1 ? expected - 1 : expected + 1;
  while (!outcome(entry, sizes, size).error) size += 1;
  return size;
}

/**
 * The state of the figure, and what the controls do to it; `move` puts several values in place. What the
 * slider moves is `moved()`: the name of a size, OWN for the size that is broken, or CACHE.
 */
function walkState(model, data, walks, { move, main }) {
  const get = (name) => model.get(name);
  const walk = () => walks.find(({ name }) => name === get("shown"));
  /** Sizes of another walk, as a link that names none leaves them, are those of the trace. */
  const sizes = () => {
    const known = get("sizes");
    return walk().dims.every(({ name }) => name in known) ? known : walk().start;
  };
  const unlinked = () => get("unlinked");
  const modelsOf = ({ name }) => (data.models ?? []).filter((each) => name in each.sizes);
  const models = () => modelsOf(walk());
  const entry = () => walk().breaks.find(({ id }) => id === get("broken"));
  const per = () => data.bytes[get("dtype")];
  const sizesAt = (each, chosen) => ({ ...each.start, ...chosen?.sizes[each.name] });
  const chosenModel = () => models().find(({ name }) => name === get("preset"));
  const before = { name: "", sizes: null }; // of the slider that is being moved
  const rest = () => {
    before.sizes = null;
  };
  let chosen = ""; // what the slider moves
  const free = () => freeIn(walk(), unlinked()).map(({ name }) => name);
  const isMoved = (name) =>
    free().includes(name) ||
    (name === OWN && Boolean(entry()?.expected)) ||
    (name === CACHE && Boolean(chosenModel()?.cache));
  const sizeOf = (each) => sizeBroken(walk(), each, free());
  const change = (values) => {
    rest();
    move(values);
  };
  const toModel = (name, each = walk(), more = {}) => {
    const chosen = modelsOf(each).find((other) => other.name === name);
    change({
      ...more,
      preset: chosen ? name : "",
      sizes: sizesAt(each, chosen),
      unlinked: [],
      broken: "",
      own: 0,
      written: chosen?.cache?.context ?? 0,
    });
  };
  return {
    ...{ get, walk, sizes, unlinked, models, entry, per, before, rest, move: change },
    model: chosenModel,
    /** Whether the sizes are no longer those that were chosen. */
    isChanged: () => {
      const [chosen, now] = [sizesAt(walk(), chosenModel()), sizes()];
      return unlinked().length > 0 || walk().dims.some(({ name }) => chosen[name] !== now[name]);
    },
    expected: () => (entry()?.expected ? evaluate(entry().expected, sizes()) : 1),
    stops: (name) => stopsFor(walk(), name, { sizes: sizes(), unlinked: unlinked() }, data.largest),
    resize: (name, size) => {
      const old = sizes();
      if (before.name !== name || !before.sizes) Object.assign(before, { name, sizes: old });
      move({ sizes: follow(walk(), { ...old, [name]: size }, unlinked()) });
    },
    link: (name, on) => {
      chosen = on ? "" : name;
      const others = unlinked().filter((other) => other !== name);
      const links = on ? others : [...others, name];
      const fitting = follow(walk(), sizes(), links);
      const isMisfit = misfit(walk(), fitting, data.largest, links);
      change({ unlinked: links, sizes: isMisfit ? walk().start : fitting });
    },
    breakIt: (id) => {
      const each = walk().breaks.find((other) => other.id === id);
      if (!each && entry()) chosen = sizeOf(entry());
      change({ broken: id, own: startOwn(each, sizes()) });
    },
    free,
    moved: () => {
      if (!isMoved(chosen)) chosen = entry()?.expected ? OWN : (main() ?? free()[0] ?? "");
      return chosen;
    },
    choose: (name) => {
      rest();
      chosen = name;
    },
    /** What can be broken in the size that is moved, and what is; where that is nothing, all that can be. */
    breaks: () => {
      const size = chosen === OWN ? sizeOf(entry()) : chosen;
      const own = walk().breaks.filter((each) => sizeOf(each) === size || each === entry());
      return own.length ? own : walk().breaks;
    },
    toModel: (name) => toModel(name),
    show: (name) => {
      const each = walks.find((other) => other.name === name);
      toModel(get("preset"), each, { shown: name, nested: each.opensNested });
    },
    now: (at = sizes()) => {
      const [nested, own] = [get("nested"), get("own")];
      return measured(walk(), { sizes: at, per: per(), nested, entry: entry(), own });
    },
  };
}

/** A function that returns the challenge of the walk, the model and the depth that are shown. */
function challenges(model, state, data) {
  const start = Object.fromEntries(TRAITS.map((name) => [name, model.get(name)]));
  const found = new Map();
  return () => {
    const [walk, preset, nested] = [state.walk(), state.get("preset"), state.get("nested")];
    const key = JSON.stringify([walk.name, preset, nested]);
    if (!found.has(key)) {
      const isStart = walk.name === start.shown && preset === start.preset;
      const opened = isStart
        ? { sizes: start.sizes, unlinked: start.unlinked }
        : { sizes: { ...walk.start, ...state.model()?.sizes[walk.name] }, unlinked: [] };
      const now = () => ({ sizes: state.sizes(), per: state.per(), unlinked: state.unlinked() });
      const about = { nested, per: state.per(), largest: data.largest, now };
      found.set(key, challengeFrom(walk, opened, about));
    }
    return found.get(key);
  };
}

/** The size that a break is about, which the slider moves: `free` of those that it follows. */
function sizeBroken(walk, { expected, cases }, free) {
  const [name] = namesIn(expected ?? cases.at(-1).equal[1]);
  const { to = "" } = walk.links.find((link) => link.name === name) ?? {};
  return [name, ...namesIn(to)].find((each) => free.includes(each)) ?? free[0];
}

/** The row that has the longest bar, and what it owes that to. */
function longestIn({ longest: [{ step, within }, ...more] }) {
  const { number, name } = step;
  if (within)
    return t`longest bar: row ${number} (${within.step.name} ${listed(within.shape)} inside)`;
  return more.length
    ? t`longest bar: row ${number} (${name}) and ${more.length} more`
    : t`longest bar: row ${number} (${name})`;
}

/** What all steps hold, cost, and which has the longest bar; `old` is how it was before a move. */
function story(state, now, old) {
  const dtype = state.get("dtype");
  if (now.result?.error) {
    const held = now.there.length && t`The arguments hold ${bytesIn(now.bytes)}.`;
    return together(t("Nothing is computed."), held);
  }
  const grown = (part) => {
    const ratio = growth(now, old, part);
    return ratio && ` (${ratio})`;
  };
  const facts = inList([
    t`${bytesIn(allBytes(now))} in ${dtype}` + grown(allBytes),
    now.work && t`${counted(now.work)} multiply-adds` + grown(({ work }) => work),
    !old && longestIn(now),
  ]);
  const { name: moved, sizes } = state.before;
  if (!old) return t`${facts}.`;
  const [was, is] = [sizes[moved], state.sizes()[moved]];
  return t`${moved} ${NUMBER.format(was)} → ${NUMBER.format(is)} (${times(is / was)}): ${facts}.`;
}

/** Which steps the last move made grow, for those who do not see it on the rows: "×2: scores, weights". */
function growthTold(now, old) {
  if (!old) return "";
  const groups = new Map();
  now.all.forEach(({ step, count, isSeen }, i) => {
    const ratio = times(count / old.all[i].count);
    if (ratio === "×1") return;
    const key = isSeen ? ratio : t`${ratio} inside calls`;
    groups.set(key, (groups.get(key) ?? new Set()).add(step.name));
  });
  if (!groups.size) return t("No step changes that is counted.");
  return together(...[...groups].map(([ratio, names]) => t`${ratio}: ${inList([...names])}.`));
}

/** How many steps have neither a row nor bytes here. */
function leftOut({ sizes }, { cut = 0, shared = 0, divides }) {
  const isAlike = divides.every(([whole, part]) => sizes[whole] === sizes[part]);
  const left = cut - (isAlike ? shared : 0); // equal numbers of heads need no sharing
  return left ? t`Not counted: the bytes of ${left} steps inside calls, too many to show.` : "";
}

/** Where a model's sizes stand, how much of it the steps are, and what its cache holds. */
function cacheSentence(state, node) {
  const each = state.model();
  put(node, "data-bytes", null);
  if (!each) return "";
  const source = t`${each.name}: ${t(each.source)}.`;
  if (!each.cache) return state.isChanged() ? "" : source;
  const { layers, kv_heads, d_k } = each.cache;
  const part = state.isChanged()
    ? t("The steps now have sizes of your own.")
    : state.walk().opensNested
      ? t`The steps are those of one layer each in encoder and decoder; the model has ${layers} of each.`
      : t`The steps are those of one of its ${layers} layers.`;
  const [written, per] = [state.get("written"), state.per()];
  const bytes = 2 * layers * kv_heads * d_k * written * per;
  const tokens = NUMBER.format(written);
  put(node, "data-bytes", bytes);
  return together(
    source,
    part,
    t`The key–value cache of all its layers, for one sequence of ${tokens} tokens: 2 · ${layers} layers · ${kv_heads} key and value heads · ${d_k} · ${tokens} tokens · ${per} bytes = ${bytesIn(bytes)}.`,
  );
}

/** Which values a link may ask for; a sentence says why not, where there is more to say. */
function acceptLinks(figure, state, walks, data) {
  const checks = {
    shown: (name) => walks.some((walk) => walk.name === name),
    preset: (name) => name === "" || state.models().some((each) => each.name === name),
    unlinked: (names) =>
      Array.isArray(names) &&
      names.every((name) => state.walk().links.some((link) => link.name === name && !link.fixed)),
    sizes: (sizes) => misfit(state.walk(), sizes, data.largest, state.unlinked()) || true,
    dtype: (name) => name in data.bytes,
    nested: (on) => typeof on === "boolean",
    broken: (id) => id === "" || state.walk().breaks.some((entry) => entry.id === id),
    own: (size) => Number.isInteger(size) && size >= 0 && size <= 4 * data.largest,
    written: (size) => Number.isInteger(size) && size >= 0 && size <= data.largest,
  };
  for (const [name, check] of Object.entries(checks)) figure.accept(name, check);
}

export default {
  render({ model, el }) {
    const data = model.get("data");
    const walks = data.walks.map(prepared);
    const state = walkState(model, data, walks, {
      move: (values) => figure.move(values),
      main: () => goal()?.names[0],
    });
    const goal = challenges(model, state, data);
    const figure = frame({ model, el }, { traits: TRAITS, challenge: goal });
    acceptLinks(figure, state, walks, data);
    const list = rowList(() => figure.redraw());
    const large = closeUp(data.meanings, { choose: list.choose, redraw: () => figure.redraw() });
    const [cache, scales, legend] = ["af-cache", "af-scales", "af-scale"].map((kind) =>
      h("p", { class: kind }),
    );
    const chosen = walks.length > 1 ? chooser(state, walks) : null;
    const syncs = [
      ...(chosen?.syncs ?? []),
      moves(figure, state, walks),
      ...options(figure, state, { walks, bytes: data.bytes }),
    ];
    figure.form.classList.add("af-walk");
    figure.form.classList.toggle("af-explorer", Boolean(chosen));
    figure.form.querySelector(".af-hint").remove();
    put(figure.goal, "data-purpose", t("Choose a step, change a size."));
    figure.stage.append(
      ...(chosen ? [chosen.node] : []),
      figure.goal,
      list.node,
      scales,
      large.node,
    );
    const scene = figure.stage.parentNode;
    scene.append(cache, large.detail, scene.querySelector(".af-fold"));
    figure.below.append(legend);
    el.addEventListener("change", state.rest);
    figure.form.querySelector(".af-reset").addEventListener("click", () => {
      state.choose("");
      list.forget();
    });

    let [heard, broken] = ["", ""];
    return figure.open(() => {
      const entry = state.entry();
      const isNew = broken !== state.get("broken");
      broken = state.get("broken");
      if (isNew && entry?.expected) state.choose(OWN);
      const size = state.moved();
      for (const sync of syncs) sync();
      const [now, { name, sizes }] = [state.now(), state.before];
      const was = sizes && sizes[name] !== state.sizes()[name] ? state.now(sizes) : null;
      const old = [now, was].some((each) => each?.result?.error) ? null : was;
      const shown = list.draw(state.walk(), now, { old, size, wanted: isNew && entry?.step });
      const { isLinear, text } = large.draw(now, shown, entry);
      const held = cacheSentence(state, cache);
      write(cache, held);
      put(list.node, "data-bytes", now.bytes);
      put(list.node, "data-work", now.work);
      put(list.node, "data-sizes", JSON.stringify(state.sizes()));
      put(figure.form, "data-moved", size);
      const isDashed = now.all.some(({ isSeen, within }) => isSeen && within);
      write(scales, scalesOf(shown.scale, isLinear));
      const reading = legendOf(isDashed, Boolean(old));
      write(legend, together(reading, leftOut(now, state.walk())));
      const told = together(text, held, growthTold(now, old));
      if (told !== heard) figure.announce("walk", told);
      heard = told;
      return story(state, now, old);
    });
  },
};

/** How long a full bar is, if there is one, and how sides are drawn: both change while sizes grow. */
function scalesOf({ full, ratio }, isLinear) {
  const bar = bytesIn(full);
  return together(
    full && (ratio === "×1" ? t`Full bar: ${bar}.` : t`Full bar: now ${bar} (${ratio}).`),
    isLinear ? t("Sides to scale.") : t("Sides by square root."),
  );
}

/** How the blocks and the bars are to be read. */
function legendOf(isDashed, isMoved) {
  return together(
    t("Small blocks ¼. Bars: bytes, hollow if shared, hatched inside calls."),
    isDashed ? t("Dashed outline: the largest inside, or what would fit.") : "",
    isMoved ? t("Orange lines: before the move.") : "",
  );
}
