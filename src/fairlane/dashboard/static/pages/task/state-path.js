// @ts-check
// The path of a task through its states: a map of all states, with those that it entered in colour.

import { now } from "../../lib/clock.js";
import { counted, duration, spaced } from "../../lib/format.js";
import { onToggled } from "../../lib/inputs.js";
import { html, useState } from "../../lib/preact.js";
import { LIVE, STATES } from "../../lib/states.js";
import { StateBadge } from "../../ui/badges.js";
import { WorkerLink } from "../../ui/links.js";
import { Ago } from "../../ui/time.js";

/**
 * @import { State, StepView } from "../../../types/api.js"
 * @typedef {{ at: string, seconds: number, times: number }} Visit When a state was entered last, how long the
 *   task was in it altogether, and how often.
 */

/** @param {{ steps: StepView[] }} props */
export function StatePath({ steps }) {
  const visits = visitsOf(steps, now.value);
  const current = steps.at(-1)?.state;
  return html`<ol class="state-path">
    ${STATES.map(
      (state) =>
        html`<${Station} key=${state} state=${state} visit=${visits.get(state)}
          current=${state === current} />`,
    )}
  </ol>`;
}

/** @param {{ state: State, visit?: Visit, current: boolean }} props */
function Station({ state, visit, current }) {
  return html`<li data-state=${state} data-visited=${visit !== undefined}
    aria-current=${current ? "step" : undefined}>
    <b>${spaced(state)}</b>
    ${
      visit
        ? html`<span>
          ${LIVE.has(state) ? duration(visit.seconds) : html`<${Ago} at=${visit.at} />`}
          ${visit.times > 1 && ` · ${visit.times} times`}
        </span>`
        : html`<span class="visually-hidden">not reached</span>`
    }
  </li>`;
}

/** A table of all steps. @param {{ steps: StepView[] }} props */
export function Steps({ steps }) {
  const [open, setOpen] = useState(false);
  return html`<details class="disclosure" onToggle=${onToggled(setOpen)}>
    <summary>${counted(steps.length, "step")}</summary>
    ${open && html`<${StepTable} steps=${steps} />`}
  </details>`;
}

/** @param {{ steps: StepView[] }} props */
const StepTable = ({ steps }) => html`<div class="scroll-sideways"><table class="table">
    <thead>
      <tr><th>State</th><th>Entered</th><th>For</th><th>Run</th><th>Worker</th><th>Reason</th></tr>
    </thead>
    <tbody>${steps.map(
      (step, index) => html`<tr key=${index}>
        <td><${StateBadge} state=${step.state} /></td>
        <td><${Ago} at=${step.timestamp} /></td>
        <td>${hasEnd(steps, index) ? duration(secondsIn(steps, index, now.value)) : ""}</td>
        <td>${step.attempt && `#${step.attempt}`}</td>
        <td>${step.worker_id && html`<${WorkerLink} id=${step.worker_id} />`}</td>
        <td>${step.reason && spaced(step.reason)}</td>
      </tr>`,
    )}</tbody>
  </table></div>`;

/**
 * @param {StepView[]} steps
 * @param {number} time
 * @returns {Map<State, Visit>}
 */
export function visitsOf(steps, time) {
  const visits = new Map();
  steps.forEach((step, index) => {
    const { seconds, times } = visits.get(step.state) ?? { seconds: 0, times: 0 };
    visits.set(step.state, {
      at: step.timestamp,
      seconds: seconds + secondsIn(steps, index, time),
      times: times + 1,
    });
  });
  return visits;
}

/**
 * Whether a step is over, or will be: a task stays in its last state for ever.
 *
 * @param {StepView[]} steps
 * @param {number} index
 */
const hasEnd = (steps, index) => index + 1 < steps.length || LIVE.has(steps[index].state);

/** @param {StepView[]} steps @param {number} index @param {number} time */
function secondsIn(steps, index, time) {
  const end = index + 1 < steps.length ? Date.parse(steps[index + 1].timestamp) : time;
  return Math.max(0, end - Date.parse(steps[index].timestamp)) / 1000;
}
