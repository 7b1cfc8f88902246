// Replay: a time range and settings, and the verdicts that they would change.
// Rules and policies are decided; for other hooks there is a command to type.

import { address, get, post } from "./api.js";
import { remember } from "./app.js";
import { diffView } from "./diff.js";
import {
  announce, copyButton, count, cut, el, errorState, fill, heading, loadingState, longText,
  plural, tag, time, verdictBadge,
} from "./dom.js";

const HOUR = 3600;
const RANGES = [
  { name: "Last hour", since: () => now() - HOUR },
  { name: "Today", since: () => new Date().setHours(0, 0, 0, 0) / 1000 },
  { name: "7 days", since: () => now() - 7 * 24 * HOUR },
  { name: "All", since: () => null },
];
const FILTERS = [
  { name: "tool", label: "Tool", hint: "write_*" },
  { name: "hook", label: "Hook that ran", hint: "secrets" },
  { name: "session", label: "Session", hint: "any" },
];
const INEXACT = { cut: "not exact: input truncated", masked: "not exact: input masked",
  "hook in code": "not exact: a hook in code took part" };

export async function show(root, url, signal) {
  fill(root, heading("Replay"), loadingState());
  const [overview, known, facets] = await Promise.all([
    get("/api/overview", {}, signal),
    get("/api/try", {}, signal),
    get("/api/facets", {}, signal).catch(() => ({})),
  ]);
  const view = new ReplayView({ overview, known, facets, signal });
  fill(root, view.node);
  view.start(url.searchParams);
}

function now() {
  return Math.floor(Date.now() / 1000);
}

class ReplayView {
  constructor({ overview, known, facets, signal }) {
    this.overview = overview;
    this.signal = signal;
    this.form = this.buildForm(known, facets);
    this.outcome = el("div", { "aria-live": "polite" });
    this.node = el("div", { class: "replay" },
      heading("Replay"),
      el("p", { class: "lead" },
        "Decide recorded events again with other settings, and see which verdicts " +
        "change. Nothing is started."),
      el("div", { class: "replay-columns" }, this.form, this.outcome));
  }

  buildForm(known, facets) {
    this.since = this.moment("replay-since", "From");
    this.until = this.moment("replay-until", "Until");
    this.ranges = RANGES.map((range) => el("button",
      { type: "button", "aria-pressed": "false", onclick: () => this.pickRange(range) },
      range.name));
    this.event = el("select", { id: "replay-event" },
      el("option", { value: "" }, "All"),
      known.events.map(({ name }) => el("option", { value: name }, name)));
    this.filters = new Map(FILTERS.map(({ name, hint }) => [name, el("input", {
      id: `replay-${name}`, placeholder: hint, autocomplete: "off", spellcheck: "false",
      list: `replay-${name}s`,
    })]));
    this.everywhere = el("input", { type: "checkbox", id: "replay-everywhere" });
    return el("form", {
      class: "card replay-form", "aria-label": "What to replay",
      oninput: (event) => this.edited(event),
      onsubmit: (event) => { event.preventDefault(); this.replay(); },
    },
      el("fieldset", {}, el("legend", {}, "Time"),
        el("div", { class: "row ranges" }, this.ranges),
        el("div", { class: "pair" }, this.since.field, this.until.field)),
      el("fieldset", {}, el("legend", {}, "Events"),
        el("div", { class: "pair" },
          field("replay-event", "Event", this.event),
          FILTERS.map(({ name, label }) => field(`replay-${name}`, label,
            this.filters.get(name), options(`replay-${name}s`, facets[`${name}s`])))),
        el("label", { class: "row check-label", for: "replay-everywhere" },
          this.everywhere, "Events of all projects, not only of this one")),
      this.buildSettings(),
      el("div", { class: "row" }, this.button = el("button",
        { type: "submit", class: "primary" }, "Replay")));
  }

  moment(id, label) {
    const input = el("input", { type: "datetime-local", id, step: "1" });
    return { input, field: field(id, label, input) };
  }

  buildSettings() {
    const { files } = this.overview.settings;
    this.path = el("input", { id: "replay-path", placeholder: "new-hooks.json",
      autocomplete: "off", spellcheck: "false",
      "aria-label": "Path of the settings file" });
    this.text = el("textarea", { id: "replay-text", rows: "8", spellcheck: "false",
      placeholder: '{"hooks": {"BeforeTool": [...]}}', "aria-label": "Settings" });
    const about = {
      now: el("p", { class: "small muted" },
        files.length > 0 ? files.join(", ") : "There are no settings files here."),
      file: el("div", { class: "grid" }, this.path, el("p", { class: "small muted" },
        "In place of all other settings. Relative to ",
        el("code", {}, this.overview.cwd), ".")),
      text: el("div", { class: "grid" }, this.text, el("p", { class: "small muted" },
        "In place of all other settings.")),
    };
    const names = { now: "The settings in effect", file: "A settings file",
      text: "Settings pasted here" };
    this.settings = Object.entries(names).map(([value, name]) => {
      const radio = el("input", { type: "radio", name: "settings", value,
        id: `replay-settings-${value}` });
      const more = el("div", { class: "choice-more" }, about[value]);
      return { value, radio, more, node: el("div", { class: "choice" },
        el("label", { class: "row check-label", for: radio.id }, radio, name), more) };
    });
    return el("fieldset", {}, el("legend", {}, "Settings"),
      this.settings.map(({ node }) => node));
  }

  start(params) {
    const seconds = (name) => Number(params.get(name)) || null;
    setMoment(this.since.input, params.has("since") ? seconds("since") : null);
    setMoment(this.until.input, seconds("until"));
    this.event.value = params.get("event") ?? "";
    if (this.event.selectedIndex < 0) this.event.value = "";
    for (const [name, input] of this.filters) input.value = params.get(name) ?? "";
    this.everywhere.checked = params.get("everywhere") === "true";
    this.path.value = params.get("settings") ?? "";
    this.choose(params.get("settings") ? "file" : "now");
    this.edited();
    this.invite();
  }

  invite() {
    const { journal } = this.overview;
    const isEmpty = !journal?.events;
    fill(this.outcome, el("section", { class: "state" },
      el("h2", {}, isEmpty ? "Nothing is recorded yet"
        : "What would other settings do?"),
      el("p", {}, isEmpty
        ? "Set hooksConfig.journal to true in the settings and use the agent, then " +
          "come back. Or run hookline demo, which records a few events."
        : "Choose a time range and settings, then replay the events.")));
  }

  choose(value) {
    for (const one of this.settings) {
      one.radio.checked = one.value === value;
      one.more.hidden = one.value !== value;
    }
  }

  get chosen() {
    return this.settings.find(({ radio }) => radio.checked)?.value ?? "now";
  }

  pickRange(range) {
    setMoment(this.since.input, range.since());
    setMoment(this.until.input, null);
    this.range = range.name;
    this.edited();
  }

  edited(event = null) {
    if (event?.target.type === "datetime-local") this.range = null;
    const isAll = !this.since.input.value && !this.until.input.value;
    for (const button of this.ranges) {
      const pressed = isAll ? RANGES.at(-1).name : this.range;
      button.setAttribute("aria-pressed", String(button.textContent === pressed));
    }
    this.choose(this.chosen);
    this.writeAddress();
  }

  // Settings that were pasted stay out of it.
  writeAddress() {
    const { settings_text: _, everywhere, ...shown } = this.body();
    const params = { ...shown, everywhere: everywhere || null };
    remember(address("/replay", params), { replace: true });
  }

  body() {
    const isFile = this.chosen === "file";
    return {
      since: moment(this.since.input),
      until: moment(this.until.input),
      event: this.event.value || null,
      ...Object.fromEntries([...this.filters].map(([name, input]) =>
        [name, input.value.trim() || null])),
      everywhere: this.everywhere.checked,
      settings: isFile ? this.path.value.trim() || null : null,
      settings_text: this.chosen === "text" ? this.text.value || null : null,
    };
  }

  // Why the form cannot be sent.
  problem() {
    if (this.chosen === "file" && !this.path.value.trim()) {
      return [this.path, "Give the path of a settings file."];
    }
    if (this.chosen === "text" && !this.text.value.trim()) {
      return [this.text, "Paste the settings."];
    }
    const { since, until } = this.body();
    if (since !== null && until !== null && since >= until) {
      return [this.until.input, "The time until has to be after the time from."];
    }
    return null;
  }

  async replay() {
    const problem = this.problem();
    if (problem) {
      problem[0].focus();
      return fill(this.outcome, errorState(new Error(problem[1])));
    }
    this.button.disabled = true;
    fill(this.outcome, loadingState("Replaying…"));
    try {
      const found = await post("/api/replay", this.body(), this.signal);
      fill(this.outcome, outcomeOf(found));
      announce(headline(found));
    } catch (error) {
      if (!this.signal.aborted) fill(this.outcome, errorState(error));
    } finally {
      this.button.disabled = false;
    }
    return null;
  }
}

function headline({ decided, kinds }) {
  const counted = kinds.filter(({ apart }) => !apart);
  const changed = counted.reduce((sum, kind) => sum + kind.count, 0);
  const what = changed === 0 ? "no verdict changes"
    : `${plural(changed, "verdict")} changed`;
  return `${plural(decided, "event")} replayed: ${what}.`;
}

function outcomeOf(found) {
  const { kinds, changes, failed, failures, programs, messages, command } = found;
  const apart = kinds.filter((kind) => kind.apart);
  const differing = kinds.reduce((sum, kind) => sum + kind.count, 0);
  const byProgram = Object.values(programs).reduce((sum, number) => sum + number, 0);
  const names = Object.keys(programs).slice(0, 5).map((name) => cut(name, 100));
  const notes = [
    apart.length > 0 && "Changes that are marked as not exact are not counted.",
    found.undecided > 0 && `${plural(found.undecided, "older event")} left out: ` +
      "choose a shorter time range.",
    found.elsewhere > 0 && `${plural(found.elsewhere, "event")} of other projects ` +
      "left out.",
    differing > changes.length && `The newest ${count(changes.length)} of ` +
      `${plural(differing, "change")} are shown.`,
  ].filter(Boolean);
  return el("section", { class: "card grid", "aria-labelledby": "replayed" },
    el("h2", { id: "replayed", class: "summary" }, headline(found)),
    kinds.length > 0 && el("ul", { class: "tallies" }, kinds.map((kind) => el("li", {},
      el("strong", {}, count(kind.count)), ` ${kind.before} → ${kind.after}`,
      kind.apart && " (not exact)"))),
    notes.map((text) => el("p", { class: "small muted" }, text)),
    messages.map((text) => el("p", { class: "small warning-text" }, text)),
    failed > 0 && failuresOf(failed, failures),
    byProgram > 0 && el("div", {},
      el("p", {}, `Not decided: ${plural(byProgram, "event")} on which a hook runs a ` +
        `program (${names.join(", ")}). To replay all events, type this in a shell; ` +
        "the hooks really run:"),
      longText(command, "Command"), copyButton(command)),
    el("ol", { class: "changes-list" }, changes.map(changeRow)));
}

function failuresOf(failed, failures) {
  return el("details", {},
    el("summary", { class: "warning-text" },
      `Hooks failed on ${plural(failed, "event")}`),
    el("ul", { class: "grid small" }, failures.map(({ id, errors }) => el("li", {},
      el("a", { href: `/events/${id}` }, `Event ${id}`), ": ",
      cut(errors.join("; "), 500)))));
}

// Which hooks decide now, or who blocked it then.
function whose({ hooks, blockers, reason }) {
  const isNow = hooks.length > 0;
  const names = isNow ? hooks.join(", ") : blockers;
  if (!names && !reason) return null;
  return el("p", { class: "small" },
    names && [isNow ? "Now by " : "Was blocked by ", el("strong", {}, cut(names, 200))],
    names && reason && ": ", reason && cut(reason, 400));
}

function changeRow(change) {
  const details = change.changes.filter(({ before, after }) =>
    typeof before !== "boolean" && typeof after !== "boolean");
  return el("li", { tabindex: "-1", "data-row": true },
    el("div", { class: "row" },
      verdictBadge(change.before), el("span", { "aria-label": "now" }, "→"),
      verdictBadge(change.after),
      el("a", { href: `/events/${change.id}` }, change.event, " ",
        change.target && el("code", {}, cut(change.target, 120))),
      change.apart && tag(INEXACT[change.apart] ?? change.apart),
      el("span", { class: "small muted when" }, time(Date.parse(change.at) / 1000))),
    whose(change),
    details.length > 0 && el("details", {},
      el("summary", { class: "small" }, details.map(({ what }) => what).join(", ")),
      details.map(({ before, after }) => diffView(before, after))));
}

function field(id, label, ...controls) {
  return el("div", { class: "field" }, el("label", { for: id }, label), ...controls);
}

function options(id, values = []) {
  return el("datalist", { id }, values.map(({ value }) => el("option", { value })));
}

function setMoment(input, seconds) {
  if (seconds === null) {
    input.value = "";
    return;
  }
  const then = new Date(seconds * 1000);
  const local = new Date(then.getTime() - then.getTimezoneOffset() * 60_000);
  input.value = local.toISOString().slice(0, 19);
}

function moment(input) {
  const at = input.value === "" ? NaN : new Date(input.value).getTime();
  return Number.isNaN(at) ? null : at / 1000;
}
