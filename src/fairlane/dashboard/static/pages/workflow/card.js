// @ts-check
// What is told of the task that the viewer points at: when it waited and ran, its arguments, its result.

import { get, segment } from "../../lib/api.js";
import { now } from "../../lib/clock.js";
import { count, counted } from "../../lib/format.js";
import { html } from "../../lib/preact.js";
import { useResource } from "../../lib/resource.js";
import { LIVE } from "../../lib/states.js";
import { StateBadge } from "../../ui/badges.js";
import { fetched } from "../../ui/fetched.js";
import { encoded } from "../../ui/json.js";
import { StateCounts } from "../../ui/state-counts.js";
import { ResumeFrom } from "../workflows/actions.js";
import { aboutTimes, countStates } from "./words.js";

/**
 * @import { NodeView, State, TaskDetail } from "../../../types/api.js"
 * @import { Shown } from "../workflow.js"
 * @import { Box } from "./boxes.js"
 * @import { Pointed, Pointing } from "./pointing.js"
 * @import { Timing } from "./times.js"
 */

const WIDTH = 380;
const HEIGHT = 340;
const GAP = 6;
const LONGEST_TEXT = 1500;

/** @param {{ pointing: Pointing, shown: Shown }} props */
export function Card({ pointing, shown }) {
  const pointed = pointing.pointed.value;
  const box = shown.structure.boxes.find(({ id }) => id === pointed?.box);
  if (!pointed || !box) return null;
  return html`<div class="task-card" style=${placeOf(pointed)} role="group" aria-label="About the task"
    ...${pointing.card}>
    ${
      box.members.length > 1
        ? html`<${AboutGroup} box=${box} shown=${shown} />`
        : html`<${AboutTask} key=${box.id} id=${box.id} shown=${shown} />`
    }
  </div>`;
}

/** Below the box, or above it where there is more room. @param {Pointed} pointed */
function placeOf({ at }) {
  const left = `${Math.max(GAP, Math.min(at.left, innerWidth - WIDTH - 2 * GAP))}px`;
  const below = innerHeight - at.bottom - 2 * GAP;
  const above = at.top - 2 * GAP;
  const [side, room] = below < HEIGHT && above > below ? ["bottom", above] : ["top", below];
  const distance = side === "top" ? at.bottom + GAP : innerHeight - at.top + GAP;
  return { left, [side]: `${distance}px`, width: `${WIDTH}px`, maxHeight: `${Math.min(HEIGHT, room)}px` };
}

/** @param {{ box: Box, shown: Shown }} props */
const AboutGroup = ({ box: { id, members }, shown }) => html`
  <h3>${count(members.length)} × ${shown.byId.get(id)?.task_type}</h3>
  <p class="muted">These tasks depend on the same tasks, and the same tasks depend on them.</p>
  <${StateCounts} counts=${countStates(members, shown.byId)}
    to=${(/** @type {State} */ state) => shown.to({ view: "list", like: id, state })} />`;

/** @param {{ id: string, shown: Shown }} props */
function AboutTask({ id, shown }) {
  const { byId, workflow } = shown;
  const task = /** @type {NodeView} */ (byId.get(id));
  const detail = useResource((abort) => get(`api/v1/tasks/${segment(id)}`, {}, abort), [id, task.status]);
  const about = aboutTimes(task, /** @type {Timing} */ (shown.timings.get(id)), {
    created: Date.parse(workflow.created_at),
    now: now.value,
    nameOf: shown.nameOf,
  });
  return html`
    <h3 class="row"><span>${task.name}</span> <${StateBadge} state=${task.status} /></h3>
    ${task.name !== task.task_type && html`<p class="muted">${task.task_type}</p>`}
    <p>${about}</p>
    ${task.error && html`<p class="error-message">${task.error}</p>`}
    ${fetched(detail, (found) => html`<${Values} task=${found} shown=${shown} />`, 2)}
    ${
      !LIVE.has(task.status) &&
      html`<p class="row">
        <${ResumeFrom} id=${workflow.workflow_id} name=${task.name} changed=${shown.refresh} />
      </p>`
    }`;
}

/** @param {{ task: TaskDetail, shown: Shown }} props */
const Values = ({ task: { parameters, inputs, result, status }, shown }) => html`
  <h4>Arguments</h4>
  ${(!inputs || !isEmpty(parameters)) && html`<${Json} title="Arguments" value=${parameters} />`}
  ${Object.entries(inputs ?? {}).map(
    ([name, { parents }]) => html`<p key=${name}>
      <b>${name}</b>: ${parents.length === 1 ? "the result of " : `${counted(parents.length, "result")}: `}
      ${namesOf(parents, shown)}
    </p>`,
  )}
  ${status === "completed" && html`<h4>Result</h4><${Json} title="Result" value=${result} />`}`;

/** @param {object} value */
const isEmpty = (value) => Object.keys(value).length === 0;

/** @param {string[]} ids @param {Shown} shown */
const namesOf = (ids, { nameOf }) => ids.slice(0, 3).map(nameOf).join(", ") + (ids.length > 3 ? " …" : "");

/** @param {{ title: string, value: unknown }} props */
function Json({ title, value }) {
  const text = encoded(value, 2);
  const more = text.length > LONGEST_TEXT;
  return html`<pre tabindex="0" role="group" aria-label=${title}>
    ${text.slice(0, LONGEST_TEXT)}${more && "…"}
  </pre>`;
}
