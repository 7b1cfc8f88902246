// What hooks would do on an event, and what they did: lists for the Try view.

import {
  cut, duration, el, jsonView, longText, plural, tag, time, verdictBadge, visible,
} from "./dom.js";

const JUDGEMENTS = {
  runs: "allowed",
  untrusted: "ask",
  changed: "ask",
  skipped: "ask",
  "condition false": "ask",
};
const LONGEST_NAME = 120;

// The answer of /api/explain, in the words of `hookline explain`.
export function showExplanation({ hooks, summary, warnings }) {
  const advice = hooks.length === 0 && el("p", { class: "muted" },
    "Add a hook for it to the settings, or choose another event. ",
    el("a", { href: "/hooks" }, "All hooks"));
  return [
    el("p", { class: "summary" }, sentence(summary)),
    warnings.map((text) => el("p", { class: "small warning-text" }, text)),
    advice,
    el("ol", { class: "hook-list" }, hooks.map(explained)),
  ];
}

function sentence(text) {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}

function explained(hook) {
  const known = JUDGEMENTS[hook.judgement];
  const badge = known
    ? verdictBadge(known, hook.judgement)
    : tag(hook.judgement);
  return el("li", { class: "hook-item", tabindex: "-1", "data-row": true },
    el("div", { class: "hook-line" },
      el("span", { class: "order muted" }, hook.order === null ? "–" : `${hook.order}.`),
      el("strong", {}, cut(hook.name, LONGEST_NAME)), badge),
    el("p", {}, hook.why),
    el("p", { class: "small muted" }, facts(hook)),
    expression("if", hook.if),
    expression("when", hook.rule),
  );
}

function facts(hook) {
  const parts = [
    `${hook.source} ${hook.type}`,
    hook.observes && "observes only: its verdict has no effect",
    hook.managed && "managed",
    hook.dialect !== "hookline" && `dialect ${hook.dialect}`,
    hook.sequential && "sequential",
    hook.async && "not waited for",
  ];
  return `${parts.filter(Boolean).join(", ")}; ${hook.file ?? "registered in code"}`;
}

function expression(label, found) {
  if (!found) return null;
  const values = Object.entries(found.values ?? {});
  return el("details", { class: "expression", open: true },
    el("summary", {}, el("code", {}, label), ": ", el("code", {}, cut(found.source, 300)),
      " is ", el("strong", {}, found.outcome)),
    el("ul", {},
      (found.parts ?? []).map((part) => el("li", {},
        el("code", {}, cut(part.text, 300)), " is ", el("strong", {}, part.outcome))),
      values.map(([path, value]) => el("li", {},
        el("code", {}, cut(path, 300)), " = ", el("code", {}, cut(JSON.stringify(value), 300))))),
  );
}

// The answer of /api/fire.
export function showResult(result) {
  return el("div", { class: "result" },
    el("h3", {}, headline(result)),
    reason(result),
    effects(result),
    hooksThatRan(result.hooks),
    result.errors.map(({ message }) => el("p", { class: "small warning-text" }, message)),
    origins(result.origins),
    result.messages.length > 0 && el("details", {},
      el("summary", {}, "What the command said"), longText(result.messages.join("\n"))),
    el("details", {}, el("summary", {}, "The whole answer"), jsonView(result)),
  );
}

function headline(result) {
  const word = result.verdict;
  const ran = result.hooks.length > 0
    ? `${plural(result.hooks.length, "hook run")} in ${duration(result.total_duration_ms)}`
    : "no hook ran";
  return [verdictBadge(word), el("span", { class: "muted small" }, ` ${ran}`)];
}

function reason(result) {
  const text = result.stop_reason ?? result.reason ?? result.final_output?.reason;
  return text ? el("p", { class: "reason" }, longOrPlain(text)) : null;
}

function longOrPlain(text) {
  return text.length > 400 || text.includes("\n") ? longText(text, "Reason") : text;
}

function effects(result) {
  const said = [
    ["Context for the model", result.additional_context],
    ["Message for the model", result.system_message],
    ["Message for the user", result.user_message],
  ].filter(([, text]) => text);
  return [
    result.changes.map(changed),
    said.map(([label, text]) => el("div", {}, el("h4", {}, label), longText(text, label))),
  ];
}

function changed({ field, before, after }) {
  return el("div", { class: "change" },
    el("h4", {}, "Changed: ", el("code", {}, field)),
    el("div", { class: "before-after" },
      el("div", {}, el("p", { class: "small muted" }, "Before"), jsonView(before, "Before")),
      el("div", {}, el("p", { class: "small muted" }, "After"), jsonView(after, "After"))));
}

function hooksThatRan(hooks) {
  if (hooks.length === 0) return null;
  return el("ol", { class: "hook-list", "aria-label": "Hooks that ran" },
    hooks.map((hook) => el("li", { class: "hook-item" },
      el("div", { class: "hook-line" },
        el("strong", {}, cut(hook.name, LONGEST_NAME)),
        verdictBadge(hook.verdict),
        el("span", { class: "small muted" }, ranFacts(hook))),
      hook.error && el("p", { class: "warning-text" }, hook.error),
      texts(hook))));
}

function ranFacts(hook) {
  return [
    `${hook.source} ${hook.type}`,
    hook.duration_ms !== null && duration(hook.duration_ms),
    hook.exit_code !== null && `exit ${hook.exit_code}`,
    hook.mode === "observe" && "observes only",
    hook.recheck && "asked again about the final input",
    hook.reran && "run again",
    hook.async && "not waited for",
  ].filter(Boolean).join(", ");
}

function texts({ stderr, stdout, output }) {
  const hasOutput = output && Object.keys(output).length > 0;
  return [
    stderr && el("details", { open: true }, el("summary", {}, "stderr"), longText(stderr, "stderr")),
    hasOutput && el("details", {}, el("summary", {}, "Output"), jsonView(output, "Output")),
    stdout && !hasOutput
      && el("details", {}, el("summary", {}, "stdout"), longText(stdout, "stdout")),
  ];
}

const PARTS = { gave: "used", agreed: "agreed", lost: "overridden" };

function origins(fields) {
  if (fields.length === 0) return null;
  return el("details", {},
    el("summary", {}, "Fields and the hooks behind them"),
    el("ul", { class: "origins" }, fields.map(({ field, value, said }) => el("li", {},
      el("code", {}, field), " = ",
      value === null ? "dropped" : el("code", {}, cut(JSON.stringify(value), 300)),
      el("ul", {}, said.map((one) => el("li", { class: "small" },
        `${cut(one.hook, LONGEST_NAME)}: `,
        el("code", {}, cut(JSON.stringify(one.value), 300)),
        ` (${PARTS[one.part] ?? one.part})`)))))));
}
