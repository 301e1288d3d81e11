// @ts-check
// The overview: states, depth and throughput over time, types, failures.

import { get } from "../lib/api.js";
import { count, counted, duration, spaced } from "../lib/format.js";
import { html, useEffect, useState } from "../lib/preact.js";
import { useResource } from "../lib/resource.js";
import { link } from "../lib/router.js";
import { STATES } from "../lib/states.js";
import { fetched } from "../ui/fetched.js";
import { GlobalControls } from "../ui/global-controls.js";
import { Heading, Panel } from "../ui/panel.js";
import { Charts } from "./overview/charts.js";
import { Cleanup } from "./overview/cleanup.js";
import { RecentFailures } from "./overview/recent-failures.js";
import { System } from "./overview/system.js";
import { TypeBars } from "./overview/type-bars.js";

/** @import { State, Stats } from "../../types/api.js" */

const FAILED = link("tasks", { status: ["failed", "dead_letter"] });

export function Overview() {
  const stats = useResource((abort) => get("api/v1/queue/stats", {}, abort), [], { on: ["system.metrics"] });
  return html`
    <${Heading} title="Overview"><${GlobalControls} /></${Heading}>
    ${fetched(
      stats,
      (data) => html`
        ${isNew(data) && html`<${Later} load=${noTasks} stats=${data} />`}
        ${data.unserved?.length ? html`<${Later} load=${unserved} stats=${data} />` : null}
        <${Cards} stats=${data} />
        <${Charts} />
        <div class="columns">
          <${Panel} title="Tasks by type" flush><${TypeBars} types=${data.by_type} /></${Panel}>
          <${Panel} title="Recent failures" flush tools=${html`<a href=${FAILED}>All</a>`}>
            <${RecentFailures} />
          </${Panel}>
        </div>
        <div class="columns">
          <${System} stats=${data} />
          <${Cleanup} />
        </div>
      `,
      4,
    )}`;
}

// Loaded when they are needed, to keep the first view small.
const noTasks = async () => (await import("../ui/empty.js")).NoTasks;
const unserved = async () => (await import("./overview/unserved.js")).Unserved;

/** @typedef {(props: { stats: Stats }) => unknown} Part */

/** @param {{ load: () => Promise<Part>, stats: Stats }} props */
function Later({ load, stats }) {
  const [Part, setPart] = useState(/** @type {Part | null} */ (null));
  useEffect(() => {
    load().then(
      (part) => setPart(() => part),
      () => {}, // the server is away, which the page says
    );
  }, [load]);
  return Part && html`<${Part} stats=${stats} />`;
}

/** @param {Stats} stats */
const isNew = (stats) => STATES.every((state) => !stats.by_status[state]);

/** @param {{ stats: Stats }} props */
const Cards = ({ stats }) => html`<ul class="cards">
  ${STATES.map(
    (state) => html`<li key=${state}>
      <a class="card" data-state=${state} href=${link("tasks", { status: state })}>
        <span>${spaced(state)}</span><b>${count(stats.by_status[state])}</b>
        <small class="muted">${DETAILS[state]?.(stats) ?? ""}</small>
      </a>
    </li>`,
  )}
</ul>`;

/** @type {Partial<Record<State, (stats: Stats) => string>>} */
const DETAILS = {
  queued: (stats) => `p95 age ${duration(stats.p95_age_seconds)}`,
  executing: (stats) => `of ${count(stats.workers.total_capacity)} places`,
  completed: (stats) =>
    `${count(stats.throughput.completed_last_minute)} last minute, ` +
    `${count(stats.throughput.completed_last_hour)} last hour`,
  failed: (stats) => `${counted(stats.throughput.failed_last_minute, "run")} last minute`,
};
