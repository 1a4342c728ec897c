// Sections stand in the index as "page#anchor" (search_ext.py). Take them apart again, once each;
// a page as a whole is shown only where none of its sections holds every word.
const findPages = Search._performSearch;
Search._performSearch = (...query) => {
  const { docnames, titles } = Search._index;
  // A term is looked up under its name in this edition, too, whatever it is called elsewhere.
  const asked = query[0].trim().toLowerCase();
  const plain = asked.replace(/[-–]/g, " ");
  const term = HOMES[plain] ?? HOMES[plain.replace(/s$/, "")];
  const name = (term?.[1] || asked).toLowerCase();
  const queries = name === asked ? [query] : [Search._parseQuery(name), query];
  const title = new Map(docnames.map((name, i) => [name, titles[i]]));
  const seen = new Set();
  const found = queries
    .flatMap((one) => findPages(...one).reverse()) // the best first
    .map(([page, shown, anchor, ...rest]) => {
      const place = page.includes("#") ? page : page + anchor;
      const at = place.indexOf("#");
      return at < 0
        ? [place, shown, "", ...rest]
        : [place.slice(0, at), title.get(place) ?? shown, place.slice(at), ...rest];
    })
    .filter(([page, , anchor]) => !seen.has(page + anchor) && seen.add(page + anchor));
  const inSections = new Set(found.filter(([, , anchor]) => anchor).map(([page]) => page));
  const kept = found.filter(([page, , anchor]) => anchor || !inSections.has(page));
  // The chapter that explains a term comes first, then headings with the words as they were asked for.
  const [home] = term ?? HOMES[Object.keys(HOMES).find((known) => known.includes(plain))] ?? [];
  const named = ([, heading]) => heading.toLowerCase().includes(name);
  const isExercise = ([, heading]) => / › \d+\.\d+ /.test(heading);
  const atHome = kept.filter((result) => result[0] === home && !isExercise(result));
  const first = new Set(atHome.some(named) ? atHome.filter(named) : atHome.slice(0, 1));
  // A term's line in the glossary is next, and what holds all words in one section before whole pages.
  const rank = (result) => {
    if (first.has(result)) return 0;
    if (term && result[0] === "book/glossary") return 1;
    if (named(result)) return 2;
    return result[2] ? 3 : 4;
  };
  const ranks = [0, 1, 2, 3, 4];
  return ranks.flatMap((place) => kept.filter((result) => rank(result) === place)).reverse();
};

// An excerpt holds sentences: no formula twice, no heading, which stands above it, no code, no minutes.
const NO_SENTENCES =
  "h1, h2, h3, h4, .cell_input, .cell_output, .exercise-box, .katex-mathml, attention-figure";
const textOf = Search.htmlToText;
Search.htmlToText = (html, anchor) => {
  const page = new DOMParser().parseFromString(html, "text/html");
  page.querySelectorAll(NO_SENTENCES).forEach((part) => part.remove());
  const isMinutes = ({ childNodes }) => childNodes.length === 1 && childNodes[0].nodeName === "EM";
  [...page.querySelectorAll("p")].filter(isMinutes).forEach((line) => line.remove());
  const id = anchor && `#${CSS.escape(anchor.slice(1))}`; // names of the API hold dots
  return textOf(page.documentElement.outerHTML, id).replace(/\s+/g, " ");
};
