// What flows where and how fast, and what holds it back.

import { get } from "../lib/api.js";
import { useResource } from "../lib/resource.js";
import { go, link } from "../lib/router.js";
import { html, useCallback } from "../lib/view.js";
import { Empty, Fetched, Heading } from "../ui/parts.js";
import { Pause } from "../ui/pause.js";
import { InForce } from "./queues/force.js";
import { QueueTable } from "./queues/queues.js";
import { TypeTable } from "./queues/types.js";

const EVENTS = [
  "system.metrics",
  "worker.joined",
  "worker.left",
  "worker.paused",
  "worker.draining",
  "worker.dead",
];

export function Queues({ query }) {
  const board = useResource(look, [], { on: EVENTS, every: 5000 });
  const changed = useCallback(board.refresh, []); // The same all along: rows are drawn anew for nothing else.
  const view = viewOf(query);
  return html`
    <${Heading} title="Queues and types"><${Pause} changed=${changed} /></${Heading}>
    <${Fetched} resource=${board} rows=${8}>${(found) => html`
      <${InForce} controls=${found.controls} />
      ${
        found.types.length + found.queues.length === 0
          ? html`<${Nothing} />`
          : html`
            <div class="row find">
              <label for="name">Find</label>
              <input id="name" type="search" placeholder="part of a name" value=${view.find}
                onInput=${(event) => go(addressOf(view, { find: event.target.value }), { replace: true })} />
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

async function look(abort) {
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
