// What changed between two values: text by lines with the words marked, JSON by the
// paths of its keys. The work is bounded: long texts are compared more coarsely.

import { appendInPieces, count, cut, el, fill, longText, plural } from "./dom.js";

const TABLE_CELLS = 1_000_000;
const WORDS = 400;
const LINES = 100_000;
const CONTEXT = 3;
const NODES = 200_000;
const LONG = 160;
const FIELDS = { "=": "same", "-": "removed", "+": "added" };

// The differences as an element.
export function diffView(before, after) {
  if (typeof before === "string" && typeof after === "string") {
    return textDiff(before, after);
  }
  const found = jsonChanges(before, after);
  const list = el("ul", { class: "diff-paths" });
  appendInPieces(list, found.changes.length, (n) => pathChange(found.changes[n]), 50);
  return el("div", { class: "diff" }, list, unchangedNote(found));
}

function unchangedNote({ unchanged, stopped }) {
  if (stopped) {
    return el("p", { class: "more" },
      `Only the first ${count(NODES)} values were compared.`);
  }
  return unchanged > 0 &&
    el("p", { class: "more" }, `${plural(unchanged, "other value")} unchanged.`);
}

function pathChange({ path, kind, before, after }) {
  const name = el("p", { class: "diff-path" },
    el("code", {}, cut(path || "the whole value", 300)), " ",
    el("span", { class: `diff-kind ${kind}` }, kind));
  if (kind === "changed" && isLongText(before, after)) {
    return el("li", {}, name, textDiff(before, after));
  }
  return el("li", {}, name,
    kind !== "added" && value("del", "−", before),
    kind !== "removed" && value("ins", "+", after));
}

function isLongText(before, after) {
  const isLong = (text) => text.length > LONG || text.includes("\n");
  return typeof before === "string" && typeof after === "string" &&
    (isLong(before) || isLong(after));
}

function value(tag, sign, shown) {
  const text = typeof shown === "string" && shown ? shown : jsonText(shown);
  return el(tag, { class: "diff-value" },
    el("span", { class: "diff-sign" }, sign), longText(text, "Value"));
}

function jsonText(shown) {
  return JSON.stringify(shown, null, 2) ?? "nothing";
}

// Changes by path, in order: {path, kind: added | removed | changed, before, after}.
export function jsonChanges(before, after) {
  const found = { changes: [], unchanged: 0, stopped: false, visited: 0 };
  compare(before, after, "", found);
  return found;
}

function compare(before, after, path, found) {
  found.visited += 1;
  if (found.visited > NODES) {
    found.stopped = true;
  } else if (isObject(before) && isObject(after)) {
    compareObjects(before, after, path, found);
  } else if (Array.isArray(before) && Array.isArray(after)) {
    compareLists(before, after, path, found);
  } else if (same(before, after)) {
    found.unchanged += 1;
  } else if (before === null || before === undefined) {
    found.changes.push({ path, kind: "added", after });
  } else if (after === null || after === undefined) {
    found.changes.push({ path, kind: "removed", before });
  } else {
    found.changes.push({ path, kind: "changed", before, after });
  }
}

function compareObjects(before, after, path, found) {
  const keys = new Set([...Object.keys(before), ...Object.keys(after)]);
  for (const key of keys) {
    if (found.stopped) return;
    const name = /^[\w-]+$/.test(key) ? key : JSON.stringify(key);
    compareEntry(before, after, key, path ? `${path}.${name}` : name, found);
  }
}

function compareLists(before, after, path, found) {
  // An item that was put in or taken out must not make all later ones look changed.
  const [start, end] = commonEnds(before, after, same);
  found.unchanged += start + end;
  const length = Math.max(before.length, after.length) - end;
  for (let n = start; n < length && !found.stopped; n += 1) {
    const old = n < before.length - end ? before : [];
    const young = n < after.length - end ? after : [];
    compareEntry(old, young, n, `${path}[${n}]`, found);
  }
}

function compareEntry(before, after, key, path, found) {
  if (!Object.hasOwn(before, key)) {
    found.changes.push({ path, kind: "added", after: after[key] });
  } else if (!Object.hasOwn(after, key)) {
    found.changes.push({ path, kind: "removed", before: before[key] });
  } else {
    compare(before[key], after[key], path, found);
  }
}

function isObject(given) {
  return typeof given === "object" && given !== null && !Array.isArray(given) &&
    !JSON.isRawJSON?.(given);
}

function same(one, other) {
  return one === other || (typeof one === "object" && typeof other === "object" &&
    JSON.stringify(one) === JSON.stringify(other));
}

function commonEnds(one, other, equal) {
  const most = Math.min(one.length, other.length);
  let start = 0;
  while (start < most && equal(one[start], other[start])) start += 1;
  let end = 0;
  while (end < most - start && equal(one.at(-1 - end), other.at(-1 - end))) end += 1;
  return [start, end];
}

// The steps from one list to the other: ["=" | "-" | "+", item].
export function steps(one, other) {
  const [start, end] = commonEnds(one, other, Object.is);
  const middle = between(one.slice(start, one.length - end),
    other.slice(start, other.length - end));
  return [
    ...one.slice(0, start).map((item) => ["=", item]),
    ...middle,
    ...one.slice(one.length - end).map((item) => ["=", item]),
  ];
}

function between(one, other) {
  if (one.length === 0 || other.length === 0) return replaced(one, other);
  if (one.length * other.length <= TABLE_CELLS) return byTable(one, other);
  const anchors = commonUnique(one, other);
  if (anchors.length === 0) return replaced(one, other);
  const found = [];
  let [left, right] = [0, 0];
  for (const [n, m] of [...anchors, [one.length, other.length]]) {
    for (const step of small(one.slice(left, n), other.slice(right, m))) {
      found.push(step);
    }
    if (n < one.length) found.push(["=", one[n]]);
    [left, right] = [n + 1, m + 1];
  }
  return found;
}

function small(one, other) {
  return one.length * other.length <= TABLE_CELLS / 10
    ? byTable(one, other) : replaced(one, other);
}

function replaced(one, other) {
  return [...one.map((item) => ["-", item]), ...other.map((item) => ["+", item])];
}

// The longest common subsequence, by the table of its lengths.
function byTable(one, other) {
  const width = other.length + 1;
  const lengths = new Uint32Array((one.length + 1) * width);
  for (let n = one.length - 1; n >= 0; n -= 1) {
    for (let m = other.length - 1; m >= 0; m -= 1) {
      const at = n * width + m;
      lengths[at] = one[n] === other[m]
        ? lengths[at + width + 1] + 1
        : Math.max(lengths[at + width], lengths[at + 1]);
    }
  }
  const found = [];
  let [n, m] = [0, 0];
  while (n < one.length && m < other.length) {
    const at = n * width + m;
    if (one[n] === other[m]) {
      found.push(["=", one[n]]);
      n += 1;
      m += 1;
    } else if (lengths[at + width] >= lengths[at + 1]) {
      found.push(["-", one[n]]);
      n += 1;
    } else {
      found.push(["+", other[m]]);
      m += 1;
    }
  }
  return [...found, ...replaced(one.slice(n), other.slice(m))];
}

// Places of items that are once in each list, in an order that both have.
function commonUnique(one, other) {
  const once = (list) => {
    const places = new Map();
    list.forEach((item, n) => places.set(item, places.has(item) ? -1 : n));
    return places;
  };
  const there = once(other);
  const pairs = [];
  for (const [item, n] of once(one)) {
    const m = there.get(item) ?? -1;
    if (n >= 0 && m >= 0) pairs.push([n, m]);
  }
  return longestRise(pairs);
}

function longestRise(pairs) {
  const tails = [];
  const previous = new Map();
  for (const pair of pairs) {
    let [low, high] = [0, tails.length];
    while (low < high) {
      const half = (low + high) >> 1;
      if (tails[half][1] < pair[1]) low = half + 1;
      else high = half;
    }
    previous.set(pair, low > 0 ? tails[low - 1] : null);
    tails[low] = pair;
  }
  const found = [];
  for (let one = tails.at(-1); one; one = previous.get(one)) found.push(one);
  return found.reverse();
}

// A text diff by lines; what did not change is folded.
export function textDiff(before, after) {
  const hunks = hunksOf(before.split("\n"), after.split("\n"));
  const box = el("div", { class: "diff-text", role: "group", "aria-label": "Changes" });
  const list = el("ol", { class: "diff-lines" });
  appendInPieces(list, hunks.length, (n) => hunkItem(hunks[n]), 40);
  return fill(box, list);
}

// Runs of unchanged lines and of changes: {kind, same, removed, added}.
function hunksOf(one, other) {
  const [start, end] = commonEnds(one, other, Object.is);
  const stop = one.length - end;
  const hunks = start > 0 ? [sameHunk(one.slice(0, start))] : [];
  hunks.push(...changedHunks(one.slice(start, stop),
    other.slice(start, other.length - end)));
  if (end > 0) hunks.push(sameHunk(one.slice(stop)));
  hunks.forEach((hunk, n) => {
    hunk.isFirst = n === 0;
    hunk.isLast = n === hunks.length - 1;
  });
  return hunks;
}

function changedHunks(removed, added) {
  if (removed.length + added.length > LINES) {
    return [{ kind: "change", same: [], removed, added }];
  }
  const hunks = [];
  for (const [sign, line] of between(removed, added)) {
    const kind = sign === "=" ? "same" : "change";
    if (hunks.at(-1)?.kind !== kind) hunks.push({ ...sameHunk([]), kind });
    hunks.at(-1)[FIELDS[sign]].push(line);
  }
  return hunks;
}

function sameHunk(lines) {
  return { kind: "same", same: lines, removed: [], added: [] };
}

function hunkItem(hunk) {
  const lines = el("ul", {});
  if (hunk.kind === "same") {
    fillSame(lines, hunk);
  } else {
    const length = hunk.removed.length + hunk.added.length;
    appendInPieces(lines, length, changedLine(hunk.removed, hunk.added), 200);
  }
  return el("li", {}, lines);
}

function fillSame(lines, { same: kept, isFirst, isLast }) {
  const before = isFirst ? 0 : CONTEXT;
  const after = isLast ? 0 : CONTEXT;
  const folded = kept.length - before - after;
  const show = (from, to) =>
    kept.slice(from, to).map((line) => lineItem("=", [line]));
  if (folded < 2) {
    lines.append(...show(0, kept.length));
    return;
  }
  const more = el("li", { class: "diff-fold" });
  const button = el("button", { type: "button", class: "quiet" },
    `${plural(folded, "unchanged line")}`);
  button.addEventListener("click", () => {
    const rest = el("ul", {});
    appendInPieces(rest, folded, (n) => lineItem("=", [kept[before + n]]), 500);
    more.replaceWith(el("li", {}, rest));
  });
  lines.append(...show(0, before), fill(more, button),
    ...(after ? show(kept.length - after) : []));
}

// Builds a line by its number, so that only those in sight are compared by words.
function changedLine(removed, added) {
  const paired = Math.min(removed.length, added.length);
  const marks = new Map();
  const marked = (n) => {
    if (!marks.has(n)) marks.set(n, wordMarks(removed[n], added[n]));
    return marks.get(n);
  };
  return (number) => {
    const isRemoved = number < removed.length;
    const n = isRemoved ? number : number - removed.length;
    const kind = isRemoved ? "removed" : "added";
    const whole = (isRemoved ? removed : added)[n];
    return lineItem(isRemoved ? "-" : "+", n < paired ? marked(n)[kind] : [whole]);
  };
}

function wordMarks(before, after) {
  const [one, other] = [words(before), words(after)];
  if (one.length > WORDS || other.length > WORDS) {
    return { removed: [before], added: [after] };
  }
  const found = steps(one, other);
  const shared = found.filter(([sign, word]) => sign === "=" && word.trim()).length;
  // Lines without a word in common are two lines, not a changed one.
  if (shared === 0) return { removed: [before], added: [after] };
  return { removed: joined(found, "-", "del"), added: joined(found, "+", "ins") };
}

function words(line) {
  return line.length > 20_000 ? [line] : line.match(/[\p{L}\p{N}_]+|\s+|./gsu) ?? [];
}

function joined(found, wanted, tag) {
  const parts = [];
  for (const [sign, word] of found) {
    if (sign !== "=" && sign !== wanted) continue;
    const last = parts.at(-1);
    if (last?.sign === sign) last.text += word;
    else parts.push({ sign, text: word });
  }
  return parts.map(({ sign, text }) => (sign === "=" ? text : el(tag, {}, text)));
}

const SIGNS = { "=": " ", "-": "−", "+": "+" };

function lineItem(sign, parts) {
  const shown = parts.length === 1 && typeof parts[0] === "string"
    ? lineText(parts[0]) : el("span", { class: "diff-content" }, parts);
  return el("li", { class: `diff-line ${FIELDS[sign]}` },
    el("span", { class: "diff-sign", "aria-label": FIELDS[sign] }, SIGNS[sign]), shown);
}

function lineText(line) {
  if (line.length > 2000) return longText(line, "Long line");
  return el("span", { class: "diff-content" }, line);
}
