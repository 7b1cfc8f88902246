// The filters of the timeline: in the address, and as fields with what there is.

import { get } from "./api.js";
import { VERDICTS, count, el, fill, plural, timeText } from "./dom.js";

export const NAMES = [
  "text", "event", "verdict", "tool", "hook", "session", "project", "since", "until",
];
const LABELS = {
  text: "Search", event: "Event", verdict: "Verdict", tool: "Tool", hook: "Hook",
  session: "Session", project: "Project",
};
const FACETS = {
  event: "events", verdict: "verdicts", tool: "tools", hook: "hooks",
  session: "sessions", project: "projects",
};
const CHOICES = new Set(["event", "verdict"]);
const EVENTS = [
  "SessionStart", "BeforeAgent", "BeforeModel", "BeforeToolSelection", "AfterModel",
  "BeforeTool", "AfterTool", "AfterAgent", "SubagentStart", "SubagentStop",
  "PreCompress", "Notification", "SessionEnd",
];
const TYPING_MS = 250;
const MOST_OPTIONS = 200;

// The filters of an address.
export function readFilters(url) {
  const given = NAMES.map((name) => [name, url.searchParams.get(name) ?? ""]);
  return Object.fromEntries(given.filter(([, value]) => value !== ""));
}

// The form; `changed(filters, isTyping)` is called with each change.
export function filterForm(filters, changed, signal) {
  const fields = Object.keys(LABELS).map((name) => field(name, filters[name] ?? ""));
  const more = el("details", { class: "filters-more" },
    el("summary", {}, "Filters"), el("div", { class: "filters-fields" },
      fields.slice(1)));
  more.open = matchMedia("(min-width: 46rem)").matches || activeCount(filters) > 0;
  const times = { since: filters.since, until: filters.until };
  const form = el("form", { role: "search", class: "filters", autocomplete: "off" },
    fields[0], more);
  let timer = null;
  const apply = (isTyping) => {
    clearTimeout(timer);
    changed(valuesOf(form, times), isTyping);
  };
  for (const name of ["since", "until"]) {
    if (times[name]) form.append(timeChip(name, times, apply));
  }
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    apply(false);
  });
  form.addEventListener("input", (event) => {
    clearTimeout(timer);
    if (event.target.tagName === "SELECT") apply(false);
    else timer = setTimeout(() => apply(true), TYPING_MS);
  });
  signal.addEventListener("abort", () => clearTimeout(timer));
  return form;
}

function activeCount(filters) {
  return Object.keys(filters).filter((name) => name !== "text").length;
}

// Times come with an address, such as a shared one; here they can be taken away.
function timeChip(name, times, apply) {
  const label = `${name} ${timeText(Number(times[name]))}`;
  const chip = el("button", { type: "button", class: "chip",
    "aria-label": `Remove the filter: ${label}` }, label, el("span", {}, "✕"));
  chip.addEventListener("click", () => {
    delete times[name];
    chip.remove();
    apply(false);
  });
  return chip;
}

function valuesOf(form, { since, until }) {
  const given = Object.keys(LABELS).map((name) =>
    [name, form.elements[name].value.trim()]);
  const values = { ...Object.fromEntries(given), since, until };
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value));
}

function field(name, value) {
  const label = LABELS[name];
  const id = `filter-${name}`;
  const control = CHOICES.has(name) ? choice(name, id, value) : input(name, id, value);
  return el("div", { class: `field filter-${name}` },
    el("label", { for: id }, label), control,
    FACETS[name] && !CHOICES.has(name) && el("datalist", { id: `${id}-list` }));
}

function input(name, id, value) {
  const isSearch = name === "text";
  return el("input", {
    id, name, value, type: isSearch ? "search" : "text", spellcheck: "false",
    list: FACETS[name] ? `${id}-list` : null,
    placeholder: isSearch ? "Inputs, reasons, outputs" : "any",
    "data-search": isSearch, "aria-keyshortcuts": isSearch ? "/" : null,
  });
}

function choice(name, id, value) {
  const known = name === "event" ? EVENTS : VERDICTS;
  const all = known.includes(value) || !value ? known : [...known, value];
  const select = el("select", { id, name },
    el("option", { value: "" }, "any"),
    all.map((one) => el("option", { value: one }, one.replace("-", " "))));
  select.value = value;
  return select;
}

// Fill in what there is to choose from, with how often it is there.
export async function fillFacets(form, signal) {
  const facets = await get("/api/facets", {}, signal).catch(() => null);
  if (facets === null) return;
  for (const [name, key] of Object.entries(FACETS)) {
    const found = facets[key] ?? [];
    if (CHOICES.has(name)) labelChoices(form.elements[name], found);
    else fill(form.querySelector(`#filter-${name}-list`), options(found));
  }
}

function options(found) {
  return found.slice(0, MOST_OPTIONS).map(({ value, count: times }) =>
    el("option", { value, label: plural(times, "event") }));
}

function labelChoices(select, found) {
  const times = new Map(found.map(({ value, count: number }) => [value, number]));
  for (const option of select.options) {
    if (!option.value) continue;
    const number = times.get(option.value);
    const name = option.value.replace("-", " ");
    option.textContent = number ? `${name} (${count(number)})` : name;
  }
}
