// Chapter 10: read the scores tile by tile; m, l and o carry each row across.

export default {
  render({ model, el }) {
    const { scores, values, tiles, memory } = model.get("data");
    const length = scores.length;
    const strips = () => length / model.get("tile"); // tiles next to each other
    const opened = model.get("tile");
    const finished = () => model.get("step") === strips() ** 2;

    const figure = frame(
      { model, el },
      {
        traits: ["tile", "step", "n"],
        question: t("Make the tiles smaller. What happens to the outputs at the end?"),
        answers: [t("they become less exact"), t("they stay the same"), t("they become 0")],
        right: 1,
        because: t(
          "When a larger score comes, the sums so far are multiplied by exp(old m − new m). Nothing is approximated: each tile size gives the exact softmax, and only the memory in use changes.",
        ),
        seen: () => finished() && (model.get("tile") < opened || opened === tiles[0]),
        toSee: t("make the tiles smaller and read all of them"),
        challenge: {
          task: t("read every tile while holding no more than 4 scores at a time"),
          met: () => finished() && model.get("tile") ** 2 <= 4,
        },
      },
    );
    figure.slider({
      label: t("tile size"),
      name: "tile",
      stops: tiles,
      text: (tile) => t`${tile} × ${tile} scores`,
      change: (tile) => {
        const last = (length / tile) ** 2;
        if (model.get("step") > last) figure.set("step", last);
        figure.set("tile", tile);
      },
    });
    figure.slider({
      label: t("tiles read"),
      name: "step",
      stops: () => range(strips() ** 2 + 1),
      play: true,
      text: (step) => t`${step} of ${strips() ** 2}`,
    });

    figure.slider({
      label: t("positions n"),
      name: "n",
      stops: memory.at.map(([n]) => n),
      text: (n) => n.toLocaleString("en"),
    });

    const [rows, columns] = [scores.map((_, i) => `q${i + 1}`), scores.map((_, i) => `k${i + 1}`)];
    const map = grid({ title: t("Scores"), rows, columns, dims: ["queries", "keys"] });
    const state = grid({
      title: t("What is carried along"),
      rows,
      columns: ["m", "l", "o / l"],
      dims: ["queries", null],
    });
    const held = facts([
      t("scores held at once:"),
      t("with m, l and o:"),
      t("scores of the whole matrix:"),
    ]);
    const largest = Math.max(...scores.flat().map(Math.abs)) || 1;
    const side = `${memory.tile} × ${memory.tile}`;
    const real = facts([
      t("the whole matrix, n × n scores:"),
      t`one tile of ${side}, with m, l and o:`,
    ]);
    const ratio = h("p", {});
    const lengths = panel(
      t("Memory at real lengths, for one head"),
      figure.stage.parentNode.querySelector(".af-controls").lastElementChild, // the slider of n
      real.node,
      ratio,
      h(
        "p",
        {},
        t`Each number takes ${memory.bytes} bytes. Each of the tile's ${memory.tile} queries has an m, an l and the ${memory.value_size} numbers of its o. Queries, keys, values and output are not counted, because both ways need them. A GPU works on many tiles at the same time.`,
      ),
    );
    figure.stage.append(map.node, state.node, held.node, h("div", { class: "af-row" }, lengths));
    let told = model.get("n");

    /** A number of bytes in the largest unit that leaves it at least 1. */
    const inBytes = (number) => {
      const power = Math.min(3, Math.floor(Math.log2(number) / 10));
      return `${number / 1024 ** power} ${[t("bytes"), "KiB", "MiB", "GiB"][power]}`;
    };
    /** What one head takes at a real length; the panel shows it, and a move of n is spoken. */
    const atLength = () => {
      const n = model.get("n");
      const [, whole, tile] = memory.at.find(([each]) => each === n);
      [
        [whole, t`all scores of one head: ${inBytes(whole)}`],
        [tile, t`one tile of ${side} with m, l and o: ${inBytes(tile)}`],
      ].forEach(([bytes, reading], i) => {
        write(real.values[i], inBytes(bytes));
        say(real.values[i], `memory ${i}`, bytes, reading);
      });
      const times = Number((whole / tile).toPrecision(3)).toLocaleString("en");
      const at = n.toLocaleString("en");
      write(
        ratio,
        t`At n = ${at} the whole matrix takes ${inBytes(whole)}, about ${times} times the ${inBytes(tile)} of one tile with its m, l and o.`,
      );
      if (n !== told) figure.announce("memory", ratio.textContent);
      told = n;
    };

    /** One row after its first `seen` scores, `tile` at a time: the three numbers carried along. */
    const online = (row, seen, tile) => {
      let [m, l, o] = [-Infinity, 0, 0];
      for (let from = 0; from < seen; from += tile) {
        const part = row.slice(from, from + tile);
        const next = Math.max(m, ...part);
        const fade = Math.exp(m - next); // what was summed before shrinks to the new maximum
        const powers = part.map((s) => Math.exp(s - next));
        const grown = l * fade + sum(powers);
        o = (o * l * fade + dot(powers, values.slice(from, from + tile))) / grown;
        [m, l] = [next, grown];
      }
      return [m, l, o];
    };

    return figure.open(() => {
      const [tile, step] = [model.get("tile"), model.get("step")];
      const [strip, across] = [Math.floor((step - 1) / strips()), (step - 1) % strips()];
      rows.forEach((name, r) => {
        const own = Math.floor(r / tile);
        let seen = own < strip ? length : 0;
        if (step > 0 && own === strip) seen = (across + 1) * tile;
        columns.forEach((column, c) => {
          const inside = step > 0 && own === strip && Math.floor(c / tile) === across;
          const number = show(scores[r][c], 2);
          let reading = t`${name}, ${column}: score ${number}, not read yet`;
          if (inside) reading = t`${name}, ${column}: score ${number}, held now`;
          else if (c < seen) reading = t`${name}, ${column}: score ${number}, read before`;
          fill(map.cells[r][c], {
            key: `score ${r} ${c}`,
            value: scores[r][c],
            text: inside || length <= 8 ? show(scores[r][c], 1) : "",
            shade: c < seen ? scores[r][c] / largest : 0,
            off: c >= seen,
            on: inside,
            reading,
          });
        });
        const readings = [
          (number) => t`${name}: m, the largest score so far, is ${number}`,
          (number) => t`${name}: l, the sum so far, is ${number}`,
          (number) => t`${name}: o / l, the output so far, is ${number}`,
        ];
        online(scores[r], seen, tile).forEach((number, i) =>
          fill(state.cells[r][i], {
            key: `${"mlo"[i]} ${r}`,
            value: number,
            text: seen ? show(number, 2) : "",
            off: seen === 0,
            on: step > 0 && own === strip,
            reading: seen ? readings[i](show(number, 6)) : t`${name}: nothing read yet`,
          }),
        );
      });
      [
        [tile * tile, t`a tile holds ${tile * tile} scores`],
        [
          tile * tile + 3 * tile,
          t`with m, l and o of ${tile} rows, ${tile * tile + 3 * tile} numbers are held`,
        ],
        [length * length, t`the whole matrix holds ${length * length} scores`],
      ].forEach(([number, reading], i) => {
        write(held.values[i], t`${number} numbers`);
        say(held.values[i], `held ${i}`, number, reading);
      });
      atLength();
      const exact = Math.floor(step / strips()) * tile;
      return t`With tiles of ${tile} × ${tile}, ${step} of ${strips() ** 2} are read: ${tile * tile} of ${length * length} scores are held at a time, and ${exact} of ${length} outputs are exact.`;
    });
  },
};
