// Numbers that some program printed are held against a case of conformance/*.json, in the page. The
// book's extension puts `attentionPasted = { words, asked, versions }` before this file. The cases
// of a kind are a script of their own, loaded when the kind is chosen, so from a disk too; what a
// mistake is stands in its row of the page's table.
(() => {
  const { words, asked, versions } = attentionPasted;
  const home = document.currentScript.src;
  const t = (text, ...values) => (words[text] ?? text).replace(/\{(\d)\}/g, (_, i) => values[i]);

  // --- Reading ------------------------------------------------------------------------------------

  /** What was pasted is no array of numbers, and why. */
  class Unread extends Error {}
  const LONGEST = 20_000;
  const SLICE = /^\s*\w*[([]\s*:\s*,\s*:\s*((?:,\s*\d+\s*)+)[)\]]\s*=\s*$/;
  const COLUMNS = /^\s*columns?\s+\d+(\s+(through|and|to)\s+\d+)?\s*:?\s*$/i;
  const SCALE = /^\s*(\d\.?\d*e[+-]?\d+)\s*\*\s*$/i;
  /** What NumPy, PyTorch, JAX, TensorFlow, MATLAB, Octave, Julia and JSON write around numbers. */
  const AROUND = [
    /^\s*(>>>?|julia>|in ?\[\d+\]:).*$/gim,
    /^.*\b(Matrix|Vector|Array|Adjoint|Transpose)\{.*$/gm,
    /\bshape\s*=\s*\([^)]*\)/g,
    /\b(dtype|device|requires_grad)\s*=\s*['"]?[\w.:]+['"]?/g,
    /\bgrad_fn\s*=\s*<\w*>/g,
    /\b(torch|np|numpy|jnp|tf)\.(?=[a-z])/gi,
    /\b(array|tensor|float(16|32|64)|numpy=|(parameter containing|tensor):)\s*(?=[([\d.+-]|,|$)/gim,
    /^[\s{"]*(out ?\[\d+\]:|[a-z_]\w*"?\s*[=:])/gim,
  ];
  const NUMBER =
    /[-+]?(?:(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+|f-?\d+)?|\b(?:nan|inf(?:inity)?|null)\b|∞)/gi;
  const NAMED = { nan: Number.NaN, null: Number.NaN, inf: Infinity, infinity: Infinity };
  NAMED["∞"] = Infinity;

  /** One number as it was printed: its value, digits that count, and places behind the point. */
  function one(token, scale) {
    const text = token.toLowerCase().replace(/(\d)f(?=-?\d)/, "$1e");
    const bare = text.replace(/^[-+]/, "");
    const [mantissa, power] = bare.split("e");
    const isNamed = Object.hasOwn(NAMED, bare);
    return {
      value: (text[0] === "-" ? -1 : 1) * (isNamed ? NAMED[bare] : Number(bare)) * scale,
      scale,
      digits: isNamed ? 0 : mantissa.replace(".", "").replace(/^0+/, "").length,
      places: isNamed || power ? undefined : (mantissa.split(".")[1] ?? "").length,
    };
  }

  function numbersOf(line, scale) {
    const strange = line.replace(NUMBER, " ").match(/[^\s,;()[\]{}<>"'|]+/);
    if (strange) {
      const word = [...strange[0]].slice(0, 30).join("");
      throw new Unread(t("“{0}” is not a number. Paste the numbers alone.", word));
    }
    return (line.match(NUMBER) ?? []).map((token) => one(token, scale));
  }

  /** All numbers, the last axis fastest. A slice of MATLAB or Julia has blocks of columns. */
  function inOrder(slices) {
    const found = slices.flatMap(({ at, blocks }) =>
      blocks[0].flatMap((_, i) =>
        blocks
          .flatMap((block) => block[i] ?? [])
          .map((number, j) => ({ place: [i, j, ...at], number })),
      ),
    );
    if (slices.length > 1) {
      found.sort(({ place: a }, { place: b }) => {
        const axis = a.findIndex((index, k) => index !== b[k]);
        return axis < 0 ? 0 : a[axis] - b[axis];
      });
    }
    return found.map(({ number }) => number);
  }

  /** `[{ value, step }]`: each number, and what the last digit that was printed of it is worth. */
  function read(typed) {
    if (typed.length > LONGEST) throw new Unread(t("That is too much for one case."));
    if (/\.\.\.|[…⋮⋱⋯]/.test(typed)) {
      throw new Unread(t("Some numbers are left out at the dots. Print all of them."));
    }
    let text = typed.normalize("NFKC").replace(/[‐‑–−]/g, "-");
    for (const what of AROUND) text = text.replace(what, " ");
    const slices = [{ at: [], blocks: [[]] }];
    let scale = 1;
    for (const line of text.split("\n")) {
      const { blocks } = slices.at(-1);
      const slice = line.match(SLICE);
      if (slice) {
        slices.push({ at: slice[1].split(",").slice(1).map(Number), blocks: [[]] });
        scale = 1;
      } else if (SCALE.test(line)) {
        scale = Number(line.match(SCALE)[1]);
      } else if (COLUMNS.test(line)) {
        if (blocks[0].length) blocks.push([]);
      } else {
        const numbers = numbersOf(line, scale);
        if (numbers.length) blocks.at(-1).push(numbers);
      }
    }
    const found = inOrder(slices.filter(({ blocks }) => blocks[0].length));
    if (!found.length) throw new Unread(t("There are no numbers here yet."));
    // Zeros at the end may have been dropped: the longest number says how many digits there are.
    const places = Math.max(0, ...found.map((number) => number.places ?? 0));
    const digits = Math.max(1, ...found.map((number) => number.digits));
    return found.map(({ value, scale: by, places: isFixed }) => {
      const size = Math.floor(Math.log10(Math.abs(value / by)));
      const last = Number.isFinite(size) ? 10 ** (size - digits + 1) : 0;
      return { value, step: by * (isFixed === undefined ? last : Math.max(last, 10 ** -places)) };
    });
  }

  // --- Judging ------------------------------------------------------------------------------------

  const number = (x) => (typeof x === "string" ? (NAMED[x] ?? -Infinity) : x);
  const flat = (x) => [x].flat(Infinity).map(number);
  const sizesOf = (x) => (Array.isArray(x) ? [x.length, ...sizesOf(x[0])] : []);
  const near = (a, b, by) => (Number.isFinite(b) ? Math.abs(a - b) <= by : Object.is(a, b));

  /** Whether these are the numbers, to the digits that were printed and a relative `slack`. */
  function fits(pasted, wanted, slack) {
    const by = (i) => 0.5001 * pasted[i].step + slack * (0.1 + Math.abs(wanted[i]));
    return (
      pasted.length === wanted.length &&
      pasted.every(({ value }, i) => near(value, wanted[i], by(i)))
    );
  }

  /** The answers to a case that are known, those with the same numbers as one. */
  function known({ expected, accepted, mistakes }) {
    const found = [];
    for (const { got, names = [], note } of [{ got: expected }, ...accepted, ...mistakes]) {
      const numbers = flat(got);
      const exact = numbers.map((value) => ({ value, step: 0 }));
      let same = found.find((other) => fits(exact, other.numbers, 1e-9));
      if (!same) {
        same = {
          numbers,
          sizes: sizesOf(got),
          isRight: !found.length,
          names: new Set(),
          notes: [],
        };
        found.push(same);
      }
      for (const name of names) same.names.add(name);
      if (note) same.notes.push(note);
    }
    return found;
  }

  function orders(axes) {
    if (axes.length < 2) return [axes];
    return axes.flatMap((first) =>
      orders(axes.filter((axis) => axis !== first)).map((rest) => [first, ...rest]),
    );
  }

  /** The numbers of an array with its axes in each other order. */
  function* turned({ numbers, sizes }) {
    const real = sizes.filter((size) => size > 1);
    const steps = real.map((_, axis) => real.slice(axis + 1).reduce((a, b) => a * b, 1));
    for (const order of orders([...real.keys()]).slice(1)) {
      let places = [0];
      for (const axis of order) {
        places = places.flatMap((from) =>
          Array.from({ length: real[axis] }, (_, i) => from + i * steps[axis]),
        );
      }
      yield places.map((place) => numbers[place]);
    }
  }

  const brief = (values) => `(${values.map((x) => String(Number(x.toPrecision(4)))).join(", ")})`;

  /** `{ verdict, lead, sentence, names }`: right, wrong or unreadable, and what to say. */
  function judge(given, typed) {
    let pasted;
    try {
      pasted = read(typed);
    } catch (error) {
      if (!(error instanceof Unread)) throw error;
      return { verdict: "unreadable", sentence: error.message };
    }
    const answers = known(given);
    const fitting = (slack) => answers.filter(({ numbers }) => fits(pasted, numbers, slack));
    let found = fitting(1e-9);
    if (!found.length) found = fitting(1e-4); // of float32
    if (found.length > 1) {
      const names = found.flatMap((answer) => [...answer.names]);
      const isRight = found.some((answer) => answer.isRight);
      const lead = isRight
        ? t("Right, as far as these digits tell.")
        : t("So few digits fit several mistakes.");
      const sentence = isRight
        ? t("They also fit what is listed here. Print more of them.")
        : t("Print more of them.");
      return { verdict: "unreadable", lead, sentence, names };
    }
    if (found.length) return named(found[0]);
    const other = answers.find((answer) => [...turned(answer)].some((x) => fits(pasted, x, 1e-4)));
    if (other) {
      const told = named(other);
      const lead = other.isRight
        ? t("These are the right numbers, with the axes in another order.")
        : told.lead;
      return { ...told, verdict: "wrong", lead: `${t("Transposed.")} ${lead}` };
    }
    const [{ numbers, sizes }] = answers;
    if (pasted.length !== numbers.length) {
      const shape = `(${sizes.join(", ")})`;
      const sentence = t("This case has {0} numbers, in the shape {1}.", numbers.length, shape);
      const lead = pasted.length === 1 ? t("One number.") : t("{0} numbers.", pasted.length);
      return { verdict: "unreadable", lead, sentence };
    }
    const length = sizes.at(-1);
    const rows = (list) =>
      Array.from({ length: list.length / length }, (_, i) =>
        list.slice(i * length, (i + 1) * length),
      );
    const [mine, right] = [rows(pasted), rows(numbers)];
    const at = mine.findIndex((row, i) => !fits(row, right[i], 1e-4));
    const values = mine[at].map(({ value }) => value);
    const sentence = t(
      "The first row that differs from the right answer is row {0} of {1}: {2} in place of {3}.",
      ...[at + 1, right.length, brief(values), brief(right[at])],
    );
    return { verdict: "wrong", lead: t("None of the known mistakes."), sentence };
  }

  function named({ isRight, names, notes }) {
    if (isRight) return { verdict: "right", lead: t("Right.") };
    const sentence = notes.map((note) => t(note)).join(" ");
    if (!names.size) return { verdict: "right", lead: t("Accepted."), sentence };
    let lead = t("These are the numbers of a known mistake.");
    if (names.size > 1) lead = t("These numbers are those of several known mistakes.");
    if (notes.length) lead = t("A mistake, unless your documentation promises it.");
    return { verdict: "wrong", lead, sentence, names: [...names] };
  }

  // --- The inputs of a case in a language ------------------------------------------------------------

  const WHOLE = new Set(["tokens", "positions", "lengths", "chunks", "components", "columns"]);
  const isFloat = (name, value) =>
    typeof value.flat(9)[0] === "number" &&
    !WHOLE.has(name) &&
    (name !== "places" || value[0].length);
  const inPython = (value) =>
    typeof value === "string"
      ? JSON.stringify(value)
      : JSON.stringify(value)
          .replace(/true|false/g, (word) => word[0].toUpperCase() + word.slice(1))
          .replaceAll(",", ", ")
          .replaceAll("], ", "],\n    ");
  const python = (make, float) => (name, value) => {
    if (!Array.isArray(value)) return `${name} = ${inPython(value)}`;
    return `${name} = ${make}(${inPython(value)}${isFloat(name, value) ? float : ""})`;
  };
  /** For languages whose first axis is the fastest. */
  const columns = (permuted, end) => (name, value) => {
    const sizes = sizesOf(value).reverse();
    let text = JSON.stringify(value);
    if (sizes.length === 2) text = `[${value.map((row) => row.join(" ")).join("; ")}]`;
    else if (sizes.length) text = `[${value.flat(9).join(", ")}]`;
    const axes = sizes.map((_, i) => sizes.length - i);
    if (sizes.length > 2) text = permuted(text, sizes.join(", "), axes.join(", "));
    return `${name} = ${text}${end}`;
  };
  const WRITE = {
    NumPy: python("np.array", ", dtype=float"),
    PyTorch: python("torch.tensor", ", dtype=torch.float64"),
    MATLAB: columns((x, sizes, axes) => `permute(reshape(${x}, [${sizes}]), [${axes}])`, ";"),
    Julia: columns((x, sizes, axes) => `permutedims(reshape(${x}, ${sizes}), (${axes}))`, ""),
    JSON: (name, value) => `${JSON.stringify(name)}: ${JSON.stringify(value)}`,
  };

  // --- The form -----------------------------------------------------------------------------------

  const loading = {};
  function load(kind) {
    loading[kind] ??= new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = new URL(`cases-${kind}.js?v=${versions[kind]}`, home);
      script.onload = () => resolve(globalThis.attentionCases[kind]);
      script.onerror = () => {
        delete loading[kind]; // to try it again
        reject(new Error(script.src));
      };
      document.head.append(script);
    });
    return loading[kind];
  }

  const element = (tag, ...content) => {
    const made = document.createElement(tag);
    made.append(...content);
    return made;
  };

  function listed(name) {
    const row = document.getElementById(`mistake-${name}`);
    const link = row?.querySelector("td:last-child a")?.cloneNode(true);
    const sentence = row ? `: ${row.cells[1].textContent.trim()} ` : "";
    return element("li", element("code", name), sentence, ...(link ? [link] : []));
  }

  for (const form of document.querySelectorAll("form.pasted")) {
    const { kind, given, system, inputs, printed } = form.elements;
    const [said, about] = [form.querySelector("[role=status]"), form.querySelector(".asked")];
    let cases = [];

    function say({ verdict, lead, sentence, names = [] }) {
      form.dataset.verdict = verdict;
      said.replaceChildren(...(lead ? [element("strong", lead), " "] : []), sentence ?? "");
      if (names.length) said.append(element("ul", ...[...new Set(names)].map(listed)));
      printed.setAttribute("aria-invalid", verdict !== "right");
    }
    function forget() {
      delete form.dataset.verdict;
      said.replaceChildren();
      printed.removeAttribute("aria-invalid");
    }
    function show() {
      const { inputs: values } = cases[given.selectedIndex];
      const lines = Object.entries(values).map(([name, value]) => WRITE[system.value](name, value));
      inputs.value = system.value === "JSON" ? `{${lines.join(",\n ")}}` : lines.join("\n");
      const [first] = Object.keys(values);
      const gradient = t(
        "This case asks for a gradient instead: that of the sum of output · upstream with respect to {0}.",
        first,
      );
      about.textContent = [asked[kind.value], ...("upstream" in values ? [gradient] : [])].join(
        " ",
      );
    }
    async function choose() {
      forget();
      cases = []; // those of the former kind judge nothing while the new ones load
      given.replaceChildren();
      inputs.value = "";
      const chosen = kind.value;
      if (!chosen) return;
      try {
        const found = await load(chosen);
        if (kind.value !== chosen) return; // meanwhile another was chosen
        cases = found;
        given.replaceChildren(...cases.map(({ id }) => new Option(id)));
        form.querySelector(".case").hidden = false;
        show();
      } catch {
        say({ verdict: "unreadable", sentence: t("The cases could not be loaded.") });
      }
    }
    kind.addEventListener("change", choose);
    given.addEventListener("change", () => {
      printed.value = "";
      forget();
      show();
    });
    system.addEventListener("change", show);
    inputs.addEventListener("focus", () => inputs.select());
    printed.addEventListener("input", forget);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (!cases.length) return;
      const verdict = judge(cases[given.selectedIndex], printed.value);
      say(verdict);
      if (verdict.verdict === "right") {
        const option = given.selectedOptions[0];
        option.text = `✓ ${cases[given.selectedIndex].id}`;
      }
    });
    choose();
  }
})();
