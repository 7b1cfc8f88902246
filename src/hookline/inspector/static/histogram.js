// How long the runs of a hook took: one bar for each bucket, on a scale by powers of
// ten that is the same for all hooks. What it shows is also there as a text.

import { count, duration, el, plural } from "./dom.js";

const SVG = "http://www.w3.org/2000/svg";

function shape(name, attributes, ...children) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

export function histogram(buckets, runs, { large = false } = {}) {
  const height = large ? 60 : 24;
  const step = large ? 13 : 5;
  const most = Math.max(1, ...buckets.map((bucket) => bucket.count));
  const bars = buckets.map((bucket, n) => {
    // Even a single run can be seen.
    const tall = bucket.count && Math.max(2, (bucket.count / most) * (height - 2));
    const kind = bucket.count ? "runs" : "no-runs";
    return shape("rect", {
      class: kind, x: n * step, y: height - Math.max(1, tall),
      width: step - 1, height: Math.max(1, tall),
    });
  });
  const width = buckets.length * step;
  const drawing = shape("svg", {
    class: large ? "histogram large" : "histogram", role: "img",
    "aria-label": described(buckets, runs),
    viewBox: `0 0 ${width} ${height}`, width, height,
  }, ...bars);
  return large ? withScale(drawing, buckets) : drawing;
}

function withScale(drawing, buckets) {
  const ends = buckets.map((bucket) => bucket.le).filter((le) => le !== null);
  const marks = [ends[0], 1, 10, 100, 1000, 10_000].filter((ms) => ends.includes(ms));
  return el("div", { class: "with-scale" }, drawing,
    el("p", { class: "scale", "aria-hidden": "true" },
      marks.map((ms) => el("span", {}, duration(ms)))),
    el("details", {}, el("summary", {}, "As a table"), asTable(buckets)));
}

function asTable(buckets) {
  const rows = buckets.map((bucket, n) => [spanOf(buckets, n), bucket.count])
    .filter(([, number]) => number > 0);
  return el("table", { class: "buckets" },
    el("caption", { class: "hidden" }, "How long the runs took"),
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Time"),
      el("th", { scope: "col", class: "number" }, "Runs"))),
    el("tbody", {}, rows.map(([span, number]) => el("tr", {},
      el("th", { scope: "row" }, span),
      el("td", { class: "number" }, count(number))))));
}

function described(buckets, runs) {
  const parts = buckets.map((bucket, n) =>
    bucket.count > 0 ? `${count(bucket.count)} ${spanOf(buckets, n)}` : null);
  return `Times of ${plural(runs, "run")}: ${parts.filter(Boolean).join(", ")}`;
}

function spanOf(buckets, n) {
  const { le } = buckets[n];
  if (n === 0) return `up to ${duration(le)}`;
  const from = duration(buckets[n - 1].le);
  return le === null ? `longer than ${from}` : `${from} to ${duration(le)}`;
}
