// @ts-check
// Lines over time.

import { compact, timeOfDay } from "../lib/format.js";
import { html, useEffect, useRef, useSignal } from "../lib/preact.js";
import { theme } from "../lib/theme.js";
import uPlot from "../vendor/uplot.js";

/**
 * @import { Signal } from "../lib/preact.js"
 * @import { Columns, Options } from "../vendor/uplot.js"
 * @typedef {{ label: string, color: string }} Series A line, and the name of its colour in the style sheet.
 */

const HEIGHT = 180;
const LEAST_SECONDS = 60;

/**
 * A chart. Its caption shows the newest values, or those under the pointer.
 *
 * @param {object} props
 * @param {string} props.label
 * @param {Series[]} props.series
 * @param {Columns} props.data
 * @param {boolean} [props.stacked] Draw one line on top of the other.
 * @param {(value: number) => string} [props.format]
 */
export function Chart({ label, series, data, stacked = false, format = compact }) {
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const plot = useRef(/** @type {uPlot | null} */ (null));
  /** @type {Signal<number | null>} */
  const pointed = useSignal(null);

  useEffect(() => {
    const parent = box.current; // Preact empties the reference before it cleans up.
    if (!parent) return undefined;
    const made = new uPlot(options(parent, series, stacked, pointed), drawn(data, stacked), parent);
    plot.current = made;
    const observer = new ResizeObserver(() => made.setSize({ width: parent.clientWidth, height: HEIGHT }));
    observer.observe(parent);
    return () => {
      observer.disconnect();
      made.destroy();
    };
  }, [theme.value]);
  useEffect(() => {
    plot.current?.setData(drawn(data, stacked));
  }, [data]);

  const [times, ...columns] = data;
  const at = pointed.value ?? times.length - 1;
  return html`<figure class="chart">
    <div ref=${box} role="img" aria-label=${label}></div>
    <figcaption>
      ${series.map(
        (each, index) => html`<span key=${each.label} class="legend-entry" data-color=${each.color}>
          ${each.label} <b>${formatted(columns[index][at], format)}</b>
        </span>`,
      )}
      ${pointed.value !== null && html`<span class="muted">${timeOfDay(1000 * times[at])}</span>`}
    </figcaption>
  </figure>`;
}

/** @param {number | null | undefined} value @param {(value: number) => string} format */
const formatted = (value, format) => (value === undefined || value === null ? "–" : format(value));

/**
 * uPlot draws the values that it is given: to stack them they are added up.
 *
 * @param {Columns} data
 * @param {boolean} stacked
 * @returns {Columns}
 */
function drawn(data, stacked) {
  if (!stacked) return data;
  const [times, ...values] = data;
  const sums = times.map(() => 0);
  return [times, ...values.map((each) => each.map((one, index) => (sums[index] += one ?? 0)))];
}

/**
 * @param {HTMLElement} box
 * @param {Series[]} series
 * @param {boolean} stacked
 * @param {Signal<number | null>} pointed
 * @returns {Options}
 */
function options(box, series, stacked, pointed) {
  const style = getComputedStyle(document.documentElement);
  const color = (/** @type {string} */ name) => style.getPropertyValue(`--${name}`).trim();
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
      y: { range: (_plot, _low, high) => [0, Math.max(1, high * 1.1)] },
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
