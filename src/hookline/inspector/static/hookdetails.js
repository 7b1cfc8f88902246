// One hook: its settings, its figures, its last failures, and its expressions with the
// values of an event.

import { address, get } from "./api.js";
import {
  appendInPieces, count, cut, duration, el, errorState, fill, loadingState, longText,
  plural, tag, time, verdictBadge,
} from "./dom.js";
import { histogram } from "./histogram.js";
import { valuesPanel } from "./values.js";

const AT_ONCE = 5;

export function hookDetails(hook, signal) {
  const failures = el("section", {
    class: "failures-list", tabindex: "-1", "aria-label": "Last failures",
  });
  const expressions = hook.condition || hook.expression;
  const parts = [
    hook.description && el("p", {}, hook.description),
    facts(hook),
    hook.figures && figuresOf(hook),
    expressions && valuesPanel(hook, signal),
    failures,
  ];
  showFailures(hook, failures, signal);
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
  if (hook.trust === "untrusted") {
    return ["Not approved: it does not run. See the ", link];
  }
  if (hook.trust === "changed") {
    const problem = hook.trust_problem ?? "It changed";
    return [`${problem}: its onError decides. See the `, link];
  }
  return hook.source === "project" && hook.project ? "Approved" : "Needs none";
}

function breakerOf(breaker) {
  if (breaker.state === "off") return "Off: it runs however often it times out.";
  const rule = `${plural(breaker.timeouts, "timeout")} in a row for one tool: ` +
    `skipped for ${duration(breaker.cooldown_ms)}. ` +
    "All processes that work in this folder count together.";
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

function figuresOf(hook) {
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

async function showFailures(hook, section, signal, asked = false) {
  const title = el("h3", {}, "Last failures");
  if (!asked && !(hook.figures?.failures > 0)) {
    const further = el("button", {
      type: "button", onclick: () => showFailures(hook, section, signal, true),
    }, "Look further back");
    const none = hook.figures ? "None in the runs that were counted. " : "No runs. ";
    fill(section, title, el("p", { class: "muted" }, none, hook.figures && further));
    return;
  }
  fill(section, title, loadingState());
  const { key, kind, name, source, event, type, folder: cwd } = hook;
  const wanted = key ? { key } : { kind, name, source, event, type, cwd };
  try {
    const found = await get("/api/hooks/failures", wanted, signal);
    fill(section, title, failureList(found));
    if (document.activeElement === section) section.scrollIntoView();
  } catch (error) {
    if (error.name === "AbortError") return;
    const again = () => showFailures(hook, section, signal, true);
    fill(section, title, errorState(error, again));
  }
}

function failureList(found) {
  if (found.failures.length === 0) return el("p", { class: "muted" }, "None.");
  const list = el("ol", { class: "failed-runs" });
  const entry = (n) => failureItem(found.failures[n]);
  appendInPieces(list, found.failures.length, entry, AT_ONCE);
  return list;
}

function failureItem(run) {
  const cuts = [
    run.masked && "credentials are masked", run.cut && "the recorded output was cut",
    run.stderr_is_longer && "there is more of stderr",
  ].filter(Boolean).join(", ");
  const stderr = run.stderr.trim() === ""
    ? el("p", { class: "muted" }, "Nothing on stderr.")
    : longText(run.stderr, "stderr");
  return el("li", {},
    el("p", { class: "row" }, verdictBadge("failed", run.cause),
      el("a", { href: `/events/${run.event_id}` }, `Event ${run.event_id}`),
      run.recheck && tag("asked again"),
      run.target && el("code", {}, cut(run.target, 60)),
      el("span", { class: "muted" }, time(run.at), ` · ${duration(run.duration_ms)}`)),
    run.error !== `exited with status ${run.exit_code}` &&
      el("p", { class: "failed-error" }, run.error), stderr,
    cuts && el("p", { class: "muted small" }, `In the event: ${cuts}.`));
}
