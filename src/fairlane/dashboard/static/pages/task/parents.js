// @ts-check
// The tasks that a task depends on.

import { post } from "../../lib/api.js";
import { html } from "../../lib/preact.js";
import { useResource } from "../../lib/resource.js";
import { StateBadge } from "../../ui/badges.js";
import { fetched } from "../../ui/fetched.js";
import { TaskLink } from "../../ui/links.js";
import { Panel } from "../../ui/panel.js";

/** @import { EventType } from "../../../types/api.js" */

/** @type {EventType[]} */
const EVENTS = [
  "task.started",
  "task.completed",
  "task.failed",
  "task.retrying",
  "task.dead_letter",
  "task.cancelled",
  "task.queued",
  "task.waiting",
  "task.deleted",
];

/** @param {{ ids: string[], tolerant: boolean }} props Tolerant: it also runs if they fail. */
export function Parents({ ids, tolerant }) {
  const parents = useResource(() => post("api/v1/tasks/lookup", { task_ids: ids }), ids, {
    on: EVENTS,
    concerns: ({ data }) => data.task_id !== undefined && ids.includes(data.task_id),
  });
  const hint = tolerant
    ? "it runs once they have ended, even if they failed"
    : "it runs once they are completed";
  return html`<${Panel} title="Depends on" hint=${hint} flush>
    ${fetched(
      parents,
      ({ tasks }) => html`<ul class="item-list">
        ${tasks.map(
          (task, index) => html`<li key=${ids[index]}>
            <${TaskLink} id=${ids[index]} /><span class="grow ellipsis">${task?.task_type}</span>
            ${task ? html`<${StateBadge} state=${task.status} />` : html`<span class="muted">gone</span>`}
          </li>`,
        )}
      </ul>`,
      ids.length,
    )}
  </${Panel}>`;
}
