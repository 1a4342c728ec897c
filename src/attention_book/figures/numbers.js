// What the models that run in a page compute with: their parameters, projections, the weights of a
// query. base.py puts this file before network.js and decoder.js.

/** The parameters by name; parameters.py says how they are stored. */
function unpack({ layout, parameters }) {
  const { buffer } = Uint8Array.from(atob(parameters), (sign) => sign.charCodeAt(0));
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

/** The weights of one query over the keys that it may attend to. */
function weightsOf(query, keys, mayAttend) {
  const scores = keys.map((key) => dot(query, key) / Math.sqrt(query.length));
  return softmax(
    scores,
    keys.map((_, k) => mayAttend(k)),
  );
}

/** The sum of values, each times its weight. */
function mixed(weights, values) {
  const total = values[0].map(() => 0);
  weights.forEach((weight, k) => {
    if (weight) for (let i = 0; i < total.length; i++) total[i] += weight * values[k][i];
  });
  return total;
}
