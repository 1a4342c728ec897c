// The custom element that brings a figure to life where no kernel runs. The book's extension puts
// `attentionFigures = { css, kit, words, files }` before this file, and before that, by the name of its
// kind, each figure's module and style sheet into `attentionModules`. A module is imported from a Blob,
// which browsers also allow on pages opened from a folder.
(() => {
  const { css, kit, words, files } = attentionFigures;
  const home = document.currentScript.src;
  /** As in kit.js, which is read with the figures' modules only. */
  const t = (text, value) => (words[text] ?? text).replace("{0}", () => value);
  const dress = (textContent) =>
    document.head.append(Object.assign(document.createElement("style"), { textContent }));
  dress(css);

  /** The figures of the page by the names that addresses use: "masking", "masking-2" … */
  const named = () => {
    const names = new Map();
    for (const figure of document.querySelectorAll("attention-figure")) {
      const kind = figure.getAttribute("kind");
      let name = kind;
      for (let i = 2; names.has(name); i++) name = `${kind}-${i}`;
      names.set(name, figure);
    }
    return names;
  };

  /** What a figure asks of an anywidget model, without a kernel behind it. */
  class Model {
    constructor(state, figure) {
      this.state = state;
      this.figure = figure;
      this.listeners = {};
      addEventListener("hashchange", () => this.tell("linked"));
    }
    get(name) {
      return this.state[name];
    }
    set(name, value) {
      if (JSON.stringify(this.state[name]) === JSON.stringify(value)) return;
      this.state[name] = value;
      this.tell(`change:${name}`);
    }
    tell(event) {
      for (const listener of this.listeners[event] ?? []) listener();
    }
    on(event, listener) {
      this.listeners[event] ??= [];
      this.listeners[event].push(listener);
    }
    off(event, listener) {
      this.listeners[event] = (this.listeners[event] ?? []).filter((other) => other !== listener);
    }
    save_changes() {}
    /** What stands in the file of that name beside this script, loaded once it is asked for: a script,
     * because pages opened from a folder may read nothing else. */
    load(name) {
      return new Promise((resolve, reject) => {
        if (files[name]) return resolve(files[name]);
        const src = new URL(`attention-${name}.js${new URL(home).search}`, home);
        const script = Object.assign(document.createElement("script"), { src });
        const end = () => {
          script.remove();
          if (files[name]) resolve(files[name]);
          else
            reject(
              new Error(t("its file {0} could not be loaded", src.pathname.split("/").at(-1))),
            );
        };
        script.addEventListener("load", end);
        script.addEventListener("error", end);
        document.head.append(script);
      });
    }
    /** The address of this page with the figure's values: "#figure=masking&fill=%22after%22". */
    link(values) {
      const [name] = [...named()].find(([, figure]) => figure === this.figure);
      const fields = new URLSearchParams({ figure: name });
      for (const [trait, value] of values) fields.set(trait, JSON.stringify(value));
      return `${location.href.split("#")[0]}#${fields}`;
    }
    /** What the page's address asks of this figure: `{ values }`, `{ problem }` or null. */
    linked() {
      const fields = [...new URLSearchParams(location.hash.slice(1))];
      if (fields[0]?.[0] !== "figure") return null;
      const [[, wanted], ...rest] = fields;
      const figures = named();
      if (!figures.has(wanted)) {
        const first = figures.values().next().value === this.figure;
        const text = t(
          "The address names a figure “{0}”, which is not on this page.",
          wanted.slice(0, 40),
        );
        return first ? { problem: text } : null;
      }
      if (figures.get(wanted) !== this.figure) return null;
      try {
        return { values: Object.fromEntries(rest.map(([name, text]) => [name, JSON.parse(text)])) };
      } catch {
        return {
          problem: t(
            "The address contains no state that can be read, so you see the opening state.",
          ),
        };
      }
    }
  }

  const imported = {};
  const load = (kind) => {
    if (kind in imported) return imported[kind];
    const [text, look] = globalThis.attentionModules?.[kind] ?? [];
    if (!text) throw new Error(t("there is no module {0}", kind));
    dress(look);
    const source = new Blob([kit, text], { type: "text/javascript" });
    imported[kind] = import(URL.createObjectURL(source));
    return imported[kind];
  };

  customElements.define(
    "attention-figure",
    class extends HTMLElement {
      async connectedCallback() {
        if (this.started) return;
        this.started = true;
        if (document.readyState === "loading") {
          // The element may be known before what it contains has been read.
          await new Promise((go) => addEventListener("DOMContentLoaded", go, { once: true }));
        }
        const live = document.createElement("div");
        try {
          const stateOf = (figure) => JSON.parse(figure.querySelector("script").textContent);
          const state = stateOf(this);
          if (state.data?.parameters === "") {
            const states = [...document.querySelectorAll("attention-figure")].map(stateOf);
            state.data.parameters = states.find(({ data }) => data?.parameters).data.parameters;
          }
          state.alt = this.querySelector("img").alt;
          state.caption = this.querySelector("figcaption").textContent;
          const figure = (await load(this.getAttribute("kind"))).default;
          this.append(live);
          this.classList.add("af-live");
          figure.render({ model: new Model(state, this), el: live });
        } catch (error) {
          live.remove();
          this.classList.remove("af-live");
          const line = document.createElement("p");
          line.setAttribute("role", "note");
          line.textContent = t(
            "This figure is not interactive here ({0}), so you see a still picture.",
            error.message,
          );
          this.append(line);
        }
      }
    },
  );
})();
