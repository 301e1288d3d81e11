import { part, post } from "../../lib/api.js";
import { count, counted, duration, percent } from "../../lib/format.js";
import { drawnOnce, useKept } from "../../lib/kept.js";
import { link } from "../../lib/router.js";
import { html } from "../../lib/view.js";
import { Action } from "../../ui/action.js";
import { Note } from "../../ui/badges.js";
import { Meter, Panel } from "../../ui/parts.js";
import { SortedHead, sorted } from "../../ui/sort.js";
import { StateCounts } from "../../ui/states.js";
import { isServed, Unserved } from "./served.js";

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
  const rows = sorted(useKept(queues, "queue"), COLUMNS, order);
  return html`<${Panel} title="Queues" hint=${hint(queues, all)} flush>
    <table class="fold queues" role="table" aria-label="Queues">
      <${SortedHead} columns=${COLUMNS} order=${order} to=${to} />
      <tbody role="rowgroup">${rows.map(
        (each) => html`<${Queue} key=${each.queue} found=${each} changed=${changed}
          share=${sum ? each.depth / sum : 0} served=${isServed(workers, "queues", each.queue)} />`,
      )}</tbody>
    </table>
    ${rows.length === 0 && html`<p class="rest dim">No queue has this in its name.</p>`}
  </${Panel}>`;
}

/** How many are shown of how many there are. */
export const hint = (shown, all) =>
  shown.length === all.length ? count(all.length) : `${count(shown.length)} of ${count(all.length)}`;

const Queue = drawnOnce(({ found, share, served, changed }) => {
  const { queue, depth, paused } = found;
  return html`<tr role="row" data-name=${queue}>
    <th role="rowheader" scope="row" class="name">
      <a href=${link("tasks", { queue })}>${queue}</a>
      ${paused && html`<${Note} tone="warning">paused</${Note}>`}
      ${!served && html`<${Unserved} waiting=${depth > 0} />`}
    </th>
    <td role="cell" class="number" data-title="Queued"><b>${count(depth)}</b></td>
    <td role="cell" data-title="Share">
      <${Meter} value=${share} most=${1} label=${`${percent(share)} of all that is queued`} /> <small
        class="dim">${percent(share)}</small></td>
    <td role="cell" class="number" data-title="Oldest waits">${
      depth ? duration(found.oldest_age_seconds) : html`<span class="dim">–</span>`
    }</td>
    <td role="cell"><${StateCounts} states=${found.by_status} filter=${{ queue }} /></td>
    <td role="cell" class="acts">${
      paused
        ? html`<${Action} small primary run=${() => set(queue, "resume", changed)}>Resume</${Action}>`
        : html`<${Action} small confirm=${question(queue, depth)}
          run=${() => set(queue, "pause", changed)}>Pause</${Action}>`
    }</td>
  </tr>`;
});

const question = (queue, depth) =>
  `Pause the queue ${queue}? ${counted(depth, "task")} queued there will wait until you resume it; ` +
  "what runs goes on.";

const set = (queue, verb, changed) => post(`api/v1/queues/${part(queue)}/${verb}`).then(changed);
