// Answers that are judged in the page, without a kernel. The book's extension puts
// `attentionAnswers = { words }` before this file, and next to each exercise what
// attention_book.exercises declares of it; the check of the notebooks reads the same declaration.
// What is typed is read by the rules of exercises/parsing.py.
(() => {
  const { words } = attentionAnswers;
  const t = (text, ...values) => (words[text] ?? text).replace(/\{(\d)\}/g, (_, i) => values[i]);

  /** What was typed has no meaning as an answer of its form. */
  class Unread extends Error {}
  const LONGEST = 300;
  const SIGNS = new Map(
    [..."‐‑‒–—−÷∕⁄、。×·∙⋅•∗π√"].map((sign, i) => [sign, [..."------///,.******p√"][i]]),
  );
  const SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹";
  const TOKEN = /(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|sqrt|ln|log|exp|[-+*/^()%√ep]/g;
  const FUNCTIONS = {
    "√": Math.sqrt,
    sqrt: Math.sqrt,
    ln: Math.log,
    log: Math.log,
    exp: Math.exp,
  };

  function finite(number) {
    if (!Number.isFinite(number)) throw new Unread();
    return number;
  }

  function plain(text) {
    if ([...text].length > LONGEST) throw new Unread();
    const power = (run) =>
      `^(${[...run].map((sign) => (sign === "⁻" ? "-" : SUPERSCRIPTS.indexOf(sign))).join("")})`;
    return [
      ...text
        .replace(/[⁻⁰¹²³⁴-⁹]+/g, power)
        .replace(/(\d)(?=[¼-¾⅐-⅞])/g, "$1+") // two and a half
        .normalize("NFKC"),
    ]
      .map((sign) => SIGNS.get(sign) ?? sign)
      .join("")
      .toLowerCase()
      .replaceAll("**", "^")
      .replace(/^\s*(?:[a-z]\w*\s*)?[=≈~]|torch\.|tensor|size|[\u200b\ufeff'"]/g, "")
      .replace(/[^\S\n]+/g, " ")
      .trim();
  }

  /** Without the brackets around all of it. */
  function bare(given) {
    let text = given;
    while (/^[[({].*[\])}]$/s.test(text)) {
      let depth = 0;
      for (let i = 0; i < text.length; i++) {
        depth += "[({".includes(text[i]) - "])}".includes(text[i]);
        if (depth === 0 && i < text.length - 1) return text;
      }
      text = text.slice(1, -1).trim();
    }
    return text.replace(/[,; ]+$/, "");
  }

  /** The value of an arithmetic expression, read from left to right. */
  function worked(given) {
    const text = given.replace(/([\d)])\s*x\s*(?=[\d(√])/g, "$1*");
    const tokens = text.match(TOKEN) ?? [];
    if (tokens.join("") !== text.replaceAll(" ", "") || /[\d.] [\d.]/.test(text)) {
      throw new Unread();
    }
    const takes = (...signs) => (signs.includes(tokens[0]) ? tokens.shift() : "");
    const sum = () => {
      let value = product();
      for (let sign = takes("+", "-"); sign; sign = takes("+", "-")) {
        value += product() * (sign === "+" ? 1 : -1);
      }
      return value;
    };
    const next = () => takes("*", "/") || (["√", "("].includes(tokens[0]) ? "*" : "");
    const product = () => {
      let value = signed();
      for (let sign = next(); sign; sign = next()) {
        const factor = signed();
        if (sign === "/" && factor === 0) throw new Unread();
        value = sign === "*" ? value * factor : value / factor;
      }
      return value;
    };
    const signed = () => {
      const sign = takes("+", "-");
      if (sign) return signed() * (sign === "+" ? 1 : -1);
      const base = single();
      return takes("^") ? finite(base ** signed()) : base;
    };
    const single = () => {
      const token = tokens.shift() ?? "";
      if (Object.hasOwn(FUNCTIONS, token)) return finite(FUNCTIONS[token](single()));
      let value;
      if (token === "(") {
        value = sum();
        if (!takes(")")) throw new Unread();
      } else if (token === "e" || token === "p") value = token === "e" ? Math.E : Math.PI;
      else if (/^[\d.]/.test(token)) value = Number(token);
      else throw new Unread();
      return takes("%") ? value / 100 : value;
    };
    const value = sum();
    if (tokens.length) throw new Unread();
    return finite(value);
  }

  function list(given) {
    const text = bare(given);
    const between = [";", ",", "\n"].find((sign) => text.includes(sign));
    const items = between ? text.split(between) : text.split(" ");
    return items.map((item) => worked(item.trim().replaceAll(",", ".")));
  }

  const READ = {
    number(typed, { unit }) {
      let text = plain(typed);
      const behind = unit.toLowerCase();
      if (behind && text.endsWith(behind)) text = text.slice(0, -behind.length).trim();
      text = text.replace(/(\d)_(?=\d)/g, "$1");
      if (/^[-+]?[1-9]\d{0,2}([, ])\d{3}(\1\d{3})*(\.\d+|)$/.test(text)) {
        text = text.replace(/[, ]/g, ""); // thousands
      } else if (/^[-+]?\d+,\d+$/.test(text)) text = text.replace(",", ".");
      try {
        return worked(bare(text));
      } catch (error) {
        const several = list(text);
        if (several.length === 1) throw error;
        return several;
      }
    },
    numbers: (typed) => list(plain(typed)),
    rows(typed) {
      const text = plain(typed)
        .replace(/[\])]\s*[,;]?\s*[[(]/g, "\n")
        .replaceAll(";", "\n")
        .replace(/[[\](){}]/g, "")
        .replace(/^[ ,\n]+|[ ,\n]+$/g, "");
      const found = text.split(/\s*\n\s*/).map((row) => list(row.replace(/^[ ,]+|[ ,]+$/g, "")));
      if (found.some((row) => row.length !== found[0].length)) throw new Unread();
      return found.length > 1 ? found : found[0];
    },
    shape(typed, { words: others }) {
      const text = plain(typed);
      if (others.includes(text.replace(/^[.!() ]+|[.!() ]+$/g, ""))) return others[0];
      const sizes = text
        .replace(/[[\](){}]/g, " ")
        .replace(/^[ ,;\n]+|[ ,;\n]+$/g, "")
        .split(/\s*[,;x*\s]\s*/);
      if (!sizes.every((size) => /^-?\d{1,9}$/.test(size))) throw new Unread();
      return sizes.map(Number);
    },
    letters(typed) {
      const text = [...typed]
        .slice(0, LONGEST)
        .join("")
        .normalize("NFKC")
        .replace(/^[ \n'"]+|[ \n'"]+$/g, "")
        .replaceAll(" ", "")
        .replaceAll("→", "->")
        .replaceAll("、", ",")
        .replaceAll("...", "…");
      if (!/^[a-zA-Z…]*,[a-zA-Z…]*->[a-zA-Z…]*$/.test(text)) throw new Unread();
      const known = new Map();
      for (const letter of text.match(/[a-zA-Z…]/g) ?? []) {
        if (!known.has(letter)) known.set(letter, String.fromCodePoint(97 + known.size));
      }
      return [...text].map((sign) => known.get(sign) ?? sign).join("");
    },
    choice(typed) {
      if (typed === "") throw new Unread();
      return Number(typed);
    },
  };

  READ.line = READ.choice;

  const sizesOf = (value) => (Array.isArray(value) ? [value.length, ...sizesOf(value[0])] : []);
  const equal = (a, b) => JSON.stringify(a) === JSON.stringify(b);
  const written = (shape) => `(${shape.join(", ")})`;

  function same(got, wanted, tolerance) {
    if (!equal(sizesOf(got), sizesOf(wanted))) return false;
    const [a, b] = [[got].flat(2), [wanted].flat(2)];
    return a.every((number, i) => Math.abs(number - b[i]) <= tolerance);
  }

  function amount(value) {
    const shape = sizesOf(value);
    if (!shape.length) return t("one number");
    if (shape.length > 1) return t("a tensor of shape {0}", written(shape));
    return shape[0] === 1 ? t("a list of one number") : t("{0} numbers", shape[0]);
  }

  /** What to say of the letters of an einsum that PyTorch does not take for these shapes. */
  function refused(letters, shapes) {
    const [inputs, output] = letters.split("->");
    const sizes = new Map();
    let fits =
      new Set(output).size === output.length && [...output].every((one) => inputs.includes(one));
    inputs.split(",").forEach((names, i) => {
      fits &&= names.length === shapes[i].length;
      for (const [at, letter] of [...names].entries()) {
        if (!sizes.has(letter)) sizes.set(letter, shapes[i][at]);
        fits &&= sizes.get(letter) === shapes[i][at];
      }
    });
    return fits
      ? ""
      : t(
          "PyTorch refuses these letters for tensors of the shapes {0} and {1}. Each tensor needs three letters, and axes that share a letter must have the same size.",
          ...shapes.map(written),
        );
  }

  /** What is wrong with one part of an answer; nothing where it is right. */
  function mistakeIn(part, got) {
    const { kind, right, mistakes, otherwise, tolerance, shapes } = part;
    const isNumeric = ["number", "numbers", "rows"].includes(kind);
    const matches = (value) => (isNumeric ? same(got, value, tolerance) : equal(got, value));
    const refusal = kind === "letters" && refused(got, shapes);
    if (refusal) return refusal;
    if (matches(right)) return "";
    const known = mistakes.find(([wrong]) => matches(wrong))?.[1];
    if (known) return known;
    if (isNumeric && !equal(sizesOf(got), sizesOf(right))) {
      return t("Expected {0}, but got {1}.", amount(right), amount(got));
    }
    return part.words.length ? t("{0}: {1}", part.name, otherwise) : otherwise;
  }

  /** `{ verdict, sentence, at }`: right, wrong or unreadable, why, and which part is not right. */
  function judge({ why, parts }, typed) {
    const read = [];
    for (const [at, part] of parts.entries()) {
      try {
        read.push(READ[part.kind](typed[at], part));
      } catch (error) {
        if (!(error instanceof Unread)) throw error;
        return { verdict: "unreadable", sentence: part.form, at };
      }
    }
    for (const [at, part] of parts.entries()) {
      const sentence = mistakeIn(part, read[at]);
      if (sentence) return { verdict: "wrong", sentence, at };
    }
    return { verdict: "right", sentence: why, at: -1 };
  }

  const LEADS = { right: () => t("Right."), wrong: () => t("Not right."), unreadable: () => "" };

  for (const form of document.querySelectorAll("form[data-exercise]")) {
    const declared = JSON.parse(form.querySelector("script").textContent);
    const said = form.querySelector("[role=status]");
    const fields = declared.parts.map((_, i) => form.elements[`part-${i}`]);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const { verdict, sentence, at } = judge(
        declared,
        fields.map((field) => field.value),
      );
      form.dataset.verdict = verdict;
      const lead = LEADS[verdict]();
      const strong = Object.assign(document.createElement("strong"), { textContent: lead });
      said.replaceChildren(...(lead ? [strong, " "] : []), sentence);
      fields.forEach((field, i) => {
        for (const input of field.length === undefined ? [field] : field) {
          input.setAttribute("aria-invalid", i === at);
        }
      });
      if (verdict === "right") {
        form.dispatchEvent(new CustomEvent("attention-done", { bubbles: true, detail: "answer" }));
      }
    });
    // A judgement is of what stood there: it goes when the answer is changed.
    form.addEventListener("input", () => {
      delete form.dataset.verdict;
      said.replaceChildren();
      for (const input of form.elements) input.removeAttribute("aria-invalid");
    });
  }
})();
