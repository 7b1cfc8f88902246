// One replay: its progress while it runs, the verdicts that change, and its summary.

import { get, post, stream } from "./api.js";
import {
  announce, count, cut, duration, el, errorState, fill, longText, plural, tag, time,
  verdictBadge,
} from "./dom.js";
import { diffView } from "./diff.js";

const PAGE = 100;
const ANNOUNCE_MS = 5000;
const INEXACT = { cut: "not exact: input truncated", masked: "not exact: input masked",
  "hook in code": "not exact: a hook in code took part" };
const TONES = {
  running: "changed", done: "allowed", failed: "failed", cancelled: "ask",
};

export function stateBadge(state) {
  return el("span", { class: `badge verdict-${TONES[state] ?? "other"}` }, state);
}

export class ReplayJob {
  constructor(id, signal, onEnd) {
    this.id = id;
    this.signal = signal;
    this.onEnd = onEnd;
    this.kinds = new Set();
    this.announced = 0;
    this.state = el("span", {});
    this.bar = el("progress", { max: "1", id: "replay-progress" });
    this.label = el("label", { for: "replay-progress" }, "Starting…");
    this.cancelButton = el("button",
      { type: "button", class: "danger", onclick: () => this.cancel() }, "Cancel");
    this.summary = el("div", { class: "grid" });
    this.chips = el("div", { class: "row chips", role: "group",
      "aria-label": "Show only these changes" });
    this.rows = el("ol", { class: "changes-list" });
    this.more = el("div", { class: "more" });
    this.node = el("section", { class: "card grid", "aria-labelledby": "replay-title" },
      el("div", { class: "row" },
        el("h2", { id: "replay-title" }, `Replay ${id}`), this.state),
      this.progress = el("div", { class: "grid progress" }, this.label,
        el("div", { class: "row" }, this.bar, this.cancelButton)),
      this.summary, this.chips, this.rows, this.more);
  }

  start() {
    const close = stream(`/api/replays/${this.id}/stream`, {}, {
      progress: (status) => this.show(status),
      change: (change) => this.addLive(change),
      done: (status) => { close(); this.end(status); },
      failed: (status) => { close(); this.end(status); },
      lost: () => this.lost(close),
    }, this.signal);
  }

  // The stream ended early: was it the server, or is there no such replay?
  async lost(close) {
    try {
      await get(`/api/replays/${this.id}`, {}, this.signal);
    } catch (error) {
      if (this.signal.aborted) return;
      if (error.offline) {
        fill(this.label, error.message);
        return;
      }
      close();
      this.progress.hidden = true;
      fill(this.summary, errorState(error));
    }
  }

  show(status) {
    this.status = status;
    fill(this.state, stateBadge(status.state));
    const { done, total } = status;
    if (total > 0) {
      this.bar.max = total;
      this.bar.value = done;
    }
    fill(this.label, progressText(status));
    if (Date.now() - this.announced > ANNOUNCE_MS) {
      this.announced = Date.now();
      announce(progressText(status));
    }
    this.showChips();
    this.showMore();
  }

  end(status) {
    this.show(status);
    this.progress.hidden = true;
    fill(this.summary, summaryOf(status));
    announce(headline(status));
    this.onEnd();
  }

  showChips() {
    const { kinds } = this.status;
    const text = JSON.stringify(kinds);
    if (text === this.shownKinds) return;
    this.shownKinds = text;
    const focused = [...this.chips.children].indexOf(document.activeElement);
    fill(this.chips, kinds.length > 1 && kinds.map((kind, n) => el("button", {
      type: "button", "aria-pressed": String(this.kinds.has(n)),
      onclick: () => this.toggle(n),
    }, `${kind.before} → ${kind.after}`, kind.apart && " (not exact)",
    el("span", { class: "muted" }, ` ${count(kind.count)}`))));
    this.chips.children[focused]?.focus();
  }

  toggle(kind) {
    if (!this.kinds.delete(kind)) this.kinds.add(kind);
    this.shownKinds = null;
    this.showChips();
    fill(this.rows);
    this.next = 0;
    this.load();
  }

  // While nothing is filtered, the first page comes with the stream.
  addLive(change) {
    if (this.kinds.size > 0) return;
    this.rows.append(changeRow(change));
    this.next = change.n + 1;
  }

  showMore() {
    const { kept, found } = this.status;
    const shown = this.rows.childElementCount;
    const wanted = this.wantedCount();
    const lost = found - kept;
    fill(this.more,
      shown < Math.min(wanted, kept) && el("p", { class: "row" },
        el("button", { type: "button", onclick: () => this.load() },
          `Show ${count(Math.min(PAGE, wanted - shown))} more`),
        `${count(shown)} of ${plural(wanted, "change")} shown`),
      lost > 0 && el("p", {},
        `${plural(lost, "further change")} counted but not kept: ` +
        "choose a shorter time range to see them."));
  }

  wantedCount() {
    const { kinds, kept } = this.status;
    if (this.kinds.size === 0) return kept;
    const chosen = kinds.filter((_, n) => this.kinds.has(n));
    return chosen.reduce((sum, kind) => sum + kind.count, 0);
  }

  async load() {
    try {
      const kinds = [...this.kinds].join(",");
      const params = { start: this.next ?? 0, limit: PAGE, kinds };
      const found = await get(`/api/replays/${this.id}/changes`, params, this.signal);
      const first = this.rows.childElementCount;
      this.rows.append(...found.changes.map(changeRow));
      this.next = found.next ?? this.status.kept;
      this.rows.children[first]?.focus();
      this.showMore();
    } catch (error) {
      if (!this.signal.aborted) fill(this.more, errorState(error, () => this.load()));
    }
  }

  async cancel() {
    this.cancelButton.disabled = true;
    fill(this.label, "Cancelling: the hooks are being ended…");
    try {
      await post(`/api/replays/${this.id}/cancel`, {}, this.signal);
    } catch (error) {
      if (this.signal.aborted) return;
      this.cancelButton.disabled = false;
      fill(this.label, error.message);
    }
  }
}

function progressText({ done, total, rate, left_s: left }) {
  if (!total) return "Reading the journal…";
  const speed = rate ? `, ${count(Math.round(rate))} per second` : "";
  const rest = left > 1 ? `, ${duration(left * 1000)} left` : "";
  return `${count(done)} of ${plural(total, "event")}${speed}${rest}`;
}

// How many changes count, or how many do not: those of inexact replays.
function changesIn({ kinds }, { apart }) {
  const wanted = kinds.filter((kind) => kind.apart === apart);
  return wanted.reduce((sum, kind) => sum + kind.count, 0);
}

function headline(status) {
  const changed = changesIn(status, { apart: false });
  const found = changed === 0 ? "no verdict changes"
    : `${plural(changed, "verdict")} changed`;
  const done = `${plural(status.done, "event")} replayed`;
  if (status.state === "failed") return "The replay failed.";
  if (status.state === "cancelled") return `Cancelled: ${done}, ${found} so far.`;
  return `${done}: ${found}.`;
}

function summaryOf(status) {
  const { report, failed_events: failed, failures, messages } = status;
  const apart = changesIn(status, { apart: true });
  const took = status.ended - status.started;
  return [
    el("p", { class: "summary" }, headline(status)),
    el("p", { class: "small muted" }, time(status.started),
      `, took ${duration(took * 1000)}`, wantedText(status.wanted)),
    apart > 0 && el("p", { class: "small" },
      `${plural(apart, "more change")} on events that could not be replayed exactly: ` +
      "not counted."),
    report?.apart_events > 0 && el("p", { class: "small muted" },
      `${plural(report.apart_events, "event")} could not be replayed exactly.`),
    report?.elsewhere > 0 && el("p", { class: "small muted" },
      `${plural(report.elsewhere, "event")} of other projects left out.`),
    failed > 0 && failuresOf(failed, failures),
    messages.length > 0 && el("div",
      { class: status.state === "failed" ? "failure" : null },
      longText(messages.join("\n"), "Messages of the command")),
  ];
}

function wantedText({ settings, pasted, event, tool, hook, session, everywhere }) {
  const parts = [
    pasted ? "with pasted settings" : settings && `with ${settings}`,
    event, tool && `tool ${tool}`, hook && `hook ${hook}`,
    session && `session ${session}`, everywhere && "all projects",
  ].filter(Boolean);
  return parts.length > 0 ? ` · ${parts.join(", ")}` : "";
}

function failuresOf(failed, failures) {
  return el("details", {},
    el("summary", { class: "warning-text" },
      `Hooks failed on ${plural(failed, "event")}`),
    el("ul", { class: "grid small" }, failures.map(({ id, errors }) => el("li", {},
      el("a", { href: `/events/${id}` }, `Event ${id}`), ": ",
      cut(errors.join("; "), 500)))),
    failed > failures.length && el("p", { class: "small muted" },
      `The first ${count(failures.length)} are shown.`));
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
