// The controls of a walk: which walk, at the sizes of which model, a slider per free size, links,
// what bytes are counted in, and what is broken. Each is made once and hidden where it has no place.

const OWN_SIZES = "own";

/** A labelled list to choose from; its `entries` may change with the walk. */
function select(figure, { label, name, entries, get, change }) {
  const input = h("select", { name });
  const node = h("label", { class: "af-select" }, h("span", {}, label), input);
  figure.control(node);
  input.addEventListener("change", () => change(input.value));
  let listed = "";
  return () => {
    const now = entries();
    if (listed !== JSON.stringify(now)) {
      listed = JSON.stringify(now);
      input.replaceChildren(...now.map(([value, text]) => h("option", { value }, text)));
    }
    node.parentNode.hidden = now.length < 2;
    input.value = get();
  };
}

/** A box to tick; where it has no `change`, its text alone. */
function tick(figure, { text, get, change, hidden }) {
  const input = h("input", { type: "checkbox" });
  const node = change
    ? h("label", { class: "af-tick" }, input, text)
    : h("p", { class: "af-tick" }, text);
  figure.control(node);
  input.addEventListener("change", () => change(input.checked));
  return () => {
    node.parentNode.hidden = hidden();
    input.checked = get();
  };
}

const slid = (size) => NUMBER.format(size);

/** A slider for each free size of each walk, of which those of the walk that is shown are seen. */
function sizeSliders(figure, state, walks) {
  const dims = new Map();
  for (const dim of walks.flatMap((walk) => walk.dims)) {
    dims.set(`${dim.name}: ${dim.names}`, dim);
  }
  for (const [key, { name, names }] of dims) {
    const isShown = () =>
      freeIn(state.walk(), state.unlinked()).some((dim) => `${dim.name}: ${dim.names}` === key);
    const label = names.flatMap((each, i) => [i ? " = " : "", named(each, name)]);
    figure.slider({
      label: h("span", { "data-of": name, "data-size": name }, ...label),
      stops: () => (isShown() ? state.stops(name) : [1]),
      get: () => state.sizes()[name] ?? 1,
      change: (size) => state.resize(name, size),
      text: slid,
      hidden: () => !isShown(),
    });
  }
}

/** What follows another size unless the reader unlinks it. */
function links(figure, state, walks) {
  const found = new Map();
  for (const walk of walks) {
    for (const link of walk.links) found.set(JSON.stringify(link), link);
  }
  return [...found].map(([key, { name, to, fixed }]) => {
    const equation = `${name} = ${to.replace("/", " / ")}`;
    const text = h(
      "span",
      { "data-of": name },
      equation,
      ...(fixed ? [" ", t("(set by the layer)")] : []),
    );
    return tick(figure, {
      text,
      get: () => !state.unlinked().includes(name),
      change: fixed ? null : (on) => state.link(name, on),
      hidden: () => !state.walk().links.some((link) => JSON.stringify(link) === key),
    });
  });
}

/** The controls of an explorer: which computation, and at whose sizes. */
function chooser(figure, state, walks) {
  const isOwn = () => state.models().length > 0 && state.isChanged();
  return [
    select(figure, {
      label: t("Show"),
      name: "shown",
      entries: () => walks.map((walk) => [walk.name, t(walk.name)]),
      get: () => state.walk().name,
      change: state.show,
    }),
    select(figure, {
      label: t("at the sizes of"),
      name: "preset",
      entries: () => [
        ["", t("a small example")],
        ...state.models().map(({ name }) => [name, name]),
        ...(isOwn() ? [[OWN_SIZES, t("sizes of your own")]] : []),
      ],
      get: () => (isOwn() ? OWN_SIZES : state.get("preset")),
      change: state.toModel,
    }),
  ];
}

/** What is counted, what is broken, and which steps are seen. */
function options(figure, state, bytes) {
  return [
    select(figure, {
      label: t("Count bytes in"),
      name: "dtype",
      entries: () => Object.keys(bytes).map((name) => [name, name]),
      get: () => state.get("dtype"),
      change: (dtype) => state.move({ dtype }),
    }),
    select(figure, {
      label: t("Break it:"),
      name: "broken",
      entries: () => [
        ["", t("nothing is broken")],
        ...state.walk().breaks.map(({ id, label }) => [id, told(label)]),
      ],
      get: () => state.get("broken"),
      change: state.breakIt,
    }),
    tick(figure, {
      text: t("show the steps of the calls within"),
      get: () => state.get("nested"),
      change: (nested) => state.move({ nested }),
      hidden: () => !state.walk().hasNested,
    }),
  ];
}

/** The slider of the size that is broken. */
function ownSliders(figure, state) {
  const label = h("span", { class: "af-own" });
  figure.slider({
    label,
    stops: () => {
      const expected = state.expected();
      const near = [expected - 1, expected, expected + 1, state.get("own")];
      const round = roundSizes(4 * expected + 8).filter((size) => size <= 4 * expected + 8);
      return [...new Set([...round, ...near])].filter((size) => size > 0).sort((a, b) => a - b);
    },
    get: () => state.get("own"),
    change: (own) => state.move({ own }),
    text: slid,
    hidden: () => !state.entry()?.expected,
  });
  return () => {
    const entry = state.entry();
    const dim = entry?.id.split(".")[1];
    write(label, !entry ? "" : entry.step ? t`${dim} in ${entry.step} alone` : entry.id);
  };
}

/** What a model's cache holds: a slider, and the sentence that it alone moves. */
function cacheSlider(figure, state, sentence) {
  const context = () => state.model()?.cache?.context ?? 0;
  const place = h("div", { class: "af-cached" });
  figure.control(place);
  figure.slider({
    into: place,
    label: h("span", { class: "af-written" }, t("tokens in its cache")),
    stops: () => [0, ...roundSizes(context()).filter((size) => size < context()), context()],
    get: () => state.get("written"),
    change: (written) => state.move({ written }),
    text: slid,
    hidden: () => !state.model()?.cache,
  });
  place.append(sentence);
  return () => {
    place.parentNode.hidden = !state.model();
  };
}

/**
 * On a narrow screen, only what chooses the walk and the sliders of the sizes that `main()` names
 * stand before the cards; the other controls are folded. Opens where a link breaks something.
 */
function folding(figure, state, main) {
  const controls = figure.form.querySelector(".af-controls");
  const all = [...controls.children];
  const fold = h("details", { class: "af-fold" }, h("summary", {}, t("More sizes")));
  const narrow = matchMedia("(max-width: 32rem)");
  let [folded, wasBroken] = [[], false];
  const isMain = (node) =>
    Boolean(node.querySelector(":is([name=shown],[name=preset])")) ||
    main().includes(node.querySelector("[data-size]")?.dataset.size);
  const place = () => {
    const others = narrow.matches ? all.filter((node) => !isMain(node)) : [];
    if (others.length !== folded.length || others.some((node, i) => node !== folded[i])) {
      folded = others;
      const held = document.activeElement; // what is moved loses the focus
      fold.append(...others);
      controls.append(...all.filter((node) => !others.includes(node)), fold);
      if (!others.length) fold.remove();
      if (controls.contains(held)) held.focus({ preventScroll: true });
    }
    const isBroken = state.get("broken") !== "";
    if (isBroken && !wasBroken) fold.open = true;
    wasBroken = isBroken;
  };
  narrow.addEventListener("change", place);
  return place;
}
