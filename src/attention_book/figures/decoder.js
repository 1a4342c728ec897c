// The package's LanguageModel in JavaScript, in double precision, and how it continues a text. base.py
// puts numbers.js before this file, and this file before language_model.js.

/** The random numbers that `torch.Generator().manual_seed(seed)` gives to `draw`, from 0 to 1. */
function randomOf(seed) {
  const N = 624; // MT19937, Matsumoto and Nishimura (1998)
  const state = new Uint32Array(N);
  state[0] = seed;
  for (let i = 1; i < N; i++) {
    state[i] = Math.imul(1812433253, state[i - 1] ^ (state[i - 1] >>> 30)) + i;
  }
  let at = N;
  const next = () => {
    if (at === N) {
      for (let i = 0; i < N; i++) {
        const y = (state[i] & 0x80000000) | (state[(i + 1) % N] & 0x7fffffff);
        state[i] = state[(i + 397) % N] ^ (y >>> 1) ^ (y & 1 ? 0x9908b0df : 0);
      }
      at = 0;
    }
    let y = state[at++];
    y ^= y >>> 11;
    y ^= (y << 7) & 0x9d2c5680;
    y ^= (y << 15) & 0xefc60000;
    return (y ^ (y >>> 18)) >>> 0;
  };
  return () => ((next() & 0x1fffff) * 2 ** 32 + next()) / 2 ** 53;
}

/** The probability with which each token is drawn, and how many may be: `likely_tokens` of the package. */
export function chancesOf(logits, { temperature, top_k, top_p }) {
  const top = Math.max(...logits);
  if (temperature === 0) {
    const best = logits.indexOf(top);
    return { chances: logits.map((_, i) => (i === best ? 1 : 0)), kept: 1 };
  }
  const scores = logits.map((logit) => logit / temperature);
  const ascending = range(scores.length).sort((a, b) => scores[a] - scores[b]);
  const least = scores[ascending.at(-Math.min(top_k, scores.length))];
  const allowed = scores.map((score) => score >= least);
  const weights = softmax(scores, allowed);
  let below = 0;
  for (const token of ascending.slice(0, -1)) {
    below += weights[token];
    if (below <= 1 - top_p) allowed[token] = false;
  }
  return { chances: softmax(scores, allowed), kept: allowed.filter(Boolean).length };
}

/** Draw a token as the package's `draw` does. */
function drawn(chances, random) {
  const height = random() * sum(chances);
  let end = 0;
  return chances.filter((chance) => {
    end += chance;
    return end <= height;
  }).length;
}

/** The `number` likeliest tokens, of which the last makes room for `kept`, so that it stays in sight. */
export function likeliest(chances, number, kept) {
  const best = range(chances.length).sort((a, b) => chances[b] - chances[a] || a - b);
  if (best.indexOf(kept) >= number) best[number - 1] = kept;
  return best.slice(0, number);
}

/** The model of `data`. Switches are `{ causal, off }`; `off` lists [layer, head]. */
export function decoder(data) {
  const { d_model, heads, kv_heads, layers, rotary_base, eps } = data;
  const size = d_model / heads;
  const p = unpack(data);
  const norm = (name, rows) =>
    rows.map((x) => {
      const scale = 1 / Math.sqrt(dot(x, x) / d_model + eps);
      return x.map((a, i) => a * scale * p[`${name}.weight`][i]);
    });
  const linear = (name, rows) => projected(rows, p[`${name}.weight`]);
  const added = (rows, updates) => rows.map((row, r) => row.map((a, i) => a + updates[r][i]));
  const fed = (name, rows) => {
    const up = linear(`${name}.up`, rows);
    const gated = linear(`${name}.gate`, rows).map((row, r) =>
      row.map((a, i) => (a / (1 + Math.exp(-a))) * up[r][i]),
    );
    return linear(`${name}.down`, gated);
  };
  const split = (row) => range(row.length / size).map((h) => row.slice(h * size, (h + 1) * size));
  const rotated = (x, position) => {
    if (rotary_base === null) return x;
    const half = size / 2;
    return x.map((a, i) => {
      const angle = position / rotary_base ** ((i % half) / half);
      const other = i < half ? -x[i + half] : x[i - half];
      return a * Math.cos(angle) + other * Math.sin(angle);
    });
  };
  /** Attend in every head; the projected keys and values join those in `cache`. */
  const attend = (name, x, cache, { causal, off }, layer) => {
    const first = cache.inputs.length - x.length;
    const turned = (row, i) => split(row).map((part) => rotated(part, first + i));
    const join = (kept, rows) =>
      rows.forEach((parts) => {
        parts.forEach((part, g) => kept[g].push(part));
      });
    const queries = linear(`${name}.W_q`, x).map(turned);
    join(cache.keys, linear(`${name}.W_k`, x).map(turned));
    join(cache.values, linear(`${name}.W_v`, x).map(split));
    const group = (head) => Math.floor((head * kv_heads) / heads);
    const weights = range(heads).map((head) =>
      queries.map((parts, q) => {
        const seesAll = !causal || q === queries.length - 1;
        const keys = cache.keys[group(head)];
        return weightsOf(parts[head], keys, seesAll ? null : (k) => k <= first + q);
      }),
    );
    const outputs = range(heads).map((head) => {
      const values = cache.values[group(head)];
      const isOff = off.some((one) => one[0] === layer && one[1] === head);
      return weights[head].map((row) => mixed(isOff ? [] : row, values));
    });
    const merged = queries.map((_, q) => outputs.flatMap((rows) => rows[q]));
    return [linear(`${name}.W_o`, merged), weights];
  };
  const groups = () => range(kv_heads).map(() => []);
  const caches = () => range(layers).map(() => ({ inputs: [], keys: groups(), values: groups() }));
  /** Forget all but the first positions. */
  const cut = (held, length) => {
    for (const { inputs, keys, values } of held) {
      for (const rows of [inputs, ...keys, ...values]) rows.length = Math.min(rows.length, length);
    }
  };
  const embedded = (tokens) => tokens.map((token) => p["embedding.weight"][token]);
  /** Read `tokens` after what the caches hold: logits (token by token) and weights [layer][head].
   * Or read from layer `first` on, given what it reads, where the layers below are as they were. */
  const read = (tokens, switches, held = caches(), first = 0, given = embedded(tokens)) => {
    let x = given;
    const weights = held.map((cache, layer) => {
      if (layer < first) return null;
      const name = `layers.${layer}`;
      cache.inputs.push(...x);
      const normed = norm(`${name}.norm_1`, x);
      const [attended, seen] = attend(`${name}.self_attention`, normed, cache, switches, layer);
      x = added(x, attended);
      x = added(x, fed(`${name}.feed_forward`, norm(`${name}.norm_2`, x)));
      return seen;
    });
    const output = p["to_logits.weight"] ?? p["embedding.weight"];
    return {
      weights,
      get logits() {
        return projected(norm("norm", x), output);
      },
    };
  };
  /** Continue a prompt by `number` tokens; a cached position cannot see those that come later. */
  const write = (prompt, number, settings) => {
    const random = randomOf(settings.seed);
    const held = caches();
    const written = [];
    for (let i = 0; i < number; i++) {
      const text = [...prompt, ...written];
      const { logits } = settings.causal
        ? read(text.slice(held[0].inputs.length), settings, held)
        : read(text, settings);
      const { chances } = chancesOf(logits.at(-1), settings);
      written.push(settings.temperature === 0 ? chances.indexOf(1) : drawn(chances, random));
    }
    return written;
  };
  return { read, write, caches, cut };
}

/** The cross-entropy of a token, in nats. */
function lossOf(logits, token) {
  const top = Math.max(...logits);
  return Math.log(sum(logits.map((logit) => Math.exp(logit - top)))) + top - logits[token];
}

/** The loss of each word of a text but the first, which nothing predicts. */
export function lossesOf(text, logits) {
  return text.map((token, i) => (i ? lossOf(logits[i - 1], token) : undefined));
}

/** What the words of a text cost on average. */
export function costOf(losses) {
  return sum(losses.slice(1)) / (losses.length - 1);
}
