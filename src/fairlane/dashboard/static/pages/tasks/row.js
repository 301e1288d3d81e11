import {
  cancel,
  cancelQuestion,
  deleteQuestion,
  deleteTask,
  runNowQuestion,
  replay,
  runNow,
} from "../../lib/task-actions.js";
import { memo } from "../../lib/memo.js";
import { LIVE, may, WAITING } from "../../lib/states.js";
import { html, useState } from "../../lib/preact.js";
import { ActionButton } from "../../ui/action-button.js";
import { Badge, Priority, StateBadge } from "../../ui/badges.js";
import { TaskLink } from "../../ui/links.js";
import { Meter } from "../../ui/meter.js";
import { Ago } from "../../ui/time.js";
import { WaitReasons } from "../../ui/wait-reasons.js";

/** A task. `acts` (a ref) has what is done with it: that changes, and is no reason to draw it again. */
export const Row = memo(function Row({ task, selected, acts }) {
  const [asking, ask] = useState(false);
  const { task_id: id, status } = task;
  const waits = WAITING.has(status) && !task.gone;
  const choose = (event) => acts.current.toggle(id, event.shiftKey);
  return html`<tr role="row" data-id=${id} tabindex="-1" class=${task.gone ? "deleted" : ""}>
    <td role="cell" class="check">
      <input type="checkbox" aria-label=${`Select ${id}`} checked=${selected} disabled=${task.gone}
        onClick=${choose} /></td>
    <td role="cell" class="id"><${TaskLink} id=${id} /></td>
    <td role="cell" class="type ellipsis" title=${task.task_type}>${task.task_type}
      <${Tags} tags=${task.tags} />
    </td>
    <td role="cell" class="state">${
      task.gone ? html`<${Badge}>deleted</${Badge}>` : html`<${StateBadge} state=${status} />`
    }<${Progress} task=${task} /></td>
    <td role="cell" class="level"><${Priority} priority=${task.priority} effective=${
      waits ? task.effective_priority : undefined
    } /></td>
    <td role="cell" class="queue ellipsis" title=${task.queue}>${task.queue}</td>
    <td role="cell" class="runs" title=${`${task.attempt} of at most ${mostRuns(task)} attempts`}>
      ${task.attempt}/${mostRuns(task)}</td>
    <td role="cell" class="created"><${Ago} at=${task.created_at} /></td>
    <td role="cell" class="row-actions">
      ${
        waits &&
        html`<button type="button" class="button small" aria-expanded=${asking}
          onClick=${() => ask(!asking)}>Why?</button>`
      }
      ${!task.gone && html`<${RowActions} task=${task} acts=${acts} />`}
    </td>
    ${
      asking &&
      waits &&
      html`<td role="cell" class="wait-reasons"><${WaitReasons} id=${id} version=${task.version} /></td>`
    }
  </tr>`;
});

function RowActions({ task, acts }) {
  const { status } = task;
  const then = (change) => () => change(task).then(() => acts.current.changed(task.task_id));
  return html`
    ${
      may.replay(status) &&
      (LIVE.has(status)
        ? html`<${ActionButton} key="now" small confirm=${runNowQuestion(task)}
          run=${then(runNow)}>Run now</${ActionButton}>`
        : html`<${ActionButton} key="replay" small run=${then(replay)}>Replay</${ActionButton}>`)
    }
    ${
      may.cancel(status) &&
      html`<${ActionButton} small scope="submit" confirm=${cancelQuestion(task)}
        run=${then(cancel)}>Cancel</${ActionButton}>`
    }
    ${
      may.delete(status) &&
      html`<${ActionButton} small danger confirm=${deleteQuestion(task)}
        run=${then(deleteTask)}>Delete</${ActionButton}>`
    }`;
}

function Progress({ task: { status, progress } }) {
  if (status !== "executing" || progress === null || progress.percent === null) return null;
  const label = [`${Math.round(progress.percent)} %`, progress.message].filter(Boolean).join(": ");
  return html` <${Meter} value=${progress.percent} most=${100} label=${label} />`;
}

const Tags = ({ tags }) =>
  Object.entries(tags).map(([name, value]) => html`<span class="tag" key=${name}>${name}:${value}</span>`);

/** How often it may run in all, as things stand: what it has left, on top of what it has had. */
function mostRuns({ status, attempt, retry_count: retried, max_retries: most }) {
  return Math.max(most + 1, attempt + most - retried + (WAITING.has(status) ? 1 : 0));
}
