// Blocks drawn to scale: in one view a length is the same number of pixels on every block and side.

const SLANT = 0.4; // of a depth, drawn to the right and upwards
const LINEAR_UP_TO = 64;
const SHORT = 50; // pixels: what is written below a narrower block begins at its corner
const SIGN = 7; // pixels: no sign of a name is wider on the average
const SMALL = 0.25; // of the scale of the chosen step: what it is made of and what it makes

/** The sides of a block: a batch's sheets, and [dimension, size, axis] of width, height, depth. */
function sidesOf(step, shape) {
  const skip = step.dims[0] === "batch" ? 1 : 0;
  const sides = step.dims.map((dim, d) => [dim, shape[d], d]);
  return { sheets: skip ? Math.min(shape[0], 3) : 1, sides: sides.slice(skip).slice(-3).reverse() };
}

/**
 * One scale for all blocks in view: pixels per position while no side is longer than 64, else per square
 * root. The longest of `large` takes `box` pixels; what is drawn `small` has a third of that. It changes in
 * steps, so that a block that grows is seen to grow.
 */
function scaleFor(large, small, box) {
  const sizes = ({ step, shape }) => sidesOf(step, shape).sides.map((side) => side[1]);
  const isLinear = [...large, ...small].flatMap(sizes).every((size) => size <= LINEAR_UP_TO);
  const length = isLinear ? (size) => size : Math.sqrt;
  const reach = ([width = 0, height = 0, depth = 0]) =>
    Math.max(length(width), length(height)) + (depth ? SLANT * length(depth) : 0);
  const longest = (all) => Math.max(0, ...all.map(sizes).map(reach));
  const most = Math.max(3, longest(large), 3 * SMALL * longest(small));
  const top = 2 ** (Math.ceil(4 * Math.log2(most)) / 4);
  return { isLinear, pixels: (size) => (box * length(size)) / top };
}

/** The block of a tensor: its faces to scale, and its sides in the colours of their dimensions, with
 * their names and sizes where `room`, the width and height of the picture, is for them. Outlines in
 * the same corner are the tensor `within`, dashed, and what it `was` before a move. */
function block(kind, room) {
  const path = (name) => h("svg:path", { class: name });
  const [back, front, inner, before] = ["af-faces", "af-front", "af-within", "af-was"].map(path);
  const edges = range(3).map(() => ["af-edge", "af-edge af-second"].map(path));
  const texts = range(room ? 4 : 0).map(() => h("svg:text"));
  const parts = [back, front, ...edges.flat(), inner, before, ...texts];
  const node = h("svg:svg", { class: kind, "aria-hidden": "true" }, ...parts);
  const draw = ({ step, shape, within, was, broken }, pixels) => {
    const { sheets, sides } = sidesOf(step, shape);
    const { width, height, depth } = extent(sides, pixels);
    const others = [within, was].map(
      (other) => other && extent(sidesOf(other.step, other.shape).sides, pixels),
    );
    const [reach, rise] = ["width", "height"].map((side) =>
      Math.max(...[{ width, height, depth }, ...others].map((e) => (e ? e[side] + e.depth : 0))),
    );
    const sheet = room ? 5 : 2;
    const spread = sheet * (sheets - 1);
    const all = room ?? { width: reach + spread + 8, height: rise + spread + 6 };
    const x = Math.round((all.width - reach - spread) / 2) + (room ? 4 : 0);
    const y = Math.round((all.height + rise + spread) / 2) - (room ? 8 : 0);
    if (!room) for (const side of ["width", "height"]) put(node, side, Math.ceil(all[side]));
    const edge = Math.max(1.2, Math.min(room ? 4 : 2.5, width, height)); // so that it does not hide a thin block
    node.style.setProperty("--edge", edge);
    const off = edge / 2 + 0.25;
    put(back, "d", behind({ x, y, width, height, depth, sheets, sheet }));
    const [dashed, former] = others.map((other) => other && outline({ x, y, ...other }));
    put(inner, "d", dashed ?? null);
    put(before, "d", former && former !== outline({ x, y, width, height, depth }) ? former : null);
    put(front, "d", `M${x},${y}h${width}v${-height}h${-width}z`);
    const lines = [
      `M${x},${y + off}h${width}`,
      `M${x - off},${y}v${-height}`,
      `M${x - off / 2},${y - height - off / 2}l${depth},${-depth}`,
    ];
    edges.forEach((pair, i) => {
      colour(pair, sides[i], lines[i]);
      for (const each of pair) each.classList.toggle("af-wrong", sides[i]?.[2] === broken);
    });
    const [up, right] = [x - 9, x + width + depth + 5];
    /** Where a text of so many signs has its middle, at the corner or below the middle, within the picture. */
    const foot = (text) => {
      const half = (SIGN * text.length) / 2;
      const middle = width < SHORT ? x + half : x + width / 2;
      return Math.max(half, Math.min(middle, all.width - half));
    };
    const isLow = height < SHORT; // its name rises from the corner, clear of what stands below
    const places = [
      (name) => `translate(${foot(name)} ${y + 17})`,
      () => `translate(${up} ${isLow ? y : y - height / 2}) rotate(-90)`,
      (name) =>
        `translate(${Math.max(0, Math.min(right, all.width - SIGN * name.length))} ${y - height - depth - 6})`,
      (name) => `translate(${foot(name)} ${y + 32})`,
    ];
    texts.forEach((text, i) => {
      const side = i < 3 ? sides[i] : sheets > 1 && [step.dims[0], shape[0]];
      const name = side ? `${side[0]} ${NUMBER.format(side[1])}` : "";
      put(text, "transform", places[i](name));
      if (i !== 2) put(text, "text-anchor", i === 1 && isLow ? "start" : "middle");
      write(text, name);
    });
  };
  return { node, draw };
}

/** How wide, high and deep a block is drawn. */
function extent(sides, pixels) {
  const long = (i) => (sides[i] ? pixels(sides[i][1]) : pixels(1));
  return { width: long(0), height: long(1), depth: sides[2] ? SLANT * long(2) : 0 };
}

/** The front of a block, and its top and right side. */
const outline = ({ x, y, width, height, depth }) =>
  `M${x},${y}h${width}v${-height}h${-width}z` +
  `M${x},${y - height}l${depth},${-depth}h${width}l${-depth},${depth}` +
  `M${x + width},${y}l${depth},${-depth}v${-height}`;

/** What is seen behind the front of a block: its top and its right side, and a batch's other sheets. */
function behind({ x, y, width, height, depth, sheets, sheet }) {
  return range(3)
    .reverse()
    .map((i) => {
      const at = i < sheets ? sheet * i : 0;
      const [left, base] = [x + at, y - at];
      return (
        `M${left},${base}h${width}v${-height}h${-width}z` +
        `M${left},${base - height}l${depth},${-depth}h${width}l${-depth},${depth}z` +
        `M${left + width},${base}l${depth},${-depth}v${-height}l${-depth},${depth}z`
      );
    })
    .join("");
}

/** Draw one side in the colour of its dimension; that of a product has both, the second dashed. */
function colour(pair, side, line) {
  const names = side ? namesIn(side[0]) : [];
  pair.forEach((edge, i) => {
    const isDrawn = side && (i === 0 || names.length > 1);
    put(edge, "d", isDrawn ? line : null);
    put(edge, "style", isDrawn ? `--dim: var(--dim-${names[i]}, var(--af-quiet))` : null);
  });
}
