// The package's Tokenizer in JavaScript. base.py puts this file before story.js.

const [BEGIN, FIRST_BYTE, FIRST_PIECE] = [1, 3, 259];

/** From text to tokens and back, by the pieces after the bytes and the pairs that merge, first ones first. */
export function tokenizer({ pieces, merges }) {
  const numbers = new Map(pieces.map((piece, i) => [piece, FIRST_PIECE + i]));
  const pair = (left, right) => `${left.length} ${left}${right}`;
  const ranks = new Map(merges.map(([left, right], rank) => [pair(left, right), rank]));
  const spelled = (byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`;
  const bytes = (text) => [...new TextEncoder().encode(text)];
  const joined = (parts, [left, right]) => {
    const result = [];
    for (const part of parts) {
      if (part === right && result.at(-1) === left) result[result.length - 1] = left + right;
      else result.push(part);
    }
    return result;
  };
  /** The tokens of a text, in front of which a space is put where it begins a story. */
  const encode = (text, begins) => {
    let parts = [...(begins && text ? ` ${text}` : text)].flatMap((sign) =>
      numbers.has(sign) ? [sign] : bytes(sign).map(spelled),
    );
    for (;;) {
      let best = Infinity;
      for (let i = 1; i < parts.length; i++) {
        best = Math.min(best, ranks.get(pair(parts[i - 1], parts[i])) ?? Infinity);
      }
      if (best === Infinity) break;
      parts = joined(parts, merges[best]);
    }
    return parts.map((part) => numbers.get(part) ?? Number(part.slice(1, 5)) + FIRST_BYTE);
  };
  const inBytes = pieces.map(bytes);
  const bytesOf = (token) => {
    if (token < FIRST_BYTE) return [];
    return token < FIRST_PIECE ? [token - FIRST_BYTE] : inBytes[token - FIRST_PIECE];
  };
  /** The text that each token adds; a character of several bytes comes with its last. */
  const textsOf = (tokens) => {
    const reader = new TextDecoder("utf-8", { ignoreBOM: true });
    return tokens.map((token, i) =>
      reader.decode(Uint8Array.from(bytesOf(token)), { stream: i < tokens.length - 1 }),
    );
  };
  const named = (token) => {
    if (token < FIRST_BYTE) return "■";
    const byte = token - FIRST_BYTE;
    if (token < FIRST_PIECE && (byte < 32 || byte > 126) && byte !== 10) return spelled(byte);
    return textsOf([token])[0].replaceAll(" ", "␣").replaceAll("\n", "↵");
  };
  const names = range(FIRST_PIECE + pieces.length).map(named);
  /** A token as a reader sees it. */
  const nameOf = (token) => names[token];
  return { encode, textsOf, nameOf };
}
