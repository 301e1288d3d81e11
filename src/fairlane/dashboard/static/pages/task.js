// One task: what it is, where it stands and how it got there, what it was given and what came of it.

import { get, segment } from "../lib/api.js";
import { shortId } from "../lib/format.js";
import { WAITING } from "../lib/states.js";
import { useResource } from "../lib/resource.js";
import { link } from "../lib/router.js";
import { html, useEffect } from "../lib/preact.js";
import { StateBadge } from "../ui/badges.js";
import { CopyButton } from "../ui/copy-button.js";
import { JsonPanel } from "../ui/json.js";
import { Empty } from "../ui/empty.js";
import { Fetched } from "../ui/fetched.js";
import { Heading, Panel } from "../ui/panel.js";
import { WaitReasons } from "../ui/wait-reasons.js";
import { Actions } from "./task/actions.js";
import { Facts } from "./task/facts.js";
import { Failure } from "./task/failure.js";
import { Parents } from "./task/parents.js";
import { StatePath, Steps } from "./task/state-path.js";
import { Progress } from "./task/progress.js";
import { Runs } from "./task/runs.js";

const EVENTS = [
  "started",
  "progress",
  "completed",
  "failed",
  "retrying",
  "dead_letter",
  "cancelled",
  "queued",
  "snoozed",
  "deleted",
].map((name) => `task.${name}`);

/** Another task is another page: nothing that was opened on one stays open on the next. */
export const Task = ({ parts: [, id] }) => html`<${TaskPage} key=${id} id=${id} />`;

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
  if (error?.status === 404) return html`<${Gone} id=${id} known=${data} />`;
  return html`<${Fetched} resource=${resource} rows=${6}>${(task) => html`
    <${Head} task=${task} refresh=${refresh} />
    ${
      WAITING.has(task.status) &&
      html`<section class="panel waiting">
        <header><h2>Why is this task waiting?</h2></header>
        <div class="body"><${WaitReasons} id=${id} version=${task.version} /></div>
      </section>`
    }
    ${task.status === "executing" && html`<${Progress} progress=${task.progress} />`}
    <${Failure} task=${task} />
    <${Panel} title="Path"><${StatePath} steps=${task.state_history} />
      <${Steps} steps=${task.state_history} />
    </${Panel}>
    <div class="columns">
      <div>
        <${Panel} title="About"><${Facts} task=${task} /></${Panel}>
        ${
          task.depends_on &&
          html`<${Parents} ids=${task.depends_on} tolerant=${task.on_parent_failure === "continue"} />`
        }
      </div>
      <div>
        <${Runs} task=${task} />
        <${JsonPanel} title="Parameters" value=${task.parameters} />
        ${task.status === "completed" && html`<${JsonPanel} title="Result" value=${task.result} />`}
      </div>
    </div>
  `}</${Fetched}>`;
}

const Head = ({ task, refresh }) => html`<div class="page-heading">
  <div>
    <a class="muted" href=${link("tasks")}>Tasks</a>
    <h1 class="row">${task.task_type} <${StateBadge} state=${task.status} /></h1>
    <div class="row muted"><span class="mono" title=${task.task_id}>${shortId(task.task_id)}</span>
      <${CopyButton} text=${task.task_id} what="the id" /></div>
  </div>
  <div class="tools"><${Actions} task=${task} refresh=${refresh} /></div>
</div>`;

const Gone = ({ id, known }) => html`<${Heading} title="Task" /><${Empty} title=${
  known ? `This ${known.task_type} is gone` : "There is no such task"
}>
  <p>${
    known
      ? "It was deleted while you looked at it."
      : "It was deleted, or cleaned up some time after it ended; or its id was cut off on its way here."
  }</p>
  <p><code>${id}</code></p>
  <a class="button" href=${link("tasks")}>To all tasks</a>
</${Empty}>`;
