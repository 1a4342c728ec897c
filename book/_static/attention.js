// From a disk a page may not read the others, so results there come without their first lines.
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;

// What scrolls sideways can be reached and named by keyboard and screen reader; the rest stays out
// of the tab order. The theme sees to code and tables, but not to formulas, and names none of them.
const SCROLLS = "pre, .math.scrolls, .pst-scrollable-table-container, .cell_output > .output";

function name(element) {
  if (element.matches(".math")) return "Formula";
  if (element.matches("pre")) return element.closest(".cell_output") ? "Output" : "Code";
  return element.querySelector("table") ? "Table" : "Output";
}

function mark() {
  for (const element of document.querySelectorAll(SCROLLS)) {
    if (element.scrollWidth > element.clientWidth) {
      element.tabIndex = 0;
      element.setAttribute("role", "region");
      element.setAttribute("aria-label", `${name(element)}, scrolls sideways`);
    } else {
      element.removeAttribute("tabindex");
      element.removeAttribute("role");
      element.removeAttribute("aria-label");
    }
  }
}

// After the theme's own pass, which runs on load and 300 ms after a change of size.
addEventListener("load", () => setTimeout(mark));
addEventListener("resize", () => setTimeout(mark, 400));
