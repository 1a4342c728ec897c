// The frame around every figure: what the reader predicts, moves, reads and shares. base.py puts
// this file between kit.js and a figure's own module.

const PAUSE_BEFORE_SPEAKING = 600; // milliseconds: a drag is spoken once, when it rests
const PLAY_EVERY = 900; // milliseconds
const QUICK = 180; // milliseconds: what changes faster is dragged, held down, or writes by itself

let framesMade = 0;

/** The phrase of that name which Python declares, with the values in their places. */
function phrase(name, ...values) {
  return t(declared.phrases[name], ...values);
}

/** What the control of that name can take now, as Python's Control computes it. */
function stopsOf(model, name) {
  const { stops } = declared.controls[name];
  if (typeof stops === "string") return model.get("data")[stops];
  if (Array.isArray(stops)) return stops;
  const sizes = (names) =>
    names
      .map((each) => model.get("data")[each] ?? model.get(each))
      .reduce((product, size) => product * (size.length ?? size), 1);
  const number = Math.floor(sizes(stops.of) / sizes(stops.per)) + stops.more;
  return [...stops.also, ...range(number).map((i) => stops.first + i)];
}

/** What checks the values that a link asks for, by name, as far as Python declares what they can be. */
function declaredChecks(model, start) {
  const checks = new Map();
  for (const [name, { stops, isPair, within }] of Object.entries(declared.controls)) {
    const isStop = (asked) => stopsOf(model, name).includes(asked);
    const isPairOfStops = (asked) =>
      Array.isArray(asked) && asked.length === 2 && asked.every(isStop);
    if (stops) checks.set(name, isPair ? isPairOfStops : isStop);
    if (!within) continue;
    const ends = typeof within === "string" ? model.get("data")[within] : within;
    const fits = (asked, given) =>
      Array.isArray(given)
        ? asked?.length === given.length && given.every((each, i) => fits(asked[i], each))
        : asked === given || (Number.isFinite(asked) && asked >= ends[0] && asked <= ends.at(-1));
    checks.set(name, (asked) => fits(asked, start[name]));
  }
  return checks;
}

/**
 * Make the frame of a figure: the question, the stage, its controls, the sentence, the rest.
 *
 * `traits` are the names of the values that the reader moves, where they are not those that Python
 * declares. The prediction, if a `question` is asked, is judged once `seen()` has been true after a
 * move; until then the reader is told `toSee`, which completes the sentence "Now …". `forget` is called
 * while nothing is moved, as after a reset. A `challenge` is `{ task, met }`: a state to find, and
 * whether it is found; or a function that returns the one that is set now, or null. `hint` says what can
 * be done, where that is more than to read marks. What stands `below` the controls belongs to the picture too. The sentence has room for `lines` from the start. `pointed` is told the mark that is pointed at or focused, and
 * null when it is left.
 */
function frame({ model, el }, options) {
  const { traits = Object.keys(declared.controls) } = options;
  const nodes = shell(model, options);
  const { form, stage, below, note, now } = nodes;
  const leaving = new AbortController();
  const syncs = [];
  const { announce, hush } = speech(nodes.spoken);
  /** Tell the reader one thing about what was just done; it stays until the next move. */
  const tell = (text) => {
    write(note, text);
    announce("note", text);
  };
  /** Say that the prediction was judged or the challenge met: the book's pages remember it. */
  const done = (what) =>
    el.dispatchEvent(new CustomEvent("attention-done", { bubbles: true, detail: what }));
  const isHeld = pressing(form, () => review(moved), leaving.signal);
  const review = afterEachDrawing(nodes, { ...options, isHeld }, announce, done);
  const bubble = pointing(nodes, leaving.signal, options.pointed);
  const ease = easing(form);
  const { player, halt } = playing(form);
  let draw = () => "";
  let [moved, quiet] = [false, false];

  const refresh = () => {
    if (quiet) return;
    ease(moved);
    for (const sync of syncs) sync();
    const sentence = draw();
    write(now, sentence ?? "");
    keepEntries(form);
    bubble.again();
    if (moved) announce("now", sentence);
    review(moved);
  };
  const state = stateOf(model, traits, (isQuiet) => {
    quiet = isQuiet;
  });
  const checks = declaredChecks(model, state.start);
  const set = (name, value) => {
    moved = true;
    write(note, "");
    model.set(name, value);
    model.save_changes();
  };
  /** As `set`, for several values that only fit together. */
  const move = (values) => {
    moved = true;
    write(note, "");
    state.place(values);
    refresh();
  };
  const putBack = () => {
    halt();
    state.place(state.start);
    for (const radio of nodes.predict.querySelectorAll("input")) radio.checked = false;
    moved = false;
    bubble.hide();
    write(note, "");
    refresh();
    announce("now", t("The figure has been reset."));
  };
  const arrive = () => {
    const problem = applyAddress(model, { ...state, checks, halt });
    if (problem === undefined) return;
    if (!problem) moved = true;
    refresh();
    write(note, ""); // what an address before this one was told
    if (problem) tell(problem);
    el.scrollIntoView({ block: "start" });
  };
  /** Put the finished figure on the page, drawn by `drawing`, which returns the sentence that says
   * what stands there now. Returns what takes the figure off again. */
  const open = (drawing) => {
    draw = drawing;
    el.classList.add("attention-figure");
    el.append(form);
    refresh();
    nodes.goal.hidden = Boolean(challengeNow(options)?.met()); // nothing to look for in what the reader gave
    nodes.predict.addEventListener("change", () => review(moved));
    nodes.reset.addEventListener("click", putBack);
    nodes.copy.addEventListener("click", () => share(model, traits, tell));
    for (const name of traits) model.on(`change:${name}`, refresh);
    if (model.linked) {
      model.on("linked", arrive);
      arrive();
    }
    return () => {
      halt();
      hush();
      leaving.abort();
      for (const name of traits) model.off(`change:${name}`, refresh);
    };
  };
  const making = { model, controls: nodes.controls, ...state, syncs, checks, set, tell };
  keepRoom(now);
  const made = inputs({ ...making, player, halt });
  const parts = { form, stage, below, now, controls: nodes.controls, goal: nodes.goal };
  return { ...parts, set, move, tell, announce, halt, redraw: refresh, ...made, open };
}

/** The figure's opening state, and what puts several values in place and draws once. */
function stateOf(model, traits, setQuiet) {
  const start = Object.fromEntries(traits.map((name) => [name, model.get(name)]));
  const place = (values) => {
    setQuiet(true);
    for (const name of traits) if (name in values) model.set(name, values[name]);
    setQuiet(false);
    model.save_changes();
  };
  return { start, place };
}

function challengeNow({ challenge = null }) {
  return typeof challenge === "function" ? challenge() : challenge;
}

/** After each drawing: what was predicted, and the challenge; forgotten when nothing is moved. */
function afterEachDrawing(nodes, options, announce, done) {
  const { seen = () => true, forget = () => {}, isHeld } = options;
  const judge = showVerdict(nodes, options, announce, done);
  const setGoal = showChallenge(nodes.goal, announce, done);
  const found = new Set(); // challenges that were met
  let answerWasSeen = false;
  return (moved) => {
    answerWasSeen = moved && (answerWasSeen || seen(isHeld()));
    if (!moved) {
      found.clear();
      forget();
    }
    const challenge = challengeNow(options);
    if (moved && !isHeld() && challenge?.met()) found.add(challenge);
    judge(answerWasSeen);
    setGoal(challenge, found.has(challenge));
  };
}

/** Whether the pointer is held down on the figure: a challenge is met where something is let go of,
 * not where it passes. Calls `release` when it is. */
function pressing(form, release, signal) {
  let isHeld = false;
  form.addEventListener("pointerdown", () => {
    isHeld = true;
  });
  for (const type of ["pointerup", "pointercancel"]) {
    const leave = () => {
      if (isHeld) {
        isHeld = false;
        release();
      }
    };
    document.addEventListener(type, leave, { capture: true, signal });
  }
  return () => isHeld;
}

/** The elements of a frame, in the order in which they stand. */
function shell(model, about) {
  const { question = "", answers = [], because = "", toSee, lines = 1 } = about;
  const id = `af-now-${++framesMade}`;
  const options = answers.map((answer, i) =>
    h("label", {}, h("input", { type: "radio", name: "prediction", value: i }), answer),
  );
  const said = (kind, ...what) =>
    h("div", { class: kind }, h("p", { class: "af-asked" }, question), ...what);
  const [longest = "", second = ""] = [...answers].sort((a, b) => b.length - a.length);
  const verdict = h("p", { class: "af-verdict" });
  const answer = said("af-said af-answer", verdict);
  const predict = h(
    "fieldset",
    { class: "af-predict" },
    h("legend", {}, t("Predict first")),
    h("p", { class: "af-question" }, question),
    h("div", { class: "af-options" }, ...options),
    // What comes has its room from the start, so that nothing moves when it does.
    said("af-said af-room", h("p", {}, noted(toSee))),
    said("af-said af-room af-judged", h("p", {}, together(judgement(longest, second), because))),
    answer,
  );
  const now = h("p", { class: "af-now", id, style: `--lines: ${lines}` });
  const stage = h("div", {
    class: "af-stage",
    role: "group",
    "aria-label": t("picture of this figure"),
    "aria-describedby": id,
  });
  const below = h("div", { class: "af-below" });
  const usual = hovers
    ? t("Point at something, or reach it with Tab and the arrow keys, to read its numbers there.")
    : t("Tap a mark to read its number.");
  const controls = h("div", { class: "af-controls" });
  const goal = h("p", { class: "af-challenge" });
  const note = h("p", { class: "af-note" });
  const reading = h("p", { class: "af-reading", "aria-hidden": "true", hidden: "" });
  const spoken = h("p", { class: "af-spoken", role: "status" });
  const reset = h("button", { type: "button", class: "af-button af-reset" }, t("Reset"));
  const copy = h("button", { type: "button", class: "af-button af-copy" }, t("Copy link"));
  const form = h(
    "form",
    { class: "af-form" },
    ...(question ? [predict] : []),
    h("div", { class: "af-scene" }, stage, controls, now),
    goal,
    note,
    below,
    h(
      "div",
      { class: "af-foot" },
      h("p", { class: "af-hint" }, about.hint ?? usual),
      ...(model.link ? [copy] : []),
      reset,
    ),
    captionOf(model.get("caption")),
    spoken,
  );
  form.addEventListener("submit", (event) => event.preventDefault());
  for (const part of [stage, below]) part.addEventListener("keydown", walk);
  // JupyterLab takes arrow keys for itself unless they stay inside the figure.
  form.addEventListener("keydown", (event) => event.stopPropagation());
  return {
    ...{ form, predict, answer, verdict, stage, below, controls, now, goal, note, reading },
    ...{ spoken, reset, copy },
  };
}

/** How to read the figure; folded on a phone, where the picture has the screen. */
function captionOf(text) {
  const summary = h("summary", {}, t("How to read this figure"));
  return roomy(
    h("p", { class: "af-caption" }, text),
    h("details", { class: "af-caption" }, summary, text),
  );
}

/** Let a text keep the room that it has once needed, so that what stands below it moves at most once. */
function keepRoom(node) {
  let width = 0;
  const room = new ResizeObserver(([{ contentRect }]) => {
    if (contentRect.width !== width) node.style.setProperty("--room", 0);
    width = contentRect.width;
    node.style.setProperty("--room", node.getBoundingClientRect().height);
  });
  room.observe(node);
}

/** Each group of marks keeps one way in by Tab, also when the mark that was it is hidden now. */
function keepEntries(form) {
  for (const group of form.querySelectorAll("[data-marks]")) {
    if (!group.querySelector('[tabindex="0"]:not([hidden])')) {
      group.querySelector("[data-at]:not([hidden])")?.setAttribute("tabindex", 0);
    }
  }
}

/** One polite region speaks for the whole figure, when it has come to rest. */
function speech(spoken) {
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
  return { announce, hush: () => clearTimeout(speaking) };
}

const noted = (toSee = t("move a control and look")) => t`Noted. Now ${toSee}.`;

/** What the reader said, and what is right. */
const judgement = (said, right) =>
  said === right
    ? t`✓ You said: ${said}. That is right.`
    : t`✗ You said: ${said}. Right is: ${right}.`;

/** Judge the prediction once its answer was seen: what was asked and answered stays in sight. */
function showVerdict({ form, answer, verdict }, about, announce, done) {
  const { answers = [], right = 0, because = "", toSee } = about;
  return (answerWasSeen) => {
    const chosen = form.elements.prediction?.value ?? "";
    const before = verdict.textContent;
    const isJudged = chosen !== "" && answerWasSeen;
    answer.hidden = chosen === "";
    answer.classList.toggle("af-judged", isJudged);
    answer.classList.toggle("af-right", isJudged && Number(chosen) === right);
    if (isJudged) write(verdict, together(judgement(answers[chosen], answers[right]), because));
    else write(verdict, answer.hidden ? "" : noted(toSee));
    if (verdict.textContent === before) return;
    announce("verdict", verdict.textContent);
    if (isJudged) done("prediction");
  };
}

/** Show the challenge, and whether it is met. */
function showChallenge(goal, announce, done) {
  return (challenge, found) => {
    if (!challenge) return write(goal, "");
    const before = goal.textContent;
    const { task } = challenge;
    const text = found ? t`Challenge met: ${task}.` : t`Challenge: ${task}.`;
    if (text === before) return;
    const head = text.slice(0, text.indexOf(task));
    goal.replaceChildren(found ? h("b", {}, head) : head, text.slice(head.length));
    goal.classList.toggle("af-met", found);
    if (!found) return;
    announce("challenge", goal.textContent);
    done("challenge");
  };
}

/**
 * Explain the mark that is pointed at, or has the keyboard's focus, next to it, and light what
 * belongs to the same pair (`data-pair`). Escape hides the explanation.
 */
function pointing({ form, stage, below, reading }, signal, pointed = () => {}) {
  let [mark, spot, isTapped] = [null, null, false];
  let isDragged = false; // nothing lies on what is dragged
  let pressed = null; // where something else was pressed: what appears under a pointer that rests
  const rests = ({ clientX: x, clientY: y }) =>
    pressed && Math.hypot(x - pressed[0], y - pressed[1]) < 2;
  const hide = () => {
    if (mark) pointed(null);
    [mark, spot, isDragged] = [null, null, false];
    reading.hidden = true;
    light(null);
  };
  const light = (pair) => {
    for (const node of form.querySelectorAll(".af-linked")) {
      if (node.getAttribute("data-pair") !== pair) node.classList.remove("af-linked");
    }
    if (!pair) return;
    for (const node of form.querySelectorAll(`[data-pair="${pair}"]`)) {
      node.classList.add("af-linked");
    }
  };
  const again = () => {
    if (!mark) return;
    if (!mark.isConnected || mark.closest("[hidden]")) return hide();
    write(reading, mark.reading ?? mark.getAttribute("aria-label"));
    reading.hidden = isDragged;
    beside(reading, mark, spot);
  };
  const show = (event) => {
    const found = event.target.closest?.("[data-at]");
    if (!found) return;
    if (found.querySelector(".af-field")) return hide(); // a number is being typed over the old one
    // What is tapped has the focus afterwards, but no keyboard led there.
    isTapped = "pointerType" in event ? event.pointerType === "touch" : isTapped && found === mark;
    mark = found;
    spot = "clientX" in event ? [event.clientX, event.clientY] : null;
    const area = stage.contains(mark) ? stage : below;
    if (reading.parentNode !== area) area.append(reading);
    light(mark.getAttribute("data-pair"));
    pointed(mark);
    again();
  };
  for (const area of [stage, below]) {
    area.addEventListener("pointerover", (event) => {
      if (rests(event)) return; // is not asked for
      if (event.target.closest("[data-at]")) show(event);
      else if (!area.contains(document.activeElement) || spot) hide();
    });
    area.addEventListener("pointermove", (event) => {
      if (pressed && !rests(event)) {
        pressed = null;
        show(event);
      }
      if (!mark) return;
      isDragged = event.buttons > 0;
      if (spot) spot = [event.clientX, event.clientY];
      again();
    });
    for (const type of ["pointerup", "pointercancel"]) {
      area.addEventListener(type, () => {
        isDragged = false;
        again();
      });
    }
    // A finger leaves as soon as it has tapped; what it asked for stays.
    area.addEventListener("pointerleave", ({ pointerType }) => pointerType !== "touch" && hide());
    area.addEventListener("focusin", show);
    area.addEventListener("focusout", () => !spot && hide());
    area.addEventListener("transitionend", () => mark && beside(reading, mark, spot));
  }
  form.addEventListener("keydown", ({ key }) => key === "Escape" && hide());
  const elsewhere = (event) => {
    const isMark = event.target.closest?.("[data-at]");
    pressed = isMark ? null : [event.clientX, event.clientY];
    if (!isMark) hide();
  };
  document.addEventListener("click", elsewhere, { signal }); // and not before: what is clicked stays where it is
  document.addEventListener("scroll", () => isTapped && hide(), { signal, capture: true });
  return { again, hide };
}

/**
 * Let what a step changes glide to its new place (figure.css says how), but not what a drag or a held
 * key changes: that is drawn at once. Returns what is called before each drawing, and told whether
 * the reader has moved something.
 */
function easing(form) {
  let [isDragged, isOpening, last] = [false, true, -Infinity];
  for (const type of ["pointerdown", "pointermove", "pointerup", "pointercancel"]) {
    const look = (event) => {
      isDragged = type === "pointermove" && event.buttons > 0;
    };
    form.addEventListener(type, look, true);
  }
  return (isMove) => {
    const now = performance.now();
    form.classList.toggle("af-eased", !isOpening && !isDragged && now - last > QUICK);
    if (isMove && !isOpening) last = now; // a figure opens where it is, and its first move glides
    isOpening = false;
  };
}

/** What plays moves a slider stop by stop; only one thing plays at a time. */
function playing(form) {
  let current = null;
  const halt = () => {
    if (!current) return;
    clearInterval(current.timer);
    write(current.button, t("Play"));
    current = null;
  };
  /** A button that steps through the stops of `input`, one a press where motion is unwelcome, and
   * what plays from the first stop. */
  const player = (input, pace) => {
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const text = still ? t("Next step") : t("Play");
    const button = h("button", { type: "button", class: "af-button" }, text);
    const atEnd = () => Number(input.value) >= Number(input.max);
    const move = (value) => {
      input.value = value;
      input.dispatchEvent(new Event("input"));
    };
    const step = () => {
      if (!atEnd() && form.isConnected) move(Number(input.value) + 1);
      if (atEnd() || !form.isConnected) halt();
    };
    const start = () => {
      if (still || atEnd()) return;
      current = { button, timer: setInterval(step, pace) };
      write(button, t("Pause"));
    };
    button.addEventListener("click", () => {
      const mine = current?.button === button;
      halt();
      if (mine) return;
      if (atEnd()) move(0);
      else step();
      start();
    });
    const play = () => {
      halt();
      if (!still) move(0);
      start();
    };
    return { button, play };
  };
  form.addEventListener("input", (event) => event.isTrusted && halt());
  return { player, halt };
}

/** Take over the state that the page's address asks for. Returns why that cannot be, "" if it can,
 * or undefined where the address asks for nothing. */
function applyAddress(model, { start, checks, halt, place }) {
  const asked = model.linked();
  if (!asked) return undefined;
  halt();
  place(start);
  let problem = asked.problem ?? "";
  for (const [name, value] of Object.entries(asked.values ?? {})) {
    const answer = checks.get(name)?.(value);
    if (typeof answer === "string") {
      problem ||= t`The address cannot be shown: ${answer}. You see the opening state of the figure.`;
    } else if (!answer) {
      const text = JSON.stringify(value).slice(0, 60);
      problem ||= t`The address asks for ${name} = ${text}, which this figure cannot show, so you see its opening state.`;
    }
    // In order, because what one value may be can depend on the one before.
    if (!problem) place({ [name]: value });
  }
  if (problem) place(start);
  return problem;
}

/** Put the figure's state into the page's address, and onto the clipboard. */
async function share(model, traits, tell) {
  const address = model.link(traits.map((name) => [name, model.get(name)]));
  history.replaceState(null, "", address);
  try {
    await navigator.clipboard.writeText(address);
    tell(t("Copied: a link to the figure as it is now."));
  } catch {
    tell(t("The address of this page now leads to the figure as it is now."));
  }
}

/** What Python declares of a control, how its value is read and changed, and what `about` says otherwise. */
function declaredAbout({ model, set }, about) {
  const { name } = about;
  const { label, names, stops } = declared.controls[name] ?? {};
  return {
    get: () => model.get(name),
    change: (value) => set(name, value),
    ...(label && { label: t(label) }),
    ...(names && { options: names.map((text, i) => [stops[i], t(text)]) }),
    ...(stops && { stops: () => stopsOf(model, name) }),
    ...about,
  };
}

/** What a figure makes its controls with. */
function inputs(given) {
  const { model, controls, checks, set, tell, halt } = given;
  return {
    /** Put a control of the figure's own among the others. */
    control(...nodes) {
      controls.append(h("div", { class: "af-control" }, ...nodes));
    },
    /** Say which values of a trait a link may ask for, where no control of that name says it; a
     * check may answer with what is wrong. */
    accept(name, check) {
      checks.set(name, check);
    },
    slider: (about) => slide(given, { into: controls, ...declaredAbout(given, about) }),
    choice: (about) => choose(given, declaredAbout(given, about)),
    menu: (about) => list(given, declaredAbout(given, about)),
    /** A box to tick, for a value that is true or false. */
    tick: (about) => check(given, declaredAbout(given, about)),
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
  };
}

/**
 * A labelled slider over `stops` (or what `stops()` gives now); `text` says a stop and unit.
 * `name` is the trait it moves, unless `get` and `change` do. It hides while it has one stop.
 * It stands among the controls, or `into` another element; the label may be an element, or
 * what `label()` says now. Returns what plays it from its first stop, where it has a button for that.
 */
function slide({ syncs, player }, about) {
  const { label, name, stops, get, change, into, play = false, pace = PLAY_EVERY } = about;
  const { text = String, hidden = () => false } = about;
  const at = () => (typeof stops === "function" ? stops() : stops);
  const input = h("input", { type: "range", name, min: 0, step: 1 });
  const value = h("span", { class: "af-value", "aria-hidden": "true" });
  const title = h("span", {}, ...(label instanceof Node ? [label] : []));
  const node = h("label", { class: "af-slider" }, title, input, value);
  const played = play ? player(input, pace) : null;
  const kind = play ? "af-control af-played" : "af-control";
  const whole = h("div", { class: kind }, node, ...(played ? [played.button] : []));
  into.append(whole);
  const take = () => change(at()[Number(input.value)]);
  input.addEventListener("input", take);
  // A finger that lands here and then scrolls the page has moved nothing.
  let before = null;
  input.addEventListener("pointerdown", ({ pointerType }) => {
    before = pointerType === "touch" ? input.value : null;
  });
  input.addEventListener("pointercancel", () => {
    if (before === null) return;
    input.value = before;
    take();
  });
  syncs.push(() => {
    const index = nearest(at(), get());
    if (!(label instanceof Node)) write(title, typeof label === "function" ? label() : label);
    put(input, "max", at().length - 1);
    if (input.value !== String(index)) input.value = index;
    put(input, "aria-valuetext", text(get()));
    write(value, text(get()));
    for (const part of [whole, node]) part.hidden = hidden() || at().length < 2;
  });
  return played?.play;
}

/** A choice between a few named values of one trait. */
function choose({ controls, syncs }, { label, name, options, get, change }) {
  const radios = options.map(([value]) => h("input", { type: "radio", name, value }));
  controls.append(
    h(
      "fieldset",
      { class: "af-choice" },
      h("legend", {}, label),
      ...options.map(([, text], i) => h("label", {}, radios[i], text)),
    ),
  );
  options.forEach(([value], i) => {
    radios[i].addEventListener("change", () => change(value));
    syncs.push(() => {
      radios[i].checked = get() === value;
    });
  });
}

/** As `choose`, as a list that opens: for names that do not all have to be in sight. It stands among
 * the controls, or `into` another element. */
function list({ controls, syncs }, { label, name, options, get, change, into = controls }) {
  const names = options.map(([value, text]) => h("option", { value }, text));
  const input = h("select", { name }, ...names);
  into.append(h("label", { class: "af-select" }, h("span", {}, label), input));
  input.addEventListener("change", () => change(input.value));
  syncs.push(() => {
    input.value = get();
  });
}

/** A box to tick in a control of the figure's own. Returns it with its label. */
function check({ syncs }, { label, name, get, change }) {
  const input = h("input", { type: "checkbox", name });
  input.addEventListener("change", () => change(input.checked));
  syncs.push(() => {
    input.checked = get();
  });
  return h("label", {}, input, label);
}
