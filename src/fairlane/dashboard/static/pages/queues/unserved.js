import { html } from "../../lib/preact.js";
import { Badge } from "../../ui/badges.js";

/** Whether a worker takes tasks of a queue or a type; `of`: "queues" or "types". */
export const isServed = (workers, of, name) =>
  workers.some((worker) => worker.status === "active" && (worker[of] === null || worker[of].includes(name)));

/** Says that none does. It matters where something waits. */
export function Unserved({ waiting }) {
  const title =
    "No active worker takes tasks from here. Start one, or see on the page of workers what yours take.";
  return html`<${Badge} tone=${waiting ? "danger" : "plain"} title=${title}>no worker</${Badge}>`;
}
