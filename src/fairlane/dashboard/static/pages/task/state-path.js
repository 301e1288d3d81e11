// The way that a task took through its states: the map of all ways, with those it took in colour.

import { now } from "../../lib/clock.js";
import { counted, duration, spaced } from "../../lib/format.js";
import { LIVE, STATES } from "../../lib/states.js";
import { html, useState } from "../../lib/preact.js";
import { StateBadge } from "../../ui/badges.js";
import { WorkerLink } from "../../ui/links.js";
import { Ago } from "../../ui/time.js";

/** All states, where they lie on the way, and how long the task was in each. */
export function StatePath({ steps }) {
  const visits = visitsOf(steps, now.value);
  const current = steps.at(-1).state;
  return html`<ol class="state-path">
    ${STATES.map(
      (state) =>
        html`<${Station} key=${state} state=${state} visit=${visits.get(state)}
          current=${state === current} />`,
    )}
  </ol>`;
}

function Station({ state, visit, current }) {
  return html`<li data-state=${state} data-visited=${visit !== undefined} aria-current=${
    current ? "step" : undefined
  }>
    <b>${spaced(state)}</b>
    ${
      visit
        ? html`<span>${LIVE.has(state) ? duration(visit.seconds) : html`<${Ago} at=${visit.at} />`}${
            visit.times > 1 && ` · ${visit.times} times`
          }</span>`
        : html`<span class="visually-hidden">not reached</span>`
    }
  </li>`;
}

/** Step by step, for who wants to know exactly. */
export function Steps({ steps }) {
  const [open, setOpen] = useState(false);
  return html`<details class="disclosure" onToggle=${(event) => setOpen(event.currentTarget.open)}>
    <summary>${counted(steps.length, "step")}</summary>
    ${
      open &&
      html`<div class="scroll-sideways"><table class="table">
          <thead><tr><th>State</th><th>Entered</th><th>For</th><th>Run</th><th>Worker</th><th>Reason</th></tr>
          </thead>
          <tbody>${steps.map(
            (step, index) => html`<tr key=${index}>
              <td><${StateBadge} state=${step.state} /></td>
              <td><${Ago} at=${step.timestamp} /></td>
              <td>${lasts(steps, index) ? duration(spent(steps, index, now.value)) : ""}</td>
              <td>${step.attempt && `#${step.attempt}`}</td>
              <td>${step.worker_id && html`<${WorkerLink} id=${step.worker_id} />`}</td>
              <td>${step.reason && spaced(step.reason)}</td>
            </tr>`,
          )}</tbody>
        </table></div>`
    }
  </details>`;
}

/** {at, seconds, times} of each state that was entered: when last, how long in all, how often. */
export function visitsOf(steps, time) {
  const visits = new Map();
  steps.forEach((step, index) => {
    const { seconds, times } = visits.get(step.state) ?? { seconds: 0, times: 0 };
    visits.set(step.state, {
      at: step.timestamp,
      seconds: seconds + spent(steps, index, time),
      times: times + 1,
    });
  });
  return visits;
}

// What has ended stays as it is, until somebody makes it ready again.
const lasts = (steps, index) => index + 1 < steps.length || LIVE.has(steps[index].state);

function spent(steps, index, time) {
  const until = index + 1 < steps.length ? Date.parse(steps[index + 1].timestamp) : time;
  return Math.max(0, until - Date.parse(steps[index].timestamp)) / 1000;
}
