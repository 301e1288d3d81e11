import { segment, post } from "../../lib/api.js";
import { count, counted, duration, percent } from "../../lib/format.js";
import { memo, useStable } from "../../lib/memo.js";
import { link } from "../../lib/router.js";
import { html } from "../../lib/preact.js";
import { ActionButton } from "../../ui/action-button.js";
import { Badge } from "../../ui/badges.js";
import { Meter } from "../../ui/meter.js";
import { Panel } from "../../ui/panel.js";
import { SortableHead, sortRows } from "../../ui/sort.js";
import { StateCounts } from "../../ui/state-counts.js";
import { isServed, Unserved } from "./unserved.js";

const COLUMNS = [
  { name: "queue", title: "Queue", by: ({ queue }) => queue },
  { name: "depth", title: "Queued", by: ({ depth }) => depth, down: true, number: true },
  { name: "share", title: "Share" },
  { name: "oldest", title: "Oldest waits", by: (each) => each.oldest_age_seconds, down: true, number: true },
  {
    name: "states",
    title: "Tasks",
    by: ({ by_status: states }) => Object.values(states).reduce((all, each) => all + each, 0),
    down: true,
  },
  { name: "acts", title: "" },
];

/** Queues; of `all` of them, those that were looked for. */
export function QueueTable({ queues, all, workers, changed, order, to }) {
  const sum = all.reduce((depth, each) => depth + each.depth, 0);
  const rows = sortRows(useStable(queues, "queue"), COLUMNS, order);
  return html`<${Panel} title="Queues" hint=${countHint(queues, all)} flush>
    <table class="folding-table queues" role="table" aria-label="Queues">
      <${SortableHead} columns=${COLUMNS} order=${order} to=${to} />
      <tbody role="rowgroup">${rows.map(
        (each) => html`<${Queue} key=${each.queue} found=${each} changed=${changed}
          share=${sum ? each.depth / sum : 0} served=${isServed(workers, "queues", each.queue)} />`,
      )}</tbody>
    </table>
    ${rows.length === 0 && html`<p class="table-footer muted">No queue has this in its name.</p>`}
  </${Panel}>`;
}

/** How many are shown of how many there are. */
export const countHint = (shown, all) =>
  shown.length === all.length ? count(all.length) : `${count(shown.length)} of ${count(all.length)}`;

const Queue = memo(({ found, share, served, changed }) => {
  const { queue, depth, paused } = found;
  return html`<tr role="row" data-name=${queue}>
    <th role="rowheader" scope="row" class="name">
      <a href=${link("tasks", { queue })}>${queue}</a>
      ${paused && html`<${Badge} tone="warning">paused</${Badge}>`}
      ${!served && html`<${Unserved} waiting=${depth > 0} />`}
    </th>
    <td role="cell" class="number" data-title="Queued"><b>${count(depth)}</b></td>
    <td role="cell" data-title="Share">
      <${Meter} value=${share} most=${1} label=${`${percent(share)} of all that is queued`} /> <small
        class="muted">${percent(share)}</small></td>
    <td role="cell" class="number" data-title="Oldest waits">${
      depth ? duration(found.oldest_age_seconds) : html`<span class="muted">–</span>`
    }</td>
    <td role="cell"><${StateCounts} states=${found.by_status} filter=${{ queue }} /></td>
    <td role="cell" class="row-actions">${
      paused
        ? html`<${ActionButton} small primary
          run=${() => set(queue, "resume", changed)}>Resume</${ActionButton}>`
        : html`<${ActionButton} small confirm=${question(queue, depth)}
          run=${() => set(queue, "pause", changed)}>Pause</${ActionButton}>`
    }</td>
  </tr>`;
});

const question = (queue, depth) =>
  `Pause the queue ${queue}? ${counted(depth, "task")} queued there will wait until you resume it; ` +
  "what runs goes on.";

const set = (queue, verb, changed) => post(`api/v1/queues/${segment(queue)}/${verb}`).then(changed);
