// The shell of the page: navigation, keyboard, and the view that an address shows.
// A view is a module with `async function show(root, url, signal)`, which fills the
// root and stops what it started when the signal aborts.

import { get } from "./api.js";
import { el, errorState, fill, heading, loadingState, visible } from "./dom.js";

const VIEWS = [
  { name: "Timeline", path: "/", key: "t", load: () => import("./timeline.js") },
  { name: "Hooks", path: "/hooks", key: "h", load: () => import("./hooks.js") },
  { name: "Try", path: "/try", key: "y", load: () => import("./try.js") },
  { name: "Replay", path: "/replay", key: "r", load: () => import("./replay.js") },
  { name: "Trust", path: "/trust", key: "a", load: () => import("./trust.js") },
];
const EVENT = {
  name: "Timeline", path: "/", shows: "Event", load: () => import("./event.js"),
};

const main = document.getElementById("main");
let stopView = new AbortController();
let isPrefix = false;
let shown = null;

// Go to an address of this page, and show it.
export function navigate(path, { replace = false } = {}) {
  history[replace ? "replaceState" : "pushState"](null, "", path);
  return show({ moveFocus: true });
}

// Write a view's own state into the address without showing the view again.
export function remember(path, { replace = false } = {}) {
  history[replace ? "replaceState" : "pushState"](null, "", path);
  shown = location.pathname + location.search;
}

// A message above every view; an empty list takes it away.
export function notice(messages, kind = "warning") {
  const notices = document.getElementById("notices");
  fill(notices, messages.map((text) => el("p", { class: `notice ${kind}` }, text)));
}

function viewOf(pathname) {
  if (/^\/events\/[^/]+\/?$/.test(pathname)) return EVENT;
  const path = pathname.replace(/(?<=.)\/$/, "");
  return VIEWS.find((view) => view.path === path) ?? null;
}

async function show({ moveFocus }) {
  stopView.abort();
  stopView = new AbortController();
  const { signal } = stopView;
  const url = new URL(location.href);
  const view = viewOf(url.pathname);
  shown = url.pathname + url.search;
  markNavigation(view);
  main.className = `view-${(view?.shows ?? view?.name ?? "unknown").toLowerCase()}`;
  try {
    await fillView(view, url, signal);
  } catch (error) {
    if (signal.aborted || error.name === "AbortError") return;
    const title = heading(view?.shows ?? view?.name ?? "Not found");
    fill(main, el("div", { class: "view" }, title,
      errorState(error, () => show({ moveFocus: true }))));
  }
  if (!signal.aborted) arrive(view, moveFocus);
}

async function fillView(view, url, signal) {
  if (view === null) throw new Error(`There is no page ${url.pathname}.`);
  const module = await view.load().catch(explainFailure);
  if (signal.aborted) return;
  const root = el("div", { class: "view" });
  const loading = loadingState();
  fill(main, root);
  // A slow view says so; a quick one does not flicker.
  const slow = setTimeout(() => root.before(loading), 250);
  try {
    await module.show(root, url, signal);
  } finally {
    clearTimeout(slow);
    loading.remove();
  }
}

// Why a module could not be loaded: the server is gone, or another one is there.
async function explainFailure() {
  await get("/api/overview");
  throw new Error("A part of this page could not be loaded. Reload the page.");
}

function arrive(view, moveFocus) {
  const title = main.querySelector("h1");
  const text = title?.dataset.title ?? title?.textContent ?? view?.name ?? "";
  document.title = visible(`${text} · Hookline`);
  if (moveFocus && !main.contains(document.activeElement)) {
    (title ?? main).focus({ preventScroll: true });
  }
}

function markNavigation(view) {
  const links = VIEWS.map(({ name, path }) =>
    el("li", {}, el("a", {
      href: path, "aria-current": view?.name === name ? "page" : null,
    }, name)),
  );
  fill(document.getElementById("nav"), links);
}

function followLink(event) {
  const link = event.target.closest?.("a[href]");
  const plain = !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
  if (!link || event.button !== 0 || !plain || event.defaultPrevented) return;
  const href = link.getAttribute("href");
  if (link.target || link.hasAttribute("download") || !href.startsWith("/")) return;
  event.preventDefault();
  navigate(href);
}

function isTyping(target) {
  const fields = "input, textarea, select, [contenteditable], dialog";
  return target.closest?.(fields) !== null;
}

function pressKey(event) {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  if (isTyping(event.target)) return;
  const view = isPrefix && VIEWS.find(({ key }) => key === event.key);
  isPrefix = event.key === "g";
  if (view) {
    navigate(view.path);
  } else if (event.key === "?") {
    document.getElementById("shortcuts").showModal();
  } else if (event.key === "/") {
    main.querySelector("[data-search]")?.focus();
  } else if (!moveRow(event)) {
    return;
  }
  event.preventDefault();
}

// In any view, j and k walk over the elements with `data-row`.
function moveRow({ key, target }) {
  const step = { j: 1, k: -1 }[key];
  const rows = step ? [...main.querySelectorAll("[data-row]")] : [];
  if (rows.length === 0) return false;
  const at = rows.indexOf(target.closest("[data-row]"));
  const next = at < 0 ? 0 : Math.min(Math.max(at + step, 0), rows.length - 1);
  rows[next].focus();
  return true;
}

async function showPlace() {
  const overview = await get("/api/overview").catch(() => null);
  if (overview === null) return;
  const place = document.getElementById("place");
  const folder = overview.project ?? overview.cwd ?? "";
  place.title = visible(folder);
  place.textContent = visible(folder.split("/").filter(Boolean).pop() ?? folder);
  notice(overview.settings?.errors ?? [], "error");
}

document.addEventListener("click", followLink);
document.addEventListener("keydown", pressKey);
document.getElementById("help").addEventListener("click", () =>
  document.getElementById("shortcuts").showModal());
window.addEventListener("popstate", () => {
  // A link to a part of this page, such as "Skip to content", is not navigation.
  if (location.pathname + location.search !== shown) show({ moveFocus: true });
});
showPlace();
show({ moveFocus: false }).then(() => {
  // Now, so that the first view did not wait, and the others open without a server.
  for (const view of [EVENT, ...VIEWS]) view.load().catch(() => null);
});
