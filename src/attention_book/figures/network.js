// The package's Transformer in JavaScript, in double precision: encoder, decoder, greedy decoding with a
// key–value cache. base.py puts numbers.js before this file, and this file before live.js.

const MARGIN = 2; // tokens that the model may write beyond the letters of the word
const BYTES_PER_NUMBER = 4;

/** What attends in every head; the projected keys and values of `memory` join those in `cache`. */
function attending(linear, heads, size) {
  return (name, x, memory, cache, isOn, mayAttend = () => true) => {
    const queries = linear(`${name}.W_q`, x);
    cache.keys.push(...linear(`${name}.W_k`, memory));
    cache.values.push(...linear(`${name}.W_v`, memory));
    const part = (row, head) => row.slice(head * size, (head + 1) * size);
    const of = (rows, head) => rows.map((row) => part(row, head));
    const weights = range(heads).map((head) => {
      const keys = of(cache.keys, head);
      return of(queries, head).map((query, q) => weightsOf(query, keys, (k) => mayAttend(q, k)));
    });
    const outputs = range(heads).map((head) => {
      const values = of(cache.values, head);
      return weights[head].map((row) => mixed(isOn(head) ? row : [], values));
    });
    const merged = queries.map((_, q) => outputs.flatMap((rows) => rows[q]));
    return [linear(`${name}.W_o`, merged), weights];
  };
}

/** What both halves are built from, with the parameters of `data`. */
function partsOf(data) {
  const { d_model } = data;
  const p = unpack(data);
  const linear = (name, rows) => projected(rows, p[`${name}.weight`], p[`${name}.bias`]);
  const added = (name, rows, updates) =>
    rows.map((row, r) => {
      const x = row.map((a, i) => a + updates[r][i]);
      const mean = sum(x) / d_model;
      const deviation = Math.sqrt(sum(x.map((a) => (a - mean) ** 2)) / d_model + 1e-12);
      const [gain, bias] = [p[`${name}.weight`], p[`${name}.bias`]];
      return x.map((a, i) => (gain[i] * (a - mean)) / deviation + bias[i]);
    });
  const fed = (name, rows) =>
    linear(
      `${name}.W_2`,
      linear(`${name}.W_1`, rows).map((x) => x.map((a) => Math.max(0, a))),
    );
  const place = (t, i) => {
    const angle = t / 10000 ** ((i - (i % 2)) / d_model);
    return i % 2 ? Math.cos(angle) : Math.sin(angle);
  };
  const embedded = (name, tokens, first, { positions }) =>
    tokens.map((token, t) =>
      p[name][token].map((a, i) => a + (positions ? place(first + t, i) : 0)),
    );
  return { linear, added, fed, embedded };
}

/** The model of `data`. Switches are `{ positions, causal, off }`; `off` lists [use, layer, head]. */
export function network(data) {
  const { d_model, heads, layers, letters } = data;
  const [start, end] = [letters.length, letters.length + 1];
  const { linear, added, fed, embedded } = partsOf(data);
  const attend = attending(linear, heads, d_model / heads);
  const empty = () => ({ keys: [], values: [] });
  const caches = () => range(layers).map(() => ({ target: empty(), source: empty() }));
  const isOn =
    ({ off }, use, layer) =>
    (head) =>
      !off.some((one) => `${one}` === `${[use, layer, head]}`);

  const encode = (tokens, switches) => {
    let x = embedded("source_embedding.weight", tokens, 0, switches);
    const maps = range(layers).map((layer) => {
      const name = `encoder.${layer}`;
      const on = isOn(switches, "encoder", layer);
      const [attended, weights] = attend(`${name}.self_attention`, x, x, empty(), on);
      const mixed = added(`${name}.norm_1`, x, attended);
      x = added(`${name}.norm_2`, mixed, fed(`${name}.feed_forward`, mixed));
      return weights;
    });
    return { memory: x, encoder: maps };
  };
  /** Read `tokens`, of which the first stands at position `first`, after what the caches hold. */
  const decode = (tokens, memory, switches, held = caches(), first = 0) => {
    let x = embedded("target_embedding.weight", tokens, first, switches);
    const upToNow = (q, k) => !switches.causal || k <= first + q;
    const maps = held.map(({ target, source }, layer) => {
      const name = `decoder.${layer}`;
      const on = (use) => isOn(switches, use, layer);
      const [attended, decoder] = attend(
        `${name}.self_attention`,
        x,
        x,
        target,
        on("decoder"),
        upToNow,
      );
      const mixed = added(`${name}.norm_1`, x, attended);
      const unread = source.keys.length ? [] : memory;
      const [lookedUp, cross] = attend(
        `${name}.cross_attention`,
        mixed,
        unread,
        source,
        on("cross"),
      );
      const informed = added(`${name}.norm_2`, mixed, lookedUp);
      x = added(`${name}.norm_3`, informed, fed(`${name}.feed_forward`, informed));
      return { decoder, cross };
    });
    const says = linear("to_logits", x).map((logits) => logits.indexOf(Math.max(...logits)));
    return { says, decoder: maps.map((m) => m.decoder), cross: maps.map((m) => m.cross) };
  };
  /** Write token by token with a key–value cache until the end; also the cache's bytes each time, and
   * for each token the weights over the word with which it was written: a row per head. */
  const write = (word, switches) => {
    const source = [...word].map((letter) => letters.indexOf(letter));
    const read = encode(source, switches);
    const held = caches();
    const [tokens, bytes, looks] = [[], [0], []];
    while (tokens.at(-1) !== end && tokens.length < source.length + MARGIN) {
      const last = tokens.at(-1) ?? start;
      const { says, cross } = decode([last], read.memory, switches, held, tokens.length);
      tokens.push(says[0]);
      looks.push(cross.at(-1).map(([row]) => row)); // of the last layer
      const rows = held.flatMap(({ target, source }) => [
        ...Object.values(target),
        ...Object.values(source),
      ]);
      bytes.push(BYTES_PER_NUMBER * sum(rows.map((vectors) => d_model * vectors.length)));
    }
    return { tokens, bytes, looks, ...read };
  };
  /** The maps of one pass over the start and all written tokens but the last, as in training. */
  const pass = ({ tokens, memory }, switches) =>
    decode([start, ...tokens.slice(0, -1)], memory, switches);
  return { write, pass, start, end };
}
