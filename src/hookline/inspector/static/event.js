// One event: what came in, what each hook did, what changed, and who decided it.

import { address, get } from "./api.js";
import { navigate } from "./app.js";
import { diffView } from "./diff.js";
import {
  appendInPieces, command, copyButton, cut, duration, el, fill, heading,
  jsonView, longText, plural, size, tag, time, verdictBadge, visible,
} from "./dom.js";
import { backToTimeline } from "./timeline.js";

const FIELDS = {
  tool_input: "Tool input",
  prompt: "Prompt",
  llm_request: "Model request",
  llm_response: "Model answer",
  tools: "Tools that the model may use",
  tool_response: "Tool result, withheld from the model",
  additionalContext: "Context for the model",
};
const SHORT = 160;
const LONGEST_NAME = 150;

export async function show(root, url, signal) {
  const id = url.pathname.split("/")[2];
  const found = await get(`/api/events/${encodeURIComponent(id)}`, {}, signal);
  fill(root, headOf(found), bodyOf(found));
  listenToKeys(found, signal);
}

function listenToKeys({ previous, next_event: next }, signal) {
  const turn = (event) => {
    const to = { "[": previous, "]": next }[event.key];
    if (!to || event.target.closest("input, textarea, select, dialog")) return;
    event.preventDefault();
    navigate(`/events/${to}`);
  };
  document.addEventListener("keydown", turn, { signal });
}

function headOf(found) {
  const { row, verdict } = found;
  const target = row.target && el("code", {}, cut(row.target, 200));
  const title = heading(cut(row.event, 200), " ", target, verdictBadge(verdict.word),
    row.failed && verdictBadge("failed"),
    row.would_block && verdictBadge("would-block"));
  title.dataset.title = visible(cut(`${row.event} ${row.target ?? ""}`.trim(), 80));
  return el("header", { class: "event-head" },
    wayOf(found), title, factsOf(row),
    row.reason && el("div", { class: `reason verdict-${verdict.word}` },
      longText(row.reason, "Reason")),
    actionsOf(found));
}

function wayOf({ previous, next_event: next }) {
  const step = (id, text, key) => id
    ? el("a", { href: `/events/${id}`, "aria-keyshortcuts": key }, text)
    : el("span", { "aria-disabled": "true" }, text);
  return el("nav", { class: "event-way", "aria-label": "Events of this session" },
    el("a", { href: backToTimeline() }, "← Timeline"),
    el("span", { class: "spacer" }),
    step(previous, ["‹ Previous", wide(" in session")], "["),
    step(next, ["Next", wide(" in session"), " ›"], "]"));
}

// Words that a phone has no room for.
function wide(text) {
  return el("span", { class: "wide" }, text);
}

function factsOf(row) {
  const facts = {
    Event: `#${row.id}`,
    At: time(row.at),
    Session: el("a", { href: address("/", { session: pattern(row.session) }) },
      cut(row.session, 60)),
    Project: cut(row.cwd, 120),
    Took: duration(row.duration_ms),
  };
  return el("dl", { class: "event-facts" }, Object.entries(facts).map(([name, fact]) =>
    el("div", {}, el("dt", {}, name), el("dd", {}, fact))));
}

// A name for a filter, where * and ? and [ mean something.
function pattern(name) {
  const rest = name.length > LONGEST_NAME ? "*" : "";
  return name.slice(0, LONGEST_NAME).replace(/[*?[]/g, "[$&]") + rest;
}

function actionsOf(found) {
  const { row, fire_command: text, case: made } = found;
  const reasons = made?.inexact.join("; ");
  const note = made ? reasons && `A copy is not exact: ${reasons}.`
    : "The input is too large to be copied.";
  return el("div", { class: "event-actions" },
    text && copyButton(text, "Copy as hookline fire"),
    made && el("button", { type: "button", onclick: () => openMade("make-test") },
      "Make a test of this"),
    el("a", { class: "button", href: address("/try", { from: row.id }) },
      "Try with this input"),
    command(`hookline log ${row.id}`),
    note && el("p", { class: "why" }, note));
}

function openMade(id) {
  const part = document.getElementById(id);
  part.open = true;
  part.scrollIntoView({ block: "start" });
  part.querySelector("summary").focus({ preventScroll: true });
}

function bodyOf(found) {
  return el("div", { class: "event-body" },
    el("div", { class: "event-column" },
      changesOf(found), errorsOf(found), hooksOf(found), mergeOf(found)),
    el("div", { class: "event-column" },
      inputOf(found), explanationOf(found), copiesOf(found)));
}

export function part(title, why, ...children) {
  return el("section", {}, el("h2", {}, title), why && el("p", { class: "why" }, why),
    ...children);
}

export function changesOf(found) {
  const { changes, input_masked: masked, output_masked: said, verdict } = found;
  if (changes.length === 0) {
    const hidden = verdict.effects.length > 0 && (masked || said);
    return hidden && part("What changed", null, el("p", { class: "muted" },
      `${verdict.effects.join(", ")}: only masked values differ.`));
  }
  const hint = masked || said
    ? "Masked values look equal even where they differ." : null;
  return part("What changed", hint,
    changes.map((change) =>
      changeCard({ before: found.input?.[change.field], ...change })));
}

function changeCard({ field, before, after, void: isVoid }) {
  const note = isVoid && el("p", { class: "why" },
    "Not applied: the event was blocked or stopped.");
  return el("div", { class: "card" }, el("h3", {}, FIELDS[field] ?? field), note,
    diffView(before, after));
}

// What failed around the hooks; a hook's own failure is shown with the hook.
export function errorsOf({ errors, hooks }) {
  const failed = new Set(hooks.filter((hook) => hook.failed).map((hook) => hook.name));
  const others = errors.filter((error) => !failed.has(error.hook_name));
  const list = el("ul", { class: "card" });
  appendInPieces(list, others.length, (n) => el("li", {},
    tag(cut(String(others[n].stage), 60)), " ",
    longText(String(others[n].message), "Error")));
  return others.length > 0 && part("Errors", null, list);
}

export function hooksOf({ hooks, plan, row }) {
  const order = hooks.length < 2 ? null
    : plan?.sequential ? "They ran one after the other."
      : "They ran in parallel. The bars show the share of the whole time.";
  if (hooks.length === 0) {
    const why = plan ? "No condition of a hook was true."
      : "No hook matched this event.";
    return part("Hooks", null, el("p", { class: "card muted" }, why));
  }
  const list = el("ol", {});
  appendInPieces(list, hooks.length, (n) => hookRun(hooks[n], row.duration_ms), 50);
  return part(plural(hooks.length, "hook run"), order, list);
}

function hookRun(hook, whole) {
  const href = address("/hooks", { q: hook.name.slice(0, LONGEST_NAME) });
  return el("li", { class: `card hook-run verdict-${hook.verdict}` },
    el("header", {},
      el("h3", {}, el("a", { href }, cut(hook.name, 200))),
      verdictBadge(hook.verdict), tagsOf(hook).map((text) => tag(text)),
      el("span", { class: "facts" }, factsOfHook(hook)),
      el("span", { class: "took" }, hook.async ? "not waited for"
        : duration(hook.duration_ms))),
    !hook.async && timeBar(hook.duration_ms, whole),
    hook.error && el("p", { class: "error" }, "Failed: ", cut(hook.error, 2000)),
    hook.warnings.slice(0, 20).map((text) =>
      el("p", { class: "warning" }, "Warning: ", cut(text, 2000))),
    hook.output !== null && opened("Output", jsonView(hook.output, "Output")),
    // What was parsed is the output above.
    hook.output === null && hook.stdout && opened("stdout", longText(hook.stdout)),
    hook.stderr && opened("stderr", longText(hook.stderr)));
}

function opened(title, content) {
  return el("details", { open: true }, el("summary", {}, title), content);
}

function timeBar(ms, whole) {
  const share = whole > 0 ? Math.min(ms / whole, 1) : 0;
  const filled = el("span", {});
  filled.style.width = `${(share * 100).toFixed(1)}%`;
  return el("div", { class: "bar", role: "img",
    "aria-label": `${Math.round(share * 100)} percent of the whole time` }, filled);
}

function factsOfHook({ source, type, mode, exit_code: code, standby }) {
  const status = code !== null && `exit status ${code.rawJSON ?? code}`;
  const process = standby !== null && (standby ? "from standby" : "not from standby");
  return [source, type, mode === "enforce" && "enforce", status, process]
    .filter(Boolean).map((fact) => cut(fact, SHORT)).join(" · ");
}

// What is out of the ordinary about a run.
function tagsOf(hook) {
  return [
    hook.mode === "observe" && "observe: without effect",
    hook.recheck && "re-check of the final input",
    hook.reran && "ran again after another change",
    hook.timed_out && "timed out",
    hook.truncated && "output truncated",
    hook.async && (hook.ended ? "ended later" : "no result yet"),
  ].filter(Boolean);
}

const PARTS = { gave: "decided", agreed: "agreed", lost: "overridden" };

export function mergeOf({ provenance, final_output: final, output_cut: isCut }) {
  if (final === null) return null;
  const list = el("ul", { class: "merge card" });
  appendInPieces(list, provenance.length, (n) => fieldItem(provenance[n]));
  const why = isCut ? "The recorded outputs are truncated, so this may be incomplete."
    : "Which hook decided which field of the merged output.";
  const whole = el("details", { class: "card" }, el("summary", {}, "Merged output"),
    jsonView(final));
  return part("Merge", why, provenance.length > 0 && list, whole);
}

function fieldItem({ field, value, said }) {
  const merged = value === null ? el("span", { class: "muted" }, "dropped")
    : shortJson(value);
  const hooks = said.map(({ hook, value: own, part: outcome }) => el("li", {},
    el("span", { class: "part" }, PARTS[outcome] ?? outcome),
    el("span", {}, cut(hook, 100)),
    outcome === "lost" && el("code", { class: "lost" }, shortText(own))));
  return el("li", {}, el("code", {}, el("strong", {}, cut(field, 200))), " = ", merged,
    el("ul", { class: "said" }, hooks));
}

function shortJson(value) {
  const isLong = typeof value === "object" && !JSON.isRawJSON?.(value);
  return isLong ? jsonView(value, "Value") : el("code", {}, shortText(value));
}

function shortText(value) {
  return cut(typeof value === "string" ? value : JSON.stringify(value) ?? "", SHORT);
}

function inputOf({ input, input_masked: masked, input_cut: isCut, ...found }) {
  const marks = [size(Number(found.input_bytes?.rawJSON ?? found.input_bytes)), masked && "credentials are masked",
    isCut && "truncated, as recorded"].filter(Boolean);
  return part("Input", marks.join(" · "),
    el("div", { class: "card" }, jsonView(input, "Input")));
}

function explanationOf({ explanation, unexplained, explained_in: folder, row }) {
  if (unexplained) {
    return part("Explain", null, el("p", { class: "card muted" }, unexplained));
  }
  if (explanation === null) return null;
  const place = folder === row.cwd ? "" : ` in ${cut(folder, 120)}`;
  const why = `With current settings${place} (nothing was run).`;
  if (explanation.length === 0) {
    return part("Explain", why, el("p", { class: "card muted" },
      "No hooks are configured for this event."));
  }
  const list = el("ul", { class: "explained card" });
  appendInPieces(list, explanation.length, (n) => explained(explanation[n]));
  return part("Explain", why, list);
}

function explained(hook) {
  return el("li", {},
    el("p", {}, el("strong", {}, cut(hook.name, 200)), " ",
      el("span", { class: hook.runs ? "" : "muted" }, `${hook.judgement}`)),
    el("p", { class: "small muted" }, cut(hook.why, 1000)),
    hook.if && expression("if", hook.if), hook.rule && expression("when", hook.rule));
}

export function expression(label, { source, outcome, parts = [], values = {} }) {
  const lines = [
    ...parts.map((one) => `${one.text} = ${one.outcome}`),
    ...Object.entries(values).map(([path, value]) => `${path} = ${shortText(value)}`),
  ];
  return el("div", { class: "expression mono" },
    el("p", {}, el("span", { class: "muted" }, `${label} `), cut(source, 2000),
      el("span", { class: "muted" }, ` = ${cut(outcome, 300)}`)),
    el("ul", {}, lines.slice(0, 50).map((line) => el("li", {}, cut(line, 400)))));
}

function copiesOf({ fire_command: text, case: made, inexact }) {
  if (!made) return null;
  return part("Do it again", null,
    copy("fire-again", "Fire it again", text, inexact,
      "Paste this into a shell. The hooks really run."),
    copy("make-test", "Make a test of this", made.text, made.inexact,
      `Save it as .hookline/${made.name} in the project, then run hookline test.`));
}

function copy(id, title, text, inexact, how) {
  const notes = inexact.map((reason) => el("li", {}, `Not exact: ${reason}.`));
  return el("details", { class: "card make", id }, el("summary", {}, title),
    el("p", { class: "why" }, how), el("ul", { class: "why" }, notes),
    longText(text, title), text.length <= 5000 && copyButton(text));
}
