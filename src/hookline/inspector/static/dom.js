// Build the page. Text only ever becomes text nodes, and what would hide or reorder
// text (control characters, bidi overrides, lone surrogates) is shown as \u....

// Like the command line, with the letters that have no shape.
const HIDDEN =
  /(?![\t\n])[\p{Cc}\p{Cf}\p{Cn}\p{Co}\p{Cs}\p{Zl}\p{Zp}\p{DI}\u202f\u2800\u2d7f\u{16fe4}\u{1d159}]/gu;

// The text with everything that cannot be seen written out.
export function visible(text) {
  return String(text?.rawJSON ?? text).replace(HIDDEN, (found) =>
    found
      .split("")
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
      .join(""),
  );
}

// An element. Attributes: `class`, `onclick: function`, `hidden: true`, ...;
// null and false leave an attribute out. Children: strings, nodes, lists, null.
export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    setAttribute(node, name, value);
  }
  node.append(...nodes(children));
  return node;
}

function setAttribute(node, name, value) {
  if (value === null || value === undefined || value === false) return;
  if (typeof value === "function" && name.startsWith("on")) {
    node.addEventListener(name.slice(2), value);
  } else if (name === "style" || name.startsWith("on")) {
    throw new Error(`el() takes no ${name} attribute`);
  } else if (name === "href" && !isOwn(String(value))) {
    throw new Error("el() takes only addresses of this page");
  } else if (name === "value") {
    node.value = value;
  } else {
    node.setAttribute(name, value === true ? "" : String(value));
  }
}

// Addresses from data may lead anywhere: only paths of our own are links.
function isOwn(href) {
  return /^(#|\/(?![/\\]))/.test(href);
}

function nodes(children) {
  return children
    .flat(Infinity)
    .filter((child) => child !== null && child !== undefined && child !== false)
    .map((child) => (child instanceof Node ? child : visible(child)));
}

// Replace what an element shows.
export function fill(node, ...children) {
  node.replaceChildren(...nodes(children));
  return node;
}

export function heading(text, ...more) {
  return el("h1", { tabindex: "-1" }, text, ...more);
}

// Say something to a screen reader without moving the focus.
export function announce(text) {
  document.getElementById("announcer").textContent = visible(text);
}

const SIGNS = {
  allowed: "✓",
  changed: "±",
  ask: "?",
  blocked: "✕",
  stopped: "■",
  failed: "!",
  "would-block": "○",
};

export const VERDICTS = Object.keys(SIGNS);

// A verdict as a sign and a word; the colour only repeats it.
export function verdictBadge(verdict, word = verdict.replaceAll("-", " ")) {
  const known = Object.hasOwn(SIGNS, verdict) ? verdict : "other";
  const shape = SIGNS[known] ?? "·";
  const sign = el("span", { class: "sign", "aria-hidden": "true" }, shape);
  return el("span", { class: `badge verdict-${known}` }, sign, cut(word, 40));
}

// A neutral label, such as a mode or a type.
export function tag(text, title = null) {
  return el("span", { class: "tag", title }, text);
}

const CLOCK = new Intl.DateTimeFormat(undefined, {
  hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23",
});
const DAY = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
const LONG_AGO = new Intl.DateTimeFormat(undefined, {
  day: "numeric", month: "short", year: "numeric",
});
const WHOLE = new Intl.DateTimeFormat(undefined, {
  dateStyle: "full", timeStyle: "medium",
});

// The time of day, with the day if it was not today.
export function timeText(seconds) {
  const then = new Date(seconds * 1000);
  if (Number.isNaN(then.getTime())) return "unknown time";
  const now = new Date();
  if (then.toDateString() === now.toDateString()) return CLOCK.format(then);
  const near = then.getFullYear() === now.getFullYear();
  return `${(near ? DAY : LONG_AGO).format(then)}, ${CLOCK.format(then)}`;
}

export function time(seconds) {
  const then = new Date(seconds * 1000);
  if (Number.isNaN(then.getTime())) return el("span", {}, "unknown time");
  const node = el("time", { datetime: then.toISOString() }, timeText(seconds));
  // Formatting is slow, and hardly anybody asks.
  const describe = () => { node.title = WHOLE.format(then); };
  node.addEventListener("pointerenter", describe, { once: true });
  return node;
}

// Milliseconds in the unit that people would say.
export function duration(ms) {
  if (ms === null || ms === undefined || !Number.isFinite(ms)) return "–";
  if (ms < 9.95) return `${ms.toFixed(1)} ms`;
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  if (ms < 59_950) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

const NUMBER = new Intl.NumberFormat("en");

// 12345 as 12,345.
export function count(number) {
  return NUMBER.format(number);
}

// "1 event", "12 events".
export function plural(number, noun) {
  return `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
}

export function size(bytes) {
  if (bytes < 1024) return plural(bytes, "byte");
  const inKib = bytes / 1024;
  if (inKib < 1024) return `${inKib.toFixed(inKib < 10 ? 1 : 0)} KB`;
  return `${(inKib / 1024).toFixed(1)} MB`;
}

// Nothing to show, and what to do about it.
export function emptyState(title, ...children) {
  return el("section", { class: "state" }, el("h2", {}, title), ...children);
}

// What went wrong, and a way to try again.
export function errorState(error, retry = null) {
  const again = retry && el("button", { type: "button", onclick: retry }, "Try again");
  return el(
    "section",
    { class: "state state-error", role: "alert" },
    el("h2", {}, error.offline ? "Connection lost" : "That did not work"),
    el("p", {}, error.message),
    again,
  );
}

export function loadingState(text = "Loading…") {
  return el("p", { class: "state loading", role: "status" }, text);
}

// A command to type, with a button that copies it.
export function command(text) {
  return el("span", { class: "command" }, el("code", {}, text), copyButton(text));
}

// Copies a text, or what a function gives, exactly as it is.
export function copyButton(text, label = "Copy") {
  const button = el("button", { type: "button", class: "copy" }, label);
  button.addEventListener("click", async () => {
    const given = typeof text === "function" ? text() : text;
    const done = await copied(given);
    button.textContent = done ? "Copied" : "Press Ctrl+C";
    announce(done ? "Copied" : "Copying is not allowed here; select and copy the text");
    setTimeout(() => { button.textContent = label; }, 1600);
  });
  return button;
}

async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copiedBySelection(text);
  }
}

function copiedBySelection(text) {
  const area = el("textarea", { class: "hidden", "aria-hidden": "true" });
  area.value = text;
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  return done;
}

// A table. Columns: {name, class}; rows: lists of cells (strings or nodes).
export function table(columns, rows, caption = null) {
  const head = columns.map(({ name, class: kind }) =>
    el("th", { scope: "col", class: kind }, name),
  );
  const body = rows.map((cells) =>
    el("tr", {}, cells.map((cell, n) => el("td", { class: columns[n].class }, cell))),
  );
  return el(
    "table",
    {},
    caption && el("caption", { class: "hidden" }, caption),
    el("thead", {}, el("tr", {}, head)),
    el("tbody", {}, body),
  );
}

const FIRST_PIECE = 4000;
const PIECE = 64_000;

// A text as it is, of which a long one is shown in pieces.
export function longText(text, label = "Text") {
  const shown = el("pre", { class: "text", tabindex: "0", "aria-label": label });
  if (text.length <= FIRST_PIECE * 1.25) return fill(shown, text);
  const rest = el("p", { class: "more" });
  let end = 0;
  const show = (length) => {
    const stop = pieceEnd(text, end + length);
    shown.append(visible(text.slice(end, stop)));
    end = stop;
    const left = text.length - end;
    if (left === 0) return fill(rest, `All ${plural(text.length, "character")} shown.`);
    const next = el(
      "button",
      { type: "button", onclick: () => show(PIECE) },
      left > PIECE ? `Show ${count(PIECE)} more` : "Show all",
    );
    return fill(rest, next, ` ${plural(left, "character")} more`);
  };
  show(FIRST_PIECE);
  return el("div", { class: "long" }, shown, rest, copyButton(text));
}

// Never between the two halves of one character.
function pieceEnd(text, wanted) {
  if (wanted >= text.length) return text.length;
  const unit = text.charCodeAt(wanted - 1);
  return unit >= 0xd800 && unit < 0xdc00 ? wanted + 1 : wanted;
}

const ENTRIES = 100;
const LINE = 300;
const OPENED = 200;
const OPENED_AT_ONCE = 30;
const OPENED_DEPTH = 6;

// A JSON value as a tree: what is deep or long is built when it is opened.
export function jsonView(value, label = "JSON") {
  const attributes = { class: "json", role: "group", "aria-label": label };
  return el("div", attributes, treeOf(value, { left: OPENED }, 0));
}

function isLeaf(value) {
  return value === null || typeof value !== "object" || JSON.isRawJSON?.(value);
}

// `room`: how many values may still be opened from the start.
function treeOf(value, room, depth) {
  if (isLeaf(value)) return leaf(value);
  const isList = Array.isArray(value);
  const keys = isList ? null : Object.keys(value);
  const length = isList ? value.length : keys.length;
  if (length === 0) return el("span", { class: "json-empty" }, isList ? "[ ]" : "{ }");
  const list = el("ul", { class: isList ? "json-list" : "json-object" });
  const entry = (n) => {
    const key = isList ? n : keys[n];
    const name = el("span", { class: "json-key" }, cut(String(key), 200));
    return el("li", {}, name, el("span", { class: "json-colon" }, ": "),
      branch(value[key], room, depth + 1));
  };
  appendInPieces(list, length, entry);
  return list;
}

function branch(value, room, depth) {
  if (isLeaf(value)) return leaf(value);
  const isList = Array.isArray(value);
  const length = isList ? value.length : Object.keys(value).length;
  if (length === 0) return el("span", { class: "json-empty" }, isList ? "[ ]" : "{ }");
  const noun = isList ? plural(length, "item") : plural(length, "field");
  const isShort = length <= Math.min(room.left, OPENED_AT_ONCE);
  const isOpen = isShort && depth < OPENED_DEPTH;
  if (isOpen) room.left -= length;
  const details = el("details", { open: isOpen },
    el("summary", {}, el("span", { class: "json-count" }, noun)));
  const build = () => {
    if (details.open && details.childElementCount === 1) {
      details.append(treeOf(value, room, depth));
    }
  };
  details.addEventListener("toggle", build);
  build();
  return details;
}

// Append `length` entries, a hundred at a time, with a button for the next.
export function appendInPieces(list, length, entry, piece = ENTRIES) {
  let shown = 0;
  const show = () => {
    const end = Math.min(shown + piece, length);
    while (shown < end) list.append(entry(shown++));
    if (shown === length) return;
    const more = el("button", { type: "button" },
      `Show ${count(Math.min(piece, length - shown))} more of ${count(length)}`);
    const item = el(list.tagName === "TBODY" ? "tr" : "li", { class: "more" }, more);
    more.addEventListener("click", () => {
      item.remove();
      show();
      list.children[shown - 1]?.scrollIntoView({ block: "nearest" });
    });
    list.append(item);
  };
  show();
}

function leaf(value) {
  if (typeof value !== "string") {
    const kind = value === null ? "null" : typeof value;
    return el("span", { class: `json-${kind}` }, value?.rawJSON ?? String(value));
  }
  if (value.length <= LINE && !value.includes("\n")) {
    return el("span", { class: "json-string" }, value === "" ? '""' : value);
  }
  return longText(value, "Long text");
}

// At most so many characters, and a sign if some were left out.
export function cut(text, length) {
  return text.length <= length ? text : `${text.slice(0, pieceEnd(text, length))}…`;
}
