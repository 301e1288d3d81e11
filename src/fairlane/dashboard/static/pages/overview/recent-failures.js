// @ts-check
// The tasks that failed last.

import { get } from "../../lib/api.js";
import { html } from "../../lib/preact.js";
import { useResource } from "../../lib/resource.js";
import { link } from "../../lib/router.js";
import { StateBadge } from "../../ui/badges.js";
import { fetched } from "../../ui/fetched.js";
import { Ago } from "../../ui/time.js";

const LAST = { status: ["failed", "dead_letter"], limit: 10 };

export function RecentFailures() {
  const failed = useResource((abort) => get("api/v1/tasks/summaries", LAST, abort), [], {
    on: ["task.failed", "task.dead_letter", "task.deleted", "task.queued"],
  });
  return fetched(
    failed,
    ({ tasks }) => html`<ul class="item-list">
      ${tasks.map(
        (task) => html`<li key=${task.task_id}>
          <a href=${link(["tasks", task.task_id])}>${task.task_type}</a>
          <span class="grow ellipsis muted" title=${task.error?.message}>${task.error?.message}</span>
          <${StateBadge} state=${task.status} /><${Ago} at=${task.completed_at ?? task.updated_at} />
        </li>`,
      )}
      ${tasks.length === 0 && html`<li class="muted">None.</li>`}
    </ul>`,
  );
}
