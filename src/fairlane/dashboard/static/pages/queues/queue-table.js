// @ts-check
// The table of queues.

import { post, segment } from "../../lib/api.js";
import { count, counted, duration, percent } from "../../lib/format.js";
import { memo, useStable } from "../../lib/memo.js";
import { html } from "../../lib/preact.js";
import { link } from "../../lib/router.js";
import { ActionButton } from "../../ui/action-button.js";
import { Badge } from "../../ui/badges.js";
import { Meter } from "../../ui/meter.js";
import { Panel } from "../../ui/panel.js";
import { SortableHead, sortRows } from "../../ui/sort.js";
import { StateCounts } from "../../ui/state-counts.js";
import { isServed, Unserved } from "./unserved.js";

/**
 * @import { QueueView, State, WorkerView } from "../../../types/api.js"
 * @import { Column } from "../../ui/sort.js"
 */

/** @type {Column<QueueView>[]} */
const COLUMNS = [
  { name: "queue", title: "Queue", by: ({ queue }) => queue },
  { name: "depth", title: "Queued", by: ({ depth }) => depth, down: true, number: true },
  { name: "share", title: "Share" },
  {
    name: "oldest",
    title: "Oldest waits",
    by: (each) => each.oldest_age_seconds,
    down: true,
    number: true,
  },
  {
    name: "states",
    title: "Tasks",
    by: ({ by_status: counts }) => Object.values(counts).reduce((all, each) => all + each, 0),
    down: true,
  },
  { name: "actions", title: "" },
];

/**
 * @param {object} props
 * @param {QueueView[]} props.queues Those that the viewer searched for.
 * @param {QueueView[]} props.all
 * @param {WorkerView[]} props.workers
 * @param {() => void} props.changed
 * @param {string} props.order
 * @param {(order: string) => string} props.to
 */
export function QueueTable({ queues, all, workers, changed, order, to }) {
  const sum = all.reduce((depth, each) => depth + each.depth, 0);
  const rows = sortRows(
    useStable(queues, ({ queue }) => queue),
    COLUMNS,
    order,
  );
  return html`<${Panel} title="Queues" hint=${countHint(queues, all)} flush>
    <table class="folding-table queues" role="table" aria-label="Queues">
      <${SortableHead} columns=${COLUMNS} order=${order} to=${to} />
      <tbody role="rowgroup">${rows.map(
        (each) => html`<${QueueRow} key=${each.queue} queue=${each} changed=${changed}
          share=${sum ? each.depth / sum : 0} served=${isServed(workers, "queues", each.queue)} />`,
      )}</tbody>
    </table>
    ${rows.length === 0 && html`<p class="table-footer muted">No queue's name contains this.</p>`}
  </${Panel}>`;
}

/** Say how many are shown of how many there are. @param {unknown[]} shown @param {unknown[]} all */
export const countHint = (shown, all) =>
  shown.length === all.length ? count(all.length) : `${count(shown.length)} of ${count(all.length)}`;

const QueueRow = memo(
  /** @param {{ queue: QueueView, share: number, served: boolean, changed: () => void }} props */
  ({ queue, share, served, changed }) => {
    const { queue: name, depth, paused } = queue;
    const age = depth ? duration(queue.oldest_age_seconds) : html`<span class="muted">–</span>`;
    const pause = () => post(`api/v1/queues/${segment(name)}/pause`).then(changed);
    const resume = () => post(`api/v1/queues/${segment(name)}/resume`).then(changed);
    return html`<tr role="row" data-name=${name}>
      <th role="rowheader" scope="row" class="name">
        <a href=${link("tasks", { queue: name })}>${name}</a>
        ${paused && html`<${Badge} tone="warning">paused</${Badge}>`}
        ${!served && html`<${Unserved} waiting=${depth > 0} />`}
      </th>
      <td role="cell" class="number" data-title="Queued"><b>${count(depth)}</b></td>
      <td role="cell" data-title="Share">
        <${Meter} value=${share} most=${1} label=${`${percent(share)} of all that is queued`} />
        ${" "}<small class="muted">${percent(share)}</small>
      </td>
      <td role="cell" class="number" data-title="Oldest waits">${age}</td>
      <td role="cell">
        <${StateCounts} counts=${queue.by_status}
          to=${(/** @type {State} */ status) => link("tasks", { queue: name, status })} />
      </td>
      <td role="cell" class="row-actions">
        ${
          paused
            ? html`<${ActionButton} small primary run=${resume}>Resume</${ActionButton}>`
            : html`<${ActionButton} small confirm=${question(queue)} run=${pause}>Pause</${ActionButton}>`
        }
      </td>
    </tr>`;
  },
);

/** @param {QueueView} queue */
const question = ({ queue, depth }) =>
  `Pause the queue ${queue}? ${counted(depth, "task")} queued there will wait until you resume it; ` +
  "running tasks continue.";
