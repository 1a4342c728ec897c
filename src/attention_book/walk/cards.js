// The cards of a walk: one per step, with its block, its sizes, its bytes as a bar, and its code.

/** A dimension as a table writes it, each of its names over its colour; it lights up with its size. */
function named(dim, axis) {
  const parts = dim
    .split(/([*+])/)
    .map((part) => (/[A-Za-z_]/.test(part) ? dimension(part) : part));
  return h("span", { class: "af-axis", "data-of": namesIn(axis).join(" ") }, ...parts);
}

const commas = (nodes) => ["(", ...nodes.flatMap((node, i) => [i ? ", " : "", node]), ")"];

/** The card of one step, and what draws it as it was measured. */
function card(step, i) {
  const picture = block();
  const name = h(
    "button",
    { type: "button", class: "af-step-name", "aria-expanded": "false" },
    h("span", {}, step.number),
    ` ${step.name}`,
  );
  mark(name, 0, i, "button");
  const sizes = step.axes.map((axis) =>
    h("span", { class: "af-size", "data-of": namesIn(axis).join(" ") }),
  );
  const dims = h(
    "p",
    { class: "af-dims" },
    ...commas(step.dims.map((d, at) => named(d, step.axes[at]))),
  );
  const shape = h("p", { class: "af-shape" }, ...commas(sizes));
  const cost = h("p", { class: "af-cost" });
  const bar = h("i");
  const inside = h("i", { class: "af-inside-bytes" });
  const from = h("p", { class: "af-from" });
  const [role, badge] = ["af-role", "af-badge"].map((kind) => h("span", { class: kind }));
  const node = h(
    "li",
    { class: step.nested ? "af-step af-nested" : "af-step" },
    h("p", { class: "af-step-head" }, name, badge),
    h("div", { class: "af-step-body" }, role, picture.node, h("div", {}, dims, shape, from)),
    cost,
    h("div", { class: "af-bytes", "aria-hidden": "true" }, bar, inside),
  );
  const draw = (one, { pixels, most, isLargest, isTold }) => {
    node.hidden = !one.isSeen;
    if (node.hidden) return;
    sizes.forEach((size, d) => write(size, one.shape[d]));
    picture.draw(step, one.shape, { pixels, within: one.within });
    write(cost, one.isReached ? costOf(one) : t("not computed"));
    bar.style.width = `${one.isReached ? (100 * one.bytes) / most : 0}%`;
    inside.style.width = `${one.isReached ? (100 * one.inside) / most : 0}%`;
    bar.classList.toggle("af-shared", Boolean(one.owner));
    put(node, "data-shape", one.shape.join(","));
    put(node, "data-count", one.isReached ? one.count : 0);
    put(node, "data-bytes", one.isReached ? one.bytes : 0);
    put(node, "data-own", one.isReached && !one.owner ? one.bytes : 0);
    put(node, "data-inside", one.isReached ? one.inside : 0);
    put(node, "data-work", one.isReached ? one.work : 0);
    node.classList.toggle("af-broken", one.isBroken);
    node.classList.toggle("af-unreached", !one.isReached);
    node.classList.toggle("af-largest", isLargest);
    node.classList.toggle("af-holds-largest", Boolean(one.within));
    const told = one.within ? t`${bytesIn(one.inside)} inside` : t("largest");
    write(badge, one.within || (isLargest && isTold) ? told : "");
  };
  /** Say of which steps it is made, by their numbers. */
  const tell = (inputs) => {
    const numbers = inputs.map((each) => each.step.number);
    write(from, numbers.length ? t`from ${inList(numbers)}` : "");
  };
  return { node, name, role, step, draw, tell };
}

/** What a step holds and costs; of a step that shares its memory, where its bytes are counted. */
function costOf({ step, count, bytes, owner, inside, work, unknown }) {
  const shared = (other) =>
    other.tensor === step.tensor
      ? t`the same tensor as step ${other.number}`
      : t`a view of step ${other.number}`;
  return inList([
    count === 1 ? t("1 number") : t`${NUMBER.format(count)} numbers`,
    owner ? shared(owner.step) : bytesIn(bytes),
    inside && t`${bytesIn(inside)} more inside`,
    work && t`${counted(work)} multiply-adds`,
    unknown && t("and products not counted"),
  ]);
}

/**
 * Of several cards of one tensor, as keys and values may be, those that the code of a step names, or
 * names with a word in front (`seen_keys`), in its own call; else the first.
 */
function namedIn(cards, step) {
  const own = cards.filter((each) => each.step.call === step.call);
  const names = step.code.replace(/^[\w, ]+ = /, "").match(/\w+/g) ?? [];
  const exact = own.filter((each) => names.includes(each.step.name));
  const alike = own.filter((each) => names.some((name) => name.endsWith(`_${each.step.name}`)));
  return [exact, alike, own.slice(0, 1)].find((found) => found.length) ?? cards.slice(0, 1);
}

/**
 * The steps among `cards` that a step is made of. A step without a card now is passed through to the
 * steps that it is made of; an argument of a call within is the tensor that it was given.
 */
function inputsOf(cards, walk, step) {
  const [seen, madeOf] = [new Map(), new Map()];
  for (const { tensor, sources } of walk.steps) madeOf.set(tensor, sources);
  for (const each of cards)
    seen.set(each.step.tensor, [...(seen.get(each.step.tensor) ?? []), each]);
  const [first] = seen.get(step.tensor);
  if (!step.code && (first.step.code || first.step.call !== step.call)) return [first];
  const nearest = (tensor) =>
    (madeOf.get(tensor) ?? []).flatMap((source) => (seen.has(source) ? [source] : nearest(source)));
  const found = [...new Set(nearest(step.tensor))].flatMap((tensor) =>
    namedIn(seen.get(tensor), step),
  );
  return cards.filter((each) => found.includes(each));
}

/** By card: the cards that it is made of, and those that are made of it. */
function flowsOf(cards, walk) {
  const made = new Map(cards.map((each) => [each, inputsOf(cards, walk, each.step)]));
  const outputs = (each) => cards.filter((other) => made.get(other).includes(each));
  return new Map(cards.map((each) => [each, { inputs: made.get(each), outputs: outputs(each) }]));
}

/** The sentence on what a step is made of and what is made of it. */
function flowSentence({ inputs, outputs }) {
  const names = (cards) => inList([...new Set(cards.map(({ step }) => step.name))]);
  return together(
    inputs.length ? t`Made of ${names(inputs)}.` : "",
    outputs.length ? t`Goes into ${names(outputs)}.` : "",
  );
}

/** The code of a step, its axes and what they mean, its products, and whose memory it shares. */
function details({ step, shape, isReached, owner }, { sizes, meanings }) {
  const meaning = (dim) =>
    namesIn(dim)
      .map((name) => (name in meanings ? t(meanings[name]) : t`a dimension of ${step.function}`))
      .reduce((all, next) => (all ? t`${all}; times: ${next}` : next), "");
  const row = (dim, d) => {
    const axis = step.axes[d];
    const text =
      dim === "1"
        ? t("one, so that it is broadcast over the axis it is combined with")
        : meaning(dim);
    const isOwn = shape[d] !== evaluate(axis, sizes); // it is broken, and follows from nothing
    const written = axis === dim ? "" : ` = ${axis}`;
    const equation = `${isOwn ? "" : written + factorsOf(axis, sizes)} = ${NUMBER.format(shape[d])}`;
    return h("li", {}, named(dim, axis), t`${equation}: ${text}`);
  };
  const products = step.products
    .filter((axes) => axes.length)
    .map((axes) => {
      const text = axes.join(" · ").replace(/([A-Za-z_]\w*[*+][\w*+]*)/g, "($1)");
      return h("p", {}, t`Multiply-adds: ${text} = ${NUMBER.format(product(axes, sizes))}`);
    });
  const shared = (other) =>
    other.tensor === step.tensor
      ? t`It is the same tensor as step ${other.number}, where its bytes are counted.`
      : t`It is a view: it shares the memory of step ${other.number}, where its bytes are counted.`;
  return [
    step.code
      ? h("pre", {}, h("code", {}, step.code))
      : h("p", {}, t`An argument of ${step.function}.`),
    h("ul", {}, ...step.dims.map(row)),
    ...(isReached ? products : [h("p", {}, t("Nothing of it is computed now."))]),
    ...(owner ? [h("p", {}, shared(owner.step))] : []),
  ];
}

/** " = 3 × 4", of an expression with more than one name. */
function factorsOf(axis, sizes) {
  if (namesIn(axis).length < 2) return "";
  const numbers = axis.replace(/[A-Za-z_]\w*/g, (name) => NUMBER.format(sizes[name]));
  return ` = ${numbers.replace(/[*]/g, " × ").replace(/\//g, " / ").replace(/[+]/g, " + ")}`;
}

/** Mark what a step is made of and what is made of it; the style fades the others while it is pointed at. */
function showRoles(cards, each, { inputs = [], outputs = [] }) {
  const texts = { input: t("goes in"), output: t("comes out"), same: t("the same tensor") };
  const roleOf = (other) => {
    if (other === each) return "chosen";
    const isBroken = [each, other].some((one) => one?.node.classList.contains("af-broken"));
    if (each && !isBroken && other.step.tensor === each.step.tensor) return "same";
    if (inputs.includes(other)) return "input";
    return outputs.includes(other) ? "output" : null;
  };
  for (const other of cards) {
    const role = roleOf(other);
    write(other.role, texts[role] ?? "");
    put(other.node, "data-role", role);
  }
}

/** Up and down arrows lead to the card before and the next one, as left and right do in frame.js. */
function stepOn(event, seen) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const at = seen.findIndex((each) => each.name === event.target);
  if (!step || at < 0) return;
  event.preventDefault();
  event.stopPropagation();
  const to = seen[at + step];
  if (!to) return;
  put(event.target, "tabindex", -1);
  put(to.name, "tabindex", 0);
  to.name.focus();
}

/** All cards of the walk that is shown; a step that is chosen opens its details behind its card. */
function cardList(meanings) {
  const node = h("ol", { class: "af-steps", "data-marks": "" });
  const detail = h("li", { class: "af-detail" });
  let [walk, cards, chosen, flows, now] = [null, [], null, new Map(), null];
  const visible = () => cards.filter((each) => !each.node.hidden);

  const open = (each) => {
    if (chosen) put(chosen.name, "aria-expanded", "false");
    chosen = each;
    detail.remove();
    if (!chosen) return;
    put(chosen.name, "aria-expanded", "true");
    chosen.node.after(detail);
    explain();
  };
  const explain = () => {
    const flow = flowSentence(flows.get(chosen));
    detail.replaceChildren(
      ...details(now.all[cards.indexOf(chosen)], { sizes: now.sizes, meanings }),
      ...(flow ? [h("p", {}, flow)] : []),
    );
  };
  /** Find out what each step that is seen is made of, and say it with its name. */
  const read = () => {
    flows = flowsOf(visible(), walk);
    for (const [{ name, step, tell }, flow] of flows) {
      tell(flow.inputs);
      const reading = flowSentence(flow) || t`A step of ${step.function}.`;
      say(name, `step ${step.number}`, "", reading);
    }
  };
  const light = (each, isPointed) => {
    showRoles(cards, each, flows.get(each) ?? {});
    node.classList.toggle("af-pointed", Boolean(each && isPointed));
  };
  const cardOf = (target) => cards.find((each) => each.node.contains(target)) ?? null;

  node.addEventListener("click", (event) => {
    const each = cardOf(event.target);
    if (!each) return;
    open(each === chosen ? null : each);
    if (!chosen) return;
    const isStill = matchMedia("(prefers-reduced-motion: reduce)").matches;
    detail.scrollIntoView({ block: "nearest", behavior: isStill ? "instant" : "smooth" });
  });
  const point = ({ target }) => {
    const each = cardOf(target);
    light(each ?? chosen, Boolean(each));
  };
  for (const come of ["pointerover", "focusin"]) node.addEventListener(come, point);
  for (const leave of ["pointerleave", "focusout"]) {
    node.addEventListener(leave, () => light(chosen, false));
  }
  node.addEventListener("keydown", (event) => {
    if (event.key === "Escape") open(null);
    stepOn(event, visible());
  });
  const draw = (shown, measures) => {
    now = measures;
    const { all, there, largest } = now;
    if (shown !== walk) {
      walk = shown;
      cards = walk.steps.map(card);
      chosen = null;
      node.replaceChildren(...cards.map((each) => each.node));
    }
    const { pixels, isLinear } = scaleFor(
      all
        .filter(({ isSeen }) => isSeen)
        .flatMap((one) => [one, ...(one.within ? [one.within] : [])]),
    );
    const most = Math.max(...there.map(({ bytes, inside }) => bytes + inside));
    const isTold = 2 * largest.length <= there.length; // where most are, the sentence alone says it
    all.forEach((one, i) => {
      cards[i].draw(one, { pixels, most, isLargest: largest.includes(one), isTold });
    });
    if (flows.size !== visible().length || !flows.has(visible()[0])) read();
    if (chosen?.node.hidden) open(null);
    if (chosen) explain();
    return isLinear;
  };
  return { node, draw };
}
