// The rows of the timeline: events, and the heads of sessions and turns.

import {
  command, count, cut, duration, el, emptyState, plural, time, timeText, verdictBadge,
  visible,
} from "./dom.js";

export const COLUMNS = [
  { name: "Time", class: "c-time" },
  { name: "Event", class: "c-event" },
  { name: "Verdict", class: "c-verdict" },
  { name: "Why", class: "c-why" },
  { name: "Hooks", class: "c-hooks number" },
  { name: "Took", class: "c-took number" },
];

export function eventRow({ key, row, depth, call }) {
  const target = row.target && el("code", {}, cut(row.target, 120));
  const classes = `event depth-${depth} ${call ? `call-${call}` : ""}`;
  const node = el("tr", { role: "row", class: `${classes} verdict-${row.verdict}` },
    cell("c-time", time(row.at)),
    cell("c-event",
      el("a", { href: `/events/${row.id}` }, el("span", { class: "what" }, row.event),
        target && " ", target),
      el("span", { class: "second" }, whyText(row))),
    cell("c-verdict", verdictBadge(row.verdict), row.failed && verdictBadge("failed"),
      row.would_block && verdictBadge("would-block")),
    cell("c-why", whyParts(row)),
    cell("c-hooks number", row.hook_count || "–"),
    cell("c-took number", duration(row.duration_ms)));
  node.dataset.key = key;
  return node;
}

function cell(kind, ...children) {
  return el("td", { role: "cell", class: kind }, children);
}

// The hooks behind the verdict; one that was asked twice is named once.
function namesOf(row) {
  const names = row.blockers || (row.failed && row.failing) || "";
  return cut([...new Set(names.split(", "))].join(", "), 80);
}

function whyParts(row) {
  const names = namesOf(row);
  return [
    names && el("strong", {}, names),
    names && !row.blockers && " failed",
    row.reason && ` ${cut(row.reason.replace(/\s+/g, " "), 200)}`,
    row.recheck && el("span", { class: "tag" }, "re-checked"),
  ];
}

function whyText(row) {
  return cut([namesOf(row), row.reason].filter(Boolean).join(": "), 160);
}

const NOTED = ["stopped", "blocked", "ask", "changed"];

export function groupRow(item) {
  const { kind, key, isOpen } = item;
  const name = kind === "session"
    ? ["Session ", el("code", {}, cut(item.session, 60))] : "Turn";
  const arrow = el("span", { class: "arrow", "aria-hidden": "true" },
    isOpen ? "▾" : "▸");
  const button = el("button", { type: "button", class: "quiet toggle",
    "aria-expanded": String(isOpen) }, arrow, name);
  const node = el("tr", { role: "row", class: `group group-${kind}` },
    el("th", { scope: "rowgroup", role: "rowheader", colspan: COLUMNS.length },
      el("div", { class: "group-line" }, button, summary(item))));
  node.dataset.key = key;
  return node;
}

function summary({ kind, rows }) {
  if (rows.length === 0) return null;
  const parts = NOTED.map((verdict) => {
    const number = rows.filter((row) => row.verdict === verdict).length;
    return number > 0 && verdictBadge(verdict, `${count(number)} ${verdict}`);
  });
  const { cwd } = rows[0];
  const place = kind === "session" && cwd.split("/").filter(Boolean).pop();
  return [
    el("span", { class: "muted" }, plural(rows.length, "event")),
    el("span", { class: "muted" }, `from ${timeText(rows.at(-1).at)}`),
    place && el("span", { class: "muted place-name", title: visible(cwd) }, place),
    el("span", { class: "group-verdicts" }, parts),
  ];
}

export function noEvents() {
  return emptyState("No events are recorded yet",
    el("p", {}, "Switch the journal on in the settings of the project or the user:"),
    el("pre", { class: "text" }, '{ "hooksConfig": { "journal": true } }'),
    el("p", {}, "Or record one event, or play the demo:"),
    el("p", {}, command("hookline fire SessionStart --record")),
    el("p", {}, command("hookline demo")),
    el("p", {}, "Events show up here as they are recorded."));
}
