// Depth by priority, and throughput, over time.

import { get } from "../../lib/api.js";
import { rate } from "../../lib/format.js";
import { PRIORITIES } from "../../lib/states.js";
import { useResource } from "../../lib/resource.js";
import { html, useMemo, useRef, useState } from "../../lib/preact.js";
import { Chart } from "../../ui/chart.js";
import { Fetched } from "../../ui/fetched.js";
import { Panel } from "../../ui/panel.js";

const RANGES = [
  ["15 min", 900],
  ["1 h", 3600],
  ["6 h", 21_600],
  ["24 h", 86_400],
];
const POINTS = 240;
const APART_SECONDS = 1;
const SEEN = 150;

const DEPTHS = [...PRIORITIES].reverse().map((name) => ({ label: name, color: `band-${name}` }));
const FLOWS = [
  { label: "submitted", color: "state-queued" },
  { label: "completed", color: "state-completed" },
  { label: "failed", color: "state-failed" },
];

export function Charts() {
  const [seconds, setSeconds] = useState(RANGES[0][1]);
  const seen = useRef([]);
  const history = useResource((abort) => samples(seconds, seen.current, abort), [seconds], {
    every: 2000,
    keep: true,
  });
  const tools = RANGES.map(
    ([label, value]) =>
      html`<button type="button" key=${label} class="button small" aria-pressed=${value === seconds}
        onClick=${() => setSeconds(value)}>${label}</button>`,
  );
  return html`<div class="columns">
    <${Panel} title="Queued, by priority" tools=${tools}><${Fetched} resource=${history}>${(found) =>
      html`<${Depths} samples=${found} />`}</${Fetched}></${Panel}>
    <${Panel} title="Throughput" hint="tasks a second"><${Fetched} resource=${history}>${(found) =>
      html`<${Flows} samples=${found} />`}</${Fetched}></${Panel}>
  </div>`;
}

function Depths({ samples }) {
  const data = useMemo(() => {
    const some = thinned(samples);
    return [some.map(time), ...DEPTHS.map(({ label }) => some.map((each) => each.depths[label]))];
  }, [samples]);
  return html`<${Chart} label="Tasks that are queued, by priority, over time" series=${DEPTHS} data=${data}
    stacked />`;
}

function Flows({ samples }) {
  const data = useMemo(() => rates(thinned(samples)), [samples]);
  return html`<${Chart} label="Tasks submitted, completed and failed a second, over time" series=${FLOWS}
    data=${data} value=${rate} />`;
}

// The server keeps a sample every ten seconds or so. How the counters stood whenever this page asked lies
// in between, and makes what happens now as lively as it is.
async function samples(seconds, seen, abort) {
  const { samples: kept, current } = await get(
    "api/v1/stats/history",
    { since: since(seconds), limit: 10_000 },
    abort,
  );
  seen.push(current);
  seen.splice(0, seen.length - SEEN);
  return spacedOut([...kept, ...seen].sort((one, other) => time(one) - time(other)));
}

/** Without those that follow another so closely that they would make rates out of next to nothing. */
export function spacedOut(samples) {
  let last = -Infinity;
  return samples.filter((each) => {
    const far = time(each) - last >= APART_SECONDS;
    if (far) last = time(each);
    return far;
  });
}

const since = (seconds) => new Date(Date.now() - 1000 * seconds).toISOString();
const time = (sample) => Date.parse(sample.timestamp) / 1000;

/** As many as can be told apart: the last one always, the others evenly. */
export function thinned(samples) {
  const step = Math.ceil(samples.length / POINTS);
  return samples.filter((_, index) => (samples.length - 1 - index) % step === 0);
}

/** Counters only grow: how fast they did between each sample and the one before it. */
export function rates(samples) {
  const times = samples.slice(1).map(time);
  const rateOf = (label) =>
    samples.slice(1).map((each, index) => {
      const passed = time(each) - time(samples[index]);
      return passed > 0 ? Math.max(0, each[label] - samples[index][label]) / passed : 0;
    });
  return [times, ...FLOWS.map(({ label }) => rateOf(label))];
}
