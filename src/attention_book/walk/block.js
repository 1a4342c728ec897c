// Blocks drawn to scale: in one view a length is the same number of pixels on every block and side.

const BOX = 60; // pixels that the longest side may take
const SLANT = 0.4; // of a depth, drawn to the right and upwards
const SHEET = 3; // pixels from one sheet of a batch to the next
const LINEAR_UP_TO = 64;

/** The sides of a block: a batch's sheets, and [dimension, expression, size] of width, height, depth. */
function sidesOf(step, shape) {
  const skip = step.dims[0] === "batch" ? 1 : 0;
  const sides = step.dims.map((dim, d) => [dim, step.axes[d], shape[d]]);
  return { sheets: skip ? Math.min(shape[0], 3) : 1, sides: sides.slice(skip).slice(-3).reverse() };
}

/**
 * One scale for all blocks of a view: pixels per position while no side is longer than 64, else per
 * square root. It changes at powers of 2 only, so that a block that grows is seen to grow.
 */
function scaleFor(measures) {
  const all = measures.map(({ step, shape }) => sidesOf(step, shape).sides.map((side) => side[2]));
  const isLinear = all.flat().every((size) => size <= LINEAR_UP_TO);
  const length = isLinear ? (size) => size : Math.sqrt;
  const reach = ([width = 0, height = 0, depth = 0]) =>
    Math.max(length(width), length(height)) + (depth ? SLANT * length(depth) : 0);
  const top = 2 ** Math.ceil(Math.log2(Math.max(8, ...all.map(reach))));
  return { isLinear, pixels: (size) => (BOX * length(size)) / top };
}

/** The block of a tensor: its faces to scale, and its sides in the colours of their dimensions; a
 * dashed outline in the same corner is the tensor `within` its call. */
function block() {
  const [back, front] = [
    h("svg:path", { class: "af-faces" }),
    h("svg:path", { class: "af-front" }),
  ];
  const edges = range(3).map(() => [
    h("svg:path", { class: "af-edge" }),
    h("svg:path", { class: "af-edge af-second" }),
  ]);
  const inner = h("svg:path", { class: "af-within" });
  const texts = range(3).map((i) => h("svg:text", { "text-anchor": ["start", "end", "start"][i] }));
  const node = h(
    "svg:svg",
    { class: "af-block", width: 112, height: 84, viewBox: "0 0 112 84", "aria-hidden": "true" },
    back,
    front,
    ...edges.flat(),
    inner,
    ...texts,
  );
  const draw = (step, shape, { pixels, within }) => {
    const { sheets, sides } = sidesOf(step, shape);
    const { width, height, depth } = extent(sides, pixels);
    const [x, y] = [38, 67];
    const edge = Math.max(1.2, Math.min(3.5, width, height)); // so that it does not hide a thin block
    node.style.setProperty("--edge", edge);
    const off = edge / 2 + 0.25;
    put(back, "d", behind({ x, y, width, height, depth, sheets }));
    const outer = within && extent(sidesOf(within.step, within.shape).sides, pixels);
    put(inner, "d", outer ? outline({ x, y, ...outer }) : null);
    put(front, "d", `M${x},${y}h${width}v${-height}h${-width}z`);
    const lines = [
      `M${x},${y + off}h${width}`,
      `M${x - off},${y}v${-height}`,
      `M${x - off / 2},${y - height - off / 2}l${depth},${-depth}`,
    ];
    const places = [
      [x, y + 15],
      [x - 6, y - height / 2 + 4],
      [x + width + depth + 4, y - height - depth / 2 + 2],
    ];
    edges.forEach((pair, i) => {
      colour(pair, sides[i], lines[i]);
      put(texts[i], "x", places[i][0]);
      put(texts[i], "y", places[i][1]);
      write(texts[i], sides[i] ? String(sides[i][2]) : "");
    });
  };
  return { node, draw };
}

/** How wide, high and deep a block is drawn. */
function extent(sides, pixels) {
  const long = (i) => (sides[i] ? pixels(sides[i][2]) : pixels(1));
  return { width: long(0), height: long(1), depth: sides[2] ? SLANT * long(2) : 0 };
}

/** The front of a block, and its top and right side. */
const outline = ({ x, y, width, height, depth }) =>
  `M${x},${y}h${width}v${-height}h${-width}z` +
  `M${x},${y - height}l${depth},${-depth}h${width}l${-depth},${depth}` +
  `M${x + width},${y}l${depth},${-depth}v${-height}`;

/** What is seen behind the front of a block: its top and its right side, and a batch's other sheets. */
function behind({ x, y, width, height, depth, sheets }) {
  return range(3)
    .reverse()
    .map((sheet) => {
      const at = sheet < sheets ? SHEET * sheet : 0;
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
    put(edge, "data-of", side ? namesIn(side[1]).join(" ") : null);
  });
}
