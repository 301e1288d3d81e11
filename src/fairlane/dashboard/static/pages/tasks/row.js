// @ts-check
// A row of the list.

import { memo } from "../../lib/memo.js";
import { html, useState } from "../../lib/preact.js";
import { LIVE, may, WAITING } from "../../lib/states.js";
import {
  cancel,
  cancelQuestion,
  deleteQuestion,
  deleteTask,
  replay,
  runNow,
  runNowQuestion,
} from "../../lib/task-actions.js";
import { ActionButton } from "../../ui/action-button.js";
import { Badge, Priority, StateBadge } from "../../ui/badges.js";
import { TaskLink } from "../../ui/links.js";
import { Meter } from "../../ui/meter.js";
import { Ago } from "../../ui/time.js";
import { WaitReasons } from "../../ui/wait-reasons.js";

/**
 * @import { TaskSummary } from "../../../types/api.js"
 * @import { Ref } from "../../lib/preact.js"
 * @import { ListedTask } from "../../lib/selection.js"
 * @typedef {(id: string, range: boolean) => void} Toggle
 * @typedef {{ toggle: Toggle, changed: (id: string) => Promise<void> }} RowHandlers
 * @typedef {Ref<RowHandlers>} Handlers They are new with every drawing, which must not draw all rows again.
 */

/** @param {{ task: ListedTask, selected: boolean, handlers: Handlers }} props */
const TaskRow = ({ task, selected, handlers }) => {
  const [asking, setAsking] = useState(false);
  const { task_id: id, status, gone = false } = task;
  const waits = WAITING.has(status) && !gone;
  const runs = `${task.attempt} of at most ${mostRuns(task)} attempts`;
  const select = (/** @type {MouseEvent} */ event) => handlers.current.toggle(id, event.shiftKey);
  return html`<tr role="row" data-id=${id} tabindex="-1" class=${gone ? "deleted" : ""}>
    <td role="cell" class="check">
      <input type="checkbox" aria-label=${`Select ${id}`} checked=${selected} disabled=${gone}
        onClick=${select} />
    </td>
    <td role="cell" class="id"><${TaskLink} id=${id} /></td>
    <td role="cell" class="type ellipsis" title=${task.task_type}>
      ${task.task_type}<${Tags} tags=${task.tags} />
    </td>
    <td role="cell" class="state">
      ${gone ? html`<${Badge}>deleted</${Badge}>` : html`<${StateBadge} state=${status} />`}
      <${Progress} task=${task} />
    </td>
    <td role="cell" class="level">
      <${Priority} priority=${task.priority} effective=${waits ? task.effective_priority : undefined} />
    </td>
    <td role="cell" class="queue ellipsis" title=${task.queue}>${task.queue}</td>
    <td role="cell" class="attempts" title=${runs}>${task.attempt}/${mostRuns(task)}</td>
    <td role="cell" class="created"><${Ago} at=${task.created_at} /></td>
    <td role="cell" class="row-actions">
      ${
        waits &&
        html`<button type="button" class="button small" aria-expanded=${asking}
          onClick=${() => setAsking(!asking)}>Why?</button>`
      }
      ${!gone && html`<${RowActions} task=${task} handlers=${handlers} />`}
    </td>
    ${
      asking &&
      waits &&
      html`<td role="cell" class="wait-reasons"><${WaitReasons} id=${id} version=${task.version} /></td>`
    }
  </tr>`;
};

export const Row = memo(TaskRow);

/** @param {{ task: TaskSummary, handlers: Handlers }} props */
function RowActions({ task, handlers }) {
  const { status } = task;
  const then = (/** @type {(task: TaskSummary) => Promise<unknown>} */ change) => () =>
    change(task).then(() => handlers.current.changed(task.task_id));
  return html`
    ${
      may.replay(status) &&
      (LIVE.has(status)
        ? html`<${ActionButton} key="now" small confirm=${runNowQuestion(task)} run=${then(runNow)}>
          Run now
        </${ActionButton}>`
        : html`<${ActionButton} key="replay" small run=${then(replay)}>Replay</${ActionButton}>`)
    }
    ${
      may.cancel(status) &&
      html`<${ActionButton} small scope="submit" confirm=${cancelQuestion(task)} run=${then(cancel)}>
        Cancel
      </${ActionButton}>`
    }
    ${
      may.delete(status) &&
      html`<${ActionButton} small danger confirm=${deleteQuestion(task)} run=${then(deleteTask)}>
        Delete
      </${ActionButton}>`
    }`;
}

/** @param {{ task: TaskSummary }} props */
function Progress({ task: { status, progress } }) {
  if (status !== "executing" || progress === null || progress.percent === null) return null;
  const label = [`${Math.round(progress.percent)} %`, progress.message].filter(Boolean).join(": ");
  return html` <${Meter} value=${progress.percent} most=${100} label=${label} />`;
}

/** @param {{ tags: Record<string, string> }} props */
const Tags = ({ tags }) =>
  Object.entries(tags).map(
    ([name, value]) => html`<span class="tag" key=${name}><bdi>${name}</bdi>:<bdi>${value}</bdi></span>`,
  );

/**
 * Return how often a task may run altogether: its attempts so far, and those that it has left.
 *
 * @param {TaskSummary} task
 */
function mostRuns({ status, attempt, retry_count: retried, max_retries: most }) {
  return Math.max(most + 1, attempt + most - retried + (WAITING.has(status) ? 1 : 0));
}
