// The Trust view: what waits for approval, with its files and what changed. Nothing
// here approves: the page names the command that does.

import { get } from "./api.js";
import {
  announce, command, el, emptyState, errorState, fill, heading, loadingState, plural, time,
  verdictBadge,
} from "./dom.js";

const STATES = {
  waiting: ["ask", "waits for approval"],
  trusted: ["allowed", "trusted"],
  empty: ["other", "no hooks"],
  broken: ["failed", "cannot be reviewed"],
  missing: ["other", "folder is gone"],
  "not checked": ["other", "not checked"],
};
const MARKS = { "+": "added", "-": "removed", "@": "place" };

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
  const { approval, removed, problem, lines, is_cut: isCut } = project;
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
    el("pre", { class: "text review", tabindex: "0", role: "region",
      "aria-label": `What would be approved in ${project.project}` }, lines.map(line)),
    isCut && el("p", { class: "muted" }, "The command shows the rest."),
  ];
}

// A text of the project has a mark of its own, so that only diffs are coloured.
function line(text) {
  const kind = MARKS[text.trimStart()[0]];
  return el("span", { class: kind ? `line ${kind}` : "line" }, text, "\n");
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
