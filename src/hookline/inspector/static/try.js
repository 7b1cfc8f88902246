// Try: an event, a tool and an input; which hooks would run and why, and the verdict.
// Rules and policies are decided; where a hook runs a program there is a command to type.

import { get, post } from "./api.js";
import { remember } from "./app.js";
import {
  announce, appendInPieces, copyButton, cut, el, errorState, fill, heading,
  loadingState, longText, tag, verdictBadge, visible,
} from "./dom.js";
import { changesOf, errorsOf, expression, mergeOf } from "./event.js";
import { indented, jsonMistake } from "./jsontext.js";

const PAUSE_MS = 250;
const LONGEST_IN_URL = 1500;

export async function show(root, url, signal) {
  fill(root, heading("Try"), loadingState());
  const [known, facets] = await Promise.all([
    get("/api/try", {}, signal),
    // The journal only adds names of tools; without it there are others.
    get("/api/facets", {}, signal).catch(() => ({ tools: [] })),
  ]);
  const tools = new Set([...known.tools, ...facets.tools.map(({ value }) => value)]);
  const view = new TryView(known, [...tools].sort(), signal);
  fill(root, view.node);
  await view.start(url.searchParams);
}

class TryView {
  constructor(known, tools, signal) {
    this.known = known;
    this.signal = signal;
    this.events = new Map(known.events.map((event) => [event.name, event]));
    this.drafts = new Map();
    this.pause = null;
    this.asked = 0;
    this.buildForm(tools);
    this.verdict = el("div", { class: "try-verdict" });
    this.explanation = el("div", { class: "try-explanation" });
    this.node = el("div", { class: "try" },
      heading("Try"),
      el("p", { class: "lead" },
        "Pick an event, a tool and an input, and see which hooks would run and why. " +
        "Nothing is started."),
      el("div", { class: "try-columns" },
        this.form,
        el("div", { class: "try-right" },
          el("section", { class: "card", "aria-labelledby": "would-say" },
            el("h2", { id: "would-say" }, "What they would say"), this.verdict),
          el("section", { class: "card", "aria-labelledby": "would-run" },
            el("h2", { id: "would-run" }, "Which hooks would run"),
            this.explanation))),
    );
    signal.addEventListener("abort", () => clearTimeout(this.pause), { once: true });
  }

  buildForm(tools) {
    this.eventChoice = el("select",
      { id: "try-event", onchange: () => this.pickEvent() },
      this.known.events.map(({ name }) => el("option", { value: name }, name)));
    this.about = el("p", { class: "small muted", id: "try-about" });
    this.fields = el("p", { class: "small fields" });
    this.toolName = el("input", {
      id: "try-tool", list: "try-tools", autocomplete: "off", spellcheck: "false",
      oninput: () => this.pickTool(),
    });
    this.toolField = el("div", { class: "field" },
      el("label", { for: "try-tool" }, "Tool"),
      this.toolName,
      el("datalist", { id: "try-tools" },
        tools.map((name) => el("option", { value: name }))));
    this.input = el("textarea", {
      id: "try-input", rows: "14", spellcheck: "false", autocomplete: "off",
      autocapitalize: "off", "aria-describedby": "try-check", "data-search": true,
      oninput: () => this.changed(),
    });
    this.check = el("p", { class: "small check", id: "try-check", role: "status" });
    this.note = el("p", { class: "small try-note", hidden: true });
    this.eventChoice.setAttribute("aria-describedby", "try-about");
    this.form = el("form", {
      class: "card try-form", "aria-label": "Event",
      onsubmit: (event) => event.preventDefault(),
    },
      el("div", { class: "field" },
        el("label", { for: "try-event" }, "Event"), this.eventChoice, this.about),
      this.toolField,
      el("div", { class: "field" },
        el("label", { for: "try-input" }, "Input, as JSON"), this.input),
      this.check,
      el("div", { class: "row" },
        el("button", { type: "button", onclick: () => this.format() }, "Format"),
        el("button", { type: "button", onclick: () => this.reset() }, "Use the sample"),
        copyButton(() => location.href, "Copy the address")),
      this.note,
      this.fields,
    );
  }

  get event() { return this.events.get(this.eventChoice.value); }

  async start(params) {
    const event = params.get("from") ?? params.get("event") ?? "BeforeTool";
    if (/^\d+$/.test(event)) await this.fillRecorded(event);
    else this.fillGiven(event, params.get("tool"), params.get("input"));
  }

  fillGiven(event, tool, input) {
    const isKnown = this.events.has(event);
    this.eventChoice.value = isKnown ? event : "BeforeTool";
    this.toolName.value = tool ?? (this.event.takes_tool ? "write_file" : "");
    this.input.value = input ?? this.sample();
    if (!isKnown) this.tell(`Unknown event ${visible(event)}.`);
    this.recordedText = this.input.value;
    this.shownTool = this.toolName.value;
    this.showEvent();
    this.changed(0);
  }

  async fillRecorded(id) {
    try {
      const found = await get(`/api/try/${id}`, {}, this.signal);
      this.recorded = id;
      // What cannot be seen is written out, which means the same in JSON.
      this.fillGiven(found.event, found.tool ?? "", visible(found.text));
      this.tell(
        "The input of ", el("a", { href: `/events/${id}` }, `event ${id}`), ".",
        found.inexact.map((reason) => ` Not as it was: ${reason}.`));
    } catch (error) {
      if (this.signal.aborted) return;
      this.fillGiven("BeforeTool", null, null);
      this.tell(error.message);
    }
  }

  tell(...children) {
    fill(this.note, ...children);
    this.note.hidden = false;
  }

  sample() {
    const { sample, takes_tool: takesTool } = this.event;
    const toolInput = this.known.tool_inputs[this.toolName.value] ?? {};
    const given = takesTool ? { ...sample, tool_input: toolInput } : sample;
    return JSON.stringify(given, null, 2);
  }

  showEvent() {
    const { description, fields, takes_tool: takesTool } = this.event;
    this.toolField.hidden = !takesTool;
    fill(this.about, description);
    const shown = fields.filter(({ name }) => name !== "tool_name");
    fill(this.fields, el("span", { class: "muted" }, "Fields: "),
      shown.map(({ name, required, choices }, n) => [
        n > 0 && ", ",
        el("code", {}, name),
        choices.length > 0
          && el("span", { class: "muted" }, ` (${choices.join(", ")})`),
        !required && el("span", { class: "muted" }, " (optional)"),
      ]));
    this.shownEvent = this.event.name;
  }

  pickEvent() {
    this.drafts.set(this.shownEvent, this.input.value);
    this.recorded = null;
    if (this.event.takes_tool) this.toolName.value ||= "write_file";
    this.shownTool = this.toolName.value;
    this.showEvent();
    this.input.value = this.drafts.get(this.event.name) ?? this.sample();
    this.changed(0);
  }

  // Another tool has another sample, unless somebody has changed it.
  pickTool() {
    const now = this.toolName.value;
    this.toolName.value = this.shownTool ?? "";
    const isSample = this.input.value === this.sample();
    this.toolName.value = this.shownTool = now;
    if (isSample) this.input.value = this.sample();
    this.changed();
  }

  format() {
    if (jsonMistake(this.input.value)) return this.showMistake(true);
    this.input.value = indented(this.input.value);
    this.changed(0);
  }

  reset() {
    this.recorded = null;
    this.note.hidden = true;
    this.input.value = this.sample();
    this.changed(0);
  }

  changed(pause = PAUSE_MS) {
    clearTimeout(this.pause);
    const isValid = this.showMistake();
    this.markStale(true);
    this.pause = setTimeout(() => {
      this.writeAddress();
      if (isValid) this.explain();
    }, pause);
  }

  markStale(isStale) {
    for (const part of [this.verdict, this.explanation]) {
      part.classList.toggle("stale", isStale);
    }
  }

  showMistake(isAsked = false) {
    const mistake = jsonMistake(this.input.value);
    this.check.classList.toggle("bad", mistake !== null);
    this.input.setAttribute("aria-invalid", String(mistake !== null));
    if (mistake === null) {
      fill(this.check, "Valid JSON");
      return true;
    }
    const { line, column, at, message } = mistake;
    const goTo = () => {
      this.input.focus();
      this.input.setSelectionRange(at, Math.min(at + 1, this.input.value.length));
    };
    fill(this.check,
      at !== null && el("button",
        { type: "button", class: "quiet place-of", onclick: goTo },
        `Line ${line}, column ${column}`),
      at !== null && ": ", message);
    if (isAsked && at !== null) goTo();
    return false;
  }

  writeAddress() {
    const params = new URLSearchParams({ event: this.event.name });
    if (this.recorded && this.input.value === this.recordedText) {
      params.set("event", this.recorded);
    } else {
      if (this.event.takes_tool) params.set("tool", this.toolName.value);
      const text = this.input.value;
      const isShort = text.length <= LONGEST_IN_URL;
      if (isShort && text !== this.sample()) params.set("input", text);
    }
    remember(`/try?${params}`, { replace: true });
  }

  body() {
    const tool = this.event.takes_tool ? this.toolName.value.trim() : "";
    const input = this.input.value.trim() || "{}";
    return { event: this.event.name, tool: tool || null, input };
  }

  async explain() {
    const asked = ++this.asked;
    try {
      const found = await post("/api/explain", this.body(), this.signal);
      if (asked !== this.asked) return;
      fill(this.verdict, verdictOf(found));
      fill(this.explanation, explanationOf(found));
      announce(found.summary);
    } catch (error) {
      if (this.signal.aborted || asked !== this.asked) return;
      fill(this.verdict);
      fill(this.explanation, errorState(error, () => this.explain()));
    }
    this.markStale(this.input.getAttribute("aria-invalid") === "true");
  }
}

const JUDGEMENTS = {
  runs: "allowed",
  untrusted: "ask",
  changed: "ask",
  skipped: "ask",
  "condition false": "ask",
};

// The answer of /api/explain, in the words of `hookline explain`.
function explanationOf({ hooks, summary, warnings }) {
  const list = el("ol", { class: "explained" });
  appendInPieces(list, hooks.length, (n) => explained(hooks[n]));
  return [
    el("p", { class: "summary" }, sentence(summary)),
    warnings.map((text) => el("p", { class: "small warning-text" }, text)),
    hooks.length === 0 && el("p", { class: "muted" },
      "Add a hook for it to the settings, or choose another event. ",
      el("a", { href: "/hooks" }, "See all hooks")),
    list,
  ];
}

function sentence(text) {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}

function explained(hook) {
  const { judgement, order } = hook;
  const badge = judgement in JUDGEMENTS
    ? verdictBadge(JUDGEMENTS[judgement], judgement) : tag(judgement);
  return el("li", { tabindex: "-1", "data-row": true },
    el("p", { class: "row" },
      el("span", { class: "muted" }, order === null ? "–" : `${order}.`),
      el("strong", {}, cut(hook.name, 200)), badge),
    el("p", {}, cut(hook.why, 1000)),
    el("p", { class: "small muted" }, factsOf(hook)),
    hook.if && expression("if", hook.if), hook.rule && expression("when", hook.rule));
}

function factsOf(hook) {
  const facts = [
    `${hook.source} ${hook.type}`,
    hook.observes && "observes only: its verdict has no effect",
    hook.managed && "managed",
    hook.dialect !== "hookline" && `dialect ${hook.dialect}`,
    hook.sequential && "sequential",
    hook.async && "not waited for",
  ];
  return `${facts.filter(Boolean).join(", ")}; ${hook.file ?? "registered in code"}`;
}

// The verdict, where rules and policies decide; else the command that runs the hooks.
function verdictOf({ result, programs, command }) {
  if (result === null) {
    const names = programs.slice(0, 5).map((name) => cut(name, 100)).join(", ");
    const more = programs.length > 5 ? ` and ${programs.length - 5} more` : "";
    return [
      el("p", {}, `It depends on hooks that run a program: ${names}${more}. `,
        "To run them, type this in a shell:"),
      longText(command, "Command"), copyButton(command),
    ];
  }
  const { reason, verdict: { word } } = result;
  const messages = [
    ["Message for the model", result.system_message],
    ["Message for the user", result.user_message],
  ].filter(([, text]) => text);
  return el("div", { class: "event-column result" },
    el("h3", { class: "row" }, "Verdict: ", verdictBadge(word)),
    reason && el("div", { class: `reason verdict-${word}` },
      longText(reason, "Reason")),
    messages.map(([label, text]) =>
      el("div", {}, el("h3", {}, label), longText(text, label))),
    changesOf(result), errorsOf(result), mergeOf(result));
}
