// Chapter 9: one step of the decoding at a time, through the three maps.

export default {
  render({ model, el }) {
    const data = model.get("data");
    const { source, target, cross } = data;
    const maps = [
      ["encoder", "Encoder over the source", source, source],
      ["decoder", "Decoder over itself", target, target],
      ["cross", "Decoder over the source", target, source],
    ].map(([name, title, rows, columns]) => ({ name, title, rows, columns, ...grid({ title, rows, columns, dims: ["queries", "keys"] }) }));
    const said = h("p", { class: "af-sumline", role: "status" });

    const figure = frame({ model, el }, {
      traits: ["step", "layer", "head"],
      question: "At step 2 the decoder has read three tokens. To how many keys of its own may it attend?",
      answers: ["1, the last read", "3, itself and those before", "all"],
      right: 1,
      because: "The causal mask lets each step see itself and what came before; the hatched keys after it get 0. The source, by contrast, is open at every step.",
      draw: () => {
        const [step, layer, head] = [model.get("step"), model.get("layer"), model.get("head")];
        for (const { name, title, rows, columns, cells } of maps) {
          const decodes = name !== "encoder";
          rows.forEach((row, r) => columns.forEach((column, c) => {
            const weight = data[name][layer][head][r][c];
            const unread = decodes && r > step;
            fill(cells[r][c], { key: `${name} ${r} ${c}`, value: weight, text: unread ? "" : show(weight, 2), shade: unread ? 0 : weight,
              off: unread || (name === "decoder" && c > r), on: decodes && r === step,
              reading: `${title}: ${row} (${r}) gives ${column} (${c}) the weight ${show(weight, 4)}${unread ? ", at a later step" : ""}` });
          }));
        }
        const row = cross[layer][head][step];
        const best = row.indexOf(Math.max(...row));
        write(said, `Step ${step}: reads ${target[step]}, looks most at source token ${source[best]} (position ${best}), weight ${show(row[best], 2)}.`);
        put(said, "data-key", "best");
        put(said, "data-value", best);
      },
    });
    figure.slider({ label: "step of decoding", stops: range(target.length), get: () => model.get("step"), change: (i) => figure.set("step", i),
      text: (i) => `${i}: ${target[i]}` });
    figure.slider({ label: "layer", stops: range(cross.length), get: () => model.get("layer"), change: (i) => figure.set("layer", i) });
    figure.slider({ label: "head", stops: range(cross[0].length), get: () => model.get("head"), change: (i) => figure.set("head", i) });
    figure.stage.append(...maps.map(({ node }) => node), said);
    return figure.open();
  },
};
