// @ts-check
// The workers, the store and its durability, and what had to be recovered.

import { get } from "../../lib/api.js";
import { count, counted, duration } from "../../lib/format.js";
import { html } from "../../lib/preact.js";
import { useResource } from "../../lib/resource.js";
import { link } from "../../lib/router.js";
import { Panel } from "../../ui/panel.js";

/** @import { DurabilityView, Stats } from "../../../types/api.js" */

/** @param {{ stats: Stats }} props */
export function System({ stats }) {
  const { data } = useResource((abort) => get("readyz", {}, abort), [], { every: 60_000 });
  const { workers, recovery, throughput } = stats;
  const recovered = [
    counted(recovery.timeouts_last_hour, "timeout"),
    counted(recovery.lost_workers_last_hour, "lost worker"),
    `${counted(recovery.stale_results_last_hour, "late result")} refused`,
  ];
  return html`<${Panel} title="System" hint=${data?.version && `Fairlane ${data.version}`}>
    <dl class="facts">
      <dt>Workers</dt>
      <dd>
        <a href=${link("workers")}>${counted(workers.active, "active worker")}</a>
        , ${count(workers.used_capacity)} of ${count(workers.total_capacity)} places taken
      </dd>
      <dt>A run takes</dt>
      <dd>${duration(throughput.avg_task_duration_seconds)} on average</dd>
      <dt>In the last hour</dt>
      <dd>${recovered.join(", ")}</dd>
      ${data?.durability && html`<${Durability} durability=${data.durability} />`}
    </dl>
    ${data?.durability?.warnings.map((text) => html`<p class="error-text" key=${text}>${text}</p>`)}
  </${Panel}>`;
}

/** @param {{ durability: DurabilityView }} props */
function Durability({ durability: { engine, settings } }) {
  const pairs = Object.entries(settings).map((pair) => pair.join(" "));
  return html`<dt>Store</dt><dd>${engine} <span class="muted">${pairs.join(" · ")}</span></dd>`;
}
