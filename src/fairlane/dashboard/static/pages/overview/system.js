import { get } from "../../lib/api.js";
import { count, counted, duration } from "../../lib/format.js";
import { useResource } from "../../lib/resource.js";
import { link } from "../../lib/router.js";
import { html } from "../../lib/preact.js";
import { Panel } from "../../ui/panel.js";

/** What keeps it all: the store and what it promises, the workers, what had to be put right. */
export function System({ stats }) {
  const { data } = useResource((abort) => get("readyz", {}, abort), [], { every: 60_000 });
  const { workers, recovery } = stats;
  return html`<${Panel} title="System" hint=${data && `Fairlane ${data.version}`}>
    <dl class="facts">
      <dt>Workers</dt><dd>
        <a href=${link("workers")}>${counted(workers.active, "active worker")}</a>
        , ${count(workers.used_capacity)} of ${count(workers.total_capacity)} places taken
      </dd>
      <dt>A run takes</dt><dd>${duration(stats.throughput.avg_task_duration_seconds)} on average</dd>
      <dt>In the last hour</dt><dd>
        ${counted(recovery.timeouts_last_hour, "timeout")},
        ${" "}${counted(recovery.lost_workers_last_hour, "lost worker")},
        ${" "}${counted(recovery.stale_results_last_hour, "late result")} refused
      </dd>
      ${
        data &&
        html`<dt>Store</dt><dd>
          ${data.durability.engine} <span class="muted">${settings(data.durability.settings)}</span>
        </dd>`
      }
    </dl>
    ${data?.durability.warnings.map((text) => html`<p class="error-text" key=${text}>${text}</p>`)}
  </${Panel}>`;
}

const settings = (found) =>
  Object.entries(found)
    .map(([name, value]) => `${name} ${value}`)
    .join(" · ");
