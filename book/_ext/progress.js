// What a reader has done is remembered in this browser and nowhere else: exercises answered,
// predictions judged, challenges met. The book's extension puts `attentionProgress = { pages,
// words }` before this file: for each page the names of what can be done there.
(() => {
  const { pages, words } = attentionProgress;
  const KEY = "attention-book.progress.1"; // counted up when what is stored changes its form
  const t = (text, ...values) => (words[text] ?? text).replace(/\{(\d)\}/g, (_, i) => values[i]);
  const page = DOCUMENTATION_OPTIONS.pagename;
  const root = new URL(document.documentElement.dataset.content_root, location.href);

  /** What is remembered, by page; where storage is blocked or holds something else, nothing. */
  function recall() {
    const found = {};
    try {
      const stored = JSON.parse(localStorage.getItem(KEY)) ?? {};
      for (const name of Object.keys(pages)) {
        const done = Array.isArray(stored[name]) ? stored[name] : [];
        found[name] = new Set(pages[name].filter((item) => done.includes(item)));
      }
    } catch {
      for (const name of Object.keys(pages)) found[name] = new Set();
    }
    return found;
  }
  let done = recall();

  /** Keep it for the next visit; where there is no room, it lasts as long as this page. */
  function keep() {
    const stored = Object.entries(done).filter(([, items]) => items.size);
    try {
      const listed = stored.map(([name, items]) => [name, [...items]]);
      if (listed.length) localStorage.setItem(KEY, JSON.stringify(Object.fromEntries(listed)));
      else localStorage.removeItem(KEY);
    } catch {}
  }

  /** Which of the page's figures an element belongs to: "scale", and "scale-2" for a second. */
  function figureName(element) {
    const figure = element.closest("attention-figure");
    const kind = figure?.getAttribute("kind");
    const alike = [...document.querySelectorAll(`attention-figure[kind="${kind}"]`)];
    return alike.indexOf(figure) > 0 ? `${kind}-${alike.indexOf(figure) + 1}` : kind;
  }

  const counted = (name) => t("{0} of {1}", done[name].size, pages[name].length);

  function show() {
    for (const link of document.querySelectorAll(".bd-docs-nav li > a")) {
      const { pathname } = new URL(link.getAttribute("href"), location.href);
      const isHere = link.getAttribute("href") === "#";
      const name = isHere ? page : pathname.slice(root.pathname.length).replace(/\.html$/, "");
      link.querySelector(".progress-count")?.remove();
      if (!done[name]?.size) continue;
      const count = Object.assign(document.createElement("small"), {
        className: "progress-count",
        textContent: counted(name),
      });
      link.append(" ", count);
    }
    if (!done[page]) return;
    for (const line of document.querySelectorAll(".progress-line")) {
      line.querySelector("span").textContent = counted(page);
      line.querySelector("button").hidden = Object.values(done).every((items) => !items.size);
    }
    for (const form of document.querySelectorAll("form[data-exercise]")) {
      form.toggleAttribute("data-done", done[page].has(form.dataset.exercise));
    }
    for (const figure of document.querySelectorAll("attention-figure")) {
      const name = figureName(figure);
      const met = ["prediction", "challenge"].filter((what) => done[page].has(`${what} ${name}`));
      if (met.length) figure.dataset.done = met.join(" ");
      else delete figure.dataset.done;
    }
  }

  addEventListener("attention-done", ({ target, detail }) => {
    const item = target.dataset.exercise ?? `${detail} ${figureName(target)}`;
    if (!pages[page]?.includes(item) || done[page].has(item)) return;
    done = recall(); // another tab may have been at work
    done[page].add(item);
    keep();
    show();
  });
  addEventListener("click", ({ target }) => {
    if (!target.closest?.(".progress-line button")) return;
    if (!confirm(t("Forget everything that you have answered and predicted in this book?"))) return;
    for (const items of Object.values(done)) items.clear();
    keep();
    show();
  });
  addEventListener("storage", ({ key }) => {
    if (key !== KEY && key !== null) return;
    done = recall();
    show();
  });
  show();
})();
