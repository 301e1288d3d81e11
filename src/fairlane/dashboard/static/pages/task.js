// @ts-check
// One task: its state and how it got there, its parameters, result and error.

import { get, segment } from "../lib/api.js";
import { shortId } from "../lib/format.js";
import { html, useEffect } from "../lib/preact.js";
import { useResource } from "../lib/resource.js";
import { link } from "../lib/router.js";
import { WAITING } from "../lib/states.js";
import { StateBadge } from "../ui/badges.js";
import { CopyButton } from "../ui/copy-button.js";
import { Empty } from "../ui/empty.js";
import { fetched } from "../ui/fetched.js";
import { JsonPanel } from "../ui/json.js";
import { Heading, Panel } from "../ui/panel.js";
import { WaitReasons } from "../ui/wait-reasons.js";
import { Actions } from "./task/actions.js";
import { Facts } from "./task/facts.js";
import { Failure } from "./task/failure.js";
import { Parents } from "./task/parents.js";
import { Progress } from "./task/progress.js";
import { Runs } from "./task/runs.js";
import { StatePath, Steps } from "./task/state-path.js";

/** @import { EventType, TaskDetail } from "../../types/api.js" */

/** @type {EventType[]} */
const EVENTS = [
  "task.started",
  "task.progress",
  "task.completed",
  "task.failed",
  "task.retrying",
  "task.dead_letter",
  "task.cancelled",
  "task.queued",
  "task.waiting",
  "task.snoozed",
  "task.deleted",
];

/**
 * The key keeps tasks apart: what was opened on one is not open on the next.
 *
 * @param {{ parts: string[] }} props
 */
export const Task = ({ parts: [, id] }) => html`<${TaskPage} key=${id} id=${id} />`;

/** @param {{ id: string }} props */
function TaskPage({ id }) {
  const resource = useResource(
    (abort) => get(`api/v1/tasks/${segment(id)}`, { include_history: true }, abort),
    [],
    { on: EVENTS, concerns: (event) => event.data.task_id === id },
  );
  const { data, error, refresh } = resource;
  useEffect(() => {
    if (data) document.title = `${data.task_type} ${shortId(id)} · Fairlane`;
  }, [data?.task_type]);
  if (error?.status === 404) return html`<${Gone} id=${id} type=${data?.task_type} />`;
  return fetched(resource, (task) => html`<${Content} task=${task} refresh=${refresh} />`, 6);
}

/** @param {{ task: TaskDetail, refresh: () => Promise<void> }} props */
function Content({ task, refresh }) {
  const { task_id: id, status, depends_on: parents, state_history: steps = [] } = task;
  return html`
    <${Head} task=${task} refresh=${refresh} />
    ${
      WAITING.has(status) &&
      html`<section class="panel waiting">
        <header><h2>Why is this task waiting?</h2></header>
        <div class="body"><${WaitReasons} id=${id} version=${task.version} /></div>
      </section>`
    }
    ${status === "executing" && html`<${Progress} progress=${task.progress} />`}
    <${Failure} task=${task} />
    <${Panel} title="Path"><${StatePath} steps=${steps} /><${Steps} steps=${steps} /></${Panel}>
    <div class="columns">
      <div>
        <${Panel} title="About"><${Facts} task=${task} /></${Panel}>
        ${parents && html`<${Parents} ids=${parents} tolerant=${task.on_parent_failure === "continue"} />`}
      </div>
      <div>
        <${Runs} task=${task} />
        <${JsonPanel} title="Parameters" value=${task.parameters} />
        ${status === "completed" && html`<${JsonPanel} title="Result" value=${task.result} />`}
      </div>
    </div>`;
}

/** @param {{ task: TaskDetail, refresh: () => Promise<void> }} props */
const Head = ({ task, refresh }) => html`<div class="page-heading">
  <div>
    <a class="muted" href=${link("tasks")}>Tasks</a>
    <h1 class="row">${task.task_type} <${StateBadge} state=${task.status} /></h1>
    <div class="row muted">
      <span class="mono" title=${task.task_id}>${shortId(task.task_id)}</span>
      <${CopyButton} text=${task.task_id} what="the id" />
    </div>
  </div>
  <div class="tools"><${Actions} task=${task} refresh=${refresh} /></div>
</div>`;

const DELETED = "It was deleted while you looked at it.";
const NEVER_SEEN = "It was deleted by somebody or by the cleanup, or its id is incomplete.";

/** @param {{ id: string, type?: string }} props */
const Gone = ({ id, type }) => html`
  <${Heading} title="Task" />
  <${Empty} title=${type ? `This ${type} is gone` : "There is no such task"}>
    <p>${type ? DELETED : NEVER_SEEN}</p>
    <p><code>${id}</code></p>
    <a class="button" href=${link("tasks")}>To all tasks</a>
  </${Empty}>`;
