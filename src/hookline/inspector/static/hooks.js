// The Hooks view: every hook with its state and figures; opening one shows its
// settings, its last failures, and its expressions with the values of an event.

import { address, get } from "./api.js";
import { remember } from "./app.js";
import {
  announce, appendInPieces, command, count, cut, duration, el, emptyState, fill,
  heading, plural, tag, time, verdictBadge,
} from "./dom.js";
import { histogram } from "./histogram.js";
import { hookDetails } from "./hookdetails.js";

const COLUMNS = [
  { key: "name", title: "Hook", of: (hook) => (hook.label ?? hook.name).toLowerCase() },
  { key: "event", title: "Runs on", of: (hook) => hook.event },
  { key: "state", title: "State", of: (hook) => stateOf(hook).word },
  { key: "runs", title: "Runs", number: true },
  { key: "blocks", title: "Blocks", number: true },
  { key: "failures", title: "Failures", number: true },
  { key: "p50", title: "p50", number: true, of: (hook) => hook.figures?.p50_ms ?? -1 },
  { key: "p95", title: "p95", number: true, of: (hook) => hook.figures?.p95_ms ?? -1 },
  { key: "times", title: "Times", fixed: true },
];

const AT_ONCE = 200;

const APART = {
  code: ["Registered in code",
    "A program registered these with HookSystem.on: only the journal knows them. " +
    "Whether they are skipped after timeouts is known to that program alone."],
  elsewhere: ["In other projects", "Start the inspector there to see their settings."],
  gone: ["No longer configured",
    "The journal has runs of these, and the settings that apply here do not."],
};

export async function show(root, url, signal) {
  const answer = await get("/api/hooks", {}, signal);
  const view = { root, signal, answer, query: new URLSearchParams(url.search) };
  fill(root, heading("Hooks"), summary(answer), notices(answer));
  if (answer.hooks.length === 0) root.append(noHooks(answer));
  if (answer.hooks.length + answer.recorded.length === 0) return;
  view.list = el("div", { class: "hook-lists" });
  root.append(filters(view), view.list);
  draw(view);
}

function summary(answer) {
  const all = answer.hooks.length + answer.hooks_left_off;
  const hooks = plural(all, "configured hook");
  if (answer.of_runs === 0) return el("p", { class: "lead" }, `${hooks}.`);
  const which = answer.complete ? "all" : "the newest";
  return el("p", { class: "lead" }, `${hooks}. Figures of ${which} `,
    `${plural(answer.of_runs, "run")}.`);
}

function notices(answer) {
  const problems = answer.problems.map((text) => el("p", {}, text));
  if (answer.switched_off) {
    problems.unshift(el("p", {}, "Hooks are switched off: enableHooks is false."));
  }
  if (answer.problems_left_off > 0) {
    problems.push(el("p", {}, `${plural(answer.problems_left_off, "more problem")}: `,
      "run ", el("code", {}, "hookline check")));
  }
  if (answer.journal_problem !== null) {
    problems.push(el("p", {}, `There are no figures: ${answer.journal_problem}. `,
      "To record events, set ", el("code", {}, '"hooksConfig": {"journal": true}'),
      " in your settings."));
  }
  return problems.length > 0 && el("div", { class: "card hook-notices" }, problems);
}

function noHooks(answer) {
  return emptyState("No hooks are configured",
    el("p", {}, "Nothing checks the agents that work in ",
      el("code", {}, answer.cwd), ". Set up a first hook there:"),
    el("p", {}, command("hookline init")),
    el("p", {}, "See where settings files belong:"),
    el("p", {}, command("hookline check")));
}

function filters(view) {
  const { query, answer } = view;
  const all = [...answer.hooks, ...answer.recorded];
  const events = [...new Set(all.map((hook) => hook.event))].sort();
  const search = el("input", {
    type: "search", "data-search": true, id: "hook-text", autocomplete: "off",
    placeholder: "Name, file, matcher, command…", value: query.get("q") ?? "",
    oninput: () => change(view, "q", search.value),
  });
  const chosen = query.get("event") ?? "";
  const select = el("select", {
    id: "hook-event", onchange: () => change(view, "event", select.value),
  }, el("option", { value: "" }, "All events"),
    events.map((name) =>
      el("option", { value: name, selected: name === chosen }, name)));
  return el("form", {
    class: "row hook-filters", role: "search", onsubmit: (e) => e.preventDefault(),
  }, el("label", { class: "hidden", for: "hook-text" }, "Search hooks"), search,
    el("label", { class: "hidden", for: "hook-event" }, "Event"), select,
    el("span", { class: "muted", id: "hook-count" }));
}

// The address keeps what is chosen, so that it can be sent to a colleague.
function change(view, name, value) {
  keep(view, name, value);
  draw(view);
}

function keep(view, name, value) {
  if (value) view.query.set(name, value);
  else view.query.delete(name);
  remember(address("/hooks", Object.fromEntries(view.query)), { replace: true });
}

function draw(view) {
  const { answer, query, list } = view;
  const kept = (hooks) => sorted(hooks.filter((hook) => isWanted(hook, query)), query);
  const configured = kept(answer.hooks);
  const parts = answer.hooks.length > 0
    ? [el("h2", { class: "hidden" }, "Configured hooks"),
      hookTable(view, configured, "Configured hooks", "hooks")] : [];
  let shown = configured.length;
  for (const [kind, [title, text]] of Object.entries(APART)) {
    const found = kept(answer.recorded.filter((hook) => hook.kind === kind));
    shown += found.length;
    if (found.length > 0) parts.push(apart(view, found, kind, title, text));
  }
  if (answer.hooks_left_off > 0) {
    const more = plural(answer.hooks_left_off, "more configured hook");
    parts.splice(2, 0, el("p", { class: "muted" }, `${more}: see 'hookline list'.`));
  }
  if (answer.recorded_left_off > 0) {
    const more = plural(answer.recorded_left_off, "more recorded hook");
    parts.push(el("p", { class: "muted" }, `${more} with fewer runs not shown.`));
  }
  fill(list, parts);
  const all = answer.hooks.length + answer.recorded.length;
  const hooks = plural(all, "hook");
  const text = shown === all ? hooks : `${shown} of ${hooks}`;
  const counter = document.getElementById("hook-count");
  if (counter.textContent !== text) announce(text);
  counter.textContent = text;
}

function isWanted(hook, query) {
  const event = query.get("event");
  if (event && hook.event !== event) return false;
  const words = (query.get("q") ?? "").toLowerCase().split(/\s+/).filter(Boolean);
  const fields = [
    hook.name, hook.event, hook.source, hook.file, hook.type, hook.matcher, hook.runs,
    hook.condition, hook.expression, hook.description, hook.mode, hook.trust,
    hook.dialect, hook.folder, hook.kind ? "" : stateOf(hook).word,
  ];
  const text = fields.filter(Boolean).join("\n").toLowerCase();
  return words.every((word) => text.includes(word));
}

function sorted(hooks, query) {
  const [, down, key] = /^(-?)(\w+)$/.exec(query.get("sort") ?? "") ?? [];
  const column = COLUMNS.find((one) => one.key === key && !one.fixed);
  if (!column) return hooks;
  const value = column.of ?? ((hook) => hook.figures?.[key] ?? -1);
  const sign = down ? -1 : 1;
  return hooks.toSorted((a, b) => {
    const [x, y] = [value(a), value(b)];
    return x === y ? 0 : sign * (x < y ? -1 : 1);
  });
}

function apart(view, hooks, kind, title, text) {
  const id = `apart-${kind}`;
  return el("section", { class: "apart", "aria-labelledby": id },
    el("h2", { id }, title), el("p", { class: "muted" }, text),
    hookTable(view, hooks, title, kind));
}

function hookTable(view, hooks, caption, part) {
  if (hooks.length === 0) {
    const clear = el("button", { type: "button", onclick: () => clearFilters(view) },
      "Clear the filters");
    return emptyState("No configured hook matches", el("p", {}, clear));
  }
  const body = el("tbody", { role: "rowgroup" });
  const entry = (n) => hookRows(view, hooks[n], `${part}-${n}`);
  appendInPieces(body, hooks.length, entry, AT_ONCE);
  // With its roles: on a narrow page the rows are laid out as cards.
  return el("table", { class: "hooks", role: "table" },
    el("caption", { class: "hidden" }, caption),
    el("thead", { role: "rowgroup" },
      el("tr", { role: "row" }, COLUMNS.map((column) => columnHead(view, column)))),
    body);
}

function clearFilters(view) {
  document.getElementById("hook-text").value = "";
  document.getElementById("hook-event").value = "";
  view.query.delete("event");
  change(view, "q", "");
}

function columnHead(view, { key, title, number, fixed }) {
  const current = view.query.get("sort");
  const order = { [key]: "ascending", [`-${key}`]: "descending" }[current] ?? "none";
  const kind = `col-${key}${number ? " number" : ""}`;
  const head = { scope: "col", role: "columnheader", class: kind };
  if (fixed) return el("th", head, title);
  // The first click sorts by what people look for: the most, or A to Z.
  const steps = number ? [`-${key}`, key, ""] : [key, `-${key}`, ""];
  const next = steps[(steps.indexOf(current) + 1) % steps.length];
  const sort = () => {
    change(view, "sort", next);
    document.querySelector(`[data-sort="${key}"]`)?.focus();
  };
  const sign = { ascending: "▲", descending: "▼", none: "" }[order];
  return el("th", { ...head, "aria-sort": order }, el("button", {
    type: "button", class: "sort", "data-sort": key, onclick: sort,
  }, title, el("span", { "aria-hidden": "true" }, sign)));
}

function hookRows(view, hook, id) {
  const opened = hook.key !== undefined && view.query.get("hook") === hook.key;
  const panel = el("td", { role: "cell", colspan: COLUMNS.length });
  const detail = el("tr", { role: "row", class: "detail", id, hidden: !opened }, panel);
  const toggle = (open) => {
    button.setAttribute("aria-expanded", String(open));
    detail.hidden = !open;
    if (!open || panel.childElementCount > 0) return;
    fill(panel, hookDetails(hook, view.signal));
  };
  const press = () => {
    const open = detail.hidden;
    toggle(open);
    if (hook.key !== undefined) keep(view, "hook", open ? hook.key : "");
  };
  const button = el("button", {
    type: "button", class: "hook-name", "data-row": true, "aria-expanded": "false",
    "aria-controls": id, onclick: press,
  }, cut(hook.label ?? hook.name, 80));
  if (opened) toggle(true);
  const showFailures = () => {
    if (detail.hidden) press();
    panel.querySelector(".failures-list").focus();
  };
  const row = el("tr", { role: "row", class: hook.enabled === false ? "idle" : null },
    cells(hook, button, showFailures));
  const both = document.createDocumentFragment();
  both.append(row, detail);
  return both;
}

function cells(hook, button, showFailures) {
  const its = hook.figures;
  const cell = (label, kind, ...children) =>
    el("td", { role: "cell", class: kind, "data-label": label }, children);
  const failed = its && its.failures > 0
    ? el("button", {
      type: "button", class: "quiet failures", onclick: showFailures,
      "aria-label": `${plural(its.failures, "failure")}: show the last ones`,
    }, count(its.failures)) : its && "0";
  return [
    el("th", { scope: "row", role: "rowheader" }, button,
      el("span", { class: "tags" }, tags(hook))),
    cell("Runs on", null, hook.event, matcherOf(hook)),
    cell("State", null, stateBadge(hook)),
    cell("Runs", "number", its ? count(its.runs) : "–"),
    cell("Blocks", "number", its ? count(its.blocks) : "–",
      its?.would_block > 0 && note(`${count(its.would_block)} would block`, "would")),
    cell("Failures", "number", failed ?? "–",
      its?.timeouts > 0 && note(plural(its.timeouts, "timeout"), "failed")),
    cell("p50", "number", duration(its?.p50_ms)),
    cell("p95", "number", duration(its?.p95_ms)),
    cell("Times", "times", its ? histogram(its.histogram, its.runs) : "–"),
  ];
}

function note(text, kind) {
  return el("span", { class: `under ${kind}` }, text);
}

function tags(hook) {
  const found = [hook.type, hook.source];
  if (hook.mode === "observe") found.push("observe");
  if (hook.async) found.push("async");
  if (hook.managed) found.push("managed");
  if (hook.dialect && hook.dialect !== "hookline") found.push(hook.dialect);
  return found.map((text) => tag(text));
}

function matcherOf(hook) {
  if (hook.folder) return el("code", { class: "under" }, cut(hook.folder, 60));
  const matcher = hook.matcher && hook.matcher !== "*" ? hook.matcher : null;
  return [
    matcher && el("code", { class: "under" }, cut(matcher, 60)),
    hook.condition && el("span", { class: "under" }, "if ",
      el("code", {}, cut(hook.condition, 60))),
  ];
}

// What a person must know first: a hook that does not run looks like one that does.
function stateOf(hook) {
  if (hook.kind) return { word: "recorded", kind: "other" };
  if (!hook.enabled) return { word: "disabled", kind: "other" };
  if (hook.trust === "untrusted") return { word: "not approved", kind: "ask" };
  if (hook.trust === "changed") return { word: "changed", kind: "failed" };
  if (hook.breaker.state === "open") return { word: "skipped", kind: "failed" };
  if (hook.mode === "observe") return { word: "observes", kind: "would-block" };
  return { word: "on", kind: "allowed" };
}

function stateBadge(hook) {
  const { word, kind } = stateOf(hook);
  return hook.kind ? "–" : verdictBadge(kind, word);
}
