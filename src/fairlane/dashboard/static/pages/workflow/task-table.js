// @ts-check
// The tasks of a workflow as a table: what the drawings show, for everybody.

import { count, counted, spaced } from "../../lib/format.js";
import { memo } from "../../lib/memo.js";
import { html, useCallback, useState } from "../../lib/preact.js";
import { link } from "../../lib/router.js";
import { LIVE, STATES } from "../../lib/states.js";
import { Badge, StateBadge } from "../../ui/badges.js";
import { Icon } from "../../ui/icons.js";
import { SortableHead, sortRows } from "../../ui/sort.js";
import { Ago } from "../../ui/time.js";
import { ResumeFrom } from "../workflows/actions.js";
import { tookText } from "./words.js";

/**
 * @import { NodeView } from "../../../types/api.js"
 * @import { Column } from "../../ui/sort.js"
 * @import { Shown, ViewQuery } from "../workflow.js"
 * @import { Timing } from "./times.js"
 * @typedef {{ task: NodeView, timing: Timing }} Row
 */

/** @type {Column<Row>[]} */
const COLUMNS = [
  { name: "task", title: "Task", by: ({ task }) => task.name },
  { name: "state", title: "State", by: ({ task }) => STATES.indexOf(task.status) },
  { name: "after", title: "Depends on", by: ({ task }) => task.parents.length, down: true },
  { name: "started", title: "Started", by: ({ timing }) => timing.started ?? Infinity },
  { name: "took", title: "Took", by: ({ timing }) => tookOf(timing), down: true },
  { name: "actions", title: "" },
];
const AT_ONCE = 100;
const FEW = 3;

/** @param {Timing} timing */
const tookOf = ({ started, ended }) => (started === null || ended === null ? -1 : ended - started);

/** @param {{ shown: Shown, query: ViewQuery }} props */
export function TaskTable({ shown, query }) {
  const [most, setMost] = useState(AT_ONCE);
  const { order = "", state, like } = query;
  const changed = useCallback(() => shown.refresh(), []); // A new function draws all rows again.
  const { byId, timings, path, workflow, to } = shown;
  const box = shown.structure.boxes.find(({ id }) => id === (like && shown.structure.boxOf.get(like)));
  const tasks = (box ? box.members : [...byId.keys()])
    .map((id) => /** @type {Row} */ ({ task: byId.get(id), timing: timings.get(id) }))
    .filter(({ task }) => !state || task.status === state);
  const rows = sortRows(tasks, COLUMNS, order);
  return html`
    <${Chips} query=${query} to=${to} group=${box && byId.get(box.id)?.task_type} />
    <table class="folding-table workflow-tasks" role="table" aria-label="Tasks">
      <${SortableHead} columns=${COLUMNS} order=${order}
        to=${(/** @type {string} */ other) => to({ ...query, order: other })} />
      <tbody role="rowgroup">${rows.slice(0, most).map(
        ({ task, timing }) => html`<${TaskRow} key=${task.task_id} id=${task.task_id} name=${task.name}
          type=${task.task_type} state=${task.status} error=${task.doomed ? null : task.error}
          after=${dependsOn(task, shown)} started=${task.started_at} took=${tookText(task, timing)}
          critical=${path.has(task.task_id)} answers=${task.answers} last=${task.on_exit} changed=${changed}
          workflow=${workflow.workflow_id} />`,
      )}</tbody>
    </table>
    ${
      rows.length === 0 &&
      html`<p class="table-footer muted">None of ${counted(workflow.tasks.length, "task")}.</p>`
    }
    ${
      rows.length > most &&
      html`<p class="table-footer">
        <button type="button" class="button small" onClick=${() => setMost(most + AT_ONCE)}>
          Show more: ${count(rows.length - most)} left
        </button>
      </p>`
    }`;
}

/** @param {{ query: ViewQuery, to: (query: ViewQuery) => string, group?: string }} props */
function Chips({ query, to, group }) {
  const { state, like, ...others } = query;
  if (!state && !group) return null;
  return html`<ul class="row active-filters table-footer" aria-label="Active filters">
    ${group && html`<${Chip} name="alike" text=${group} href=${to({ ...others, state })} />`}
    ${state && html`<${Chip} name="state" text=${spaced(state)} href=${to({ ...others, like })} />`}
  </ul>`;
}

/** @param {{ name: string, text: string, href: string }} props */
const Chip = ({ name, text, href }) => html`<li class="chip">
  <span class="ellipsis"><span class="muted">${name}</span> <bdi>${text}</bdi></span>
  <a class="remove" href=${href} aria-label=${`Remove ${name} ${text}`}><${Icon} name="close" /></a>
</li>`;

/** The names of the first tasks that a task depends on. @param {NodeView} task @param {Shown} shown */
function dependsOn({ parents }, { nameOf }) {
  const names = parents.slice(0, FEW).map(nameOf).join(", ");
  return parents.length > FEW ? `${names} and ${count(parents.length - FEW)} more` : names;
}

const TaskRow = memo(
  /**
   * @param {object} props
   * @param {string} props.id
   * @param {string} props.name
   * @param {string} props.type
   * @param {NodeView["status"]} props.state
   * @param {string | null} props.error
   * @param {string | null} props.started
   * @param {string} props.after
   * @param {string} props.took
   * @param {boolean} props.critical
   * @param {boolean} props.answers
   * @param {boolean} props.last
   * @param {string} props.workflow
   * @param {() => Promise<void>} props.changed
   */
  ({
    id,
    name,
    type,
    state,
    error,
    started,
    after,
    took,
    critical,
    answers,
    last,
    workflow,
    changed,
  }) => html`<tr
    role="row" data-id=${id} data-critical=${critical}>
    <th role="rowheader" scope="row" class="name">
      <a href=${link(["tasks", id])}>${name}</a>
      ${answers && html`<${Badge} tone="info" title="Its result is that of the workflow.">result</${Badge}>`}
      ${last && html`<${Badge} title="It runs when all others have ended.">at the end</${Badge}>`}
      ${name !== type && html`<div class="muted">${type}</div>`}
      ${error && html`<div class="error-text reason">${error}</div>`}
    </th>
    <td role="cell" class="state"><${StateBadge} state=${state} /></td>
    <td role="cell" class="muted" data-title=${after && "After"}>${after}</td>
    <td role="cell" data-title="Started"><${Ago} at=${started} /></td>
    <td role="cell" data-title=${took && "Took"}>${took}</td>
    <td role="cell" class="row-actions">
      ${!LIVE.has(state) && html`<${ResumeFrom} id=${workflow} name=${name} changed=${changed} />`}
    </td>
  </tr>`,
);
