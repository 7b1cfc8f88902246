// Replay: a time range and settings; a count first; then progress, and what changes.

import { address, get, post } from "./api.js";
import { remember } from "./app.js";
import {
  announce, count, el, errorState, fill, heading, loadingState, plural, time,
} from "./dom.js";
import { ReplayJob, stateBadge } from "./replay_job.js";

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
const EXACT = { cut: "input truncated", masked: "input masked",
  "hook in code": "a hook in code took part" };

export async function show(root, url, signal) {
  fill(root, heading("Replay"), loadingState());
  const [overview, known, facets, jobs] = await Promise.all([
    get("/api/overview", {}, signal),
    get("/api/try", {}, signal),
    get("/api/facets", {}, signal).catch(() => ({})),
    get("/api/replays", {}, signal),
  ]);
  const view = new ReplayView({ overview, known, facets, signal });
  fill(root, view.node);
  view.start(url.searchParams, jobs.replays);
}

function now() {
  return Math.floor(Date.now() / 1000);
}

class ReplayView {
  constructor({ overview, known, facets, signal }) {
    this.overview = overview;
    this.signal = signal;
    this.form = this.buildForm(known, facets);
    this.counted = el("div", { class: "replay-counted", "aria-live": "polite" });
    this.job = el("div", { class: "replay-job" });
    this.earlier = el("div", {});
    this.watching = new AbortController();
    signal.addEventListener("abort", () => this.watching.abort(), { once: true });
    this.node = el("div", { class: "replay" },
      heading("Replay"),
      el("p", { class: "lead" },
        "Fire recorded events again with other settings, and see which verdicts " +
        "change."),
      el("div", { class: "replay-columns" },
        el("div", {}, this.form, this.earlier),
        el("div", { class: "replay-right" }, this.counted, this.job)));
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
      onsubmit: (event) => { event.preventDefault(); this.count(); },
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
      el("div", { class: "row" }, this.countButton = el("button",
        { type: "submit", class: "primary" }, "Count the events"),
      el("span", { class: "small muted" }, "Counting runs no hooks.")));
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
        el("code", {}, this.overview.cwd),
        ". Commands in it really run, as you: name only a file that you trust.")),
      text: el("div", { class: "grid" }, this.text, el("p", { class: "small muted" },
        "In place of all other settings. Not kept once the hooks have been loaded. " +
        "Commands in it really run, as you: paste only what you trust.")),
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

  start(params, jobs) {
    const seconds = (name) => Number(params.get(name)) || null;
    setMoment(this.since.input, params.has("since") ? seconds("since") : null);
    setMoment(this.until.input, seconds("until"));
    this.event.value = params.get("event") ?? "";
    if (this.event.selectedIndex < 0) this.event.value = "";
    for (const [name, input] of this.filters) input.value = params.get(name) ?? "";
    this.everywhere.checked = params.get("everywhere") === "true";
    this.path.value = params.get("settings") ?? "";
    this.choose(params.get("settings") ? "file" : "now");
    this.showEarlier(jobs);
    const running = jobs.find(({ state }) => state === "running");
    const wanted = params.get("replay") ?? running?.id;
    this.watched = wanted ? Number(wanted) : null;
    this.edited();
    if (wanted) this.watch(this.watched);
    else this.invite();
  }

  invite() {
    const { journal } = this.overview;
    const isEmpty = !journal?.events;
    fill(this.job, el("section", { class: "state" },
      el("h2", {}, isEmpty ? "Nothing is recorded yet"
        : "What would other settings do?"),
      el("p", {}, isEmpty
        ? "Set hooksConfig.journal to true in the settings and use the agent, then " +
          "come back. Or run hookline demo, which records a few events."
        : "Choose a time range and settings, then count the events. Nothing runs " +
          "before you say so.")));
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
    fill(this.counted);
    this.writeAddress();
  }

  // Settings that were pasted stay out of it.
  writeAddress() {
    const { settings_text: _, everywhere, ...shown } = this.body();
    const params = { ...shown, everywhere: everywhere || null, replay: this.watched };
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

  async count() {
    const problem = this.problem();
    if (problem) {
      problem[0].focus();
      return fill(this.counted, errorState(new Error(problem[1])));
    }
    const body = this.body();
    const stop = new AbortController();
    this.signal.addEventListener("abort", () => stop.abort(), { once: true });
    this.countButton.disabled = true;
    fill(this.counted, el("div", { class: "card row" }, loadingState("Counting…"),
      el("button", { type: "button", onclick: () => stop.abort() }, "Cancel")));
    try {
      const found = await post("/api/replays/count", body, stop.signal);
      fill(this.counted, this.countedCard(found, body));
      if (!this.watched) fill(this.job);
      this.counted.querySelector("button")?.focus();
    } catch (error) {
      if (this.signal.aborted) return null;
      fill(this.counted, stop.signal.aborted ? null : errorState(error));
    } finally {
      this.countButton.disabled = false;
    }
    return null;
  }

  countedCard(found, body) {
    const { events, hook_runs: runs, apart, elsewhere, messages } = found;
    const kindList = Object.entries(found.by_event)
      .sort(([, one], [, other]) => other - one);
    const start = events > 0 && el("button",
      { type: "button", class: "primary", onclick: () => this.replay(body) },
      `Replay ${plural(events, "event")}`);
    return el("section", { class: "card grid", "aria-labelledby": "counted" },
      el("h2", { id: "counted" }, events === 0 ? "No events to replay"
        : `${plural(events, "event")} would be replayed, ` +
          `with ${plural(runs, "hook run")}`),
      el("ul", { class: "tallies" }, kindList.map(([name, number]) =>
        el("li", {}, el("strong", {}, count(number)), " ", name))),
      Object.entries(apart).map(([why, number]) => el("p", { class: "small muted" },
        `${count(number)} of them not exactly: ${EXACT[why] ?? why}.`)),
      elsewhere > 0 && el("p", { class: "small muted" },
        `${plural(elsewhere, "event")} of other projects left out.`),
      messages.map((text) => el("p", { class: "small warning-text" }, text)),
      events > 0 && el("p", { class: "warning-text" },
        el("strong", {}, "Hooks really run"), ", in ",
        el("code", {}, this.overview.cwd),
        ", with ", el("code", {}, "HOOKLINE_REPLAY=1"),
        body.settings || body.settings_text
          ? ". Those of the chosen settings need no approval. "
          : ". Untrusted hooks do not run. ",
        "Nothing is recorded."),
      start && el("div", { class: "row" }, start));
  }

  async replay(body) {
    try {
      const { id } = await post("/api/replays", body, this.signal);
      fill(this.counted);
      this.watch(id);
      this.job.scrollIntoView({ block: "nearest" });
    } catch (error) {
      if (!this.signal.aborted) fill(this.counted, errorState(error));
    }
  }

  watch(id) {
    this.watching.abort();
    this.watching = new AbortController();
    this.watched = id;
    this.writeAddress();
    const job = new ReplayJob(id, this.watching.signal, () => this.listAgain());
    fill(this.job, job.node);
    job.start();
    this.listAgain();
  }

  async listAgain() {
    const found = await get("/api/replays", {}, this.signal).catch(() => null);
    if (found) this.showEarlier(found.replays);
  }

  showEarlier(jobs) {
    if (jobs.length === 0) return fill(this.earlier);
    const items = jobs.map((job) => el("li", { class: "row" },
      el("button", { type: "button", class: "quiet", "data-row": true,
        onclick: () => { this.watch(job.id); announce(`Replay ${job.id}`); } },
        `Replay ${job.id}`),
      stateBadge(job.state),
      el("span", { class: "small muted" }, time(job.started), " · ",
        plural(job.total, "event"))));
    return fill(this.earlier, el("section",
      { class: "card", "aria-labelledby": "earlier" },
      el("h2", { id: "earlier" }, "Replays"),
      el("p", { class: "small muted" },
        "One at a time. The last five are kept until the inspector ends."),
      el("ul", {}, items)));
  }
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
