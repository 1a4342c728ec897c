// Chapter 2: drag the query in the plane; five scoring functions answer at once.

export default {
  render({ model, el }) {
    const { keys, W, W_q, W_k, w_v, cells } = model.get("data");
    const end = 3; // of the plane, on each side
    const stops = range(8 * end + 1).map((i) => -end + i / 4);
    // What each key contributes is computed once, because the plane asks for thousands of queries.
    const inner = (a, b) => a[0] * b[0] + a[1] * b[1];
    const turned = keys.map((key) => W.map((row) => inner(row, key)));
    const ofKeys = keys.map((key) => W_k.map((row) => inner(row, key)));
    const functions = {
      distance: (q) => keys.map((k) => -((q[0] - k[0]) ** 2 + (q[1] - k[1]) ** 2) / 2),
      dot: (q) => keys.map((k) => inner(q, k)),
      "scaled dot": (q) => keys.map((k) => inner(q, k) / Math.sqrt(2)),
      bilinear: (q) => turned.map((k) => inner(q, k)),
      additive: (q) => {
        const ofQuery = W_q.map((row) => inner(row, q));
        return ofKeys.map((ofKey) => {
          let score = 0;
          for (let j = 0; j < w_v.length; j++) score += w_v[j] * Math.tanh(ofQuery[j] + ofKey[j]);
          return score;
        });
      },
    };
    const names = Object.keys(functions);
    const shown = {
      distance: t("distance"),
      dot: t("dot"),
      "scaled dot": t("scaled dot"),
      bilinear: t("bilinear"),
      additive: t("additive"),
    };
    const score = (name, query) => functions[name](query);
    const winner = (scores) => {
      const least = Math.max(...scores) - 1e-9;
      return scores.findIndex((s) => s > least);
    };
    const favourite = (scores) => `k${winner(scores) + 1}`;
    const point = (query) => `(${query.map((x) => show(x)).join(", ")})`;

    const start = model.get("query");
    const double = start.map((x) => 2 * x);
    const reachable = double.every((x) => stops.includes(x)) && Math.hypot(...start) > 0;
    const figure = frame(
      { model, el },
      {
        traits: ["query", "regions"],
        question: t(
          "Make the query twice as long in the same direction. Under which function can the order of the keys' scores change?",
        ),
        answers: [t("dot product"), t("scaled dot product"), t("distance")],
        right: 2,
        because: t(
          "A dot product doubles with the query, so the order of its scores does not change. A distance depends on where the query ends: a longer query may come nearer to another key.",
        ),
        ...(reachable && {
          seen: () => model.get("query").every((x, i) => x === double[i]),
          toSee: t`move the query from ${point(start)} to ${point(double)}`,
        }),
        challenge: {
          task: t("find a query for which distance, dot and additive prefer the same key"),
          met: () =>
            new Set(
              ["distance", "dot", "additive"].map((name) =>
                favourite(score(name, model.get("query"))),
              ),
            ).size === 1,
        },
      },
    );
    figure.accept(
      "query",
      (query) =>
        Array.isArray(query) &&
        query.length === 2 &&
        query.every((x) => Number.isFinite(x) && Math.abs(x) <= end),
    );
    range(2).forEach((axis) =>
      figure.slider({
        label: t`query, feature ${axis + 1}`,
        stops,
        text: (value) => show(value),
        get: () => model.get("query")[axis],
        change: (value) =>
          figure.set(
            "query",
            model.get("query").map((old, i) => (i === axis ? value : old)),
          ),
      }),
    );
    figure.choice({
      label: t("Colour the plane by the winning key:"),
      name: "regions",
      options: [["none", t("off")], ...Object.entries(shown)],
    });

    const whole = range(2 * end + 1).map((i) => i - end);
    const plane = axes({
      title: t("query and keys in the plane"),
      width: 320,
      height: 320,
      x: [-end, end],
      y: [-end, end],
      xLabel: t("feature 1 (no unit)"),
      yLabel: t("feature 2 (no unit)"),
      xTicks: whole,
      yTicks: whole,
    });
    const arrow = h("svg:path", { class: "af-arrow" });
    const tip = mark(h("svg:circle", { class: "af-tip", r: 9 }), 0, 0);
    const snap = (value) => stops[nearest(stops, value)];
    const grip = handle(plane, tip, (x, y) => figure.set("query", [snap(x), snap(y)]));
    const dots = keys.map((key, k) =>
      mark(
        h("svg:circle", { class: "af-point", r: 6, cx: plane.sx(key[0]), cy: plane.sy(key[1]) }),
        0,
        k + 1,
      ),
    );
    // The plane in cells, row by row from below: which key wins where, computed once per function.
    const middles = range(cells).map((i) => (2 * end * (i + 0.5)) / cells - end);
    const width = plane.sx(middles[1]) - plane.sx(middles[0]);
    const height = plane.sy(middles[0]) - plane.sy(middles[1]);
    const left = (column) => plane.box.left + column * width;
    const bottom = (row) => plane.box.bottom - row * height;
    const maps = {};
    const mapOf = (name) => {
      maps[name] ??= middles.flatMap((y) => middles.map((x) => winner(score(name, [x, y]))));
      return maps[name];
    };
    const columnOf = (at) => at % cells;
    const rowOf = (at) => Math.floor(at / cells);
    /** The neighbours of each cell: left, right, below, above; undefined where the plane ends. */
    const around = range(cells ** 2).map((at) => [
      columnOf(at) > 0 ? at - 1 : undefined,
      columnOf(at) < cells - 1 ? at + 1 : undefined,
      at >= cells ? at - cells : undefined,
      at < cells * (cells - 1) ? at + cells : undefined,
    ]);
    const isFree = around.map((_, at) =>
      keys.every(
        (key) =>
          Math.abs(left(columnOf(at)) - plane.sx(key[0]) - 8) > 26 ||
          Math.abs(bottom(rowOf(at)) - plane.sy(key[1]) + 5) > 20,
      ),
    );
    /** Where names go: in each connected part of a region the cell farthest from its border and
     * from the names of points; parts too narrow for a name have none, if another part has one. */
    const spotsOf = (map) => {
      let depth = map.map((_, at) => (isFree[at] ? 1 : 0));
      for (let d = 1; depth.includes(d); d++) {
        const old = depth;
        depth = old.map((now, at) =>
          now === d && around[at].every((by) => map[by] === map[at] && old[by] >= d) ? d + 1 : now,
        );
      }
      const parts = [];
      const isSeen = map.map(() => false);
      map.forEach((k, from) => {
        if (isSeen[from]) return;
        let spot = from;
        const open = [from];
        isSeen[from] = true;
        while (open.length) {
          const at = open.pop();
          if (depth[at] > depth[spot]) spot = at;
          for (const by of around[at]) {
            if (map[by] !== k || isSeen[by]) continue;
            isSeen[by] = true;
            open.push(by);
          }
        }
        parts.push({ k, spot, deep: depth[spot] });
      });
      parts.sort((a, b) => b.deep - a.deep);
      return parts.filter(
        (part, i) => part.deep > 2 || parts.findIndex(({ k }) => k === part.k) === i,
      );
    };
    const regions = keys.map((_, k) =>
      mark(h("svg:path", { class: "af-region", style: `--hue: ${(360 * k) / keys.length}` }), 1, k),
    );
    const border = h("svg:path", { class: "af-border" });
    const winners = h("svg:g", { "aria-hidden": "true" });
    let coloured = "";
    const colour = (name) => {
      if (name === coloured) return;
      coloured = name;
      const map = name === "none" ? [] : mapOf(name);
      const areas = keys.map(() => "");
      let edges = "";
      map.forEach((k, at) => {
        const [column, row] = [columnOf(at), rowOf(at)];
        const [, right, , above] = around[at];
        // A run of cells begins where the key to the left is another one.
        if (column === 0 || map[at - 1] !== k) {
          let stop = column;
          while (stop < cells && map[at - column + stop] === k) stop++;
          areas[k] +=
            `M${left(column)},${bottom(row)}H${left(stop)}V${bottom(row + 1)}H${left(column)}Z`;
        }
        if (right !== undefined && map[right] !== k)
          edges += `M${left(column + 1)},${bottom(row)}V${bottom(row + 1)}`;
        if (above !== undefined && map[above] !== k)
          edges += `M${left(column)},${bottom(row + 1)}H${left(column + 1)}`;
      });
      regions.forEach((region, k) => {
        const share = map.filter((won) => won === k).length / (map.length || 1);
        put(region, "d", areas[k]);
        region.toggleAttribute("hidden", share === 0);
        const percent = share < 0.01 ? t("less than 1 %") : `${show(100 * share, 0)} %`;
        say(
          region,
          `region ${k}`,
          share,
          t`k${k + 1} wins by ${shown[name]} on ${percent} of this plane`,
        );
      });
      put(border, "d", edges);
      winners.replaceChildren(
        ...spotsOf(map).map(({ k, spot }) =>
          h(
            "svg:text",
            {
              class: "af-winner",
              "text-anchor": "middle",
              x: left(columnOf(spot) + 0.5),
              y: bottom(rowOf(spot) + 0.5) + 5,
            },
            `k${k + 1}`,
          ),
        ),
      );
    };
    plane.layer.append(
      ...regions,
      border,
      winners,
      h("svg:path", {
        class: "af-guide",
        d: `M${plane.sx(-end)},${plane.sy(0)}H${plane.sx(end)}M${plane.sx(0)},${plane.sy(-end)}V${plane.sy(end)}`,
      }),
      arrow,
      ...dots,
      ...keys.map((key, k) =>
        h(
          "svg:text",
          {
            class: "af-name",
            x: plane.sx(key[0]) + 8,
            y: plane.sy(key[1]) - 8,
            "aria-hidden": "true",
          },
          `k${k + 1}`,
        ),
      ),
      grip,
    );
    const columns = keys.map((_, k) => `k${k + 1}`);
    const scores = grid({
      title: t("Scores"),
      rows: Object.values(shown),
      columns,
      dims: [null, "keys"],
    });
    const weights = grid({
      title: t("Weights"),
      rows: Object.values(shown),
      columns,
      dims: [null, "keys"],
      extra: [t("sum")],
    });
    figure.stage.append(
      panel(t("Drag the blue point"), plane.node),
      h("div", { class: "af-panel" }, scores.node, weights.node),
    );

    return figure.open(() => {
      const query = model.get("query");
      const [x, y] = [plane.sx(query[0]), plane.sy(query[1])];
      const name = model.get("regions");
      colour(name);
      put(arrow, "d", `M${plane.sx(0)},${plane.sy(0)}L${x},${y}`);
      put(grip, "transform", `translate(${x} ${y})`);
      say(
        tip,
        "query",
        query.join(" "),
        t`query at ${point(query)}, length ${show(Math.hypot(...query))}`,
      );
      keys.forEach((key, k) =>
        say(
          dots[k],
          `key ${k}`,
          key.join(" "),
          t`k${k + 1} at ${point(key)}, length ${show(Math.hypot(...key))}`,
        ),
      );
      const favourites = names.map((name, r) => {
        const row = score(name, query);
        const shares = softmax(row);
        row.forEach((number, k) => {
          fill(scores.cells[r][k], {
            key: `${name} score ${k}`,
            value: number,
            text: show(number),
            reading: t`${shown[name]}: score of k${k + 1} is ${show(number, 4)}`,
          });
          fill(weights.cells[r][k], {
            key: `${name} weight ${k}`,
            value: shares[k],
            text: show(shares[k]),
            shade: shares[k],
            reading: t`${shown[name]}: weight of k${k + 1} is ${show(shares[k], 4)}`,
          });
        });
        fill(weights.cells[r][keys.length], {
          key: `${name} sum`,
          value: sum(shares),
          text: show(sum(shares)),
          reading: t`${shown[name]}: the weights sum to ${show(sum(shares), 4)}`,
        });
        return t`${favourite(row)} by ${shown[name]}`;
      });
      const absent = keys
        .map((_, k) => `k${k + 1}`)
        .filter((_, k) => regions[k].hasAttribute("hidden"));
      const prefers = t`The query at ${point(query)} prefers ${inList(favourites)}.`;
      if (name === "none") return prefers;
      const own = favourite(score(name, query));
      return together(
        prefers,
        absent.length
          ? t`Coloured by ${shown[name]}: the query is in the region of ${own}; no region for ${inList(absent)}.`
          : t`Coloured by ${shown[name]}: the query is in the region of ${own}; each key has a region.`,
      );
    });
  },
};
