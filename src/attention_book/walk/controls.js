// The controls of a walk: one slider and the chips that choose what it moves, of which one breaks it; which
// walk, at the sizes of which model; and, folded on a narrow screen, what follows from what.

const OWN_SIZES = "own";
const [OWN, CACHE] = ["*own", "*cache"]; // what the slider moves besides sizes

/** A labelled list to choose from; its `entries` may change with the walk. */
function select({ label, name, entries, get, change }) {
  const input = h("select", { name });
  const node = h("label", { class: "af-select" }, h("span", {}, label), input);
  input.addEventListener("change", () => change(input.value));
  let listed = "";
  const sync = () => {
    const now = entries();
    if (listed !== JSON.stringify(now)) {
      listed = JSON.stringify(now);
      input.replaceChildren(...now.map(([value, text]) => h("option", { value }, text)));
    }
    node.hidden = now.length < 2;
    input.value = get();
  };
  return { node, sync };
}

/** A box to tick; where it has no `change`, its text alone. */
function tick({ text, get, change, hidden }) {
  const input = h("input", { type: "checkbox" });
  const node = change
    ? h("label", { class: "af-tick" }, input, text)
    : h("p", { class: "af-tick" }, text);
  input.addEventListener("change", () => change(input.checked));
  const sync = () => {
    node.hidden = hidden();
    input.checked = get();
  };
  return { node, sync };
}

const slid = (size) => NUMBER.format(size);

/** The slider, a chip for each thing that it can move, and the list of what can be broken there. */
function moves(figure, state, walks) {
  const chips = h("div", {
    class: "af-chips af-moves",
    role: "group",
    "aria-label": t("size to move"),
  });
  const line = h("div", { class: "af-line-of-moves" });
  const all = new Map();
  const name = () => state.moved();
  const make = (key, about, ...label) => {
    const value = h("span");
    const press = () => {
      state.choose(key);
      figure.redraw();
    };
    const node = chip("", press, about);
    node.append(...label, " ", value);
    chips.append(node);
    return { node, value };
  };
  for (const dim of walks.flatMap((walk) => walk.dims)) {
    const key = `${dim.name}: ${dim.names}`;
    const label = dim.names.flatMap((each, i) => [i ? " = " : "", named(each)]);
    if (!all.has(key))
      all.set(key, { dim, ...make(dim.name, { "data-size": dim.name }, ...label) });
  }
  const ownName = h("span", { class: "af-own" });
  const own = make(OWN, {}, ownName);
  const cache = make(CACHE, {}, h("span", { class: "af-written" }, t("tokens in its cache")));
  const ways = {
    [OWN]: {
      label: () => ownName.textContent,
      stops: () => ownStops(state),
      get: () => state.get("own"),
      change: (own) => state.move({ own }),
    },
    [CACHE]: {
      label: () => t("tokens in its cache"),
      stops: () => cacheStops(state.model().cache.context),
      get: () => state.get("written"),
      change: (written) => state.move({ written }),
    },
  };
  const wayOf = (key) =>
    ways[key] ?? {
      label: () => key,
      stops: () => (key ? state.stops(key) : [1]),
      get: () => state.sizes()[key] ?? 1,
      change: (size) => state.resize(key, size),
    };
  const now = () => wayOf(name());
  figure.slider({
    into: line,
    label: () => now().label(),
    stops: () => now().stops(),
    get: () => now().get(),
    change: (size) => now().change(size),
    text: slid,
  });
  const only = h("p", { class: "af-only" });
  const broken = select({
    label: t("Break it:"),
    name: "broken",
    entries: () => [
      ["", state.entry() ? t("mend it") : t("break it")],
      ...state.breaks().map(({ id, label }) => [id, told(label)]),
    ],
    get: () => state.get("broken"),
    change: state.breakIt,
  });
  line.append(only);
  // Under the slider, which a break then does not push.
  figure.control(line, h("div", { class: "af-chips af-under" }, chips, broken.node));
  return () => {
    const entry = state.entry();
    const dim = entry?.id.split(".")[1];
    write(ownName, !entry ? "" : entry.step ? t`${dim} in ${entry.step} alone` : entry.id);
    const isShown = ({ name, names }) =>
      state.walk().dims.some((dim) => dim.name === name && `${dim.names}` === `${names}`) &&
      state.free().includes(name);
    const show = ({ node, value }, key, isHidden) => {
      node.hidden = isHidden;
      if (isHidden) return;
      write(value, slid(wayOf(key).get()));
      put(node, "aria-pressed", String(key === name()));
    };
    for (const each of all.values()) show(each, each.dim.name, !isShown(each.dim));
    show(own, OWN, !entry?.expected);
    show(cache, CACHE, !state.model()?.cache);
    const isOnly = name() && now().stops().length < 2;
    write(only, isOnly ? t`${name()} can only be ${slid(now().get())} here` : "");
    broken.sync();
    broken.node.classList.toggle("af-broken-one", Boolean(entry));
  };
}

/** Where the slider of the size that is broken stops. */
function ownStops(state) {
  const expected = state.expected();
  const near = [expected - 1, expected, expected + 1, state.get("own")];
  const round = roundSizes(4 * expected + 8).filter((size) => size <= 4 * expected + 8);
  return [...new Set([...round, ...near])].filter((size) => size > 0).sort((a, b) => a - b);
}

const cacheStops = (context) => [
  0,
  ...roundSizes(context).filter((size) => size < context),
  context,
];

/** What follows another size unless the reader unlinks it. */
function links(state, walks) {
  const found = new Map();
  for (const walk of walks) {
    for (const link of walk.links) found.set(JSON.stringify(link), link);
  }
  return [...found].map(([key, { name, to, fixed }]) => {
    const equation = `${name} = ${to.replace("/", " / ")}`;
    const text = h("span", {}, equation, ...(fixed ? [" ", t("(set by the layer)")] : []));
    return tick({
      text,
      get: () => !state.unlinked().includes(name),
      change: fixed ? null : (on) => state.link(name, on),
      hidden: () => !state.walk().links.some((link) => JSON.stringify(link) === key),
    });
  });
}

/** The controls of an explorer: which computation, and at whose sizes. */
function chooser(state, walks) {
  const isOwn = () => state.models().length > 0 && state.isChanged();
  const made = [
    select({
      label: t("Show"),
      name: "shown",
      entries: () => walks.map((walk) => [walk.name, t(walk.name)]),
      get: () => state.walk().name,
      change: state.show,
    }),
    select({
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
  const node = h("div", { class: "af-chooser" }, ...made.map((each) => each.node));
  return { node, syncs: made.map((each) => each.sync) };
}

/** Which steps are seen, what is counted, and what follows from what. */
function options(figure, state, { walks, bytes }) {
  const made = [
    tick({
      text: t("show the steps of the calls within"),
      get: () => state.get("nested"),
      change: (nested) => state.move({ nested }),
      hidden: () => !state.walk().hasNested,
    }),
    select({
      label: t("Count bytes in"),
      name: "dtype",
      entries: () => Object.keys(bytes).map((name) => [name, name]),
      get: () => state.get("dtype"),
      change: (dtype) => state.move({ dtype }),
    }),
    ...links(state, walks),
  ];
  const fold = h("details", { class: "af-fold" }, h("summary", {}, t("More")));
  fold.append(...made.map(({ node }) => node));
  fold.open = matchMedia("(min-width: 48rem)").matches;
  figure.control(fold);
  return made.map((each) => each.sync);
}
