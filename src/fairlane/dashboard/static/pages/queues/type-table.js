import { segment, patch } from "../../lib/api.js";
import { count, counted } from "../../lib/format.js";
import { memo, useStable } from "../../lib/memo.js";
import { link } from "../../lib/router.js";
import { html, useState } from "../../lib/preact.js";
import { ActionButton } from "../../ui/action-button.js";
import { Badge } from "../../ui/badges.js";
import { ConcurrencyInput, RateInput } from "../../ui/limit-inputs.js";
import { Meter } from "../../ui/meter.js";
import { Panel } from "../../ui/panel.js";
import { SortableHead, sortRows } from "../../ui/sort.js";
import { StateCounts } from "../../ui/state-counts.js";
import { BreakerForm, CircuitBadge } from "./breaker.js";
import { countHint } from "./queue-table.js";
import { isServed, Unserved } from "./unserved.js";

const COLUMNS = [
  { name: "type", title: "Type", by: ({ type }) => type },
  { name: "held", title: "Running", by: ({ held }) => held, down: true, number: true },
  { name: "concurrency", title: "At once", by: ({ concurrency }) => concurrency || Infinity },
  { name: "rate", title: "Tasks/s", by: ({ rate_limit: rate }) => rate || Infinity },
  { name: "circuit", title: "Circuit breaker" },
  { name: "queued", title: "Tasks", by: ({ by_status: states }) => states.queued, down: true },
  { name: "acts", title: "" },
];

/** Types; of `all` of them, those that were looked for. */
export function TypeTable({ types, all, workers, changed, order, to }) {
  const rows = sortRows(useStable(types, "type"), COLUMNS, order);
  return html`<${Panel} title="Types" hint=${countHint(types, all)} flush>
    <table class="folding-table types" role="table" aria-label="Types">
      <${SortableHead} columns=${COLUMNS} order=${order} to=${to} />
      <tbody role="rowgroup">${rows.map(
        (each) =>
          html`<${Type} key=${each.type} found=${each} changed=${changed}
            served=${isServed(workers, "types", each.type)} />`,
      )}</tbody>
    </table>
    ${rows.length === 0 && html`<p class="table-footer muted">No type has this in its name.</p>`}
  </${Panel}>`;
}

const Type = memo(({ found, served, changed }) => {
  const { type, paused, by_status: states } = found;
  const [open, setOpen] = useState(false);
  const set = (change) => patch(`api/v1/types/${segment(type)}`, change).then(changed);
  return html`<tr role="row" data-name=${type}>
    <th role="rowheader" scope="row" class="name">
      <a href=${link("tasks", { type })}>${type}</a>
      ${paused && html`<${Badge} tone="warning">paused</${Badge}>`}
      ${!served && html`<${Unserved} waiting=${states.queued > 0} />`}
    </th>
    <td role="cell" class="number" data-title="Running"><${Running} found=${found} /></td>
    <td role="cell" data-title="At once">
      <${ConcurrencyInput} label=${type} value=${found.concurrency}
        set=${(concurrency) => set({ concurrency })} />
    </td>
    <td role="cell" data-title="Tasks/s">
      <${RateInput} label=${type} value=${found.rate_limit} set=${(rate_limit) => set({ rate_limit })} /></td>
    <td role="cell" data-title="Circuit breaker">
      <${CircuitBadge} found=${found} />
      <button type="button" class="button small link" aria-expanded=${open}
        aria-label=${`Circuit breaker of ${type}`} onClick=${() => setOpen(!open)}>${
          found.circuit_breaker ? "change" : "set up"
        }</button>
    </td>
    <td role="cell"><${StateCounts} states=${states} filter=${{ type }} /></td>
    <td role="cell" class="row-actions">${
      paused
        ? html`<${ActionButton} small primary run=${() => set({ paused: false })}>Resume</${ActionButton}>`
        : html`<${ActionButton} small confirm=${question(type, states.queued)}
          run=${() => set({ paused: true })}>Pause</${ActionButton}>`
    }</td>
  </tr>
  ${
    open &&
    html`<tr role="row" class="detail-row"><td role="cell">
        <${BreakerForm} type=${type} breaker=${found.circuit_breaker}
          set=${(circuit_breaker) => set({ circuit_breaker }).then(() => setOpen(false))} />
      </td></tr>`
  }`;
});

// Places are what a limit goes by: a task that was cancelled keeps its own until it has stopped.
function Running({ found: { held, concurrency } }) {
  if (!concurrency) return held ? html`<b>${count(held)}</b>` : html`<span class="muted">0</span>`;
  const label = `${count(held)} of ${count(concurrency)} at once`;
  return html`<span class="concurrency-use"><b>${count(held)}</b> / ${count(concurrency)}
    <${Meter} value=${held} most=${concurrency} label=${label} tone=${
      held >= concurrency ? "warning" : undefined
    } /></span>`;
}

const question = (type, queued) =>
  `Pause the type ${type}? ${counted(queued, "queued task")} will wait until you resume it; ` +
  "what runs goes on.";
