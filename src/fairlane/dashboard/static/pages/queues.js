// What flows where and how fast, and what holds it back.

import { get } from "../lib/api.js";
import { useResource } from "../lib/resource.js";
import { navigate, link } from "../lib/router.js";
import { html, useCallback } from "../lib/preact.js";
import { Empty } from "../ui/empty.js";
import { Fetched } from "../ui/fetched.js";
import { Heading } from "../ui/panel.js";
import { GlobalControls } from "../ui/global-controls.js";
import { ActiveLimits } from "./queues/active-limits.js";
import { QueueTable } from "./queues/queue-table.js";
import { TypeTable } from "./queues/type-table.js";

const EVENTS = [
  "system.metrics",
  "worker.joined",
  "worker.left",
  "worker.paused",
  "worker.draining",
  "worker.dead",
];

export function Queues({ query }) {
  const board = useResource(load, [], { on: EVENTS, every: 5000 });
  const changed = useCallback(board.refresh, []); // The same all along: rows are drawn anew for nothing else.
  const view = viewOf(query);
  const search = (find) => navigate(addressOf(view, { find }), { replace: true });
  return html`
    <${Heading} title="Queues and types"><${GlobalControls} changed=${changed} /></${Heading}>
    <${Fetched} resource=${board} rows=${8}>${(found) => html`
      <${ActiveLimits} controls=${found.controls} />
      ${
        found.types.length + found.queues.length === 0
          ? html`<${Nothing} />`
          : html`
            <div class="row name-search">
              <label for="name">Find</label>
              <input id="name" type="search" placeholder="part of a name" value=${view.find}
                onInput=${(event) => search(event.target.value)} />
            </div>
            <${QueueTable} queues=${named(found.queues, "queue", view)} all=${found.queues}
              workers=${found.workers} changed=${changed}
              order=${view.queues} to=${(queues) => addressOf(view, { queues })} />
            <${TypeTable} types=${named(found.types, "type", view)} all=${found.types}
              workers=${found.workers} changed=${changed}
              order=${view.types} to=${(types) => addressOf(view, { types })} />`
      }
    `}</${Fetched}>`;
}

// By name, unless one asks otherwise: numbers change all the time, and rows would jump.
const viewOf = (query) => ({
  find: query.get("find") ?? "",
  queues: query.get("queues") ?? "queue",
  types: query.get("types") ?? "type",
});

const addressOf = (view, change) => link("queues", { ...view, ...change });

const named = (rows, name, { find }) =>
  rows.filter((row) => row[name].toLowerCase().includes(find.trim().toLowerCase()));

async function load(abort) {
  const [{ queues }, { types }, { workers }, controls] = await Promise.all(
    ["queues", "types", "workers", "control"].map((name) => get(`api/v1/${name}`, {}, abort)),
  );
  return { queues, types, workers, controls };
}

const Nothing = () => html`<${Empty} title="No queues and no types yet">
  <p>A queue is there once a task was submitted to it, and so is a type:</p>
  <pre><code>fairlane submit echo '{"say": "hello"}' --queue mail</code></pre>
  <p>
    Queues keep kinds of work apart that have workers of their own: <code>fairlane worker --queues mail</code>
  </p>
</${Empty}>`;
