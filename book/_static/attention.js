// From a disk a page may not read the others, so results there come without their first lines.
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;

// A result of the search that is a whole page opens at its first match.
addEventListener("load", () => {
  if (!location.hash)
    document.querySelector("article .highlighted")?.scrollIntoView({ block: "center" });
});

// Paper is white: a page that is read on dark ground is printed on light.
const root = document.documentElement;
matchMedia("print").addEventListener("change", ({ matches }) => {
  if (matches) root.dataset.screenTheme = root.dataset.theme;
  root.dataset.theme = matches ? "light" : root.dataset.screenTheme;
});

// What scrolls sideways can be reached and named by keyboard and screen reader; the rest stays out
// of the tab order. The theme sees to code and tables, but not to formulas, and names none of them.
const SCROLLS =
  "pre, .math.scrolls, .pst-scrollable-table-container, .cell_output > .output, .picture";

function name(element) {
  if (element.matches(".math")) return "Formula";
  if (element.matches(".picture")) return "Picture";
  if (element.matches("pre")) return element.closest(".cell_output") ? "Output" : "Code";
  return element.querySelector("table") ? "Table" : "Output";
}

function mark() {
  const count = {};
  for (const element of document.querySelectorAll(SCROLLS)) {
    if (element.scrollWidth > element.clientWidth) {
      const kind = name(element);
      count[kind] = (count[kind] ?? 0) + 1;
      element.tabIndex = 0;
      element.dataset.scrolls = "";
      element.setAttribute("role", "group"); // no landmark: a page may hold a hundred
      const label = WORDS.scrolls.replace("{0}", WORDS[kind]).replace("{1}", count[kind]);
      element.setAttribute("aria-label", label);
    } else {
      for (const known of ["tabindex", "data-scrolls", "role", "aria-label"]) {
        element.removeAttribute(known);
      }
    }
  }
}

// After the theme's own pass, which runs on load and 300 ms after a change of size.
addEventListener("load", () => setTimeout(mark));
addEventListener("resize", () => setTimeout(mark, 400));

// The other edition opens at the same place.
addEventListener("click", ({ target }) => {
  const link = target.closest(".switch-language");
  if (link) link.hash = location.hash;
});
