// @ts-check
// The runs of a task, the last one first.

import { now } from "../../lib/clock.js";
import { counted, duration, secondsBetween, spaced } from "../../lib/format.js";
import { html, useState } from "../../lib/preact.js";
import { Badge, StateBadge } from "../../ui/badges.js";
import { WorkerLink } from "../../ui/links.js";
import { Meter } from "../../ui/meter.js";
import { Panel } from "../../ui/panel.js";
import { Ago } from "../../ui/time.js";
import { Traceback } from "./failure.js";

/**
 * @import { AttemptView, TaskDetail } from "../../../types/api.js"
 * @import { Children } from "../../lib/preact.js"
 * @typedef {Omit<AttemptView, "outcome">} RunView
 */

const AT_ONCE = 10;

/** @type {Record<string, string>} */
const TONES = { completed: "good", failed: "danger", timed_out: "danger", lost: "danger", snoozed: "info" };

/** @param {{ task: TaskDetail }} props */
export function Runs({ task }) {
  const [all, setAll] = useState(false);
  const runs = task.attempts.toReversed();
  const shown = all ? runs : runs.slice(0, AT_ONCE);
  const hidden = runs.length - shown.length;
  const current = task.status === "executing" ? currentRun(task, now.value) : null;
  const longest = Math.max(...runs.map(secondsOf), current ? secondsOf(current) : 0);
  return html`<${Panel} title="Runs" flush>
    <ol class="runs">
      ${
        current &&
        html`<${Run} key="current" run=${current} longest=${longest}
          badge=${html`<${StateBadge} state="executing" />`} />`
      }
      ${shown.map(
        (run) => html`<${Run} key=${`${run.number} ${run.ended_at}`} run=${run} longest=${longest}
          badge=${html`<${Badge} tone=${TONES[run.outcome]}>${spaced(run.outcome)}</${Badge}>`} />`,
      )}
      ${
        hidden > 0 &&
        html`<li>
          <button type="button" class="button small" onClick=${() => setAll(true)}>
            Show ${counted(hidden, "earlier run")}
          </button>
        </li>`
      }
      ${!current && runs.length === 0 && html`<li class="muted">None yet.</li>`}
    </ol>
  </${Panel}>`;
}

/** @param {{ run: RunView, longest: number, badge: Children }} props */
function Run({ run, longest, badge }) {
  const { number, worker_id: worker, started_at: started, error } = run;
  const seconds = secondsOf(run);
  const took = duration(seconds);
  return html`<li>
    <div class="run">
      <b>#${number}</b>${badge}
      <span class="run-duration">
        ${started && html`<${Meter} value=${seconds} most=${longest} label=${`took ${took}`} />`}
        <span>${started ? took : "not started"}</span>
      </span>
      <span class="muted">
        <${Ago} at=${started ?? run.ended_at} />${worker && html` on <${WorkerLink} id=${worker} />`}
      </span>
    </div>
    ${error && html`<p class="error-message">${error.message}</p>`}
    ${error?.traceback && html`<${Traceback} text=${error.traceback} />`}
  </li>`;
}

/** @param {RunView} run */
const secondsOf = ({ started_at: started, ended_at: ended }) =>
  started ? Math.max(0, secondsBetween(started, ended)) : 0;

/** @param {TaskDetail} task @param {number} time @returns {RunView} */
const currentRun = (task, time) => ({
  number: task.attempt,
  worker_id: task.assigned_worker_id,
  started_at: task.started_at,
  ended_at: new Date(time).toISOString(),
  error: null,
});
