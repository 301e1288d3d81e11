// @ts-check
// The tasks that a worker runs now, loaded when they are opened.

import { get } from "../../lib/api.js";
import { counted, percent } from "../../lib/format.js";
import { onToggled } from "../../lib/inputs.js";
import { html, useState } from "../../lib/preact.js";
import { useResource } from "../../lib/resource.js";
import { link } from "../../lib/router.js";
import { fetched } from "../../ui/fetched.js";
import { TaskLink } from "../../ui/links.js";
import { Meter } from "../../ui/meter.js";
import { Ago } from "../../ui/time.js";

/** @import { ProgressView, WorkerView } from "../../../types/api.js" */

const MOST = 20;

/** @param {{ worker: WorkerView, open: boolean }} props */
export function CurrentTasks({ worker, open: first }) {
  const [open, setOpen] = useState(first);
  return html`<details class="disclosure" open=${open} onToggle=${onToggled(setOpen)}>
    <summary>${counted(worker.current_tasks.length, "task")} now</summary>
    ${open && html`<${TaskList} worker=${worker.worker_id} />`}
  </details>`;
}

/** @param {{ worker: string }} props */
function TaskList({ worker }) {
  const filter = { worker, status: "executing" };
  const page = useResource(
    (abort) => get("api/v1/tasks/summaries", { ...filter, limit: MOST }, abort),
    [worker],
    { every: 2000 },
  );
  return fetched(
    page,
    ({ tasks, next_cursor: more }) => html`<ul class="item-list">
      ${tasks.map(
        (task) => html`<li key=${task.task_id}>
          <${TaskLink} id=${task.task_id} /><span class="grow ellipsis">${task.task_type}</span>
          <${Progress} progress=${task.progress} />
          <${Ago} at=${task.started_at} otherwise="not started" />
        </li>`,
      )}
      ${more && html`<li><a href=${link("tasks", filter)}>All of them</a></li>`}
    </ul>`,
    1,
  );
}

/** @param {{ progress: ProgressView | null }} props */
function Progress({ progress }) {
  const done = progress?.percent ?? null;
  if (done === null) return null;
  return html`<${Meter} value=${done} most=${100} label=${`${percent(done / 100)} done`} />`;
}
