// The arithmetic of a walk: what is a size and what follows from it was found in Python; here
// expressions such as "d_model/heads" are evaluated, and what steps hold and cost at some sizes.

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
    for (const name of under) {
      const size = sizes[name] ?? Number(name);
      result = result % size ? 0 : result / size;
    }
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

/** ×2 or ÷3, of a ratio: whole factors are exact, others rounded. */
function times(ratio) {
  const round = (x) => counted(Number.isInteger(x) ? x : Number(x.toPrecision(3)));
  return ratio >= 1 ? `×${round(ratio)}` : `÷${round(1 / ratio)}`;
}

/** By how much a `part` of something has grown, as ×2, since it was measured before; else nothing. */
function growth(now, was, part) {
  const ratio = was ? times(part(now) / part(was)) : "×1";
  return ratio === "×1" ? "" : ratio;
}

/** All bytes of a step, as its bar shows them, or of all steps: those in sight, and those inside calls. */
const allBytes = ({ bytes, inside }) => bytes + inside;

/** Round sizes that a slider stops at, up to `largest`. */
function roundSizes(largest) {
  const found = range(8)
    .map((i) => i + 1)
    .concat(10, 12, 14, 16);
  for (let size = 16; size < largest; size *= 2) found.push(size * 1.5, size * 2);
  return found;
}

/** A message from Python, its text and its values, in the language of the page. */
const told = (message) => (message ? t(...message) : "");

/** The steps of a walk, each with the `call` that it is a step of. */
function stepsOf(walk) {
  const last = new Map(); // by what is in front of a step's own number: the step listed last
  return walk.steps.map((step, i) => {
    const front = step.number.slice(0, step.number.lastIndexOf(".") + 1);
    const before = last.get(front);
    // An argument behind a step with code is the first of another call.
    const isSame = before && (step.code || !before.code);
    const known = { ...step, nested: front !== "", call: isSame ? before.call : i };
    last.set(front, known);
    return known;
  });
}

/** A walk of the data, with what follows from it. */
function prepared(walk) {
  const steps = stepsOf(walk);
  const axesOf = steps.flatMap((step) => step.axes);
  const quotients = [...new Set(axesOf.filter((axis) => axis.includes("/")))];
  const limits = walk.links.flatMap(({ name, to }) => [name, to]);
  return {
    ...walk,
    steps,
    quotients,
    // Only these sizes limit each other.
    tied: new Set(
      [...quotients, ...limits, ...walk.divides.flat(), ...(walk.even ?? [])].flatMap(namesIn),
    ),
    start: Object.fromEntries(walk.dims.map((dim) => [dim.name, dim.size])),
    hasNested: steps.some((step) => step.nested),
    // Of a model that is two calls, the steps within are the picture.
    opensNested: steps.some((step) => step.nested) && steps.filter((s) => !s.nested).length < 4,
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
  const mayBeEqual = "shared" in walk;
  const pair = walk.divides.find(
    ([whole, part]) => sizes[whole] % sizes[part] || (!mayBeEqual && sizes[whole] === sizes[part]),
  );
  const link = walk.links.find(
    ({ name, to, fixed }) =>
      (fixed || !unlinked.includes(name)) && sizes[name] !== evaluate(to, sizes),
  );
  if (link?.fixed) return t`${link.name} = ${sizes[link.name]} must be ${link.to}`;
  if (link) return t`${link.name} = ${sizes[link.name]} must be ${link.to}, or be unlinked`;
  if (pair) {
    const [whole, part] = pair;
    return mayBeEqual
      ? t`${part} = ${sizes[part]} must divide ${whole} = ${sizes[whole]}`
      : t`${part} = ${sizes[part]} must divide ${whole} = ${sizes[whole]} and be smaller`;
  }
  const odd = walk.even?.find((axis) => evaluate(axis, sizes) % 2);
  return odd ? t`${odd} = ${evaluate(odd, sizes)} is odd, but must be even` : "";
}

/** What happens when something is broken: `{ text, error }`, without `error` where nothing refuses. */
function outcome(entry, sizes, own) {
  const all = { ...sizes, own };
  const filled = (text) =>
    text.replace(/\{([^}]+)\}/g, (_, expression) => evaluate(expression, all));
  const holds = ({ equal, divides, odd }) => {
    if (odd) return evaluate(odd, all) % 2 === 1;
    return equal
      ? evaluate(equal[0], all) === evaluate(equal[1], all)
      : evaluate(divides[0], all) % evaluate(divides[1], all) === 0;
  };
  if (entry.expected && evaluate(entry.expected, sizes) === own) return { text: FITS };
  const { says, error, ...passes } = entry.cases.find(holds) ?? entry;
  return error ? { text: filled(says), error } : { text: filled(told(passes.text)), passes };
}

/** The sizes of a call that a size of its own does not break: another factor takes it up. */
function sizesThatPass(entry, { passes }, sizes, own) {
  if (!passes?.divides) return sizes;
  if (!entry.step) return { ...sizes, [entry.expected]: own };
  const known = passes.divides[1];
  const others = entry.expected.split("*").filter((factor) => factor !== known);
  return others.length === 1 ? { ...sizes, [others[0]]: own / evaluate(known, sizes) } : sizes;
}

const product = (axes, sizes) => axes.reduce((all, axis) => all * evaluate(axis, sizes), 1);

/** What one step holds and costs at some sizes, with the axis `broken` of size `own`. */
function measure(step, sizes, per, broken = -1, own = 0) {
  const shape = step.axes.map((axis, d) => (d === broken ? own : evaluate(axis, sizes)));
  const count = shape.reduce((all, size) => all * size, 1);
  const known = step.products.filter((axes) => axes.length);
  return {
    step,
    shape,
    count,
    bytes: count * (step.bytes || per),
    work: sum(known.map((axes) => product(axes, sizes))),
    unknown: known.length < step.products.length,
    memory: broken < 0 ? step.memory : -1, // a tensor of another size is none that was there
  };
}

/** The bytes that steps hold together; those that share memory count once. */
function held(measures) {
  const each = new Map();
  for (const { memory, bytes } of measures)
    each.set(memory, Math.max(bytes, each.get(memory) ?? 0));
  return sum([...each.values()]);
}

/** The row of the step whose call a step without a row is a part of. */
const callerOf = ({ number }, seen) =>
  seen.find(({ step }) => number.startsWith(`${step.number}.`));

/**
 * Find out whose memory each row shares, where its bytes are counted with another row, and how many
 * bytes the calls that were made to compute it hold besides, in steps without a row. Returns these steps.
 */
function shareMemory(all) {
  const reached = all.filter(({ isReached }) => isReached);
  const seen = reached.filter(({ isSeen }) => isSeen);
  const owners = new Map();
  for (const one of seen) {
    if (!(one.bytes <= owners.get(one.memory)?.bytes)) owners.set(one.memory, one);
  }
  for (const one of seen) {
    const owner = owners.get(one.memory);
    Object.assign(one, { owner: owner === one ? null : owner, inside: 0 });
  }
  const most = new Map([...owners].map(([memory, { bytes }]) => [memory, bytes]));
  const deeper = reached.filter((one) => !one.isSeen && one.bytes > (most.get(one.memory) ?? 0));
  for (const { step, bytes, memory } of deeper) {
    const more = Math.max(0, bytes - (most.get(memory) ?? 0));
    most.set(memory, more + (most.get(memory) ?? 0));
    callerOf(step, seen).inside += more;
  }
  return deeper;
}

/**
 * Every step of a walk, measured, in the state that the reader has made: `isSeen` where it has a row
 * now, `isReached` unless an error comes before it. Where the steps of calls within have no row, a
 * step counts the products of the calls that were made to compute it.
 */
function measured(walk, { sizes, per, nested, entry, own }) {
  const result = entry ? outcome(entry, sizes, own) : null;
  const standing = result && !result.error ? sizesThatPass(entry, result, sizes, own) : sizes;
  const failed = Boolean(result?.error);
  const all = walk.steps.map((step) => {
    const isBroken = failed && entry.step === step.name && !step.nested;
    // A module that is not made is called with nothing; else the arguments are there.
    const isReached = !failed || (!step.code && !step.nested && !(entry.expected && !entry.step));
    const one = measure(step, standing, per, isBroken ? entry.axis : -1, own);
    // `within`, dashed in its block: what would fit in place of what is broken.
    const within = isBroken ? measure(step, sizes, per) : null;
    return { ...one, isBroken, isReached, within, isSeen: nested || !step.nested };
  });
  for (const one of nested ? [] : all.filter(({ isSeen }) => isSeen)) {
    const within = all.filter(({ step }) => step.number.startsWith(`${one.step.number}.`));
    one.work += sum(within.map(({ work }) => work));
    one.unknown ||= within.some(({ unknown }) => unknown);
  }
  const there = all.filter(({ isSeen, isReached }) => isSeen && isReached);
  const deeper = shareMemory(all);
  const most = Math.max(...there.map(({ count }) => count));
  const longest = Math.max(...there.map(allBytes));
  const mostWithin = Math.max(...deeper.map(({ count }) => count));
  const largestWithin = deeper.filter(({ count }) => count === mostWithin);
  const isWithin = mostWithin > most;
  // Or the largest of all steps, which has no row of its own.
  for (const one of isWithin ? largestWithin : []) callerOf(one.step, there).within ??= one;
  return {
    all,
    there,
    result,
    bytes: held(there),
    inside: sum(there.map(({ inside }) => inside)),
    work: failed ? 0 : sum(there.map(({ work }) => work)),
    longest: there.filter((one) => allBytes(one) === longest),
    sizes: standing,
  };
}

/** The sizes with what is linked to others following them. */
function follow(walk, sizes, unlinked) {
  const all = { ...sizes };
  for (const link of linkedIn(walk, unlinked)) all[link.name] = evaluate(link.to, all);
  return all;
}
const linkedIn = (walk, unlinked) =>
  walk.links.filter((link) => link.fixed || !unlinked.includes(link.name));
const freeIn = (walk, unlinked) =>
  walk.dims.filter((dim) => !linkedIn(walk, unlinked).some((link) => link.name === dim.name));

/** Where the slider of a size can stop: sizes that leave every quotient whole. */
function stopsFor(walk, name, { sizes, unlinked }, largest) {
  const wanted = new Set([...roundSizes(largest), sizes[name], walk.start[name]]);
  const sorted = [...wanted].sort((a, b) => a - b);
  if (!walk.tied.has(name)) return sorted;
  return sorted.filter(
    (size) => !misfit(walk, follow(walk, { ...sizes, [name]: size }, unlinked), largest, unlinked),
  );
}

/** Lengths come first, a batch last. */
const rank = (name) =>
  ["length", "queries", "keys"].includes(name) ? 0 : name === "batch" ? 2 : 1;

/**
 * A challenge, `{ task, met }` as in frame.js, that one slider alone can meet from the state
 * `opened`, with the names of such sizes; null where none can. `now()` is the state
 * that is judged.
 */
function challengeFrom(walk, opened, { nested, per, largest, now }) {
  const at = (sizes, per) => measured(walk, { sizes, per, nested });
  const start = at(opened.sizes, per);
  const { number } = start.longest[0].step;
  const reached = freeIn(walk, opened.unlinked).map(({ name }) => ({
    name,
    at: stopsFor(walk, name, opened, largest).map((size) =>
      follow(walk, { ...opened.sizes, [name]: size }, opened.unlinked),
    ),
  }));
  const challenges = [
    {
      task: t`make another bar longer than that of row ${number}`,
      met: ({ sizes, per }) => at(sizes, per).longest.every(({ step }) => step.number !== number),
    },
    {
      task: t("make the memory tenfold with one slider"),
      met: ({ sizes, per, unlinked }) => {
        const changed = freeIn(walk, unlinked).filter(
          ({ name }) => sizes[name] !== opened.sizes[name],
        );
        if (changed.length !== 1) return false;
        return allBytes(at(sizes, per)) >= 10 * allBytes(at(opened.sizes, per));
      },
    },
  ];
  for (const { task, met } of challenges) {
    const names = reached
      .filter(({ at }) => at.some((sizes) => met({ ...opened, sizes, per })))
      .map(({ name }) => name)
      .sort((a, b) => rank(a) - rank(b));
    if (names.length) return { task, met: () => met(now()), names };
  }
  return null;
}
