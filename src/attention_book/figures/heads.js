// Chapter 7: the maps of all heads side by side, for models with one head or several.

export default {
  render({ model, el }) {
    const { counts, maps, errors, tokens } = model.get("data");
    const positions = range(tokens.length);
    const own = errors.length > 0; // the maps of the ring, about which there is a question

    const figure = frame(
      { model, el },
      {
        traits: ["num_heads", "query"],
        ...(own && {
          question: t(
            "Each position wants two numbers of the position before it and two of the position after it. Train two heads on that. What will their maps show?",
          ),
          answers: [
            t("both heads look at both neighbours"),
            t("one head looks before, the other after"),
            t("both heads look everywhere"),
          ],
          right: 1,
          because: t(
            "A head can return one weighted mean. One head must mix its two neighbours, and half of the error remains. Two heads can divide the work: each takes one neighbour, and the error falls almost to 0.",
          ),
          seen: () => model.get("num_heads") === 2,
          toSee: t("go to two heads"),
          challenge: {
            task: t("find a model in which a head gives no key more than half of its weight"),
            met: () =>
              maps[model.get("num_heads")].some(
                (weights) => Math.max(...weights[model.get("query")]) <= 0.5,
              ),
          },
        }),
      },
    );
    figure.slider({
      label: t("heads"),
      name: "num_heads",
      stops: counts,
      text: (n) => (n === 1 ? t("1 head") : t`${n} heads`),
    });
    figure.slider({
      label: t("query position"),
      name: "query",
      stops: positions,
      text: (q) => tokens[q],
    });

    const side = 15; // of a square, in the picture's units
    const length = tokens.length * side;
    const label = (x, y, text) =>
      h("svg:text", { x, y, "text-anchor": "middle", "aria-hidden": "true" }, text.slice(0, 4));
    /** The map of one head, drawn once, and what moves the outline of the chosen row. */
    const headMap = (count, head) => {
      const squares = positions.map((r) =>
        h(
          "svg:g",
          { role: "row" },
          ...positions.map((c) => {
            const weight = maps[count][head][r][c];
            const square = h("svg:rect", {
              class: "af-square",
              x: c * side,
              y: r * side,
              width: side,
              height: side,
              "fill-opacity": weight,
            });
            say(
              square,
              `weight ${head} ${r} ${c}`,
              weight,
              t`head ${head} of ${count}: query ${tokens[r]} gives key ${tokens[c]} the weight ${show(weight, 4)}`,
            );
            return mark(square, r, c, "gridcell");
          }),
        ),
      );
      const row = h("svg:rect", { class: "af-cursor", x: 0, width: length, height: side });
      const picture = h(
        "svg:svg",
        {
          class: "af-plot",
          viewBox: `${-2 * side} ${-side} ${length + 2 * side} ${length + side}`,
        },
        ...tokens.map((token, i) => label((i + 0.5) * side, -4, token)),
        ...tokens.map((token, i) => label(-0.9 * side, (i + 0.5) * side + 4, token)),
        h(
          "svg:g",
          { "data-marks": "", role: "grid", "aria-label": t`map of head ${head}` },
          ...squares,
        ),
        row,
      );
      picture.addEventListener("click", (event) => {
        const at = event.target.closest("[data-at]");
        if (at) figure.set("query", Number(at.getAttribute("data-at").split(",")[0]));
      });
      return {
        node: h(
          "div",
          { class: "af-headmap" },
          h("p", { class: "af-title" }, t`Head ${head}`),
          picture,
        ),
        row,
      };
    };
    const models = counts.map((count) => {
      const heads = range(count).map((head) => headMap(count, head));
      return {
        count,
        rows: heads.map(({ row }) => row),
        node: h("div", { class: "af-headmaps" }, ...heads.map(({ node }) => node)),
      };
    });
    const error = facts(own ? [t("squared error of the trained model:")] : []);
    figure.stage.append(...models.map(({ node }) => node), error.node);

    return figure.open(() => {
      const [count, query] = [model.get("num_heads"), model.get("query")];
      for (const each of models) {
        each.node.hidden = each.count !== count;
        for (const row of each.rows) put(row, "y", query * side);
      }
      if (own) {
        const number = errors[counts.indexOf(count)];
        write(error.values[0], show(number, 3));
        say(
          error.values[0],
          "error",
          number,
          count === 1
            ? t`squared error of the model with 1 head: ${show(number, 3)}, summed over the four numbers of a position`
            : t`squared error of the model with ${count} heads: ${show(number, 3)}, summed over the four numbers of a position`,
        );
      }
      const looks = maps[count].map((weights, head) => {
        const row = weights[query];
        const best = row.indexOf(Math.max(...row));
        return t`${tokens[best]} (${show(row[best])}) in head ${head}`;
      });
      return t`Position ${tokens[query]} attends most to ${inList(looks)}.`;
    });
  },
};
