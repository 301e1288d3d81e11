// @ts-check
// The table of types, with their limits.

import { patch, segment } from "../../lib/api.js";
import { count, counted } from "../../lib/format.js";
import { memo, useStable } from "../../lib/memo.js";
import { html, useState } from "../../lib/preact.js";
import { link } from "../../lib/router.js";
import { ActionButton } from "../../ui/action-button.js";
import { Badge } from "../../ui/badges.js";
import { ConcurrencyInput, RateInput, TimeoutInput } from "../../ui/limit-inputs.js";
import { Meter } from "../../ui/meter.js";
import { Panel } from "../../ui/panel.js";
import { SortableHead, sortRows } from "../../ui/sort.js";
import { StateCounts } from "../../ui/state-counts.js";
import { BreakerForm, CircuitBadge } from "./breaker.js";
import { countHint } from "./queue-table.js";
import { isServed, Unserved } from "./unserved.js";

/**
 * @import { CircuitBreaker, State, TypePatch, TypeView, WorkerView } from "../../../types/api.js"
 * @import { Column } from "../../ui/sort.js"
 */

/** @type {Column<TypeView>[]} */
const COLUMNS = [
  { name: "type", title: "Type", by: ({ type }) => type },
  { name: "held", title: "Running", by: ({ held }) => held, down: true, number: true },
  { name: "concurrency", title: "At once", by: ({ concurrency }) => concurrency || Infinity },
  { name: "rate", title: "Tasks/s", by: ({ rate_limit: rate }) => rate || Infinity },
  { name: "timeout", title: "Time limit", by: ({ timeout_seconds: timeout }) => timeout || Infinity },
  { name: "circuit", title: "Circuit breaker" },
  { name: "queued", title: "Tasks", by: ({ by_status: counts }) => counts.queued, down: true },
  { name: "actions", title: "" },
];

/**
 * @param {object} props
 * @param {TypeView[]} props.types Those that the viewer searched for.
 * @param {TypeView[]} props.all
 * @param {WorkerView[]} props.workers
 * @param {() => void} props.changed
 * @param {string} props.order
 * @param {(order: string) => string} props.to
 */
export function TypeTable({ types, all, workers, changed, order, to }) {
  const rows = sortRows(
    useStable(types, ({ type }) => type),
    COLUMNS,
    order,
  );
  return html`<${Panel} title="Types" hint=${countHint(types, all)} flush>
    <table class="folding-table types" role="table" aria-label="Types">
      <${SortableHead} columns=${COLUMNS} order=${order} to=${to} />
      <tbody role="rowgroup">${rows.map(
        (each) => html`<${TypeRow} key=${each.type} type=${each} changed=${changed}
          served=${isServed(workers, "types", each.type)} />`,
      )}</tbody>
    </table>
    ${rows.length === 0 && html`<p class="table-footer muted">No type's name contains this.</p>`}
  </${Panel}>`;
}

const TypeRow = memo(
  /** @param {{ type: TypeView, served: boolean, changed: () => void }} props */
  ({ type, served, changed }) => {
    const { type: name, paused, by_status: counts, circuit_breaker: breaker } = type;
    const [open, setOpen] = useState(false);
    const set = (/** @type {TypePatch} */ change) =>
      patch(`api/v1/types/${segment(name)}`, change).then(changed);
    const setConcurrency = (/** @type {number | null} */ concurrency) => set({ concurrency });
    const setRate = (/** @type {number | null} */ rate_limit) => set({ rate_limit });
    const setTimeLimit = (/** @type {number | null} */ timeout_seconds) => set({ timeout_seconds });
    const setBreaker = async (/** @type {CircuitBreaker | null} */ circuit_breaker) => {
      await set({ circuit_breaker });
      setOpen(false);
    };
    return html`<tr role="row" data-name=${name}>
      <th role="rowheader" scope="row" class="name">
        <a href=${link("tasks", { type: name })}>${name}</a>
        ${paused && html`<${Badge} tone="warning">paused</${Badge}>`}
        ${!served && html`<${Unserved} waiting=${counts.queued > 0} />`}
      </th>
      <td role="cell" class="number" data-title="Running"><${Running} type=${type} /></td>
      <td role="cell" data-title="At once">
        <${ConcurrencyInput} label=${name} value=${type.concurrency} set=${setConcurrency} />
      </td>
      <td role="cell" data-title="Tasks/s">
        <${RateInput} label=${name} value=${type.rate_limit} set=${setRate} />
      </td>
      <td role="cell" data-title="Time limit">
        <${TimeoutInput} label=${name} value=${type.timeout_seconds} set=${setTimeLimit} />
      </td>
      <td role="cell" data-title="Circuit breaker">
        <${CircuitBadge} type=${type} />
        <button type="button" class="button small link" aria-expanded=${open}
          aria-label=${`Circuit breaker of ${name}`} onClick=${() => setOpen(!open)}>
          ${breaker ? "change" : "set up"}
        </button>
      </td>
      <td role="cell">
        <${StateCounts} counts=${counts}
          to=${(/** @type {State} */ status) => link("tasks", { type: name, status })} />
      </td>
      <td role="cell" class="row-actions">
        ${
          paused
            ? html`<${ActionButton} small primary run=${() => set({ paused: false })}>
              Resume
            </${ActionButton}>`
            : html`<${ActionButton} small confirm=${question(type)} run=${() => set({ paused: true })}>
              Pause
            </${ActionButton}>`
        }
      </td>
    </tr>
    ${
      open &&
      html`<tr role="row" class="detail-row"><td role="cell">
          <${BreakerForm} type=${name} breaker=${breaker} set=${setBreaker} />
        </td></tr>`
    }`;
  },
);

/**
 * How many tasks count against the limit: a cancelled one does until it has stopped.
 *
 * @param {{ type: TypeView }} props
 */
function Running({ type: { held, concurrency } }) {
  if (!concurrency) return held ? html`<b>${count(held)}</b>` : html`<span class="muted">0</span>`;
  const label = `${count(held)} of ${count(concurrency)} at once`;
  return html`<span class="concurrency-use">
    <b>${count(held)}</b> / ${count(concurrency)}
    <${Meter} value=${held} most=${concurrency} label=${label}
      tone=${held >= concurrency ? "warning" : undefined} />
  </span>`;
}

/** @param {TypeView} type */
const question = ({ type, by_status: { queued } }) =>
  `Pause the type ${type}? ${counted(queued, "queued task")} will wait until you resume it; ` +
  "running tasks continue.";
