// @ts-check
// Queues and types: what waits, how fast it goes, and what holds it back.

import { get } from "../lib/api.js";
import { onValue } from "../lib/inputs.js";
import { html, useCallback } from "../lib/preact.js";
import { useResource } from "../lib/resource.js";
import { link, navigate } from "../lib/router.js";
import { loadStyle } from "../lib/stylesheet.js";
import { Empty } from "../ui/empty.js";
import { fetched } from "../ui/fetched.js";
import { GlobalControls } from "../ui/global-controls.js";
import { Heading } from "../ui/panel.js";
import { ActiveLimits } from "./queues/active-limits.js";
import { QueueTable } from "./queues/queue-table.js";
import { TypeTable } from "./queues/type-table.js";

/**
 * @import { EventType } from "../../types/api.js"
 * @typedef {{ find: string, queues: string, types: string }} View What names contain, and the tables' orders.
 */

await loadStyle("folding-tables.css");

/** @type {EventType[]} */
const EVENTS = [
  "system.metrics",
  "worker.joined",
  "worker.left",
  "worker.paused",
  "worker.draining",
  "worker.dead",
];

/** @param {{ query: URLSearchParams }} props */
export function Queues({ query }) {
  const board = useResource(load, [], { on: EVENTS, every: 5000 });
  const changed = useCallback(board.refresh, []); // The same function always: a new one draws all rows again.
  const view = viewOf(query);
  const matches = (/** @type {string} */ name) => name.toLowerCase().includes(view.find.trim().toLowerCase());
  const search = onValue((find) => navigate(addressOf(view, { find }), { replace: true }));
  return html`
    <${Heading} title="Queues and types"><${GlobalControls} changed=${changed} /></${Heading}>
    ${fetched(
      board,
      ({ queues, types, workers, controls }) => html`
        <${ActiveLimits} controls=${controls} />
        ${
          types.length + queues.length === 0
            ? html`<${Nothing} />`
            : html`
              <div class="row name-search">
                <label for="name">Find</label>
                <input id="name" type="search" placeholder="part of a name" value=${view.find}
                  onInput=${search} />
              </div>
              <${QueueTable} queues=${queues.filter(({ queue }) => matches(queue))} all=${queues}
                workers=${workers} changed=${changed} order=${view.queues}
                to=${(/** @type {string} */ order) => addressOf(view, { queues: order })} />
              <${TypeTable} types=${types.filter(({ type }) => matches(type))} all=${types}
                workers=${workers} changed=${changed} order=${view.types}
                to=${(/** @type {string} */ order) => addressOf(view, { types: order })} />`
        }
      `,
      8,
    )}`;
}

/**
 * Rows are in the order of their names, unless the viewer chose another: numbers change all the time, and
 * rows would jump.
 *
 * @param {URLSearchParams} query
 * @returns {View}
 */
const viewOf = (query) => ({
  find: query.get("find") ?? "",
  queues: query.get("queues") ?? "queue",
  types: query.get("types") ?? "type",
});

/** @param {View} view @param {Partial<View>} change */
const addressOf = (view, change) => link("queues", { ...view, ...change });

/** @param {AbortSignal} abort */
async function load(abort) {
  const [{ queues }, { types }, { workers }, controls] = await Promise.all([
    get("api/v1/queues", {}, abort),
    get("api/v1/types", {}, abort),
    get("api/v1/workers", {}, abort),
    get("api/v1/control", {}, abort),
  ]);
  return { queues, types, workers, controls };
}

const Nothing = () => html`<${Empty} title="No queues and no types yet">
  <p>A queue or a type appears with its first task:</p>
  <pre><code>fairlane submit echo '{"say": "hello"}' --queue mail</code></pre>
  <p>
    Use queues to give some tasks their own workers: <code>fairlane worker --queues mail</code>
  </p>
</${Empty}>`;
