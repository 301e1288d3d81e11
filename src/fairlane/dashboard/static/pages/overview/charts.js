// @ts-check
// Depth by priority, and throughput, over time.

import { rate } from "../../lib/format.js";
import { html, useMemo, useRef, useState } from "../../lib/preact.js";
import { useResource } from "../../lib/resource.js";
import { COUNTERS, fetchSamples, rates, spacedOut, thinned, timeOf } from "../../lib/samples.js";
import { PRIORITIES } from "../../lib/states.js";
import { Chart } from "../../ui/chart.js";
import { fetched } from "../../ui/fetched.js";
import { Panel } from "../../ui/panel.js";

/**
 * @import { SampleView } from "../../../types/api.js"
 * @import { Columns } from "../../vendor/uplot.js"
 */

/** @type {[label: string, seconds: number][]} */
const RANGES = [
  ["15 min", 900],
  ["1 h", 3600],
  ["6 h", 21_600],
  ["24 h", 86_400],
];
const MOST_SEEN = 150;

const DEPTHS = PRIORITIES.toReversed().map((name) => ({ label: name, color: `band-${name}` }));
const COLORS = { submitted: "state-queued", completed: "state-completed", failed: "state-failed" };
const THROUGHPUT = COUNTERS.map((name) => ({ label: name, color: COLORS[name] }));

export function Charts() {
  const [seconds, setSeconds] = useState(RANGES[0][1]);
  const seen = useRef(/** @type {SampleView[]} */ ([]));
  const history = useResource((abort) => load(seconds, seen.current, abort), [seconds], {
    every: 2000,
    keep: true,
  });
  const tools = RANGES.map(
    ([label, value]) =>
      html`<button type="button" key=${label} class="button small" aria-pressed=${value === seconds}
        onClick=${() => setSeconds(value)}>${label}</button>`,
  );
  return html`<div class="columns">
    <${Panel} title="Queued, by priority" tools=${tools}>
      ${fetched(history, (samples) => html`<${DepthChart} samples=${samples} />`)}
    </${Panel}>
    <${Panel} title="Throughput" hint="tasks a second">
      ${fetched(history, (samples) => html`<${ThroughputChart} samples=${samples} />`)}
    </${Panel}>
  </div>`;
}

/** @param {{ samples: SampleView[] }} props */
function DepthChart({ samples }) {
  const data = useMemo(() => {
    const some = thinned(samples);
    /** @type {Columns} */
    const columns = [some.map(timeOf), ...DEPTHS.map(({ label }) => some.map((each) => each.depths[label]))];
    return columns;
  }, [samples]);
  return html`<${Chart} label="Tasks that are queued, by priority, over time" series=${DEPTHS} data=${data}
    stacked />`;
}

/** @param {{ samples: SampleView[] }} props */
function ThroughputChart({ samples }) {
  const data = useMemo(() => rates(thinned(samples)), [samples]);
  return html`<${Chart} label="Tasks submitted, completed and failed a second, over time"
    series=${THROUGHPUT} data=${data} format=${rate} />`;
}

/**
 * The server keeps a sample every ten seconds or so. The counters that this page has seen since lie in
 * between, and make the chart follow what happens now.
 *
 * @param {number} seconds
 * @param {SampleView[]} seen
 * @param {AbortSignal} abort
 */
async function load(seconds, seen, abort) {
  const { samples, current } = await fetchSamples(seconds, abort);
  seen.push(current);
  seen.splice(0, seen.length - MOST_SEEN);
  return spacedOut([...samples, ...seen].sort((one, other) => timeOf(one) - timeOf(other)));
}
