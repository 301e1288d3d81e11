import { get } from "../../lib/api.js";
import { counted, percent } from "../../lib/format.js";
import { useResource } from "../../lib/resource.js";
import { link } from "../../lib/router.js";
import { html, useState } from "../../lib/preact.js";
import { TaskLink } from "../../ui/links.js";
import { Fetched } from "../../ui/fetched.js";
import { Meter } from "../../ui/meter.js";
import { Ago } from "../../ui/time.js";

const MOST = 20;

/** The tasks that a worker has, once somebody wants to see them. */
export function CurrentTasks({ worker, open: first }) {
  const [open, setOpen] = useState(first);
  const number = worker.current_tasks.length;
  return html`<details class="disclosure" open=${open}
    onToggle=${(event) => setOpen(event.currentTarget.open)}>
    <summary>${counted(number, "task")} now</summary>
    ${open && html`<${Tasks} worker=${worker.worker_id} />`}
  </details>`;
}

function Tasks({ worker }) {
  const filter = { worker, status: "executing" };
  const found = useResource(
    (abort) => get("api/v1/tasks/summaries", { ...filter, limit: MOST }, abort),
    [worker],
    { every: 2000 },
  );
  return html`<${Fetched} resource=${found} rows=${1}>${({
    tasks,
    next_cursor: more,
  }) => html`<ul class="item-list">
    ${tasks.map(
      (task) => html`<li key=${task.task_id}>
        <${TaskLink} id=${task.task_id} /><span class="grow ellipsis">${task.task_type}</span>
        <${Done} progress=${task.progress} />
        <${Ago} at=${task.started_at} otherwise="not begun" />
      </li>`,
    )}
    ${more && html`<li><a href=${link("tasks", filter)}>All of them</a></li>`}
  </ul>`}</${Fetched}>`;
}

const Done = ({ progress }) =>
  typeof progress?.percent === "number" &&
  html`<${Meter} value=${progress.percent} most=${100} label=${`${percent(progress.percent / 100)} done`} />`;
