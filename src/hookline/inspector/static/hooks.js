// The Hooks view: every hook with its state and figures; opening one shows its
// settings, its last failures, and its expressions with the values of an event.

import { address, get } from "./api.js";
import { remember } from "./app.js";
import {
  announce, appendInPieces, command, count, cut, duration, el, emptyState, errorState, fill, heading,
  loadingState, longText, plural, tag, time, verdictBadge,
} from "./dom.js";
import { histogram } from "./histogram.js";
import { valuesPanel } from "./values.js";

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

const AT_ONCE = 5;

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
  const hooks = plural(answer.hooks.length, "configured hook");
  if (answer.of_runs === 0) return el("p", { class: "muted" }, `${hooks}.`);
  const which = answer.complete ? "all" : "the newest";
  return el("p", { class: "muted" }, `${hooks}. Figures of ${which} `,
    `${plural(answer.of_runs, "run")} since `, time(answer.since), ".");
}

function notices(answer) {
  const problems = answer.problems.map((text) => el("p", {}, text));
  if (answer.switched_off) {
    problems.unshift(el("p", {}, "Hooks are switched off: enableHooks is false."));
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
  const events = [...new Set([...answer.hooks, ...answer.recorded].map((h) => h.event))];
  const search = el("input", {
    type: "search", "data-search": true, id: "hook-text", autocomplete: "off",
    placeholder: "Name, file, matcher, command…", value: query.get("q") ?? "",
    oninput: () => change(view, "q", search.value),
  });
  const chosen = query.get("event") ?? "";
  const select = el("select", {
    id: "hook-event", onchange: () => change(view, "event", select.value),
  }, el("option", { value: "" }, "All events"),
    events.sort().map((name) =>
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
    ? [hookTable(view, configured, "Configured hooks", "hooks")] : [];
  let shown = configured.length;
  for (const [kind, [title, text]] of Object.entries(APART)) {
    const found = kept(answer.recorded.filter((hook) => hook.kind === kind));
    shown += found.length;
    if (found.length > 0) parts.push(apart(view, found, kind, title, text));
  }
  if (answer.recorded_left_off > 0) {
    const more = plural(answer.recorded_left_off, "more recorded hook");
    parts.push(el("p", { class: "muted" }, `${more} with fewer runs not shown.`));
  }
  fill(list, parts);
  const all = answer.hooks.length + answer.recorded.length;
  const text = shown === all ? plural(all, "hook") : `${shown} of ${plural(all, "hook")}`;
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
  const body = el("tbody", { role: "rowgroup" },
    hooks.map((hook, n) => hookRows(view, hook, `${part}-${n}`)));
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
  if (fixed) return el("th", { scope: "col", role: "columnheader", class: kind }, title);
  // The first click sorts by what people look for: the most, or A to Z.
  const steps = number ? [`-${key}`, key, ""] : [key, `-${key}`, ""];
  const next = steps[(steps.indexOf(current) + 1) % steps.length];
  const sort = () => {
    change(view, "sort", next);
    document.querySelector(`[data-sort="${key}"]`)?.focus();
  };
  const sign = { ascending: "▲", descending: "▼", none: "" }[order];
  return el("th", {
    scope: "col", role: "columnheader", class: kind, "aria-sort": order,
  }, el("button", { type: "button", class: "sort", "data-sort": key, onclick: sort },
    title, el("span", { "aria-hidden": "true" }, sign)));
}

function hookRows(view, hook, id) {
  const opened = hook.key !== undefined && view.query.get("hook") === hook.key;
  const panel = el("td", { role: "cell", colspan: COLUMNS.length });
  const detail = el("tr", { role: "row", class: "detail", id, hidden: !opened }, panel);
  const toggle = (open) => {
    button.setAttribute("aria-expanded", String(open));
    detail.hidden = !open;
    if (open && panel.childElementCount === 0) fill(panel, details(view, hook));
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
  const row = el("tr", { role: "row", class: isIdle(hook) ? "idle" : null },
    cells(hook, button, () => detail.hidden && press()));
  return [row, detail];
}

function isIdle(hook) {
  return hook.enabled === false;
}

function cells(hook, button, open) {
  const its = hook.figures;
  const cell = (label, kind, ...children) =>
    el("td", { role: "cell", class: kind, "data-label": label }, children);
  const failed = its && its.failures > 0
    ? el("button", {
      type: "button", class: "quiet failures", onclick: open,
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

function details(view, hook) {
  const failures = el("section", { class: "failures-list" });
  const expressions = hook.condition || hook.expression;
  const parts = [
    hook.description && el("p", {}, hook.description),
    facts(hook),
    hook.figures && figuresOf(view, hook),
    expressions && valuesPanel(hook, view.signal),
    failures,
  ];
  showFailures(view, hook, failures);
  return el("div", { class: "hook-detail" }, parts);
}

function facts(hook) {
  const why = el("p", {}, hook.why ?? hook.trust_problem);
  const rows = [
    ["File", hook.file && el("code", {}, hook.file)],
    ["Project", hook.project && el("code", {}, hook.project)],
    ["Folder", hook.folder && el("code", {}, hook.folder)],
    ["Runs", hook.runs && longText(hook.runs, "What it runs")],
    ["Matcher", hook.kind ? null : el("code", {}, hook.matcher || "*")],
    ["Disabled", hook.enabled === false && why],
    ["Approval", hook.trust && approvalOf(hook)],
    ["Breaker", hook.breaker && breakerOf(hook.breaker)],
    ["Mode", hook.mode && modeOf(hook)],
    ["Timeout", hook.timeout_ms && duration(hook.timeout_ms)],
    ["On error", hook.on_error && policyOf(hook.on_error)],
    ["Dialect", hook.dialect],
    ["Namesakes", hook.namesakes > 0 && `${plural(hook.namesakes, "other hook")} of ` +
      "this event, name, source and type: their runs may be counted here too."],
  ];
  const shown = rows.filter(([, value]) => value);
  return shown.length > 0 && el("dl", { class: "facts" }, shown.map(([name, value]) =>
    el("div", {}, el("dt", {}, name), el("dd", {}, value))));
}

function approvalOf(hook) {
  const link = el("a", { href: "/trust" }, "Trust view");
  if (hook.trust === "untrusted") return ["Not approved: it does not run. See the ", link];
  if (hook.trust === "changed") {
    return [`${hook.trust_problem ?? "It changed"}: its onError decides. See the `, link];
  }
  return hook.source === "project" && hook.project ? "Approved" : "Needs none";
}

function breakerOf(breaker) {
  if (breaker.state === "off") return "Off: it runs however often it times out.";
  const rule = `${plural(breaker.timeouts, "timeout")} in a row for one tool: ` +
    `skipped for ${duration(breaker.cooldown_ms)}.`;
  if (breaker.state === "closed") return `Closed. ${rule}`;
  const open = breaker.skipped.map(({ tool, timeouts, until }) => el("li", {},
    "Skipped ", tool ? ["for ", el("code", {}, tool)] : "", " until ", time(until),
    ` after ${plural(timeouts, "timeout")}.`));
  return [el("ul", {}, open), el("p", { class: "muted" }, rule)];
}

function modeOf(hook) {
  const words = [hook.mode === "observe"
    ? "Observe: its verdict is recorded and counts for nothing" : "Enforce"];
  if (hook.async) words.push("not waited for");
  if (hook.sequential) words.push("one after the other with its group");
  if (hook.managed) words.push("managed: nobody else can switch it off");
  if (hook.standby > 0) words.push(`${hook.standby} started ahead`);
  return words.join(", ");
}

function policyOf(policy) {
  const causes = Object.entries(policy).filter(([, value]) => value);
  const words = new Set(causes.map(([, value]) => value));
  if (words.size === 1) return `${[...words][0]}, whatever the cause`;
  return causes.map(([cause, value]) => `${cause}: ${value}`).join(", ");
}

function figuresOf(view, hook) {
  const its = hook.figures;
  const rows = [
    ["Runs", count(its.runs)], ["Blocks", count(its.blocks)],
    ["Would block", count(its.would_block)], ["Failures", count(its.failures)],
    ["Timeouts", count(its.timeouts)], ["Asked again", count(its.rechecks)],
    ["p50", duration(its.p50_ms)], ["p95", duration(its.p95_ms)],
    ["Longest", duration(its.max_ms)],
    ["Last run", el("a", { href: `/events/${its.last_event}` }, time(its.last_at))],
  ];
  return el("section", { class: "figures" },
    el("dl", { class: "numbers" }, rows.map(([name, value]) =>
      el("div", {}, el("dt", {}, name), el("dd", {}, value)))),
    el("div", {}, histogram(its.histogram, its.runs, { large: true }),
      el("p", {}, el("a", {
        href: address("/", { hook: hook.name, event: hook.event }),
      }, "Its events on the timeline"))));
}

async function showFailures(view, hook, section, asked = false) {
  const title = el("h3", {}, "Last failures");
  if (!asked && !(hook.figures?.failures > 0)) {
    const further = el("button", {
      type: "button", onclick: () => showFailures(view, hook, section, true),
    }, "Look further back");
    const none = hook.figures ? "None in the runs that were counted. " : "No runs. ";
    fill(section, title, el("p", { class: "muted" }, none, hook.figures && further));
    return;
  }
  fill(section, title, loadingState());
  const { key, name, source, event, type, folder } = hook;
  const wanted = key ? { key } : { name, source, event, type, folder };
  try {
    const found = await get("/api/hooks/failures", wanted, view.signal);
    fill(section, title, failureList(found));
  } catch (error) {
    if (error.name === "AbortError") return;
    const again = () => showFailures(view, hook, section, true);
    fill(section, title, errorState(error, again));
  }
}

function failureList(found) {
  const reach = found.complete ? "all runs" : plural(found.of_runs, "run");
  const since = found.since === null ? "" : [" since ", time(found.since)];
  if (found.failures.length === 0) {
    return el("p", { class: "muted" }, `None in ${reach}`, since, ".");
  }
  const list = el("ol", { class: "failed-runs" });
  const entry = (n) => failureItem(found.failures[n]);
  appendInPieces(list, found.failures.length, entry, AT_ONCE);
  return list;
}

function failureItem(run) {
  const cuts = [
    run.masked && "credentials are masked", run.cut && "the recorded output was cut",
  ].filter(Boolean).join(", ");
  const stderr = run.stderr.trim() === ""
    ? el("p", { class: "muted" }, "Nothing on stderr.") : longText(run.stderr, "stderr");
  return el("li", {},
    el("p", { class: "row" }, verdictBadge("failed", run.cause),
      el("a", { href: `/events/${run.event_id}` }, `Event ${run.event_id}`),
      run.recheck && tag("asked again"), run.target && el("code", {}, cut(run.target, 60)),
      el("span", { class: "muted" }, time(run.at), ` · ${duration(run.duration_ms)}`)),
    run.error !== `exited with status ${run.exit_code}` &&
      el("p", { class: "failed-error" }, run.error), stderr,
    cuts && el("p", { class: "muted small" }, `In the event: ${cuts}.`));
}
