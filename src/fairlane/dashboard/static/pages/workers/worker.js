// @ts-check
// A worker, with its load, health and tasks.

import { post, segment } from "../../lib/api.js";
import { now } from "../../lib/clock.js";
import { counted, shortId } from "../../lib/format.js";
import { html } from "../../lib/preact.js";
import { link } from "../../lib/router.js";
import { ActionButton } from "../../ui/action-button.js";
import { Badge, WorkerBadge } from "../../ui/badges.js";
import { CopyButton } from "../../ui/copy-button.js";
import { Meter } from "../../ui/meter.js";
import { Ago } from "../../ui/time.js";
import { CurrentTasks } from "./current-tasks.js";
import { healthOf } from "./health.js";

/** @import { WorkerView } from "../../../types/api.js" */

const MANY = 12;
const AHEAD = "Tasks that it has claimed, and starts as soon as a place is free.";

/**
 * Return how many places are taken. The load that a worker reports is as old as its last heartbeat.
 *
 * @param {WorkerView} worker
 */
export const loadOf = ({ capacity, current_tasks: tasks }) => Math.min(capacity, tasks.length);

/**
 * @param {{ worker: WorkerView, refresh: () => Promise<void>, open?: boolean }} props Open: with its tasks.
 */
export function Worker({ worker, refresh, open = false }) {
  const { worker_id: id, status, held_back: held = [] } = worker;
  const dead = status === "dead";

  async function drain() {
    await post(`api/v1/workers/${segment(id)}/drain`);
    await refresh();
    return "It takes no further task.";
  }

  return html`<li class="panel worker">
    <header>
      <h2 class="ellipsis" title=${id}><a href=${link("workers", { id })}>${nameOf(id)}</a></h2>
      <${CopyButton} text=${id} what="the worker's id" />
      <${WorkerBadge} status=${status} />
      ${!dead && html`<${Silence} worker=${worker} />`}
      <${Load} worker=${worker} />
      ${
        !dead &&
        html`<${ActionButton} small danger disabled=${status === "draining"} confirm=${drainQuestion(worker)}
          run=${drain}>Drain</${ActionButton}>`
      }
    </header>
    <dl class="facts">
      <dt>Host</dt>
      <dd>${worker.host} <span class="muted">version <bdi>${worker.version}</bdi></span></dd>
      <dt>Serves</dt>
      <dd>
        <${Served} name="queue" some=${worker.queues} /> · <${Served} name="type" some=${worker.types} />
        ${worker.capabilities.length > 0 && html` · capabilities: <${Names} names=${worker.capabilities} />`}
      </dd>
      ${!dead && held.length > 0 && html`<${HeldBack} types=${held} />`}
      <dt>Heartbeat</dt>
      <dd>
        <${Ago} at=${worker.last_heartbeat} />
        ${" "}<span class="muted">· registered <${Ago} at=${worker.registered_at} /></span>
      </dd>
      ${worker.health && html`<${Health} health=${worker.health} />`}
    </dl>
    ${worker.current_tasks.length > 0 && html`<${CurrentTasks} worker=${worker} open=${open} />`}
  </li>`;
}

/** @param {{ worker: WorkerView }} props */
function Load({ worker }) {
  const { capacity, current_tasks: tasks } = worker;
  const load = loadOf(worker);
  const ahead = tasks.length - load;
  return html`<span class="worker-load">
    <${Meter} value=${load} most=${capacity} tone=${load >= capacity ? "warning" : "good"}
      label=${`${load} of ${counted(capacity, "place")} used`} />
    <span>
      <b>${load}</b> of ${capacity}
      ${ahead > 0 && html` <span class="muted" title=${AHEAD}>+ ${ahead}</span>`}
    </span>
  </span>`;
}

/** Warns of a worker that has been silent for half of its lease. @param {{ worker: WorkerView }} props */
function Silence({ worker: { last_heartbeat: last, lease_seconds: lease } }) {
  const silent = (now.value - Date.parse(last)) / 1000;
  if (silent <= lease / 2) return null;
  const title = `After ${lease} s it counts as dead, and its tasks go back to the queue.`;
  return html`<${Badge} tone="warning" title=${title}>
    silent for ${Math.floor(silent)} of ${lease} s
  </${Badge}>`;
}

const HANGING =
  "Their handlers hang in threads, which nothing can end. It tries one task of each now and then. " +
  "Give what they call a time limit, or the tasks a process of their own, and restart the worker.";

/** @param {{ types: string[] }} props */
const HeldBack = ({ types }) => html`<dt>Holds back</dt>
  <dd>
    <${Names} names=${types} /> <${Badge} tone="warning" title=${HANGING}>handlers hang</${Badge}>
  </dd>`;

/** @param {{ name: string, some: string[] | null }} props Null: all. */
const Served = ({ name, some }) =>
  some === null ? html`all ${name}s` : html`${counted(some.length, name)}: <${Names} names=${some} />`;

/** @param {{ names: string[] }} props */
function Names({ names }) {
  const [first, rest] = [names.slice(0, MANY), names.slice(MANY)];
  if (rest.length === 0) return first.join(", ");
  return html`${first.join(", ")} <span class="muted"
    title=${rest.join(", ")}>and ${rest.length} more</span>`;
}

/** @param {{ health: Record<string, unknown> }} props */
const Health = ({ health }) => html`<dt>Health</dt><dd class="worker-health">
  ${healthOf(health).map(
    ([title, text]) => html`<span key=${title}><span class="muted">${title}</span> ${text}</span>`,
  )}
</dd>`;

/** @param {WorkerView} worker */
function drainQuestion({ worker_id: id, current_tasks: tasks }) {
  const grace = tasks.length
    ? `has its grace time to finish the ${counted(tasks.length, "task")} it has, `
    : "";
  return (
    `Drain ${nameOf(id)}? It takes no further task, ${grace}and leaves. ` +
    "It does not come back unless it is started again."
  );
}

/**
 * Return a name for people: the name that the id begins with, if it has one, and its end.
 *
 * @param {string} id
 */
function nameOf(id) {
  const dot = id.lastIndexOf(".");
  return dot > 0 ? `${id.slice(0, dot)} ${shortId(id)}` : shortId(id);
}
