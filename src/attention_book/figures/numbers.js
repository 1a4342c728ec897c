// What the models that run in a page compute with: their parameters, projections, the weights of a
// query. base.py puts this file before network.js and decoder.js.

/** The number whose 16 bits are given: a sign, five bits of an exponent, ten of a fraction. */
function halfOf(bits) {
  const [exponent, fraction] = [(bits >> 10) & 31, (bits & 1023) / 1024];
  const size = exponent ? (1 + fraction) * 2 ** (exponent - 15) : fraction * 2 ** -14;
  return bits >> 15 ? -size : size;
}

/** The parameters by name; parameters.py says how they are stored. */
function unpack({ layout, parameters, halves }) {
  const stored = atob(halves ?? parameters);
  const { buffer } = Uint8Array.from(stored, (sign) => sign.charCodeAt(0));
  if (halves) {
    const bits = new Uint16Array(buffer);
    let used = 0;
    const next = (length) => {
      used += length;
      return Array.from(bits.subarray(used - length, used), halfOf);
    };
    const tensor = (rows, columns) => (columns ? range(rows).map(() => next(columns)) : next(rows));
    return Object.fromEntries(layout.map(([name, ...shape]) => [name, tensor(...shape)]));
  }
  const count = sum(layout.map(([, rows]) => rows));
  const floats = new Float32Array(buffer, 0, count);
  const integers = new Int8Array(buffer, 4 * count);
  let [used, taken] = [0, 0];
  const row = (columns) => {
    const scale = floats[used++];
    taken += columns;
    return columns
      ? Array.from(integers.subarray(taken - columns, taken), (n) => n * scale)
      : scale;
  };
  return Object.fromEntries(
    layout.map(([name, rows, columns]) => [name, range(rows).map(() => row(columns))]),
  );
}

/** What a Linear makes of each row. */
function projected(rows, matrix, bias = null) {
  return rows.map((x) => matrix.map((w, i) => dot(w, x) + (bias ? bias[i] : 0)));
}

/** The weights of one query over the keys that it may attend to, or over all. */
function weightsOf(query, keys, mayAttend = null) {
  const scores = keys.map((key) => dot(query, key) / Math.sqrt(query.length));
  return softmax(scores, mayAttend && keys.map((_, k) => mayAttend(k)));
}

/** The sum of values, each times its weight. */
function mixed(weights, values) {
  const total = values[0].map(() => 0);
  weights.forEach((weight, k) => {
    if (weight) for (let i = 0; i < total.length; i++) total[i] += weight * values[k][i];
  });
  return total;
}
