// The Trust view: what waits for approval, with its files and what changed. Nothing
// here approves: the page names the command that does.

import { get } from "./api.js";
import {
  announce, command, count, el, emptyState, errorState, fill, heading, loadingState,
  plural, size, tag, time, verdictBadge,
} from "./dom.js";

const STATES = {
  waiting: ["ask", "waits for approval"],
  trusted: ["allowed", "trusted"],
  empty: ["other", "no hooks"],
  broken: ["failed", "cannot be reviewed"],
  missing: ["other", "folder is gone"],
  "not checked": ["other", "not checked"],
};
const CHANGES = {
  new: ["ask", "new"], changed: ["failed", "changed"],
  removed: ["blocked", "removed"], trusted: ["allowed", "as approved"],
};

export async function show(root, url, signal) {
  const answer = await get("/api/trust", {}, signal);
  let known = JSON.stringify(answer);
  // Back from the terminal, where the approval is given.
  window.addEventListener("focus", async () => {
    const now = await get("/api/trust", {}, signal).catch(() => null);
    if (now === null || JSON.stringify(now) === known) return;
    known = JSON.stringify(now);
    draw(root, now, signal);
    announce("What waits for approval has changed");
  }, { signal });
  draw(root, answer, signal);
}

function draw(root, answer, signal) {
  const waiting = answer.projects.filter((one) => one.state === "waiting").length;
  fill(root, heading("Trust"),
    el("p", { class: "lead" },
      "Hooks of a project run only after you approved them, and only while they and ",
      "their files stay as they were. Approving stays on the command line: this page ",
      "shows what waits, and what to type."),
    answer.trusts_all && el("p", { class: "card caution" },
      "HOOKLINE_TRUST=all is set: every project is trusted without a review."),
    waiting === 0 && nothingWaits(answer),
    answer.projects.filter((one) => one.state !== "empty").map(projectCard),
    others(answer, signal));
}

function nothingWaits({ cwd, projects }) {
  const found = projects.filter((one) => one.state !== "empty");
  if (found.some((one) => one.state === "broken")) return null;
  if (found.length > 0) {
    return el("p", { class: "all-clear" }, verdictBadge("allowed", "nothing waits"),
      " Every hook of the projects around this folder is approved.");
  }
  return emptyState("Nothing waits for approval",
    el("p", {}, "There are no hooks of a project in ", el("code", {}, cwd), "."),
    el("p", {}, "Hooks in your own settings and in those of the system need none."),
    el("p", {}, "Set up a first hook of this project:"),
    el("p", {}, command("hookline init")));
}

function projectCard(project, number) {
  const id = `project-${number}`;
  return el("article", { class: "card project", "aria-labelledby": id },
    el("header", { class: "row" }, el("h2", { id }, el("code", {}, project.project)),
      badge(STATES, project.state)),
    projectBody(project));
}

function projectBody(project) {
  if (project.state === "waiting") return review(project);
  if (project.state === "broken") {
    return [el("p", { class: "caution" }, project.problem),
      el("p", {}, "Correct this, then review the project again:"), toType(project)];
  }
  return approved(project);
}

function badge(names, state) {
  const [kind, word] = names[state] ?? ["other", state];
  return verdictBadge(kind, word);
}

function approved({ approval, commands }) {
  if (!approval) return el("p", { class: "muted" }, "It has no hooks.");
  const revoke = commands.at(-1);
  const left = approval.hooks_left_off;
  return [
    el("p", {}, "Trusted since ", since(approval), ": ",
      `${plural(approval.hooks.length + left, "hook")}, `,
      `${plural(approval.files, "path")} pinned byte for byte.`),
    approval.hooks.length > 0 && el("ul", { class: "approved-hooks" },
      approval.hooks.map(({ name, event, matcher }) => el("li", {},
        el("strong", {}, name), " on ", event,
        matcher && [" ", el("code", {}, matcher)])),
      left > 0 && el("li", {}, `${plural(left, "more hook")} not shown.`)),
    el("details", { class: "muted" }, el("summary", {}, "Withdraw the approval"),
      el("p", {}, command(revoke.command))),
  ];
}

function since({ since: text }) {
  const seconds = Date.parse(text) / 1000;
  return Number.isNaN(seconds) ? "an unknown time" : time(seconds);
}

function toType({ commands, approval }) {
  const offered = commands.filter((_, n) => n === 0 || approval);
  return el("ul", { class: "to-type" }, offered.map((one) =>
    el("li", {}, command(one.command), el("span", { class: "muted" }, one.does))));
}

function review(project) {
  const { approval, removed, masked, problem, warnings } = project;
  const was = approval ? ["It was approved ", since(approval),
    " and has changed since: its hooks do not run as they are now."]
    : "Nobody has approved it: its hooks do not run.";
  return [
    el("p", {}, was),
    problem && el("p", { class: "caution" }, problem),
    removed && el("p", { class: "caution" }, "Its settings are gone: approving ",
      "that removes the record of its hooks."),
    el("section", { class: "commands" },
      el("h3", {}, "To review and approve, type"), toType(project)),
    warnings.map((text) => el("p", { class: "caution" }, text)),
    project.warnings_left_off > 0 && el("p", { class: "caution" },
      `${plural(project.warnings_left_off, "more warning")}: run hookline check.`),
    masked && el("p", { class: "muted" },
      "Credentials are masked on this page; the command shows everything."),
    hooksOf(project), optionsOf(project), filesOf(project),
  ];
}

function hooksOf({ hooks, hooks_left_off: left }) {
  if (hooks.length === 0) return null;
  const known = hooks.filter((hook) => hook.defined_as_approved);
  const others = hooks.filter((hook) => !hook.defined_as_approved);
  return el("section", {}, el("h3", {}, "Hooks"),
    el("ul", { class: "reviewed" }, others.map(reviewedHook)),
    known.length > 0 && el("details", { class: "known" },
      el("summary", {}, `${plural(known.length, "hook")} defined as approved`),
      el("ul", { class: "reviewed" }, known.map(reviewedHook))),
    left > 0 && el("p", { class: "muted" },
      `${plural(left, "more hook")} not shown: the command lists them.`));
}

function reviewedHook(hook) {
  return el("li", {},
    el("p", { class: "row" }, hookBadge(hook), el("strong", {}, hook.name),
      el("span", { class: "muted" }, "on ", hook.event, " ",
        el("code", {}, hook.matcher || "*")), tag(hook.type)),
    hook.runs !== null && el("pre", { class: "text", "aria-label": "What it runs" },
      hook.runs),
    hook.cautions.map(({ name, text }) => el("p", { class: "caution" },
      el("code", {}, name), ` ${text}`)),
    hook.notes.map(({ path, text }) => el("p", { class: "note" },
      path && [el("code", {}, path), " "], text)),
    hook.files.length > 0 && el("p", { class: "muted" }, "Pins ",
      hook.files.map((path, n) => [n > 0 && ", ", el("code", {}, path)])),
    hook.keys.length > 0 && el("dl", { class: "keys" }, hook.keys.map((one) =>
      el("div", {}, el("dt", {}, one.key), el("dd", {}, el("code", {}, one.value))))),
    hook.left_off > 0 && el("p", { class: "caution" },
      `${plural(hook.left_off, "more detail")}: the command shows them.`),
    hook.diff.lines.length > 0 && diff(hook.diff, `What changed in ${hook.name}`));
}

function hookBadge({ change, defined_as_approved: asApproved }) {
  const filesOnly = change === "changed" && asApproved;
  return filesOnly ? verdictBadge("failed", "files changed") : badge(CHANGES, change);
}

function optionsOf({ options }) {
  return options.length > 0 && el("section", {}, el("h3", {}, "Options"),
    options.map(({ file, diff: changed }) => [
      el("p", {}, el("code", {}, file)), diff(changed, `What changed in ${file}`)]));
}

function filesOf({ files, files_left_off: left }) {
  if (files.length === 0) return null;
  const known = files.filter((file) => file.change === "trusted");
  const others = files.filter((file) => file.change !== "trusted");
  return el("section", {}, el("h3", {}, "Approved with them, byte for byte"),
    el("ul", { class: "files" }, others.map(fileItem)),
    known.length > 0 && el("details", { class: "known" },
      el("summary", {}, `${plural(known.length, "path")} as approved`),
      el("ul", { class: "files" }, known.map(fileItem))),
    left > 0 && el("p", { class: "muted" },
      `${plural(left, "more path")} not shown: the command lists them.`));
}

function fileItem(file) {
  const facts = [
    file.link && `link to ${file.link}`,
    file.size !== null && file.size !== undefined && size(file.size), file.note,
  ].filter(Boolean).join(" · ");
  const head = [badge(CHANGES, file.change), el("code", {}, file.path),
    facts && el("span", { class: "muted" }, facts)];
  const body = fileBody(file);
  if (body === null) return el("li", {}, el("p", { class: "row" }, head));
  return el("li", {}, el("details", { open: file.change === "changed" },
    el("summary", { class: "row", "data-row": true }, head), body));
}

function fileBody({ withheld, text, diff: changed, path, digest }) {
  if (withheld) {
    return el("p", { class: "muted" }, "Its text is not shown here: it is a link, or ",
      "not inside the project. The command shows it.",
      digest && [" SHA-256 ", el("code", {}, digest)]);
  }
  if (changed) return diff(changed, `What changed in ${path}`);
  return text ? lines(text, `Text of ${path}`) : null;
}

const MARKS = { "+": "added", "-": "removed", "@": "place" };

// What precedes the first hunk is about the file, not part of it.
function diff(text, label) {
  const start = text.lines.findIndex((line) => line.startsWith("@@"));
  return lines(text, label, (line, n) => (n < start ? "place" : MARKS[line[0]]));
}

function lines({ lines: shown, left_off: left }, label, kindOf = () => undefined) {
  const rows = shown.map((line, n) => {
    const kind = kindOf(line, n);
    return el("span", { class: kind ? `line ${kind}` : "line" }, line, "\n");
  });
  return el("div", { class: "lines" },
    el("pre", {
      class: "text", tabindex: "0", role: "region", "aria-label": label,
    }, rows),
    left > 0 && el("p", { class: "muted small" },
      `${count(left)} more ${left === 1 ? "line" : "lines"}: the command shows them.`));
}

function others({ others: found }, signal) {
  if (found.length === 0) return null;
  return el("section", { class: "others", "aria-labelledby": "others-title" },
    el("h2", { id: "others-title" }, "Other projects"),
    el("p", { class: "muted" }, "Trusted earlier, or seen in the journal."),
    el("ul", {}, found.map((project) => otherProject(project, signal))));
}

function otherProject(project, signal) {
  const body = el("div", { class: "other-body" });
  const open = async () => {
    if (!details.open || body.childElementCount > 0) return;
    fill(body, loadingState());
    try {
      const found = await get("/api/trust", { project: project.project }, signal);
      fill(body, projectBody(found));
    } catch (error) {
      if (error.name !== "AbortError") fill(body, errorState(error));
    }
  };
  const details = el("details", { class: "card", ontoggle: open },
    el("summary", { class: "row", "data-row": true }, el("code", {}, project.project),
      badge(STATES, project.state),
      project.approval && el("span", { class: "muted" }, "trusted since ",
        since(project.approval))),
    body);
  return el("li", {}, details);
}
