import { segment, post } from "../../lib/api.js";
import { now } from "../../lib/clock.js";
import { counted, shortId } from "../../lib/format.js";
import { link } from "../../lib/router.js";
import { html } from "../../lib/preact.js";
import { ActionButton } from "../../ui/action-button.js";
import { Badge, WorkerBadge } from "../../ui/badges.js";
import { CopyButton } from "../../ui/copy-button.js";
import { Meter } from "../../ui/meter.js";
import { Ago } from "../../ui/time.js";
import { CurrentTasks } from "./current-tasks.js";
import { healthOf } from "./health.js";

const MANY = 12;

/** How many places are taken. What a worker says of that itself is as old as its last heartbeat. */
export const loadOf = ({ capacity, current_tasks: tasks }) => Math.min(capacity, tasks.length);

/** A worker; with what it runs now, if it is `open`. */
export function Worker({ worker, refresh, open = false }) {
  const { worker_id: id, status, capacity } = worker;
  const load = loadOf(worker);
  const ahead = worker.current_tasks.length - load;
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
      <span class="worker-load"><${Meter} value=${load} most=${capacity} tone=${
        load >= capacity ? "warning" : "good"
      } label=${`${load} of ${counted(capacity, "place")} used`} />
        <span><b>${load}</b> of ${capacity}${
          ahead > 0 &&
          html` <span class="muted" title="Tasks that it holds, to begin as soon as it has room.">+ ${ahead}
          </span>`
        }</span></span>
      ${
        !dead &&
        html`<${ActionButton} small danger disabled=${status === "draining"} confirm=${draining(worker)}
          run=${drain}>Drain</${ActionButton}>`
      }
    </header>
    <dl class="facts">
      <dt>Host</dt><dd>${worker.host} <span class="muted">version ${worker.version}</span></dd>
      <dt>Serves</dt><dd>
        <${Served} name="queue" some=${worker.queues} /> · <${Served} name="type" some=${worker.types} />
        ${worker.capabilities.length > 0 && html` · able to <${Names} names=${worker.capabilities} />`}</dd>
      <dt>Heard of</dt><dd>
        <${Ago} at=${worker.last_heartbeat} /> <span class="muted">· came <${Ago}
            at=${worker.registered_at} />
        </span></dd>
      ${
        worker.health &&
        html`<dt>Health</dt><dd class="worker-health">${healthOf(worker.health).map(
          ([name, value]) => html`<span key=${name}><span class="muted">${name}</span> ${value}</span>`,
        )}</dd>`
      }
    </dl>
    ${worker.current_tasks.length > 0 && html`<${CurrentTasks} worker=${worker} open=${open} />`}
  </li>`;
}

/** Warns of a worker that has said nothing for more than half of the time after which it counts as dead. */
function Silence({ worker: { last_heartbeat: last, lease_seconds: lease } }) {
  const silent = (now.value - Date.parse(last)) / 1000;
  if (silent <= lease / 2) return null;
  const title = `After ${lease} s it counts as dead, and its tasks are given to others.`;
  return html`<${Badge} tone="warning" title=${title}>
    silent for ${Math.floor(silent)} of ${lease} s
  </${Badge}>`;
}

const Served = ({ name, some }) =>
  some === null ? html`all ${name}s` : html`${counted(some.length, name)}: <${Names} names=${some} />`;

function Names({ names }) {
  if (names.length <= MANY) return names.join(", ");
  return html`${names.slice(0, MANY).join(", ")} <span class="muted"
    title=${names.slice(MANY).join(", ")}>and ${names.length - MANY} more</span>`;
}

function draining({ worker_id: id, current_tasks: tasks }) {
  const grace = tasks.length && `has its grace time to finish the ${counted(tasks.length, "task")} it has, `;
  return (
    `Drain ${nameOf(id)}? It takes no further task, ${grace || ""}and leaves. ` +
    "It does not come back unless it is started again."
  );
}

/** An id as people know it: the name it begins with, if it has one, and its end. */
const nameOf = (id) => {
  const dot = id.lastIndexOf(".");
  return dot > 0 ? `${id.slice(0, dot)} ${shortId(id)}` : shortId(id);
};
