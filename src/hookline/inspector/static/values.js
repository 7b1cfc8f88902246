// A hook's expressions with the values of an event that a person chooses: one of the
// last events of its kind, or any by its number.

import { get } from "./api.js";
import {
  count, cut, el, errorState, fill, loadingState, longText, plural, timeText,
  verdictBadge,
} from "./dom.js";

const OFFERED = 20;
const UNSURE = "With what the hook saw, the outcome may have been another one.";

export function valuesPanel(hook, signal) {
  const result = el("div", { class: "values", "aria-live": "polite" });
  const id = `event-${hook.key}`;
  const select = el("select", {
    id, onchange: () => select.value && showValues(hook, select.value, result, signal),
  }, el("option", { value: "" }, "Choose an event…"));
  const number = el("input", {
    id: `${id}-number`, inputmode: "numeric", pattern: "[0-9]*", autocomplete: "off",
    size: 8, maxlength: 15,
  });
  const show = (event) => {
    event.preventDefault();
    select.value = "";
    if (number.value) showValues(hook, number.value, result, signal);
  };
  offerEvents(hook, select, result, signal);
  return el("section", { class: "expressions" },
    el("h3", {}, "Expression"),
    [["if", hook.condition], ["when", hook.expression]].map(([key, text]) =>
      text && el("p", { class: "expression" }, el("span", { class: "muted" }, key),
        el("code", {}, text))),
    el("form", { class: "row", onsubmit: show },
      el("label", { for: id }, "With the values of"), select,
      el("label", { for: `${id}-number` }, "or event number"), number,
      el("button", {}, "Show")),
    result);
}

async function offerEvents(hook, select, result, signal) {
  try {
    const events = await lastEvents(hook, signal);
    select.append(...events.map((row) => el("option", { value: row.id },
      `Event ${row.id} · ${timeText(row.at)} · ${cut(row.target ?? row.event, 40)} ` +
      `· ${row.verdict}`)));
    if (events.length === 0) {
      const none = `No ${hook.event} event is recorded yet.`;
      fill(result, el("p", { class: "muted" }, none));
    } else if (select.value === "" && result.childElementCount === 0) {
      select.value = events[0].id;
      await showValues(hook, select.value, result, signal);
    }
  } catch (error) {
    if (error.name === "AbortError") return;
    const none = `No events to choose from: ${error.message}`;
    fill(result, el("p", { class: "muted" }, none));
  }
}

// Those on which it ran; any of its kind if there are none.
async function lastEvents(hook, signal) {
  const kind = { event: hook.event, limit: OFFERED };
  const isPlain = !/[*?[\]]/.test(hook.name);
  const ran = isPlain
    ? await get("/api/events", { ...kind, hook: hook.name }, signal) : { events: [] };
  if (ran.events.length > 0) return ran.events;
  return (await get("/api/events", kind, signal)).events;
}

async function showValues(hook, event, result, signal) {
  fill(result, loadingState());
  try {
    const found = await get("/api/hooks/values", { key: hook.key, event }, signal);
    fill(result, valuesOf(found));
  } catch (error) {
    if (error.name === "AbortError") return;
    fill(result, errorState(error, () => showValues(hook, event, result, signal)));
  }
}

function valuesOf(found) {
  const ran = found.ran.length === 0 ? "It did not run on this event."
    : `It ran on this event: ${found.ran.join("; ")}.`;
  return [
    el("p", {}, el("a", { href: `/events/${found.id}` }, `Event ${found.id}`),
      el("span", { class: "muted" }, ` · ${timeText(found.at)} · `), ran),
    found.cut && el("p", { class: "caution" }, "The recorded input was cut (it had ",
      `${plural(found.bytes, "byte")}). `, UNSURE),
    found.masked && el("p", { class: "caution" },
      "Credentials in the recorded input are masked. ", UNSURE),
    found.condition && explained("if", found.condition),
    found.rule && explained("when", found.rule),
  ];
}

function explained(key, { outcome, parts, values }) {
  return el("div", { class: "explained" },
    el("h4", {}, el("code", {}, key), " is ", outcomeBadge(outcome)),
    parts.length > 0 && el("table", {},
      el("caption", { class: "hidden" }, `Parts of ${key}`),
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Part"),
        el("th", { scope: "col" }, "Outcome"))),
      el("tbody", {}, parts.map((part) => el("tr", {},
        el("th", { scope: "row" }, el("code", {}, part.text)),
        el("td", {}, outcomeBadge(part.outcome)))))),
    values.length > 0 && el("table", {},
      el("caption", { class: "hidden" }, `Values that ${key} uses`),
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Field"),
        el("th", { scope: "col" }, "Value in this event"))),
      el("tbody", {}, values.map((one) => el("tr", {},
        el("th", { scope: "row" }, el("code", {}, one.path)),
        el("td", {}, valueOf(one)))))),
  );
}

function valueOf({ text, chars }) {
  const left = chars - text.length;
  if (chars <= 200) return el("code", {}, text);
  const more = left > 0 && el("p", { class: "muted small" },
    `${count(left)} more characters: open the event to see them.`);
  return [longText(text, "Value"), more];
}

function outcomeBadge(outcome) {
  if (outcome === "true") return verdictBadge("allowed", "true");
  const [word, ...rest] = outcome.split(": ");
  const kind = word === "false" ? "other" : "failed";
  return [verdictBadge(kind, word), rest.length > 0 && ` ${rest.join(": ")}`];
}
