// Who runs the tasks: how they are, how much they have to do, and how to send one home.

import { get } from "../lib/api.js";
import { count, counted } from "../lib/format.js";
import { useResource } from "../lib/resource.js";
import { link } from "../lib/router.js";
import { html } from "../lib/preact.js";
import { Empty } from "../ui/empty.js";
import { Fetched } from "../ui/fetched.js";
import { Meter } from "../ui/meter.js";
import { Heading } from "../ui/panel.js";
import { NoWorkers } from "./workers/empty.js";
import { Worker, loadOf } from "./workers/worker.js";

const EVENTS = ["joined", "left", "paused", "draining", "dead"].map((name) => `worker.${name}`);
const FEW = 3;

export function Workers({ query }) {
  const workers = useResource((abort) => get("api/v1/workers", {}, abort), [], { on: EVENTS, every: 2000 });
  const id = query.get("id");
  return html`
    <${Heading} title="Workers">${id && html`<a class="button" href=${link("workers")}>Show all</a>`}
    </${Heading}>
    <${Fetched} resource=${workers} rows=${6}>${({ workers: all }) =>
      id
        ? html`<${One} worker=${all.find((each) => each.worker_id === id)} id=${id}
          refresh=${workers.refresh} />`
        : html`<${All} workers=${all} refresh=${workers.refresh} />`}</${Fetched}>`;
}

const One = ({ worker, id, refresh }) =>
  worker
    ? html`<ul class="workers"><${Worker} worker=${worker} refresh=${refresh} open /></ul>`
    : html`<${Empty} title="This worker is no longer known">
      <p>It has left; or it died, and was cleared away some time after that.</p>
      <p><code>${id}</code></p>
      <a class="button" href=${link("tasks", { worker: id })}>The tasks that it ran</a>
    </${Empty}>`;

function All({ workers, refresh }) {
  const alive = workers.filter(({ status }) => status !== "dead");
  const dead = workers.filter(({ status }) => status === "dead");
  return html`
    ${alive.length > 0 ? html`<${Totals} workers=${alive} />` : html`<${NoWorkers} />`}
    <ul class="workers">${alive.map(
      (each) =>
        html`<${Worker} key=${each.worker_id} worker=${each} refresh=${refresh}
          open=${alive.length <= FEW} />`,
    )}</ul>
    ${
      dead.length > 0 &&
      html`<details class="disclosure">
        <summary>${counted(dead.length, "dead worker")}</summary>
        <p class="muted">
          They fell silent. What they had was given to others; they are cleared away by themselves.
        </p>
        <ul class="workers">${dead.map(
          (each) => html`<${Worker} key=${each.worker_id} worker=${each} refresh=${refresh} />`,
        )}</ul>
      </details>`
    }`;
}

function Totals({ workers }) {
  const sum = (some, of) => some.reduce((all, each) => all + of(each), 0);
  const active = workers.filter(({ status }) => status === "active");
  const used = sum(workers, loadOf);
  const capacity = sum(workers, placesOf);
  // What drains, or is not well, takes nothing new, however much room it has.
  const free = sum(active, placesOf) - sum(active, loadOf);
  return html`<ul class="cards">
    <li class="card" data-tone="good"><span>Active</span><b>${count(active.length)}</b>
      <small class="muted">${
        active.length < workers.length ? `of ${count(workers.length)}` : "all that are there"
      }</small></li>
    <li class="card" data-tone="info"><span>Places</span><b>${count(capacity)}</b>
      <small class="muted">tasks at once</small></li>
    <li class="card" data-state="executing"><span>Used</span><b>${count(used)}</b>
      <small>
        <${Meter} value=${used} most=${capacity}
          label=${`${count(used)} of ${counted(capacity, "place")} used`} /></small></li>
    <li class="card" data-tone=${free ? "plain" : "warning"}><span>Free</span><b>${count(free)}</b>
      <small class="muted">${free ? "for what comes" : "what comes has to wait"}</small></li>
  </ul>`;
}

const placesOf = ({ capacity }) => capacity;
