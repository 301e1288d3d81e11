// How the whole stands: states, depth and throughput over time, types, failures.

import { get } from "../lib/api.js";
import { count, counted, duration, words } from "../lib/format.js";
import { STATES } from "../lib/names.js";
import { useResource } from "../lib/resource.js";
import { link } from "../lib/router.js";
import { html } from "../lib/view.js";
import { Fetched, Heading, Panel } from "../ui/parts.js";
import { Pause } from "../ui/pause.js";
import { Start } from "../ui/start.js";
import { Cleanup } from "./overview/cleanup.js";
import { Failures } from "./overview/failures.js";
import { Charts } from "./overview/history.js";
import { System } from "./overview/system.js";
import { TypeBars } from "./overview/types.js";

const FAILED = link("tasks", { status: ["failed", "dead_letter"] });

export function Overview() {
  const stats = useResource((abort) => get("api/v1/queue/stats", {}, abort), [], { on: ["system.metrics"] });
  return html`
    <${Heading} title="Overview"><${Pause} /></${Heading}>
    <${Fetched} resource=${stats} rows=${4}>${(found) => html`
      ${isNew(found) && html`<${Start} />`}
      <${Cards} stats=${found} />
      <${Charts} />
      <div class="columns">
        <${Panel} title="Tasks by type" flush><${TypeBars} types=${found.by_type} /></${Panel}>
        <${Panel} title="Recent failures" flush tools=${html`<a href=${FAILED}>All</a>`}>
          <${Failures} />
        </${Panel}>
      </div>
      <div class="columns">
        <${System} stats=${found} />
        <${Cleanup} />
      </div>
    `}</${Fetched}>`;
}

const isNew = (stats) => STATES.every((state) => !stats.by_status[state]);

const Cards = ({ stats }) => html`<ul class="cards">
  ${STATES.map(
    (state) => html`<li key=${state}>
      <a class="card" data-state=${state} href=${link("tasks", { status: state })}>
        <span>${words(state)}</span><b>${count(stats.by_status[state])}</b>
        <small class="dim">${detail[state]?.(stats) ?? ""}</small>
      </a>
    </li>`,
  )}
</ul>`;

// What else there is to say of a state.
const detail = {
  queued: (stats) => `p95 age ${duration(stats.p95_age_seconds)}`,
  executing: (stats) => `of ${count(stats.workers.total_capacity)} places`,
  completed: (stats) => `${count(stats.throughput.completed_last_minute)} last minute`,
  failed: (stats) => `${counted(stats.throughput.failed_last_minute, "run")} last minute`,
};
