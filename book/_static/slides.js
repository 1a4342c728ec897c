// Starts a deck. What a figure needs of the keyboard and of touch stays with the figure.
const root = document.documentElement;
const printed = /print-pdf|view=print/i.test(location.search);

/** The theme that the reader chose on the pages, else the system's; paper is white. */
function chooseTheme() {
  let chosen = null;
  try {
    chosen = localStorage.getItem("theme");
  } catch {} // storage may be blocked
  const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  root.dataset.theme = printed ? "light" : chosen || system;
}

/** A slide is 1280 by 720; on a screen that is taller than wide it is 480 wide and as tall as that. */
function size() {
  const tall = !printed && innerHeight > innerWidth;
  root.classList.toggle("tall", tall);
  return tall
    ? { width: 480, height: Math.round((480 * innerHeight) / innerWidth), margin: 0 }
    : { width: 1280, height: 720, margin: 0.03 };
}

const focused = () => document.activeElement?.closest(".live");

/** How large a figure, whose type is that of a page, and how wide, the best first. */
const SIZES = [
  ...[1.5, 1.35, 1.2, 1.1, 1].map((zoom) => [zoom, ""]),
  ...[960, 820, 700].map((width) => [1, `${width}px`]),
];
const PRINTED = [1.2, 1, 0.8, 0.6, 0.45].map((zoom) => [zoom, ""]);

/** Gives a slide's figure the first size that fits; what fits in none scrolls. */
function fit(slide) {
  const figure = slide?.querySelector(".live");
  if (!figure) return;
  const tall = root.classList.contains("tall");
  for (const [zoom, width] of [...(printed ? PRINTED : tall ? [] : SIZES), [1, ""]]) {
    Object.assign(figure.style, { zoom, maxWidth: width });
    if (slide.scrollHeight <= slide.clientHeight) break;
  }
}

chooseTheme();
for (const figure of document.querySelectorAll(".live")) {
  figure.dataset.preventSwipe = "";
  const drawn = new MutationObserver(() => fit(figure.closest("section")));
  drawn.observe(figure.firstElementChild, { childList: true });
}

Reveal.initialize({
  ...size(),
  hash: true,
  center: false,
  transition: "none",
  slideNumber: "c/t",
  controlsTutorial: false,
  scrollActivationWidth: null,
  pdfSeparateFragments: false,
  pdfMaxPagesPerSlide: 1,
  keyboardCondition: () => !focused(),
  plugins: [RevealNotes],
});

addEventListener("resize", () => {
  Reveal.configure(size());
  fit(Reveal.getCurrentSlide());
});

// A presenter's remote turns the slide from within a figure too; Escape gives the keys back.
addEventListener(
  "keydown",
  (event) => {
    if (!focused()) return;
    if (event.key === "PageDown") Reveal.next();
    else if (event.key === "PageUp") Reveal.prev();
    else if (event.key !== "Escape") return;
    document.activeElement.blur();
    event.preventDefault();
    event.stopPropagation();
  },
  { capture: true },
);
Reveal.on("slidechanged", ({ currentSlide }) => {
  if (focused()) document.activeElement.blur();
  fit(currentSlide);
});
Reveal.on("ready", ({ currentSlide }) => {
  const words = JSON.parse(document.querySelector(".reveal").dataset.controls);
  for (const button of document.querySelectorAll(".controls button"))
    button.ariaLabel = words[button.ariaLabel];
  fit(currentSlide);
});
Reveal.on("pdf-ready", () => document.querySelectorAll("section:not(.stack)").forEach(fit));
