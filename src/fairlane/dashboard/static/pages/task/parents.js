import { post } from "../../lib/api.js";
import { useResource } from "../../lib/resource.js";
import { html } from "../../lib/preact.js";
import { StateBadge } from "../../ui/badges.js";
import { TaskLink } from "../../ui/links.js";
import { Fetched } from "../../ui/fetched.js";
import { Panel } from "../../ui/panel.js";

const EVENTS = [
  "started",
  "completed",
  "failed",
  "retrying",
  "dead_letter",
  "cancelled",
  "queued",
  "deleted",
].map((name) => `task.${name}`);

/** The tasks that this one waits, or waited, for. */
export function Parents({ ids, tolerant }) {
  const found = useResource(() => post("api/v1/tasks/lookup", { task_ids: ids }), ids, {
    on: EVENTS,
    concerns: (event) => ids.includes(event.data.task_id),
  });
  const hint = tolerant ? "it runs once they have ended, however" : "it runs once they are completed";
  return html`<${Panel} title="Depends on" hint=${hint} flush>
    <${Fetched} resource=${found} rows=${ids.length}>${({ tasks }) => html`<ul class="item-list">
      ${tasks.map(
        (task, index) => html`<li key=${ids[index]}>
          <${TaskLink} id=${ids[index]} /><span class="grow ellipsis">${task?.task_type}</span>
          ${task ? html`<${StateBadge} state=${task.status} />` : html`<span class="muted">gone</span>`}
        </li>`,
      )}
    </ul>`}</${Fetched}></${Panel}>`;
}
