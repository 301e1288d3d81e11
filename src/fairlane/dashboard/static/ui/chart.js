// Lines over time.

import { compact, timeOfDay } from "../lib/format.js";
import { theme } from "../lib/theme.js";
import { html, useEffect, useRef, useSignal } from "../lib/preact.js";
import uPlot from "../vendor/uplot.js";

const HEIGHT = 180;
const LEAST_SECONDS = 60;

/**
 * series: [{label, color (a name out of the style sheet)}]; data: [times in seconds, values of each…].
 * `stacked`: one lies on top of the other. The caption tells the newest values, or those under the pointer.
 */
export function Chart({ label, series, data, stacked = false, value = compact }) {
  const box = useRef(null);
  const plot = useRef(null);
  const pointed = useSignal(null);

  useEffect(() => {
    const into = box.current; // The reference is emptied before this is undone, and the observer told of it.
    const made = new uPlot(options(into, series, stacked, pointed), drawn(data, stacked), into);
    plot.current = made;
    const observer = new ResizeObserver(() => made.setSize({ width: into.clientWidth, height: HEIGHT }));
    observer.observe(into);
    return () => {
      observer.disconnect();
      made.destroy();
    };
  }, [theme.value]);
  useEffect(() => {
    plot.current.setData(drawn(data, stacked));
  }, [data]);

  const at = pointed.value ?? data[0].length - 1;
  return html`<figure class="chart">
    <div ref=${box} role="img" aria-label=${label}></div>
    <figcaption>
      ${series.map(
        (each, index) => html`<span key=${each.label} class="legend-entry" data-color=${each.color}>
          ${each.label} <b>${told(data[index + 1][at], value)}</b>
        </span>`,
      )}
      ${pointed.value !== null && html`<span class="muted">${timeOfDay(1000 * data[0][at])}</span>`}
    </figcaption>
  </figure>`;
}

const told = (found, value) => (found === undefined || found === null ? "–" : value(found));

// uPlot draws what it is given: of stacked values the sums.
function drawn(data, stacked) {
  if (!stacked) return data;
  const [times, ...values] = data;
  const sums = new Array(times.length).fill(0);
  return [times, ...values.map((each) => each.map((one, index) => (sums[index] += one ?? 0)))];
}

function options(box, series, stacked, pointed) {
  const style = getComputedStyle(document.documentElement);
  const color = (name) => style.getPropertyValue(`--${name}`).trim();
  const axis = {
    stroke: color("muted"),
    grid: { stroke: color("line"), width: 1 },
    ticks: { show: false },
    font: "12px system-ui",
  };
  return {
    width: box.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false } },
    hooks: {
      setCursor: [
        (plot) => {
          pointed.value = plot.cursor.idx ?? null;
        },
      ],
    },
    scales: {
      x: { range: (_, first, last) => [Math.min(first, last - LEAST_SECONDS), last] },
      y: { range: (_, low, high) => [0, Math.max(1, high * 1.1)] },
    },
    axes: [
      { ...axis, size: 28, space: 80, values: (_, splits) => splits.map((each) => timeOfDay(1000 * each)) },
      { ...axis, size: 44, values: (_, splits) => splits.map(compact) },
    ],
    series: [
      {},
      ...series.map((each) => ({
        stroke: color(each.color),
        fill: stacked ? `${color(each.color)}40` : undefined,
        width: 2,
        points: { show: false },
      })),
    ],
    bands: stacked ? series.slice(1).map((_, index) => ({ series: [index + 2, index + 1] })) : [],
  };
}
