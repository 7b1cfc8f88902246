// JSON as text: where a mistake is, and the same text with indentation. Values are
// never converted, so a number keeps all its digits.

// The first mistake in a text, or null: {message, line, column, at}.
export function jsonMistake(text) {
  if (text.trim() === "") return null;
  try {
    const value = JSON.parse(text);
    const isObject = typeof value === "object" && value !== null;
    if (isObject && !Array.isArray(value)) return null;
    return placed(text, 0, "The input has to be a JSON object");
  } catch (error) {
    return placed(text, position(text, error.message), plain(error.message));
  }
}

function placed(text, at, message) {
  if (at === null) return { message, line: null, column: null, at: null };
  const before = text.slice(0, at).split("\n");
  return { message, line: before.length, column: before.at(-1).length + 1, at };
}

// Each browser words the place in its own way.
function position(text, message) {
  const offset = /at position (\d+)/.exec(message);
  if (offset) return Math.min(Number(offset[1]), text.length);
  const place = /line (\d+) column (\d+)/.exec(message);
  if (!place) return /end of (JSON|data)|EOF/i.test(message) ? text.length : null;
  const lines = text.split("\n").slice(0, Number(place[1]) - 1);
  return lines.reduce((sum, line) => sum + line.length + 1, 0) + Number(place[2]) - 1;
}

function plain(message) {
  return message
    .replace(/^JSON\.parse: /, "")
    .replace(/ in JSON at position .*| at line \d+ column \d+.*/s, "")
    .replace(/, (\.\.\.)?".*" is not valid JSON$/s, "");
}

const TOKEN = /\s+|"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g;

// Valid JSON with one value a line.
export function indented(text) {
  let depth = 0;
  let out = "";
  let isEmpty = false;
  const line = () => `\n${"  ".repeat(depth)}`;
  for (const [token] of text.matchAll(TOKEN)) {
    if (token.trim() === "") continue;
    if (token === "}" || token === "]") {
      depth -= 1;
      out += isEmpty ? token : line() + token;
      isEmpty = false;
      continue;
    }
    if (isEmpty) out += line();
    isEmpty = token === "{" || token === "[";
    if (isEmpty) depth += 1;
    out += token === ":" ? ": " : token;
    if (token === ",") out += line();
  }
  return out;
}
