// @ts-check
// The workers: their health, their load, and how to drain one.

import { get } from "../lib/api.js";
import { count, counted } from "../lib/format.js";
import { html } from "../lib/preact.js";
import { useResource } from "../lib/resource.js";
import { link } from "../lib/router.js";
import { loadStyle } from "../lib/stylesheet.js";
import { Empty } from "../ui/empty.js";
import { fetched } from "../ui/fetched.js";
import { Meter } from "../ui/meter.js";
import { Heading } from "../ui/panel.js";
import { NoWorkers } from "./workers/empty.js";
import { loadOf, Worker } from "./workers/worker.js";

/**
 * @import { EventType, WorkerView } from "../../types/api.js"
 * @typedef {() => Promise<void>} Refresh
 */

await loadStyle("workers.css");

/** @type {EventType[]} */
const EVENTS = ["worker.joined", "worker.left", "worker.paused", "worker.draining", "worker.dead"];
const FEW = 3;

/** @param {{ query: URLSearchParams }} props */
export function Workers({ query }) {
  const workers = useResource((abort) => get("api/v1/workers", {}, abort), [], { on: EVENTS, every: 2000 });
  const { refresh } = workers;
  const id = query.get("id");
  return html`
    <${Heading} title="Workers">
      ${id && html`<a class="button" href=${link("workers")}>Show all</a>`}
    </${Heading}>
    ${fetched(
      workers,
      ({ workers: all }) =>
        id
          ? html`<${One} worker=${all.find((each) => each.worker_id === id)} id=${id} refresh=${refresh} />`
          : html`<${All} workers=${all} refresh=${refresh} />`,
      6,
    )}`;
}

/** @param {{ worker?: WorkerView, id: string, refresh: Refresh }} props */
const One = ({ worker, id, refresh }) =>
  worker
    ? html`<ul class="workers"><${Worker} worker=${worker} refresh=${refresh} open /></ul>`
    : html`<${Empty} title="This worker is no longer known">
      <p>It has left, or it died and was removed some time later.</p>
      <p><code>${id}</code></p>
      <a class="button" href=${link("tasks", { worker: id })}>The tasks that it ran</a>
    </${Empty}>`;

/** @param {{ workers: WorkerView[], refresh: Refresh }} props */
function All({ workers, refresh }) {
  const alive = workers.filter(({ status }) => status !== "dead");
  const dead = workers.filter(({ status }) => status === "dead");
  const shown = (/** @type {WorkerView} */ worker, open = false) =>
    html`<${Worker} key=${worker.worker_id} worker=${worker} refresh=${refresh} open=${open} />`;
  return html`
    ${alive.length > 0 ? html`<${Totals} workers=${alive} />` : html`<${NoWorkers} />`}
    <ul class="workers">${alive.map((each) => shown(each, alive.length <= FEW))}</ul>
    ${
      dead.length > 0 &&
      html`<details class="disclosure">
        <summary>${counted(dead.length, "dead worker")}</summary>
        <p class="muted">
          They sent no heartbeat for too long. Their tasks went back to the queue. They are removed
          automatically.
        </p>
        <ul class="workers">${dead.map((each) => shown(each))}</ul>
      </details>`
    }`;
}

/** @param {{ workers: WorkerView[] }} props */
function Totals({ workers }) {
  const active = workers.filter(({ status }) => status === "active");
  const used = sum(workers.map(loadOf));
  const capacity = sum(workers.map(placesOf));
  // Workers that drain or are unhealthy take no new task, however many places they have.
  const free = sum(active.map(placesOf)) - sum(active.map(loadOf));
  return html`<ul class="cards">
    <li class="card" data-tone="good">
      <span>Active</span><b>${count(active.length)}</b>
      <small class="muted">
        ${active.length < workers.length ? `of ${count(workers.length)}` : "all of them"}
      </small>
    </li>
    <li class="card" data-tone="info">
      <span>Places</span><b>${count(capacity)}</b>
      <small class="muted">tasks at once</small>
    </li>
    <li class="card" data-state="executing">
      <span>Used</span><b>${count(used)}</b>
      <small>
        <${Meter} value=${used} most=${capacity}
          label=${`${count(used)} of ${counted(capacity, "place")} used`} />
      </small>
    </li>
    <li class="card" data-tone=${free ? "plain" : "warning"}>
      <span>Free</span><b>${count(free)}</b>
      <small class="muted">${free ? "for new tasks" : "new tasks have to wait"}</small>
    </li>
  </ul>`;
}

/** @param {number[]} numbers */
const sum = (numbers) => numbers.reduce((all, each) => all + each, 0);

/** @param {WorkerView} worker */
const placesOf = ({ capacity }) => capacity;
