// The steps of a walk, a row for each: its name, its shape, and its bytes as a bar over the width.

/** The row of one step, and what draws it as it was measured. */
function row(step) {
  const sizes = step.axes.map((axis, d) => {
    const [first, second = first] = namesIn(step.dims[d]).map((dim) => `var(--dim-${dim})`);
    const style = `--dim: ${first}; --second: ${second}`;
    return h("span", { class: "af-size", "data-of": namesIn(axis).join(" "), style });
  });
  const parts = step.name.split(/(?<=_)/).flatMap((part) => [part, h("wbr")]);
  const [bar, inside] = [h("i"), h("i", { class: "af-inside-bytes" })];
  const [role, held, grown, before] = ["role", "held", "grown", "before"].map((kind) =>
    h("span", { class: `af-${kind}` }),
  );
  const name = h(
    "button",
    { type: "button", class: "af-pick", "aria-pressed": "false" },
    h("span", { class: "af-step-name" }, h("span", {}, step.number), " ", ...parts),
    role,
    h("span", { class: "af-shape" }, ...commas(sizes)),
    h("span", { class: "af-bytes", "aria-hidden": "true" }, bar, inside, before),
    h("span", { class: "af-cost" }, held, grown),
  );
  mark(name, 0, 0, "button");
  const node = h("li", { class: step.nested ? "af-step af-nested" : "af-step" }, name);
  const draw = (one, { full, was, lit }) => {
    node.hidden = !one.isSeen;
    if (node.hidden) return;
    const { isReached, bytes, owner } = one;
    const there = (number) => (isReached ? number : 0);
    sizes.forEach((size, d) => {
      write(size, one.shape[d]);
      size.classList.toggle("af-lit", namesIn(step.axes[d]).includes(lit));
    });
    bar.style.width = `${there((100 * bytes) / full)}%`;
    inside.style.width = `${there((100 * one.inside) / full)}%`;
    before.hidden = !(was && allBytes(was) <= full);
    if (was) before.style.left = `${(100 * allBytes(was)) / full}%`;
    bar.classList.toggle("af-shared", Boolean(owner));
    const more = growth(one, was, allBytes);
    write(held, heldIn(one, more));
    write(grown, more && ` ${more}`);
    const { shape, count, work } = one;
    put(node, "data-shape", shape.join(","));
    const own = owner ? 0 : bytes;
    for (const [key, number] of Object.entries({ count, bytes, own, inside: one.inside, work }))
      put(node, `data-${key}`, there(number));
    node.classList.toggle("af-broken", one.isBroken);
    node.classList.toggle("af-unreached", !isReached);
  };
  return { node, name, role, step, draw };
}

/** The bytes of a step, or with which step they are counted, and those inside its calls; short where
 * it is said with them how much has grown. */
function heldIn({ step, isReached, bytes, owner, inside }, isShort) {
  if (!isReached) return t("not computed");
  const shared = () =>
    owner.step.tensor === step.tensor
      ? t`same as ${owner.step.number}`
      : t`view of ${owner.step.number}`;
  const own = owner ? shared() : bytesIn(bytes);
  if (!inside) return own;
  return isShort ? `${own} + ${bytesIn(inside)}` : t`${own} + ${bytesIn(inside)} inside`;
}

/**
 * Of several rows of one tensor, as keys and values may be, those that the code of a step names, or
 * names with a word in front (`seen_keys`), in its own call; else the first.
 */
function namedIn(rows, step) {
  const own = rows.filter((each) => each.step.call === step.call);
  const names = step.code.replace(/^[\w, ]+ = /, "").match(/\w+/g) ?? [];
  const exact = own.filter((each) => names.includes(each.step.name));
  const alike = own.filter((each) => names.some((name) => name.endsWith(`_${each.step.name}`)));
  return [exact, alike, own.slice(0, 1)].find((found) => found.length) ?? rows.slice(0, 1);
}

/**
 * The steps among `rows` that a step is made of. A step without a row now is passed through to the
 * steps that it is made of; an argument of a call within is the tensor that it was given.
 */
function inputsOf(rows, walk, step) {
  const [seen, madeOf] = [new Map(), new Map()];
  for (const { tensor, sources } of walk.steps) madeOf.set(tensor, sources);
  for (const each of rows)
    seen.set(each.step.tensor, [...(seen.get(each.step.tensor) ?? []), each]);
  const [first] = seen.get(step.tensor);
  if (!step.code && (first.step.code || first.step.call !== step.call)) return [first];
  const nearest = (tensor) =>
    (madeOf.get(tensor) ?? []).flatMap((source) => (seen.has(source) ? [source] : nearest(source)));
  const found = [...new Set(nearest(step.tensor))].flatMap((tensor) =>
    namedIn(seen.get(tensor), step),
  );
  return rows.filter((each) => found.includes(each));
}

/** By row: the rows that it is made of, and those that are made of it. */
function flowsOf(rows, walk) {
  const made = new Map(rows.map((each) => [each, inputsOf(rows, walk, each.step)]));
  const outputs = (each) => rows.filter((other) => made.get(other).includes(each));
  return new Map(rows.map((each) => [each, { inputs: made.get(each), outputs: outputs(each) }]));
}

/** The sentence on what a step is made of and what is made of it. */
function flowSentence({ inputs, outputs }) {
  const names = (rows) => inList([...new Set(rows.map(({ step }) => step.name))]);
  return together(
    inputs.length ? t`Made of ${names(inputs)}.` : "",
    outputs.length ? t`Goes into ${names(outputs)}.` : "",
  );
}

/** All rows of the walk that is shown, of which one is chosen; `changed` is called when another is. */
function rowList(changed) {
  const node = h("ol", { class: "af-steps", "data-marks": "", "aria-label": t("steps") });
  let [walk, rows, seen, chosen, flows] = [null, [], [], null, new Map()];

  /** Find out what each step that is seen is made of, and say it with its name. */
  const read = () => {
    seen = rows.filter((each) => !each.node.hidden);
    flows = flowsOf(seen, walk);
    seen.forEach((each, i) => {
      put(each.name, "data-at", `${i},0`);
      put(each.name, "data-key", each.step.number);
      const reading = flowSentence(flows.get(each)) || t`A step of ${each.step.function}.`;
      put(each.name, "aria-description", reading);
    });
  };
  /** Between which places the list must be scrolled to for a row to be in sight. */
  const within = ({ offsetTop: top, offsetHeight: height }) => [
    Math.max(0, top + height - node.clientHeight),
    top,
  ];
  /** Bring the row with the longest bar into sight, too, where the chosen one then stays there. */
  const addTo = (longest) => {
    const [least, most] = within(longest.node);
    const place = Math.min(Math.max(node.scrollTop, least), most);
    const [low, high] = within(chosen.node);
    if (place >= low && place <= high) node.scrollTop = place;
  };
  /** Choose a row: bring it into sight within the list, which moves nothing else. */
  const choose = (each, isTapped = false) => {
    for (const other of rows) {
      put(other.name, "aria-pressed", String(other === each));
      put(other.name, "tabindex", other === each ? 0 : -1);
    }
    chosen = each;
    const [least, most] = within(each.node);
    if (node.scrollTop < least || node.scrollTop > most) {
      const tops = seen.map((one) => one.node.offsetTop).filter((y) => y <= (least + most) / 2);
      if (isTapped) node.scrollTop = node.scrollTop < least ? least : most;
      else node.scrollTop = Math.max(0, ...tops); // a whole row at the top
    }
    const { inputs, outputs } = flows.get(each);
    const texts = { input: t("goes in"), output: t("comes out"), same: t("the same tensor") };
    for (const other of seen) {
      const isSame = other.step.tensor === each.step.tensor;
      const isBroken = [each, other].some((one) => one.node.classList.contains("af-broken"));
      const role = inputs.includes(other)
        ? "input"
        : outputs.includes(other)
          ? "output"
          : isSame && !isBroken && "same";
      put(other.node, "data-role", other === each ? "chosen" : role || null);
      write(other.role, other === each ? "" : (texts[role] ?? ""));
    }
  };
  const pick = ({ target }) => {
    const each = seen.find((one) => one.name.contains(target));
    if (!each || each === chosen) return;
    choose(each, true);
    changed();
  };
  for (const come of ["click", "focusin"]) node.addEventListener(come, pick);
  node.addEventListener("keydown", (event) => {
    const to = { Home: 0, End: -1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    seen.at(to).name.focus();
  });
  /** Draw the rows; `wanted` names the step to choose, if any. Returns the chosen row and its flow. */
  const draw = (shown, now, { old, size, wanted }) => {
    if (shown !== walk) {
      walk = shown;
      rows = walk.steps.map(row);
      [chosen, seen] = [null, []];
      node.replaceChildren(...rows.map((each) => each.node));
    }
    // The full width doubles at a time, so that what grows is seen to grow, and what stays stays.
    const most = (all) => Math.max(0, ...all.map(allBytes));
    const [is, was] = [now.there, old?.there ?? []].map(most);
    const above = (bytes) => 2 ** Math.ceil(Math.log2(bytes || 1));
    const full = above(Math.max(is, Math.min(was, 4 * is)));
    now.all.forEach((one, i) => {
      rows[i].draw(one, { full, was: old?.all[i], lit: size });
    });
    const isOther = seen.length !== now.all.filter(({ isSeen }) => isSeen).length;
    if (isOther) read();
    const first = () =>
      seen.reduce((best, each) =>
        flows.get(each).inputs.length > flows.get(best).inputs.length ? each : best,
      );
    const named = wanted && seen.find(({ step }) => step.name === wanted);
    const isOpening = !chosen;
    if (named || isOther || !chosen || chosen.node.hidden)
      choose(named || (chosen && !chosen.node.hidden ? chosen : first()));
    if (isOpening && now.longest.length) addTo(rows[now.all.indexOf(now.longest[0])]);
    const measureOf = (each) => now.all[rows.indexOf(each)];
    const scale = { full: is && full, ratio: old ? times(full / above(was)) : "×1" };
    return { chosen, ...flows.get(chosen), measureOf, scale, was: old?.all[rows.indexOf(chosen)] };
  };
  const forget = () => {
    chosen = null;
  };
  return {
    node,
    draw,
    choose: (each) => {
      choose(each);
      changed();
    },
    forget,
  };
}
