// The frame around every figure: what the reader predicts, moves, reads and shares. base.py puts
// this file between kit.js and a figure's own module.

const PAUSE_BEFORE_SPEAKING = 600; // milliseconds: a drag is spoken once, when it rests
const PLAY_EVERY = 900; // milliseconds

let framesMade = 0;

/**
 * Make the frame of a figure.
 *
 * `traits` are the names of the values that the reader moves. The prediction, if a `question` is asked, is judged once
 * `seen()` has been true after a move; until then the reader is told `toSee`, which completes the
 * sentence "Now …". A `challenge` is `{ task, met }`: a state to find, and whether it is found.
 */
function frame(
  { model, el },
  {
    traits,
    question = "",
    answers = [],
    right = 0,
    because = "",
    seen = () => true,
    toSee = t("move a control and look"),
    challenge = null,
  },
) {
  const start = Object.fromEntries(traits.map((name) => [name, model.get(name)]));
  const id = `af-now-${++framesMade}`;
  const syncs = [];
  const checks = new Map();
  let draw = () => "";
  let [moved, evident, found, quiet] = [false, false, false, false];

  const verdict = h("p", { class: "af-verdict" });
  const predict = h(
    "fieldset",
    { class: "af-predict" },
    h("legend", {}, t("Predict first")),
    h("p", {}, question),
    ...answers.map((answer, i) =>
      h("label", {}, h("input", { type: "radio", name: "prediction", value: i }), answer),
    ),
    verdict,
  );
  const goal = h("p", { class: "af-challenge" });
  const controls = h("div", { class: "af-controls" });
  const now = h("p", { class: "af-now", id });
  const stage = h("div", {
    class: "af-stage",
    role: "group",
    "aria-label": t("picture of this figure"),
    "aria-describedby": id,
  });
  const hint = matchMedia("(hover: hover)").matches
    ? t("Point at a number, or reach it with Tab and the arrow keys, to read it here.")
    : t("Tap a number to read it here.");
  const reading = h("p", { class: "af-reading" }, hint);
  const note = h("p", { class: "af-note" });
  const spoken = h("p", { class: "af-spoken", role: "status" });
  const reset = h("button", { type: "button", class: "af-button af-reset" }, t("Reset"));
  const copy = h("button", { type: "button", class: "af-button af-copy" }, t("Copy link"));
  const form = h(
    "form",
    { class: "af-form" },
    ...(question ? [predict] : []),
    controls,
    now,
    stage,
    goal,
    note,
    h("div", { class: "af-foot" }, reading, ...(model.link ? [copy] : []), reset),
    h("p", { class: "af-caption" }, model.get("caption")),
    spoken,
  );

  // One polite region speaks for the whole figure, when it has come to rest.
  const news = new Map();
  let speaking = 0;
  const announce = (what, text) => {
    news.set(what, text);
    clearTimeout(speaking);
    speaking = setTimeout(() => {
      write(spoken, together(...news.values()));
      news.clear();
    }, PAUSE_BEFORE_SPEAKING);
  };
  /** Tell the reader one thing about what was just done; it stays until the next move. */
  const tell = (text) => {
    write(note, text);
    announce("note", text);
  };

  const judge = () => {
    const chosen = form.elements.prediction?.value ?? "";
    const before = verdict.textContent;
    if (chosen === "") write(verdict, "");
    else if (!evident) write(verdict, t`Noted. Now ${toSee}.`);
    else {
      const hit =
        Number(chosen) === right ? t("Your prediction was right.") : t("It turns out differently.");
      write(verdict, together(hit, because));
    }
    if (verdict.textContent !== before) announce("verdict", verdict.textContent);
  };
  const strive = () => {
    if (!challenge) return;
    const before = goal.textContent;
    const { task } = challenge;
    write(goal, found ? t`Challenge met: ${task}.` : t`Challenge: ${task}.`);
    goal.classList.toggle("af-met", found);
    if (found && goal.textContent !== before) announce("challenge", goal.textContent);
  };

  const read = (target) => {
    const at = target.closest?.("[data-at]");
    if (at) write(reading, at.getAttribute("aria-label"));
    return at;
  };
  let last = null;
  const refresh = () => {
    if (quiet) return;
    for (const sync of syncs) sync();
    const sentence = draw();
    write(now, sentence ?? "");
    // Each group keeps one way in by Tab, also when the mark that was it is hidden now.
    for (const group of stage.querySelectorAll("[data-marks]")) {
      if (!group.querySelector('[tabindex="0"]:not([hidden])')) {
        group.querySelector("[data-at]:not([hidden])")?.setAttribute("tabindex", 0);
      }
    }
    if (last?.isConnected) read(last);
    if (moved) {
      evident ||= seen();
      found ||= challenge?.met() ?? false;
      announce("now", sentence);
    }
    judge();
    strive();
  };
  /** Put several values in place, and draw once. */
  const place = (values) => {
    quiet = true;
    for (const name of traits) if (name in values) model.set(name, values[name]);
    quiet = false;
    model.save_changes();
  };
  const putBack = () => {
    halt();
    place(start);
    for (const radio of predict.querySelectorAll("input")) radio.checked = false;
    [moved, evident, found, last] = [false, false, false, null];
    write(reading, hint);
    write(note, "");
    refresh();
    announce("now", t("The figure has been reset."));
  };
  const set = (name, value) => {
    moved = true;
    write(note, "");
    model.set(name, value);
    model.save_changes();
  };

  /** Take over the state that the page's address asks for, or say why not. */
  const arrive = () => {
    const asked = model.asked();
    if (!asked) return;
    halt();
    place(start);
    let problem = asked.problem;
    for (const [name, value] of Object.entries(asked.values ?? {})) {
      if (!checks.get(name)?.(value)) {
        const text = JSON.stringify(value).slice(0, 60);
        problem ??= t`The address asks for ${name} = ${text}, which this figure cannot show, so you see its opening state.`;
      }
      // In order, because what one value may be can depend on the one before.
      if (!problem) place({ [name]: value });
    }
    if (problem) place(start);
    else moved = true;
    refresh();
    if (problem) tell(problem);
    el.scrollIntoView({ block: "start" });
  };
  const share = async () => {
    const address = model.link(traits.map((name) => [name, model.get(name)]));
    history.replaceState(null, "", address);
    try {
      await navigator.clipboard.writeText(address);
      tell(t("Copied: a link to the figure as it is now."));
    } catch {
      tell(t("The address of this page now leads to the figure as it is now."));
    }
  };

  // What plays moves a slider stop by stop; only one thing plays at a time.
  let playing = null;
  const halt = () => {
    if (!playing) return;
    clearInterval(playing.timer);
    write(playing.button, t("Play"));
    playing = null;
  };
  /** A button that steps through the stops of `input`, one a press where motion is unwelcome. */
  const player = (input) => {
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const button = h(
      "button",
      { type: "button", class: "af-button" },
      still ? t("Next step") : t("Play"),
    );
    const atEnd = () => Number(input.value) >= Number(input.max);
    const move = (value) => {
      input.value = value;
      input.dispatchEvent(new Event("input"));
    };
    const step = () => {
      if (atEnd() || !form.isConnected) halt();
      else move(Number(input.value) + 1);
    };
    button.addEventListener("click", () => {
      const mine = playing?.button === button;
      halt();
      if (mine) return;
      if (atEnd()) move(0);
      else step();
      if (still) return;
      playing = { button, timer: setInterval(step, PLAY_EVERY) };
      write(button, t("Pause"));
    });
    return button;
  };

  form.addEventListener("submit", (event) => event.preventDefault());
  // JupyterLab takes arrow keys for itself unless they stay inside the figure.
  form.addEventListener("keydown", (event) => event.stopPropagation());
  form.addEventListener("input", (event) => event.isTrusted && halt());
  predict.addEventListener("change", judge);
  stage.addEventListener("pointerover", (event) => {
    last = read(event.target) ?? last;
  });
  stage.addEventListener("focusin", (event) => {
    last = read(event.target) ?? last;
  });
  stage.addEventListener("keydown", (event) => walk(event));
  reset.addEventListener("click", putBack);
  copy.addEventListener("click", share);
  for (const name of traits) model.on(`change:${name}`, refresh);

  return {
    stage,
    set,
    tell,
    announce,
    /** Put a control of the figure's own among the others. */
    control(...nodes) {
      controls.append(h("div", { class: "af-control" }, ...nodes));
    },
    /** Say which values of a trait a link may ask for, where no control of that name says it. */
    accept(name, check) {
      checks.set(name, check);
    },
    /**
     * A labelled slider over `stops` (or what `stops()` gives now); `text` says a stop and unit.
     * `name` is the trait it moves, unless `get` and `change` do. It hides while it has one stop.
     */
    slider({
      label,
      name,
      stops,
      get = () => model.get(name),
      change = (value) => set(name, value),
      text = String,
      hidden = () => false,
      play = false,
    }) {
      const at = () => (typeof stops === "function" ? stops() : stops);
      const input = h("input", { type: "range", min: 0, step: 1 });
      const value = h("span", { class: "af-value", "aria-hidden": "true" });
      const node = h("label", { class: "af-slider" }, h("span", {}, label), input, value);
      const buttons = play ? [player(input)] : [];
      const whole = h("div", { class: "af-control" }, node, ...buttons);
      controls.append(whole);
      input.addEventListener("input", () => change(at()[Number(input.value)]));
      if (name) checks.set(name, (asked) => at().includes(asked) || asked === start[name]);
      syncs.push(() => {
        const index = nearest(at(), get());
        put(input, "max", at().length - 1);
        if (input.value !== String(index)) input.value = index;
        put(input, "aria-valuetext", text(get()));
        write(value, text(get()));
        for (const part of [whole, node]) part.hidden = hidden() || at().length < 2;
      });
    },
    /** A choice between a few named values of one trait. */
    choice({
      label,
      name,
      options,
      get = () => model.get(name),
      change = (value) => set(name, value),
    }) {
      const inputs = options.map(([value]) => h("input", { type: "radio", name, value }));
      controls.append(
        h(
          "fieldset",
          { class: "af-choice" },
          h("legend", {}, label),
          ...options.map(([, text], i) => h("label", {}, inputs[i], text)),
        ),
      );
      options.forEach(([value], i) => {
        inputs[i].addEventListener("change", () => change(value));
        syncs.push(() => {
          inputs[i].checked = get() === value;
        });
      });
      checks.set(name, (asked) => options.some(([value]) => value === asked));
    },
    /** Let the reader type numbers into the cells of a grid; `change(row, column, number)`. */
    edit(cells, change) {
      cells.forEach((row, r) => {
        row.forEach((cell, c) => {
          put(cell, "aria-description", t("press Enter to change this number"));
          cell.classList.add("af-editable");
          const begin = () => {
            if (cell.querySelector("input")) return;
            halt();
            type(cell, (number) => change(r, c, number), tell);
          };
          cell.addEventListener("click", begin);
          cell.addEventListener("keydown", (event) => {
            if (event.key === "Enter" && event.target === cell) begin();
          });
        });
      });
    },
    /** Put the finished figure on the page, drawn by `draw`, which returns the sentence that says
     * what stands there now. Returns what takes the figure off again. */
    open(drawing) {
      draw = drawing;
      el.classList.add("attention-figure");
      el.append(form);
      quiet = false;
      refresh();
      if (challenge?.met()) {
        goal.hidden = true; // nothing to look for in what the reader gave
      }
      if (model.asked) {
        model.on("asked", arrive);
        arrive();
      }
      return () => {
        halt();
        clearTimeout(speaking);
        for (const name of traits) model.off(`change:${name}`, refresh);
      };
    },
  };
}

const LARGEST_TYPED = 1000;

/** Put a field into a cell until Enter or a click elsewhere takes its number, or Escape does not. */
function type(cell, take, complain) {
  const old = cell.textContent;
  const field = h("input", {
    class: "af-field",
    type: "text",
    inputmode: "decimal",
    autocomplete: "off",
    "aria-label": t`new number, from −${LARGEST_TYPED} to ${LARGEST_TYPED}`,
    value: String(Number(cell.getAttribute("data-value"))),
  });
  let open = true;
  const close = (keep) => {
    if (!open) return;
    open = false;
    const typed = field.value.trim();
    const back = field === document.activeElement;
    field.remove();
    write(cell, old);
    if (back) cell.focus();
    if (!keep) return;
    const number = Number(typed.replace("−", "-").replace(",", "."));
    if (typed === "" || !(Math.abs(number) <= LARGEST_TYPED)) {
      const shown = typed.length > 20 ? `${typed.slice(0, 20)}…` : typed;
      complain(
        t`“${shown}” is not a number from −${LARGEST_TYPED} to ${LARGEST_TYPED}; the old number stays.`,
      );
    } else take(Math.round(number * 1000) / 1000 + 0);
  };
  field.addEventListener("keydown", (event) => {
    event.stopPropagation(); // arrows move within the field
    if (event.key === "Enter") {
      event.preventDefault();
      close(true);
    } else if (event.key === "Escape") close(false);
  });
  field.addEventListener("blur", () => close(true));
  cell.replaceChildren(field);
  field.select();
}

/** Whether a number that an address holds could have been typed. */
function isTyped(number) {
  return typeof number === "number" && Math.abs(number) <= LARGEST_TYPED;
}
