// The shape steps of a trace: a slider per free size, and every step follows.

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

/** The state of the figure, and what the controls do to it; `move` puts several values in place. */
function walkState(model, data, walks, move) {
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
    ...{ get, walk, sizes, unlinked, models, modelsOf, entry, per, before, rest, move: change },
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
      const others = unlinked().filter((other) => other !== name);
      const links = on ? others : [...others, name];
      const fitting = follow(walk(), sizes(), links);
      const isMisfit = misfit(walk(), fitting, data.largest, links);
      change({ unlinked: links, sizes: isMisfit ? walk().start : fitting });
    },
    breakIt: (id) =>
      change({
        broken: id,
        own: startOwn(
          walk().breaks.find((each) => each.id === id),
          sizes(),
        ),
      }),
    toModel: (name) => toModel(name),
    show: (name) => {
      const each = walks.find((other) => other.name === name);
      toModel(get("preset"), each, { shown: name, nested: each.opensNested });
    },
    now: (more = {}) => {
      const at = {
        sizes: sizes(),
        per: per(),
        nested: get("nested"),
        entry: entry(),
        own: get("own"),
      };
      return measured(walk(), { ...at, ...more });
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

/** The two sizes whose sliders a narrow screen shows at once: they meet the challenge. */
function mainSizes(state, challenge) {
  const free = freeIn(state.walk(), state.unlinked()).map(({ name }) => name);
  return (challenge?.names ?? free.filter((name) => name !== "batch")).slice(0, 2);
}

/** What the last move made grow, or what all steps hold. */
function story(state, now) {
  const [all, dtype] = [bytesIn(now.bytes), state.get("dtype")];
  if (now.result?.error) {
    return now.there.length
      ? t`Nothing is computed: the arguments hold ${all} in ${dtype}.`
      : t("Nothing is computed.");
  }
  const left = leftOut(now, state.walk());
  const deeper = besides(now, left, false);
  const top = largestOf(now, deeper);
  const { name, sizes } = state.before;
  const [was, is] = [sizes?.[name], state.sizes()[name]];
  if (!was || was === is) {
    return together(sumOf(now, { all, dtype, deeper }), top, deeper);
  }
  const old = state.now({ sizes });
  const grown = grownAmong(now, old, true);
  const inside = grownAmong(now, old, false);
  const unseen = inside.length
    ? t`no step shown here changes, but inside the calls ${inList(inside)}`
    : state.walk().cut
      ? t("no step that is counted changes")
      : t("no step changes");
  const steps = grown.length ? inList(grown) : unseen;
  const move = `${name} ${NUMBER.format(was)} → ${NUMBER.format(is)} (${times(is / was)})`;
  const total = now.bytes + now.inside;
  const growth = times(total / (old.bytes + old.inside));
  const sentence =
    now.work && old.work
      ? t`${move}: ${steps}; together ${growth}, to ${bytesIn(total)} in ${dtype}, multiply-adds ${times(now.work / old.work)}.`
      : t`${move}: ${steps}; together ${growth}, to ${bytesIn(total)} in ${dtype}.`;
  return together(sentence, top, besides(now, left, true));
}

/** What the steps that are shown hold and cost; `deeper` says what there is besides. */
function sumOf({ work }, { all, dtype, deeper }) {
  if (deeper) {
    return work
      ? t`The steps shown: ${all} in ${dtype}, ${counted(work)} multiply-adds.`
      : t`The steps shown: ${all} in ${dtype}.`;
  }
  return work
    ? t`All steps together: ${all} in ${dtype}, ${counted(work)} multiply-adds.`
    : t`All steps together: ${all} in ${dtype}.`;
}

function largestOf({ largest }, deeper) {
  if (!largest.length) return ""; // it is inside a call, and named there
  const names = largest.map(({ step, shape }) => `${step.name} ${listed(shape)}`);
  const rest = names.length - 4;
  const items = inList([...names.slice(0, 4), rest > 0 && t`${rest} more`]);
  if (deeper) {
    return largest.length > 1
      ? t`The largest steps shown are ${items}.`
      : t`The largest step shown is ${items}.`;
  }
  return largest.length > 1 ? t`The largest steps are ${items}.` : t`The largest step is ${items}.`;
}

/** How many steps have neither a card nor bytes here. */
function leftOut({ sizes }, { cut = 0, shared = 0, divides }) {
  const isAlike = divides.every(([whole, part]) => sizes[whole] === sizes[part]);
  const left = cut - (isAlike ? shared : 0); // equal numbers of heads need no sharing
  return left ? t`${left} steps of calls within these are not counted.` : "";
}

/**
 * What the calls within hold besides the steps that are shown, or of a total that counts it; nothing
 * where all steps are shown.
 */
function besides({ there, inside, largestWithin }, left, isCounted) {
  const callers = there.filter((each) => each.inside > 0);
  if (!callers.length) return left;
  const names = inList([...new Set(callers.map(({ step }) => step.name))].slice(0, 4));
  const bytes = bytesIn(inside);
  const { step, shape } = largestWithin;
  const largest = `${step.name} ${listed(shape)}`;
  const sentence = isCounted
    ? t`Of these, ${bytes} are inside ${names}, the largest step ${largest}.`
    : t`Inside ${names}: ${bytes} more, the largest step ${largest}.`;
  return together(sentence, left);
}

/** By how much steps have grown, those that are seen or the others, as "4 steps ×2 (…)". */
function grownAmong(now, old, areSeen) {
  const groups = new Map();
  now.all.forEach(({ step, count, isSeen }, i) => {
    if (isSeen !== areSeen) return;
    const ratio = times(count / old.all[i].count);
    groups.set(ratio, [...(groups.get(ratio) ?? []), step.name]);
  });
  groups.delete("×1");
  return [...groups].map(([ratio, names]) => {
    const each = [...new Set(names)];
    const list = inList([...each.slice(0, 4), each.length > 4 && "…"]);
    return names.length === 1
      ? t`1 step ${ratio} (${list})`
      : t`${names.length} steps ${ratio} (${list})`;
  });
}

/** What happens when something is broken, in the words of the package. */
function refusal() {
  const [said, hint] = [h("span"), h("span", { class: "af-remedy" })];
  const node = h("p", { class: "af-refusal" }, said, hint);
  return {
    node,
    draw: (entry, result) => {
      const error = result?.error ? `${result.error}: ${result.text}` : "";
      const text = error ? together(error, told(entry.hint)) : (result?.text ?? "");
      node.replaceChildren(...(text ? [said, hint] : []));
      write(said, error || text);
      write(hint, error ? text.slice(error.length) : "");
      put(node, "data-error", result?.error ?? null);
      node.classList.toggle("af-silent", Boolean(result) && !error);
      return text;
    },
  };
}

/** Where a model's sizes stand, how much of it the steps are, and what its cache holds. */
function cacheSentence(state, node) {
  const each = state.model();
  put(node, "data-bytes", null);
  if (!each) return "";
  const source = t`${each.name}: ${t(each.source)}.`;
  if (!each.cache) return source;
  const { layers, kv_heads, d_k } = each.cache;
  const part = state.isChanged()
    ? t("The steps now have sizes of your own.")
    : state.walk().opensNested
      ? t`The steps are those of one layer each in encoder and decoder; it has ${layers}.`
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

/** Light up everything that has the size that is pointed at. */
function lighting(form) {
  let lit = "";
  const light = (of) => {
    if (of === lit) return;
    lit = of;
    const wanted = of.split(" ").filter(Boolean);
    for (const node of form.querySelectorAll("[data-of]")) {
      const own = node.getAttribute("data-of").split(" ");
      node.classList.toggle(
        "af-lit",
        wanted.some((name) => own.includes(name)),
      );
    }
  };
  const from = ({ target }) => {
    const node =
      target.closest?.("[data-of]") ?? target.closest?.(".af-slider")?.querySelector("[data-size]");
    light(node?.getAttribute("data-of") ?? "");
  };
  form.addEventListener("pointerover", from);
  form.addEventListener("focusin", from);
  form.addEventListener("pointerleave", () => light(""));
}

export default {
  render({ model, el }) {
    const data = model.get("data");
    const walks = data.walks.map(prepared);
    const state = walkState(model, data, walks, (values) => figure.move(values));
    const goal = challenges(model, state, data);
    const figure = frame({ model, el }, { traits: TRAITS, challenge: goal });
    const choosing = walks.length > 1 ? chooser(figure, state, walks) : [];
    sizeSliders(figure, state, walks);
    const [cache, legend] = ["af-cache", "af-scale"].map((kind) => h("p", { class: kind }));
    const syncs = [
      ...choosing,
      ...links(figure, state, walks),
      ...options(figure, state, data.bytes),
      ownSliders(figure, state),
      cacheSlider(figure, state, cache),
    ];
    syncs.push(folding(figure, state, () => mainSizes(state, goal())));
    acceptLinks(figure, state, walks, data);
    const said = refusal();
    const cards = cardList(data.meanings);
    figure.form.classList.add("af-walk");
    write(
      figure.form.querySelector(".af-hint"),
      hovers
        ? t(
            "Point at a step, or reach it with Tab and the arrow keys, to see what goes into it and what is made of it.",
          )
        : t("Tap a step to see what goes into it and what is made of it."),
    );
    figure.stage.hidden = true; // what is seen is longer than a screen, and stands below
    figure.below.append(said.node, cards.node, legend);
    el.addEventListener("change", state.rest);

    let heard = "";
    const close = figure.open(() => {
      for (const sync of syncs) sync();
      const now = state.now();
      const held = cacheSentence(state, cache);
      write(cache, held);
      const text = together(said.draw(state.entry(), now.result), held);
      const isLinear = cards.draw(state.walk(), now);
      put(cards.node, "data-bytes", now.bytes);
      put(cards.node, "data-work", now.work);
      put(cards.node, "data-sizes", JSON.stringify(state.sizes()));
      const hasWithin = now.there.some(({ within }) => within);
      write(legend, legendOf(isLinear, hasWithin));
      if (text !== heard) figure.announce("walk", text);
      heard = text;
      return story(state, now);
    });
    lighting(figure.form);
    return close;
  },
};

/** How the blocks and the bars are to be read. */
function legendOf(isLinear, hasWithin) {
  return together(
    isLinear
      ? t("All blocks have one scale: a side twice as long is a size twice as large.")
      : t(
          "All blocks have one scale: sides grow with the square root of sizes, so a side twice as long is a size four times as large.",
        ),
    t(
      "The bar under each step is as long as its bytes: hollow where they are counted with another step, hatched for what the calls within hold.",
    ),
    hasWithin ? t("A dashed outline is the largest step inside the call.") : "",
    t("A batch is drawn as at most three sheets."),
  );
}
