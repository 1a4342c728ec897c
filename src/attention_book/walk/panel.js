// The chosen step at large, between what it is made of and what it makes, or with what refuses it.

const MOST_NEIGHBOURS = 3;
const MOST_PRODUCTS = 6; // else their sum is enough, which stands with what a step holds

/** A dimension as a table writes it, each of its names over its colour. */
function named(dim) {
  const parts = dim
    .split(/([*+])/)
    .map((part) => (/[A-Za-z_]/.test(part) ? dimension(part) : part));
  return h("span", { class: "af-axis" }, ...parts);
}

const commas = (nodes) => ["(", ...nodes.flatMap((node, i) => [i ? ", " : "", node]), ")"];

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

/** The code of a step, its axes and what they mean, what it holds, and its products. */
function details(one, { sizes, meanings }) {
  const { step, shape, isReached } = one;
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
    return h("li", {}, named(dim), t`${equation}: ${text}`);
  };
  const products = step.products
    .filter((axes) => axes.length && step.products.length <= MOST_PRODUCTS)
    .map((axes) => {
      const text = axes.join(" · ").replace(/([A-Za-z_]\w*[*+][\w*+]*)/g, "($1)");
      return h("p", {}, t`Multiply-adds: ${text} = ${NUMBER.format(product(axes, sizes))}`);
    });
  return [
    step.code
      ? h("pre", {}, h("code", {}, step.code))
      : h("p", {}, t`An argument of ${step.function}.`),
    h("ul", {}, ...step.dims.map(row)),
    ...(isReached
      ? [h("p", { class: "af-costs" }, costOf(one)), ...products]
      : [h("p", {}, t("Nothing of it is computed now."))]),
  ];
}

/** " = 3 × 4", of an expression with more than one name. */
function factorsOf(axis, sizes) {
  if (namesIn(axis).length < 2) return "";
  const numbers = axis.replace(/[A-Za-z_]\w*/g, (name) => NUMBER.format(sizes[name]));
  return ` = ${numbers.replace(/[*]/g, " × ").replace(/\//g, " / ").replace(/[+]/g, " + ")}`;
}

/** What a step is made of, or what is made of it: small blocks that lead there. */
function neighbours(kind, title, choose) {
  const more = h("p");
  let rows = [];
  const slots = range(MOST_NEIGHBOURS).map((i) => {
    const picture = block("af-block af-small-block");
    const name = h("span");
    const button = h("button", { type: "button", class: "af-part" }, picture.node, name);
    button.addEventListener("click", () => choose(rows[i]));
    return { picture, name, button };
  });
  const node = h(
    "div",
    { class: `af-neighbours af-${kind}`, role: "group", "aria-label": title },
    h("p", { "aria-hidden": "true" }, title),
    ...slots.map(({ button }) => button),
    more,
  );
  const draw = (found, measureOf, pixels) => {
    rows = found;
    slots.forEach(({ picture, name, button }, i) => {
      button.hidden = !rows[i];
      if (button.hidden) return;
      const { shape } = measureOf(rows[i]);
      picture.draw({ step: rows[i].step, shape }, pixels);
      write(name, `${rows[i].step.number} ${rows[i].step.name.replaceAll("_", "_\u200b")}`);
    });
    const rest = rows.length - slots.length;
    write(more, rest > 0 ? t`${rest} more` : "");
  };
  return { node, draw };
}

/** What happens when something is broken, in the words of the package. */
function refusal() {
  const [said, hint] = [h("span"), h("span", { class: "af-remedy" })];
  const node = h("p", { class: "af-refusal" }, said, hint);
  const draw = (entry, result) => {
    const error = result?.error ? `${result.error}: ${result.text}` : "";
    const text = error ? together(error, told(entry.hint)) : (result?.text ?? "");
    write(said, error || text);
    write(hint, error ? text.slice(error.length) : "");
    put(node, "data-error", result?.error ?? null);
    node.classList.toggle("af-silent", Boolean(result) && !error);
    return text;
  };
  return { node, draw };
}

/** The picture of the chosen step, and its code and sizes, which a narrow screen folds. */
function closeUp(meanings, { choose, redraw }) {
  const room = { width: 160, height: 150 };
  const title = h("p", { class: "af-title" });
  const picture = block("af-block af-large-block", room);
  const made = neighbours("made-of", t("made of"), choose);
  const makes = neighbours("makes", t("goes into"), choose);
  const said = refusal();
  const node = h(
    "div",
    { class: "af-closeup" },
    ...[title, made.node, h("div", { class: "af-large" }, picture.node), makes.node, said.node],
  );
  new ResizeObserver(
    ([
      {
        contentRect: { width, height },
      },
    ]) => {
      if (!width || (width === room.width && height === room.height)) return;
      Object.assign(room, { width, height });
      redraw();
    },
  ).observe(picture.node.parentNode);
  const inside = h("div");
  const detail = h(
    "details",
    { class: "af-detail" },
    h("summary", {}, t("Its code, and what its sizes mean")),
    inside,
  );
  detail.open = matchMedia("(min-width: 48rem)").matches;
  detail.addEventListener("toggle", redraw);
  const draw = (now, { chosen, inputs, outputs, measureOf, was }, entry) => {
    const one = measureOf(chosen);
    const { step } = one;
    const names = 26 + (step.dims.length > 2 ? 18 : 0) + (step.dims[0] === "batch" ? 15 : 0);
    const longest = Math.max(60, Math.min(room.width - 42, room.height - names));
    const small = entry ? [] : [...inputs, ...outputs].map(measureOf);
    const before = was?.count <= 4 * one.count && was; // else it would leave no room for what is
    const large = [one, one.within, before].filter(Boolean);
    const { isLinear, pixels } = scaleFor(large, small, longest);
    const broken = one.isBroken ? entry.axis : null;
    picture.draw({ ...one, broken, was: before }, pixels);
    const key = `${step.number} ${step.name}`;
    if (title.dataset.step !== key) {
      put(title, "data-step", key);
      title.replaceChildren(`${key} `, ...commas(step.dims.map(named)));
    }
    node.classList.toggle("af-unreached", !one.isReached);
    node.classList.toggle("af-tried", Boolean(entry));
    const text = said.draw(entry, now.result);
    if (!entry) {
      const less = (size) => SMALL * pixels(size);
      made.draw(inputs, measureOf, less);
      makes.draw(outputs, measureOf, less);
    }
    if (detail.open) inside.replaceChildren(...details(one, { sizes: now.sizes, meanings }));
    return { isLinear, text };
  };
  return { node, detail, draw };
}
