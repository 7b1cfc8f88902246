// A table of which only the rows in sight exist, if it is long. All rows have one
// height, so that a list of any length scrolls as quickly as a short one.

import { el } from "./dom.js";

const AROUND = 12;
// A short list is there as a whole, for the browser's own search and for other tools.
const SHORT = 300;

export class VirtualRows {
  // `build(item)` makes the <tr> of an item; `settled(last, top)` is called after
  // each update, with the last row that is near and where the reader is.
  constructor(scroller, body, columns, build, settled) {
    this.scroller = scroller;
    this.body = body;
    this.build = build;
    this.settled = settled;
    this.items = [];
    this.index = new Map();
    this.shown = new Map();
    this.above = spacer(columns);
    this.below = spacer(columns);
    this.isWaiting = false;
    this.height = 36;
  }

  // The height of a row is the style's, and another one at phone width.
  measure() {
    const given = getComputedStyle(this.scroller).getPropertyValue("--row");
    this.height = parseFloat(given) || 36;
  }

  // Show other items; what is in sight stays where it is.
  set(items) {
    this.measure();
    const top = this.scroller.scrollTop;
    const height = this.height;
    const anchor = top > 0 ? this.items[Math.floor(top / height)] : null;
    const rest = top % height;
    this.items = items;
    this.index = new Map(items.map((item, n) => [item.key, n]));
    this.update();
    const at = anchor ? this.index.get(anchor.key) : undefined;
    if (at !== undefined) {
      this.scroller.scrollTop = at * height + rest;
      this.update();
    }
  }

  // Build the rows in sight, and take the others away.
  update() {
    const { height, items: { length } } = this;
    const top = this.scroller.scrollTop;
    const last = Math.ceil((top + this.scroller.clientHeight) / height) + AROUND;
    const first = Math.floor(top / height) - AROUND;
    const isShort = length <= SHORT;
    const from = isShort ? 0 : Math.max(Math.min(first, length - AROUND), 0);
    const to = isShort ? length : Math.max(Math.min(last, length), from);
    this.above.remove();
    this.below.remove();
    this.keep(from, to);
    if (from > 0) this.body.prepend(sized(this.above, from * height));
    if (to < length) this.body.append(sized(this.below, (length - to) * height));
    this.settled?.(last, top);
  }

  later() {
    if (this.isWaiting) return;
    this.isWaiting = true;
    requestAnimationFrame(() => {
      this.isWaiting = false;
      this.update();
    });
  }

  keep(from, to) {
    const wanted = new Map(this.items.slice(from, to).map((item) => [item.key, item]));
    for (const [key, { item, row }] of this.shown) {
      if (wanted.has(key) && isSame(item, wanted.get(key))) continue;
      row.remove();
      this.shown.delete(key);
    }
    let next = this.body.firstChild;
    for (let n = from; n < to; n += 1) {
      const row = this.element(this.items[n]);
      row.setAttribute("aria-rowindex", String(n + 2));
      // A row that stays is not moved: that would take the focus away.
      if (row !== next) this.body.insertBefore(row, next);
      else next = next.nextSibling;
    }
  }

  element(item) {
    const known = this.shown.get(item.key);
    if (known) return known.row;
    const row = this.build(item);
    this.shown.set(item.key, { item, row });
    return row;
  }

  // The element of an item, scrolled into sight.
  reveal(key) {
    const at = this.index.get(key);
    if (at === undefined) return null;
    const height = this.height;
    const head = this.scroller.querySelector("thead")?.offsetHeight ?? 0;
    const top = at * height;
    const room = this.scroller.clientHeight - head;
    if (top < this.scroller.scrollTop) this.scroller.scrollTop = top;
    else if (top + height > this.scroller.scrollTop + room) {
      this.scroller.scrollTop = top + height - room;
    }
    this.update();
    return this.shown.get(key)?.row ?? null;
  }
}

function isSame(one, other) {
  return one === other || (one.kind === "event" && one.row === other.row &&
    one.depth === other.depth && one.call === other.call);
}

function spacer(columns) {
  return el("tr", { class: "spacer", "aria-hidden": "true" },
    el("td", { colspan: columns }));
}

function sized(row, pixels) {
  row.firstChild.style.height = `${pixels}px`;
  return row;
}
