// The timeline: events live as they happen, and back through the journal.

import { address, get, stream } from "./api.js";
import { navigate, notice, remember } from "./app.js";
import {
  announce, el, emptyState, errorState, fill, heading, plural, timeText,
} from "./dom.js";
import { fillFacets, filterForm, readFilters } from "./filters.js";
import { arrange } from "./groups.js";
import { COLUMNS, eventRow, groupRow, noEvents } from "./timeline_rows.js";
import { VirtualRows } from "./virtual.js";

const PAGE = 200;
const NEAR_END = 60;
const MOST_ROWS = 100_000;
const ENOUGH = 50;
const MOST_SEARCHES = 50;
const STOPPED = "Connection lost. Check that 'hookline inspect' is still running";
const ANNOUNCE_MS = 4000;
const STEPS = { j: 1, k: -1 };
const ROW_STEPS = { ArrowDown: 1, ArrowUp: -1, PageDown: 15, PageUp: -15 };

// What was shown last, so that going back shows the same.
let kept = null;

// The address of the timeline as it was shown last.
export function backToTimeline() {
  return kept?.path ?? "/";
}

export async function show(root, url, signal) {
  const view = new Timeline(root, url, signal);
  await view.start();
}

class Timeline {
  constructor(root, url, signal) {
    this.root = root;
    this.signal = signal;
    signal.addEventListener("abort", () => this.loading?.abort());
    this.filters = readFilters(url);
    this.isFlat = url.searchParams.get("flat") === "1";
    this.rows = [];
    this.fresh = [];
    this.ids = new Set();
    this.closed = new Set();
    this.next = null;
    this.selected = null;
    this.isPaused = false;
    this.lost = null;
    this.loading = null;
  }

  get path() {
    return address("/", { ...this.filters, flat: this.isFlat ? 1 : null });
  }

  async start() {
    this.build();
    const earlier = kept?.path === this.path && kept.isLoaded ? kept : null;
    kept = this;
    if (earlier) this.resume(earlier);
    else await this.reload();
    if (!this.signal.aborted) this.listen();
    fillFacets(this.form, this.signal);
  }

  // Parts of the page

  build() {
    this.form = filterForm(this.filters, (filters, isTyping) =>
      this.filter(filters, isTyping), this.signal);
    this.state = el("p", { class: "live", role: "status" });
    this.pause = el("button", { type: "button", class: "quiet", "aria-pressed": "false",
      onclick: () => this.togglePause() }, "Pause");
    this.grouping = el("button", { type: "button", class: "quiet",
      "aria-pressed": String(!this.isFlat), title: "By session, turn and tool call",
      onclick: () => this.toggleGroups() }, "Groups");
    this.newer = el("button", { type: "button", class: "primary newer", hidden: true,
      "aria-keyshortcuts": "n", onclick: () => this.showFresh() });
    this.list = el("div", { class: "timeline-list" });
    fill(this.root,
      el("div", { class: "timeline-head" }, heading("Timeline"), this.state,
        el("span", { class: "row" }, this.grouping, this.pause)),
      this.form, el("div", { class: "timeline-frame" }, this.newer, this.list));
    this.buildTable();
    document.addEventListener("keydown", (event) => this.pressKey(event),
      { signal: this.signal });
    window.addEventListener("resize", () => {
      this.virtual.measure();
      this.virtual.later();
    }, { signal: this.signal });
  }

  buildTable() {
    // The roles hold where the layout of a phone takes those of the elements away.
    const head = COLUMNS.map(({ name, class: kind }) =>
      el("th", { scope: "col", role: "columnheader", class: kind }, name));
    this.body = el("tbody", { role: "rowgroup" });
    this.table = el("table", { class: "timeline", role: "table",
      "aria-label": "Events, newest first" },
    el("thead", { role: "rowgroup" },
      el("tr", { role: "row", "aria-rowindex": "1" }, head)), this.body);
    this.end = el("div", { class: "timeline-end" });
    this.scroller = el("div", { class: "timeline-scroller" }, this.table, this.end);
    this.virtual = new VirtualRows(this.scroller, this.body, COLUMNS.length,
      (item) => this.row(item), (...at) => this.settled(...at));
    this.scroller.addEventListener("scroll", () => this.virtual.later());
    this.body.addEventListener("click", (event) => this.click(event));
    fill(this.list, this.scroller);
  }

  // Loading

  async reload() {
    const own = this.begin();
    this.rows = [];
    this.fresh = [];
    this.ids = new Set();
    this.next = null;
    this.newest = 0;
    this.isLoaded = false;
    this.showNewer();
    try {
      if (Object.keys(this.filters).length > 0) await this.noteNewest(own.signal);
      await this.load(own.signal);
    } catch (error) {
      if (error.name !== "AbortError") {
        fill(this.list, errorState(error, () => this.restart()));
      }
      return;
    } finally {
      this.done(own);
    }
    this.isLoaded = true;
    this.scroller.scrollTop = 0;
    this.arrange();
    this.searchOn(MOST_SEARCHES);
  }

  // A search ends early to answer soon; until enough is found it goes on by itself.
  async searchOn(left) {
    const isEnough = this.isComplete || this.next === null || this.rows.length >= ENOUGH;
    if (isEnough || left === 0 || this.loading || this.signal.aborted) return;
    const place = this.next;
    await this.loadOlder();
    if (this.next !== place) await this.searchOn(left - 1);
  }

  // One request at a time; a later one replaces it.
  begin() {
    this.loading?.abort();
    this.loading = new AbortController();
    return this.loading;
  }

  done(own) {
    if (this.loading === own) this.loading = null;
  }

  // Where the stream starts, if perhaps no event matches: later ones are not listed.
  async noteNewest(signal) {
    const { events } = await get("/api/events", { limit: 1 }, signal);
    this.newest = events[0]?.id ?? 0;
  }

  async restart() {
    await this.reload();
    this.listen();
  }

  resume(earlier) {
    for (const name of ["rows", "fresh", "ids", "closed", "next", "selected", "newest",
      "isLoaded", "isPaused", "isComplete", "searchedTo"]) this[name] = earlier[name];
    this.arrange();
    this.scroller.scrollTop = earlier.top ?? 0;
    this.virtual.update();
    this.showNewer();
  }

  async load(signal) {
    const params = { ...this.filters, before: this.next, limit: PAGE };
    const page = await get("/api/events", params, signal);
    signal.throwIfAborted();
    const unknown = page.events.filter((row) => !this.ids.has(row.id));
    for (const row of unknown) this.ids.add(row.id);
    this.rows = this.rows.concat(unknown);
    this.next = page.next;
    this.isComplete = page.complete;
    this.searchedTo = page.searched_to;
  }

  async loadOlder() {
    if (this.loading || this.next === null) return;
    const own = this.begin();
    fill(this.end, this.isComplete ? "Loading older events…"
      : `${this.reach} Searching on…`);
    try {
      await this.load(own.signal);
      this.arrange();
    } catch (error) {
      if (error.name === "AbortError") return;
      fill(this.end, el("p", {}, error.message), this.moreButton("Try again"));
    } finally {
      this.done(own);
    }
  }

  // Live

  listen() {
    this.stopListening?.();
    const after = Math.max(this.newest, this.fresh[0]?.id ?? 0, this.rows[0]?.id ?? 0);
    this.stopListening = stream("/api/events/stream", { ...this.filters, after }, {
      open: () => this.showState(null),
      lost: () => this.explainLoss(),
      event: (row) => this.receive(row),
      // There is another journal, perhaps the first one.
      reset: () => this.restart().then(() => this.say(this.rows.length)),
      settings: (data) => notice(data?.errors ?? [], "error"),
    }, this.signal);
  }

  // A stream does not say why it ended: perhaps the server has another token now.
  async explainLoss() {
    const why = await get("/api/overview", {}, this.signal).then(() => STOPPED,
      (error) => (error.offline ? STOPPED : error.message));
    if (!this.signal.aborted) this.showState(why);
  }

  receive(row) {
    if (row === null || this.ids.has(row.id)) return;
    this.ids.add(row.id);
    this.fresh.unshift(row);
    if (this.frame) return;
    // Many may come at once: they are shown together.
    this.frame = requestAnimationFrame(() => {
      this.frame = null;
      if (this.isReading) this.showNewer();
      else this.showFresh();
    });
  }

  // Whether new rows would move what somebody looks at.
  get isReading() {
    return this.isPaused || this.scroller.scrollTop > this.virtual.height / 2 ||
      this.body.contains(document.activeElement);
  }

  showFresh() {
    const number = this.fresh.length;
    this.rows = this.fresh.concat(this.rows);
    this.fresh = [];
    if (this.rows.length > MOST_ROWS) this.forgetOldest();
    this.scroller.scrollTop = 0;
    this.arrange();
    this.showNewer();
    this.say(number);
  }

  // A page that stays open for weeks must not grow forever.
  forgetOldest() {
    this.rows = this.rows.slice(0, MOST_ROWS / 2);
    this.ids = new Set(this.rows.map((row) => row.id));
    this.next = this.rows.at(-1).id;
    this.isComplete = true;
  }

  showNewer() {
    const number = this.fresh.length;
    this.newer.hidden = number === 0;
    this.newer.textContent = `↑ ${plural(number, "new event")}`;
    this.say(number);
  }

  say(number) {
    if (number === 0 || this.saying) return;
    this.saying = setTimeout(() => { this.saying = null; }, ANNOUNCE_MS);
    announce(plural(number, "new event"));
  }

  togglePause() {
    this.isPaused = !this.isPaused;
    if (!this.isPaused && this.fresh.length > 0) this.showFresh();
    this.showState();
  }

  showState(lost = this.lost) {
    this.lost = lost;
    const [kind, text] = lost !== null ? ["lost", `${lost.replace(/\.$/, "")}. Trying again…`]
      : this.isPaused ? ["paused", "Paused"] : ["on", "Live"];
    this.state.className = `live live-${kind}`;
    fill(this.state, text);
    this.pause.textContent = this.isPaused ? "Go on" : "Pause";
    this.pause.setAttribute("aria-pressed", String(this.isPaused));
  }

  // Filters and groups

  async filter(filters, isTyping) {
    if (address("/", filters) === address("/", this.filters)) return;
    this.filters = filters;
    remember(this.path, { replace: isTyping && this.wasTyping });
    this.wasTyping = isTyping;
    await this.restart();
    announce(this.rows.length === 0 ? "No matching events"
      : `${plural(this.rows.length, "event")}${this.next === null ? "" : " or more"}`);
  }

  toggleGroups() {
    this.isFlat = !this.isFlat;
    remember(this.path, { replace: true });
    this.grouping.setAttribute("aria-pressed", String(!this.isFlat));
    this.arrange();
  }

  toggleGroup(key) {
    if (!this.closed.delete(key)) this.closed.add(key);
    this.arrange();
    this.focusItem(key);
  }

  // What is shown

  arrange() {
    const hadFocus = this.body.contains(document.activeElement);
    if (this.rows.length === 0 && this.next === null) return this.showNothing();
    if (!this.scroller.isConnected) fill(this.list, this.scroller);
    const items = arrange(this.rows, !this.isFlat, this.closed);
    this.table.setAttribute("aria-rowcount",
      String(this.next === null ? items.length + 1 : -1));
    this.virtual.set(items);
    this.showEnd();
    if (hadFocus && !this.body.contains(document.activeElement)) {
      this.virtual.shown.get(this.selected)?.row.querySelector("a, button").focus();
    }
    return undefined;
  }

  showNothing() {
    const isFiltered = Object.keys(this.filters).length > 0;
    fill(this.list, isFiltered ? this.noMatch() : noEvents());
  }

  noMatch() {
    return emptyState("No matching events",
      el("p", {}, "No recorded event matches these filters. New ones will show here."),
      el("a", { class: "button", href: "/" }, "Clear filters"));
  }

  showEnd() {
    if (this.next === null) {
      const number = plural(this.rows.length, "event");
      return fill(this.end, `No older events. ${number} shown.`);
    }
    if (this.isComplete) return fill(this.end, this.moreButton("Older events"));
    return fill(this.end, el("p", {}, this.reach), this.moreButton("Go on"));
  }

  get reach() {
    const until = this.searchedTo ? timeText(this.searchedTo) : "here";
    return `Searched back to ${until}.`;
  }

  moreButton(text) {
    return el("button", { type: "button", onclick: () => this.loadOlder() }, text);
  }

  settled(last, top) {
    const isNear = last >= this.virtual.items.length - NEAR_END;
    // Only when the reader moves: in groups, older rows may all be added further up.
    const hasMoved = top !== this.top;
    this.top = top;
    if (isNear && hasMoved && this.isComplete) this.loadOlder();
    this.markTabStop();
  }

  row(item) {
    return item.kind === "event" ? eventRow(item) : groupRow(item);
  }

  click(event) {
    const row = event.target.closest("tr[data-key]");
    if (!row || event.defaultPrevented) return;
    this.selected = row.dataset.key;
    if (row.classList.contains("group")) return this.toggleGroup(row.dataset.key);
    const isLink = event.target.closest("a");
    if (isLink || event.button !== 0 || getSelection().toString()) return undefined;
    return navigate(row.querySelector("a").getAttribute("href"));
  }

  // Keyboard

  pressKey(event) {
    const isPlain = !event.ctrlKey && !event.metaKey && !event.altKey;
    if (event.defaultPrevented || !isPlain) return;
    if (event.target.closest?.("input, textarea, select, dialog")) return;
    if (this.act(event)) event.preventDefault();
  }

  act({ key, target }) {
    const isRow = target.closest?.("tr[data-key]") !== null;
    const step = STEPS[key] ?? (isRow ? ROW_STEPS[key] : undefined);
    if (step) return this.move(step);
    if (key === "n" && this.fresh.length > 0) return this.showFresh() ?? true;
    if (isRow && key === "Home") return this.focusAt(0);
    if (isRow && key === "End") return this.focusAt(this.virtual.items.length - 1);
    if (isRow && (key === "ArrowLeft" || key === "ArrowRight")) {
      return this.fold(key === "ArrowLeft");
    }
    return false;
  }

  move(step) {
    const at = this.virtual.index.get(this.selected);
    const first = Math.ceil(this.scroller.scrollTop / this.virtual.height);
    return this.focusAt(at === undefined ? first : at + step);
  }

  focusAt(wanted) {
    const { items } = this.virtual;
    if (items.length === 0) return false;
    const at = Math.min(Math.max(wanted, 0), items.length - 1);
    this.focusItem(items[at].key);
    return true;
  }

  focusItem(key) {
    this.selected = key;
    const row = this.virtual.reveal(key);
    this.markTabStop();
    row?.querySelector("a, button")?.focus({ preventScroll: true });
  }

  fold(isClosing) {
    const at = this.virtual.index.get(this.selected);
    const item = this.virtual.items[at];
    if (!item || item.kind === "event" || item.isOpen !== isClosing) return false;
    this.toggleGroup(item.key);
    return true;
  }

  // One row can be reached with Tab; the keys above move between rows.
  markTabStop() {
    const rows = [...this.body.querySelectorAll("tr[data-key]")];
    const chosen = rows.find((row) => row.dataset.key === this.selected) ?? rows[0];
    for (const row of rows) {
      row.classList.toggle("selected", row.dataset.key === this.selected);
      row.querySelector("a, button").tabIndex = row === chosen ? 0 : -1;
    }
  }
}
