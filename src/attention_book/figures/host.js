// The custom element that brings a figure to life where no kernel runs. The book's extension puts
// `attentionFigures = { css, kit, modules }` before this file; a module is imported from a Blob, which
// browsers also allow on pages opened from a folder.
(() => {
  const { css, kit, modules } = attentionFigures;
  document.head.append(Object.assign(document.createElement("style"), { textContent: css }));

  /** What a figure asks of an anywidget model, without a kernel behind it. */
  class Model {
    constructor(state) {
      this.state = state;
      this.listeners = {};
    }
    get(name) {
      return this.state[name];
    }
    set(name, value) {
      if (JSON.stringify(this.state[name]) === JSON.stringify(value)) return;
      this.state[name] = value;
      for (const listener of this.listeners[`change:${name}`] ?? []) listener();
    }
    on(event, listener) {
      (this.listeners[event] ??= []).push(listener);
    }
    off(event, listener) {
      this.listeners[event] = (this.listeners[event] ?? []).filter((other) => other !== listener);
    }
    save_changes() {}
  }

  const imported = {};
  const load = (kind) => {
    if (!(kind in modules)) throw new Error(`there is no module ${kind}`);
    const source = new Blob([kit, modules[kind]], { type: "text/javascript" });
    return (imported[kind] ??= import(URL.createObjectURL(source)));
  };

  customElements.define(
    "attention-figure",
    class extends HTMLElement {
      async connectedCallback() {
        if (this.started) return;
        this.started = true;
        try {
          const state = JSON.parse(this.querySelector("script").textContent);
          state.alt = this.querySelector("img").alt;
          state.caption = this.querySelector("figcaption").textContent;
          const live = document.createElement("div");
          (await load(this.getAttribute("kind"))).default.render({ model: new Model(state), el: live });
          this.append(live);
          this.classList.add("af-live");
        } catch (error) {
          const line = document.createElement("p");
          line.setAttribute("role", "note");
          line.textContent = `This figure cannot move here (${error.message}); the picture stands still.`;
          this.append(line);
        }
      }
    },
  );
})();
